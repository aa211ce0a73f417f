/* SPDX-License-Identifier: Apache-2.0 */
/* Rooms: what is posted, merged and known; who hears of it. */
#include <sqlite3.h>
#include <string.h>

#include "support/forge-rows.h"
#include "team/room-private.h"

#define TASK "11111111-0000-4000-8000-000000000001"
#define OTHER "11111111-0000-4000-8000-000000000002"

typedef struct World {
    RowWorld *rows;
    Team team; /* nothing of it but the database is needed */
    Rooms *rooms;
} World;

static const RoomActor person = {.actor = "key:k", .name = "ann", .seen_by = "person"};
static const RoomActor coder = {
    .actor = "agent:m1", .name = "coder-1", .execution_id = "e1", .seen_by = "agent"};
static const RoomActor coop = {.actor = "coop", .name = "coop", .seen_by = "coop"};

static World *
world_new(void)
{
    static const char *const sql[] = {
        "INSERT INTO squads (id, user_id, name, created_us, updated_us) VALUES ('s1', '', 'default', 1, 1)",
        "INSERT INTO squad_members (id, squad_id, position, name, role, archetype, created_us, updated_us) "
        "VALUES ('m1', 's1', 1, 'coder-1', 'coder', 'coder', 1, 1)",
        "INSERT INTO tasks (id, number, squad_id, owner, actor, source, title, request, state, created_us, "
        "updated_us) VALUES ('" TASK "', 1, 's1', 'k', 'key:k', 'api', 't', 'r', 'working', 1, 1), ('" OTHER
        "', 2, 's1', 'z', 'key:z', 'api', 't', 'r', 'working', 1, 1)",
        "INSERT INTO task_executions (id, agent, task_id, member_id, owner, kind, role, archetype, adapter, "
        "lease, box_id, state, try, created_us) VALUES ('e1', 'coder-1-aa', '" TASK
        "', 'm1', 'k', 'work', 'coder', 'coder', 'coop', 'l', 'b1', 'working', 1, 1), ('e0', 'coder-1-bb', "
        "'" OTHER "', 'm1', 'z', 'work', 'coder', 'coder', 'coop', 'l', 'b2', 'done', 1, 1)",
    };
    World *w = g_new0(World, 1);

    w->rows = row_world_new();
    for (size_t i = 0; i < G_N_ELEMENTS(sql); i++)
        row_world_sql(w->rows, sql[i]);
    w->team.spec.db = w->rows->bench->db;
    w->rooms = rooms_new(&w->team);
    return w;
}

static void
world_free(World *w)
{
    rooms_free(w->rooms);
    row_world_free(w->rows);
    g_free(w);
}
G_DEFINE_AUTOPTR_CLEANUP_FUNC(World, world_free)

#define ASK(func, ...)                                                                                       \
    ({                                                                                                       \
        RowAnswer answer_ = {0};                                                                             \
        func(__VA_ARGS__, on_row_answer, &answer_);                                                          \
        row_answer_wait(&answer_);                                                                           \
    })
#define FAIL(kind, text, func, ...)                                                                          \
    do {                                                                                                     \
        RowAnswer answer_ = {0};                                                                             \
        func(__VA_ARGS__, on_row_answer, &answer_);                                                          \
        row_answer_wait_error(&answer_, kind, text);                                                         \
    } while (0)

static void
post(World *w, const RoomActor *who, const char *text, RoomPriority priority, const char *recipient)
{
    g_autoptr(Json) message = ASK(room_post, w->rooms, "room-" TASK, who,
                                  &(RoomMessage){.text = text, .priority = priority, .recipient = recipient});

    g_assert_cmpstr(row_text(message, "text"), ==, text);
    g_assert_cmpstr(row_text(message, "seen_by"), ==, who->seen_by);
    g_assert_cmpstr(row_text(message, "author"), ==, who->actor);
}

static Json *
parse(const char *text)
{
    g_autofree char *json = g_strdelimit(g_strdup(text), "'", '"');
    Json *value = json_decode(json, strlen(json), NULL);

    g_assert_nonnull(value);
    return value;
}

static void
update(World *w, const RoomActor *who, const char *text)
{
    g_autoptr(Json) json = parse(text), frame = ASK(room_update, w->rooms, TASK, who, json);

    g_assert_cmpstr(row_text(frame, "type"), ==, "context-update");
    g_assert_cmpstr(row_text(frame, "by"), ==, who->name);
}

static void
refuse(World *w, const RoomActor *who, const char *text, ErrKind kind, const char *problem)
{
    g_autoptr(Json) json = parse(text);

    FAIL(kind, problem, room_update, w->rooms, TASK, who, json);
}

static void
expect_context(World *w, const char *member, const char *text)
{
    g_autoptr(Json) context = ASK(room_context, w->rooms, "1"), expected = parse(text);
    g_autofree char *got = json_encode(json_object_get(context, member)), *wanted = json_encode(expected);

    g_assert_cmpstr(got, ==, wanted);
}

/* ---- who comes in ---- */

static void
test_admit(void)
{
    const struct {
        RoomAsk ask;
        const char *name; /* NULL: there is no such room */
    } cases[] = {
        {{.room_id = "room-" TASK, .owner = "k", .actor = "key:k", .name = "ann"}, "ann"},
        {{.room_id = TASK, .actor = "local", .name = "local"}, "local"},
        {{.room_id = "#1", .owner = "k", .actor = "key:k", .name = "ann"}, "ann"},
        {{.room_id = "2", .owner = "k", .actor = "key:k", .name = "ann"}, NULL},
        {{.room_id = "room-" OTHER, .owner = "k", .actor = "key:k", .name = "ann"}, NULL},
        {{.room_id = "room-nothing", .actor = "local", .name = "local"}, NULL},
        {{.room_id = "", .actor = "local", .name = "local"}, NULL},
        {{.room_id = "room-" TASK, .box_id = "b1"}, "coder-1"},
        {{.box_id = "b1"}, "coder-1"},
        {{.room_id = "room-" OTHER, .box_id = "b1"}, NULL},
        {{.room_id = "room-" OTHER, .box_id = "b2"}, NULL}, /* its agent has ended */
        {{.room_id = "room-" TASK, .box_id = "b3"}, NULL},
    };
    g_autoptr(World) w = world_new();

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        if (cases[i].name == NULL) {
            FAIL(ERR_NOT_FOUND, "no such room", room_admit, w->rooms, &cases[i].ask);
            continue;
        }
        g_autoptr(Json) admitted = ASK(room_admit, w->rooms, &cases[i].ask);
        RoomActor who = room_actor_of(admitted);

        g_assert_cmpstr(who.name, ==, cases[i].name);
        g_assert_cmpstr(row_text(admitted, "id"), ==, "room-" TASK);
        g_assert_cmpstr(who.seen_by, ==, cases[i].ask.box_id != NULL ? "agent" : "person");
        g_assert_cmpstr(who.execution_id, ==, cases[i].ask.box_id != NULL ? "e1" : NULL);
        g_assert_cmpstr(who.actor, ==, cases[i].ask.box_id != NULL ? "agent:m1" : cases[i].ask.actor);
    }
}

/* ---- messages ---- */

static void
test_post(void)
{
    g_autofree char *longest = g_strnfill(ROOM_TEXT_MAX, '\x01'),
                    *longer = g_strnfill(ROOM_TEXT_MAX + 1, 'x');
    g_autofree char *large = g_strnfill(ROOM_DATA_MAX, 'x');
    g_autoptr(Json) data = json_pack("{s:s}", "x", large);
    const struct {
        RoomMessage message;
        const char *problem;
    } cases[] = {
        {{.text = NULL}, "missing"},
        {{.text = ""}, "missing"},
        {{.text = "\xff"}, "UTF-8"},
        {{.text = longer}, "at most 8192"},
        {{.text = "x", .kind = "order"}, "one of message"},
        {{.text = "x", .data = data}, "data of a message"},
        {{.text = "x", .recipient = longer}, "recipient"},
    };
    g_autoptr(World) w = world_new();

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++)
        FAIL(ERR_INVALID, cases[i].problem, room_post, w->rooms, "room-" TASK, &coop, &cases[i].message);
    FAIL(ERR_NOT_FOUND, "no such room", room_post, w->rooms, "room-x", &coop, &(RoomMessage){.text = "x"});
    row_world_expect(w->rows, "");
    post(w, &coder, longest, ROOM_NORMAL, NULL);
    row_world_expect(w->rows, "message.posted");
}

static void
expect_messages(World *w, const RoomFilter *filter, const char *texts, bool more)
{
    g_autoptr(Json) list = ASK(room_messages, w->rooms, "room-" TASK, filter);
    g_autoptr(GString) got = g_string_new(NULL);
    size_t i;
    Json *m;

    json_array_foreach(json_object_get(list, "items"), i, m)
        g_string_append_printf(got, "%s%s", i > 0 ? " " : "", row_text(m, "text"));
    g_assert_cmpstr(got->str, ==, texts);
    g_assert_cmpint(row_is(list, "more"), ==, more);
}

static void
test_messages(void)
{
    const struct {
        RoomFilter filter;
        const char *texts;
        bool more;
    } cases[] = {
        {{.after = 0}, "a b c d", false},
        {{.after = 2}, "c d", false},
        {{.after = 0, .limit = 2}, "a b", true},
        {{.after = -1, .limit = 2}, "c d", true},
        {{.after = 0, .at_least = ROOM_HIGH}, "b d", false},
        {{.after = 0, .for_name = "coder-2"}, "a b d", false},
        {{.after = 0, .for_name = "coder-1"}, "a b c", false},
        {{.after = 9}, "", false},
    };
    g_autoptr(World) w = world_new();

    post(w, &person, "a", ROOM_NORMAL, NULL);
    post(w, &coder, "b", ROOM_URGENT, NULL);
    post(w, &coder, "c", ROOM_LOW, "ann");
    post(w, &coop, "d", ROOM_HIGH, "coder-2");
    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++)
        expect_messages(w, &cases[i].filter, cases[i].texts, cases[i].more);
}

static void
test_rate(void)
{
    g_autoptr(World) w = world_new();
    RoomActor another = coder;

    for (guint i = 0; i < ROOM_SENDS_PER_MIN; i++)
        post(w, &coder, "again", ROOM_NORMAL, NULL);
    FAIL(ERR_LIMIT, "a minute", room_post, w->rooms, TASK, &coder, &(RoomMessage){.text = "once more"});
    another.execution_id = "e2";
    post(w, &another, "mine", ROOM_NORMAL, NULL);
    post(w, &person, "mine too", ROOM_NORMAL, NULL);
}

static void
test_kept(void)
{
    g_autoptr(World) w = world_new();

    G_STATIC_ASSERT(ROOM_MESSAGES_KEPT == 10000);
    post(w, &person, "first", ROOM_NORMAL, NULL);
    row_world_sql(w->rows,
                  "INSERT INTO room_messages (room_id, n, author, author_name, seen_by, priority, kind, "
                  "text, created_us) SELECT room_id, 2, author, author_name, seen_by, priority, kind, "
                  "'second', 1 FROM room_messages");
    row_world_sql(w->rows, "UPDATE room_messages SET n = 10000 WHERE n = 2");
    post(w, &person, "third", ROOM_NORMAL, NULL);
    expect_messages(w, &(RoomFilter){.after = 0}, "second third", false);
}

/* ---- state ---- */

static void
test_update(void)
{
    g_autoptr(World) w = world_new();

    update(w, &coop,
           "{'plan': {'project': 'p', 'phase': {'n': 1, 'name': 'x'}}, 'assignments': {'coder-1': {'task': "
           "'a'}}}");
    update(w, &person, "{'plan': {'phase': {'n': 2, 'name': null}, 'goal': ['a']}}");
    expect_context(w, "plan", "{'project': 'p', 'phase': {'n': 2}, 'goal': ['a']}");
    update(w, &person, "{'plan': {'goal': null, 'phase': null}}");
    expect_context(w, "plan", "{'project': 'p'}");
    expect_context(w, "version", "3");
    row_world_expect(w->rows, "context.updated context.updated context.updated");
    refuse(w, &person, "{}", ERR_INVALID, "plan, assignments or knowledge");
    refuse(w, &person, "{'messages': []}", ERR_INVALID, "messages");
    refuse(w, &person, "{'plan': []}", ERR_INVALID, "plan");
    refuse(w, &person, "{'knowledge': [1]}", ERR_INVALID, "list of objects");
    refuse(w, &person, "{'plan': {'x': 1}, 'knowledge': [{'name': '', 'text': 'x'}]}", ERR_INVALID, "name");
    expect_context(w, "version", "3");
}

static void
test_large_update(void)
{
    g_autoptr(World) w = world_new();
    g_autofree char *half = g_strnfill(ROOM_STATE_MAX / 2, 'x');
    g_autoptr(Json) one = json_pack("{s:{s:s}}", "plan", "a", half);
    g_autoptr(Json) two = json_pack("{s:{s:s}}", "plan", "b", half);
    g_autoptr(Json) answer = ASK(room_update, w->rooms, TASK, &person, one);

    g_assert_cmpint(row_int(answer, "version"), ==, 1);
    FAIL(ERR_INVALID, "plan of a room", room_update, w->rooms, TASK, &person, two);
}

/* An agent leaves the words of others alone. */
static void
test_provenance(void)
{
    g_autoptr(World) w = world_new();

    update(w, &coop,
           "{'plan': {'project': 'p'}, 'assignments': {'coder-1': {'task': 'a'}, 'coder-2': {'task': 'b'}}}");
    update(w, &person, "{'knowledge': [{'name': 'port', 'text': '80'}]}");
    refuse(w, &coder, "{'plan': {'project': 'mine'}}", ERR_DENIED, "project");
    refuse(w, &coder, "{'plan': {'project': null}}", ERR_DENIED, "project");
    refuse(w, &coder, "{'assignments': {'coder-2': {'task': 'my work'}}}", ERR_DENIED, "coder-2");
    refuse(w, &coder, "{'knowledge': [{'name': 'port', 'text': '81'}]}", ERR_DENIED, "port");
    refuse(w, &coder, "{'knowledge': [{'name': 'port', 'text': null}]}", ERR_DENIED, "port");
    update(w, &coder,
           "{'plan': {'notes': 'n'}, 'assignments': {'coder-1': {'at': 'tests'}}, 'knowledge': [{'name': "
           "'lib', 'text': 'x', 'evidence': 'ls'}]}");
    update(w, &coder, "{'plan': {'notes': 'm'}}");
    expect_context(w, "assignments", "{'coder-1': {'task': 'a', 'at': 'tests'}, 'coder-2': {'task': 'b'}}");
    g_autoptr(Json) context = ASK(room_context, w->rooms, TASK);
    Json *sources = json_object_get(json_object_get(context, "sources"), "plan");

    g_assert_cmpstr(row_text(json_object_get(sources, "project"), "seen_by"), ==, "coop");
    g_assert_cmpstr(row_text(json_object_get(sources, "notes"), "by"), ==, "coder-1");
    Json *fact = json_array_get(json_object_get(context, "knowledge"), 1);

    g_assert_cmpstr(row_text(fact, "by"), ==, "coder-1");
    g_assert_cmpstr(row_text(fact, "seen_by"), ==, "agent");
    g_assert_cmpstr(row_text(fact, "evidence"), ==, "ls");
}

/* Each of them has a source, which is longer than it. */
static void
test_many_members(void)
{
    g_autoptr(World) w = world_new();

    for (guint i = 0; i < 3; i++) {
        g_autoptr(GString) text = g_string_new("{'plan': {");

        for (guint k = 0; k < 200; k++)
            g_string_append_printf(text, "%s'm%u': 1", k > 0 ? ", " : "", i * 200 + k);
        g_string_append(text, "}}");
        if (i < 2)
            update(w, &coder, text->str);
        else
            refuse(w, &coder, text->str, ERR_INVALID, "members");
    }
}

static void
test_knowledge(void)
{
    g_autoptr(World) w = world_new();

    update(w, &person,
           "{'knowledge': [{'name': 'a', 'text': '1', 'expires_s': 1}, {'name': 'b', 'text': '2'}]}");
    row_world_expect(w->rows, "knowledge.added knowledge.added context.updated");
    row_world_sql(w->rows, "UPDATE knowledge SET expires_us = 1 WHERE name = 'a'");
    g_autoptr(Json) context = ASK(room_context, w->rooms, TASK);

    g_assert_cmpuint(json_array_size(json_object_get(context, "knowledge")), ==, 1);
    update(w, &person, "{'knowledge': [{'name': 'b', 'text': null}]}");
    expect_context(w, "knowledge", "[]");
    refuse(w, &person, "{'knowledge': [{'name': 'a', 'text': '1', 'expires_s': 0}]}", ERR_INVALID,
           "expires_s");
    refuse(w, &person, "{'knowledge': [{'name': 'a'}]}", ERR_INVALID, "missing");
    for (guint i = 0; i < ROOM_KNOWLEDGE_MAX; i++) {
        g_autofree char *one = g_strdup_printf("{'knowledge': [{'name': 'k%u', 'text': 'x'}]}", i);

        update(w, &person, one);
    }
    refuse(w, &person, "{'knowledge': [{'name': 'more', 'text': 'x'}]}", ERR_LIMIT, "200");
    update(w, &person, "{'knowledge': [{'name': 'k7', 'text': 'y'}]}");
}

/* ---- members ---- */

typedef struct Ear {
    GString *heard;
    guint room; /* frames it takes */
    char *closed;
    void (*heard_one)(void *data);
    void *data;
} Ear;

static bool
hear(const char *text, size_t n, void *ctx)
{
    Ear *ear = ctx;
    g_autoptr(Json) frame = json_decode(text, n, NULL);
    const char *type = row_text(frame, "type");

    if (ear->room == 0)
        return false;
    ear->room--;
    if (strcmp(type, "message") == 0)
        g_string_append_printf(ear->heard, "%s ", row_text(json_object_get(frame, "message"), "text"));
    else if (strcmp(type, "missed") == 0)
        g_string_append_printf(ear->heard, "missed:%d:%d ", (int)row_int(frame, "count"),
                               (int)row_int(frame, "after"));
    else
        g_string_append_printf(ear->heard, "%s ", type);
    if (ear->heard_one != NULL)
        ear->heard_one(ear->data);
    return true;
}

static void
on_closed(const char *why, void *ctx)
{
    Ear *ear = ctx;

    g_assert_null(ear->closed);
    ear->closed = g_strdup(why);
}

static const RoomMemberEvents ears = {hear, on_closed};

static void
expect_heard(Ear *ear, const char *text)
{
    while (ear->heard->len < strlen(text))
        g_main_context_iteration(NULL, TRUE);
    g_assert_cmpstr(ear->heard->str, ==, text);
    g_string_truncate(ear->heard, 0);
}

static void
ear_clear(Ear *ear)
{
    g_string_free(ear->heard, TRUE);
    g_free(ear->closed);
}

static RoomMember *
join(World *w, Ear *ear, const RoomActor *who, RoomFilter filter)
{
    g_autoptr(GError) error = NULL;

    *ear = (Ear){.heard = g_string_new(NULL), .room = 1000000};
    RoomMember *m = room_join(w->rooms, "room-" TASK, who, &filter, &ears, ear, &error);

    g_assert_no_error(error);
    return m;
}

static void
test_members(void)
{
    g_autoptr(World) w = world_new();
    Ear all, loud, mine, late;

    post(w, &person, "early", ROOM_NORMAL, NULL);
    RoomMember *a = join(w, &all, &person, (RoomFilter){.after = -1});
    RoomMember *b = join(w, &loud, &person, (RoomFilter){.after = -1, .at_least = ROOM_HIGH});
    RoomMember *c = join(w, &mine, &coder, (RoomFilter){.after = 0, .for_name = "coder-1"});

    expect_heard(&mine, "early ");
    post(w, &person, "one", ROOM_NORMAL, NULL);
    post(w, &person, "two", ROOM_URGENT, "coder-2");
    post(w, &coder, "three", ROOM_HIGH, NULL);
    update(w, &coder, "{'plan': {'x': 1}}");
    RoomMember *d = join(w, &late, &person, (RoomFilter){.after = 2});
    expect_heard(&late, "two three ");
    expect_heard(&all, "joined joined one two three context-update joined ");
    expect_heard(&loud, "joined two three context-update joined ");
    expect_heard(&mine, "one three context-update joined ");
    room_leave(c);
    expect_heard(&all, "left ");
    post(w, &person, "four", ROOM_NORMAL, NULL);
    expect_heard(&late, "left four ");
    row_world_expect(w->rows, "message.posted agent.joined message.posted message.posted message.posted "
                              "context.updated agent.left message.posted");
    room_leave(b);
    room_leave(d);
    rooms_close(w->rooms, "for a test");
    g_assert_cmpstr(all.closed, ==, "for a test");
    room_leave(a);
    ear_clear(&all);
    ear_clear(&loud);
    ear_clear(&mine);
    ear_clear(&late);
}

/* A member that does not read holds nobody up, and hears of what it missed where it was. */
static void
test_slow(void)
{
    g_autoptr(World) w = world_new();
    g_autoptr(GString) expected = g_string_new("0 ");
    Ear quick, slow;
    RoomMember *q = join(w, &quick, &person, (RoomFilter){.after = -1});
    RoomMember *s = join(w, &slow, &person, (RoomFilter){.after = -1});

    slow.room = 1;
    g_string_truncate(quick.heard, 0);
    for (int i = 0; i < ROOM_QUEUE_MAX + 11; i++) {
        g_autofree char *text = g_strdup_printf("%d", i);

        post(w, &person, text, ROOM_NORMAL, NULL);
        if (i > 0 && i <= ROOM_QUEUE_MAX)
            g_string_append_printf(expected, "%d ", i);
    }
    g_assert_true(g_str_has_suffix(quick.heard->str, " 266 "));
    slow.room = 7;
    room_member_ready(s);
    post(w, &person, "lost", ROOM_NORMAL, NULL);
    slow.room = 1000;
    room_member_ready(s);
    post(w, &person, "on", ROOM_NORMAL, NULL);
    g_string_append(expected, "missed:11:257 on ");
    expect_heard(&slow, expected->str);
    room_leave(q);
    room_leave(s);
    ear_clear(&quick);
    ear_clear(&slow);
}

/* Whoever is far behind gets everything, in order and once, while others go on. */
static void
test_behind(void)
{
    g_autoptr(World) w = world_new();
    g_autoptr(GString) expected = g_string_new(NULL);
    Ear ear;

    for (int i = 0; i < 250; i++) {
        g_autofree char *text = g_strdup_printf("%d", i);

        post(w, &person, text, ROOM_NORMAL, NULL);
        g_string_append_printf(expected, "%d ", i);
    }
    RoomMember *m = join(w, &ear, &person, (RoomFilter){.after = 0});

    ear.room = 30;
    for (int i = 250; i < 300; i++) {
        g_autofree char *text = g_strdup_printf("%d", i);

        post(w, &person, text, ROOM_NORMAL, NULL);
        g_string_append_printf(expected, "%d ", i);
        ear.room += 3;
        room_member_ready(m);
    }
    ear.room = 1000;
    room_member_ready(m);
    expect_heard(&ear, expected->str);
    post(w, &person, "live", ROOM_NORMAL, NULL);
    expect_heard(&ear, "live ");
    room_leave(m);
    ear_clear(&ear);
}

/* By another connection: the callback that this is called from holds ours up. */
static void
insert_second(void *data)
{
    World *w = data;
    sqlite3 *db;

    g_assert_cmpint(sqlite3_open(w->rows->bench->path, &db), ==, SQLITE_OK);
    g_assert_cmpint(sqlite3_exec(db,
                                 "INSERT INTO room_messages (room_id, n, author, author_name, seen_by, "
                                 "priority, kind, text, created_us) SELECT room_id, 2, author, author_name, "
                                 "seen_by, priority, kind, 'second', 1 FROM room_messages WHERE n = 1 ON "
                                 "CONFLICT (room_id, n) DO NOTHING",
                                 NULL, NULL, NULL),
                    ==, SQLITE_OK);
    sqlite3_close(db);
}

static void
tell_of(World *w, gint64 n, const char *text)
{
    RoomFrame frame = {.n = n, .priority = ROOM_NORMAL, .name = "ann"};

    rooms_broadcast(w->rooms, "room-" TASK, &frame,
                    json_pack("{s:s, s:{s:s}}", "type", "message", "message", "text", text), NULL);
}

/* Both ways in which a page and what is told at the same moment can cross. */
static void
test_crossing(void)
{
    g_autoptr(World) w = world_new();
    Ear ear;

    post(w, &person, "first", ROOM_NORMAL, NULL);
    RoomMember *m = join(w, &ear, &person, (RoomFilter){.after = 0});

    /* Told of while the page was read, which has it not. */
    ear.heard_one = insert_second;
    ear.data = w;
    tell_of(w, 2, "second");
    expect_heard(&ear, "first second ");
    /* Told of when a page had it. */
    tell_of(w, 2, "second");
    tell_of(w, 3, "third");
    expect_heard(&ear, "third ");
    room_leave(m);
    ear_clear(&ear);
}

static void
test_crowd(void)
{
    g_autoptr(World) w = world_new();
    Ear listening[ROOM_MEMBERS_EACH], refused = {.heard = g_string_new(NULL)};
    RoomMember *members[ROOM_MEMBERS_EACH];
    g_autoptr(GError) error = NULL;

    for (guint i = 0; i < ROOM_MEMBERS_EACH; i++)
        members[i] = join(w, &listening[i], &coder, (RoomFilter){.after = -1});
    g_assert_null(
        room_join(w->rooms, "room-" TASK, &coder, &(RoomFilter){.after = -1}, &ears, &refused, &error));
    g_assert_error(error, ERR_DOMAIN, ERR_LIMIT);
    for (guint i = 0; i < ROOM_MEMBERS_EACH; i++) {
        room_leave(members[i]);
        ear_clear(&listening[i]);
    }
    ear_clear(&refused);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/team/room/admit", test_admit);
    g_test_add_func("/team/room/post", test_post);
    g_test_add_func("/team/room/messages", test_messages);
    g_test_add_func("/team/room/rate", test_rate);
    g_test_add_func("/team/room/kept", test_kept);
    g_test_add_func("/team/room/update", test_update);
    g_test_add_func("/team/room/large-update", test_large_update);
    g_test_add_func("/team/room/provenance", test_provenance);
    g_test_add_func("/team/room/many-members", test_many_members);
    g_test_add_func("/team/room/knowledge", test_knowledge);
    g_test_add_func("/team/room/members", test_members);
    g_test_add_func("/team/room/slow", test_slow);
    g_test_add_func("/team/room/behind", test_behind);
    g_test_add_func("/team/room/crossing", test_crossing);
    g_test_add_func("/team/room/crowd", test_crowd);
    return g_test_run();
}

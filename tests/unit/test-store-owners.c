/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "store/event-filter.h"
#include "support/store.h"

/* ---- the filter ---- */

static void
test_filter(void)
{
    static const struct {
        const char *asks, *owner;
        bool passes;
    } cases[] = {
        {NULL, "k1", true},  {NULL, "", true},  {NULL, "*", true},   {"k1", "k1", true}, {"k1", "*", true},
        {"k1", "k2", false}, {"k1", "", false}, {"k1", NULL, false}, {"k", "k1", false}, {"k1", "k10", false},
        {"", "", false},     {"", "*", true},   {"", "k1", false},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        FilterCopy *copy = filter_copy_new(&(EventFilter){.owner = cases[i].asks});
        const EventRow row = {.kind = "box.created", .actor = "coop", .data = "{}", .owner = cases[i].owner};
        g_autoptr(Event) event = event_new(&row);

        g_test_message("case %zu", i);
        g_assert_true(filter_row_passes(copy, &row) == cases[i].passes);
        g_assert_true(filter_event_passes(copy, event) == cases[i].passes);
        filter_copy_unref(copy);
    }
}

/* ---- whose it is ---- */

#define SQUAD(id, owner)                                                                                     \
    "INSERT INTO squads (id, user_id, name, created_us, updated_us) VALUES ('" id "', '" owner "', '" id     \
    "', 1, 1)"
#define TASK(id, number, squad, owner)                                                                       \
    "INSERT INTO tasks (id, number, squad_id, owner, actor, source, title, request, state, created_us, "     \
    "updated_us) VALUES ('" id "', " number ", '" squad "', '" owner                                         \
    "', 'coop', 'api', 't', 'r', 'working', 1, 1)"
#define EXECUTION(id, task, owner, box)                                                                      \
    "INSERT INTO task_executions (id, agent, task_id, owner, kind, role, archetype, adapter, lease, "        \
    "box_id, "                                                                                               \
    "state, try, created_us) VALUES ('" id "', 'agent-" id "', '" task "', '" owner                          \
    "', 'work', 'coder', 'coder', 'coop', 'l', '" box "', 'working', 1, 1)"
#define BOX(id, owner, agent)                                                                                \
    "INSERT INTO sandboxes (id, e2b_id, owner, template, template_hash, agent_id, metadata, env, run_user, " \
    "workdir, status, memory_bytes, disk_bytes, inodes, pids, cpu_milli, degraded, from_pool, keep, "        \
    "lifetime_ms, idle_ms, born_mono_us, deadline_mono_us, executions, last_run, created_us, updated_us, "   \
    "last_used_us, ended_us) VALUES ('" id "', '" id "', '" owner "', 'base', 'h', '" agent                  \
    "', '{}', '{}', 'user', '/', 'ready', 1, 1, 1, 1, 1, 0, 0, 0, 1, 1, 1, 1, 0, 0, 1, 1, 1, 0)"

static void
add_rows(Db *db)
{
    static const char *const rows[] = {
        SQUAD("everybodys", ""),
        SQUAD("anns", "ann"),
        TASK("t-ann", "1", "everybodys", "ann"),
        TASK("t-bob", "2", "everybodys", "bob"),
        TASK("t-local", "3", "anns", ""),
        BOX("b-ann", "ann", "agent-e-ann"),
        BOX("b-bob", "bob", "agent-e-ann"), /* as bob claims */
        BOX("b-checks", "checks", ""),
        EXECUTION("e-ann", "t-ann", "ann", "b-ann"),
        EXECUTION("e-admin", "t-ann", "root", "b-gone"),
    };

    for (size_t i = 0; i < G_N_ELEMENTS(rows); i++)
        g_assert_true(store_write_sql(db, rows[i], NULL));
}

static void
test_found(void)
{
    static const struct {
        EventSpec spec;
        const char *owner, *squad;
    } cases[] = {
        {{0}, "", NULL},
        {{.owner = EVENT_FOR_ALL}, "*", NULL},
        {{.owner = EVENT_FOR_ALL, .task_id = "t-ann"}, "*", "everybodys"},
        {{.owner = EVENT_FOR_ALL, .box_id = "b-ann"}, "*", "everybodys"},
        {{.task_id = "t-ann"}, "ann", "everybodys"},
        {{.task_id = "t-bob"}, "bob", "everybodys"},
        {{.task_id = "t-local"}, "", "anns"},
        {{.task_id = "none"}, "", NULL},
        {{.squad_id = "anns"}, "ann", "anns"},
        {{.squad_id = "everybodys"}, "", "everybodys"},
        {{.task_id = "t-bob", .squad_id = "anns"}, "bob", "anns"},
        {{.box_id = "b-ann"}, "ann", "everybodys"},
        {{.box_id = "b-checks"}, "checks", NULL},
        {{.box_id = "none"}, "", NULL},
        {{.box_id = "planner-1", .task_id = "t-ann"}, "ann", "everybodys"},
        {{.execution_id = "e-ann"}, "ann", NULL},
        {{.execution_id = "e-admin", .task_id = "t-ann"}, "root", "everybodys"},
        /* What a box says of itself makes nobody its owner. */
        {{.box_id = "b-bob"}, "bob", "everybodys"},
        {{.box_id = "b-bob", .task_id = "t-ann", .execution_id = "e-ann"}, "bob", "everybodys"},
    };
    g_autoptr(StoreBench) b = store_bench_new_open();

    add_rows(b->db);
    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        EventSpec spec = cases[i].spec;
        g_autoptr(EventCursor) cursor = event_cursor_new(b->log, NULL, -1, NULL, NULL);
        g_autoptr(Event) event = NULL;

        g_test_message("case %zu", i);
        spec.kind = "box.created";
        spec.actor = "coop";
        store_append(b->db, &spec, 1);
        g_assert_cmpint(event_cursor_next(cursor, &event), ==, EVENT_READY);
        g_assert_cmpstr(event->owner, ==, cases[i].owner);
        g_assert_cmpstr(event->squad_id, ==, cases[i].squad);
        g_assert_null(strstr(event->json, "\"owner\""));
    }
    g_assert_cmpint(store_verify(b->log, NULL), ==, 0);
}

/* ---- the chain ---- */

static void
test_chain(void)
{
    static const struct {
        const char *owner, *sql;
    } cases[] = {
        {"ann", "UPDATE events SET owner = 'bob' WHERE seq = 2"},
        {"ann", "UPDATE events SET owner = '*' WHERE seq = 2"},
        {"ann", "UPDATE events SET owner = '' WHERE seq = 2"},
        {"*", "UPDATE events SET owner = '' WHERE seq = 2"},
        {NULL, "UPDATE events SET owner = '*' WHERE seq = 2"},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(StoreBench) b = store_bench_new_open();
        const EventSpec event = {.kind = "box.created", .actor = "coop", .owner = cases[i].owner};

        g_test_message("%s", cases[i].sql);
        store_append(b->db, &event, 3);
        g_assert_cmpint(store_verify(b->log, NULL), ==, 0);
        store_tamper(b->path, cases[i].sql);
        g_assert_cmpint(store_verify(b->log, NULL), ==, 2);
    }
}

/* ---- reading, by every way the same ---- */

enum { ROUNDS = 2500, A_JOB = 100, A_ROUND = 4, LAST = ROUNDS * A_ROUND };

typedef struct Way {
    const char *owner;
    const char *box_id;
    const char *const *kinds;
    guint events;   /* of all */
    gint64 remains; /* their seq, modulo A_ROUND; -1: two of these */
} Way;

static const char *const door_kinds[] = {"door.*", NULL};
static const Way ways[] = {
    {NULL, NULL, NULL, LAST, -1},        {"ann", NULL, NULL, 2 * ROUNDS, -1}, {"cleo", NULL, NULL, ROUNDS, 3},
    {"bob", "b1", NULL, ROUNDS, 2},      {"ann", "b1", NULL, ROUNDS, 1},      {"cleo", "b1", NULL, 0, 0},
    {"ann", NULL, door_kinds, 0, 0},     {"", NULL, NULL, ROUNDS, 3},         {"bob", NULL, door_kinds, 0, 0},
    {NULL, NULL, door_kinds, ROUNDS, 0},
};

static bool
append_rounds(DbTx *tx, void *data, GError **error)
{
    static const EventSpec four[A_ROUND] = {
        {.kind = "box.created", .actor = "coop", .box_id = "b1", .owner = "ann"},
        {.kind = "box.created", .actor = "coop", .box_id = "b1", .owner = "bob"},
        {.kind = "pr.opened", .actor = "coop", .owner = EVENT_FOR_ALL},
        {.kind = "door.denied", .actor = "door", .box_id = "b1"},
    };

    for (guint i = 0; i < A_JOB * A_ROUND; i++) {
        if (!event_append(tx, &four[i % A_ROUND], NULL, error))
            return false;
    }
    return true;
}

typedef struct Counted {
    guint events;
    gint64 last; /* seq */
    gint64 next_after;
    bool done, more;
    const Way *way;
} Counted;

static void
count(Counted *c, const Event *event)
{
    g_assert_cmpint(event->seq, >, c->last);
    if (c->way->remains >= 0)
        g_assert_cmpint(event->seq % A_ROUND, ==, c->way->remains);
    c->last = event->seq;
    c->events++;
}

static void
on_page(const EventPage *page, const GError *error, void *data)
{
    Counted *c = data;

    g_assert_no_error(error);
    for (guint i = 0; i < page->events->len; i++)
        count(c, page->events->pdata[i]);
    c->next_after = page->next_after;
    c->more = page->more;
    c->done = true;
}

static void
on_wake(void *data)
{
    *(bool *)data = true;
}

static void
follow(EventCursor *cursor, Counted *c, bool *woken)
{
    for (;;) {
        g_autoptr(Event) event = NULL;
        EventStep step = event_cursor_next(cursor, &event);

        if (step == EVENT_READY) {
            count(c, event);
            continue;
        }
        g_assert_cmpint(step, ==, EVENT_WAIT);
        if (event_cursor_seq(cursor) == LAST)
            return;
        /* Who finds nothing more on the way is at the end, and not woken. */
        while (!*woken && event_cursor_seq(cursor) < LAST)
            g_main_context_iteration(NULL, TRUE);
        *woken = false;
    }
}

static EventFilter
filter_of(const Way *way)
{
    return (EventFilter){.owner = way->owner, .box_id = way->box_id, .kinds = way->kinds};
}

static void
read_by_all_ways(StoreBench *b)
{
    for (size_t i = 0; i < G_N_ELEMENTS(ways); i++) {
        const EventFilter filter = filter_of(&ways[i]);
        Counted paged = {.more = true, .way = &ways[i]}, followed = {.way = &ways[i]};
        bool woken = false;

        g_test_message("way %zu", i);
        while (paged.more) {
            paged.done = false;
            event_log_read(b->log, &filter, paged.next_after, 400, on_page, &paged);
            while (!paged.done)
                g_main_context_iteration(NULL, TRUE);
        }
        g_assert_cmpuint(paged.events, ==, ways[i].events);
        g_assert_cmpint(paged.next_after, ==, LAST);

        g_autoptr(EventCursor) cursor = event_cursor_new(b->log, &filter, 0, on_wake, &woken);
        follow(cursor, &followed, &woken);
        g_assert_cmpuint(followed.events, ==, ways[i].events);
    }
}

static void
test_reading(void)
{
    g_autoptr(StoreBench) b = store_bench_new_open();
    EventCursor *live[G_N_ELEMENTS(ways)];
    Counted seen[G_N_ELEMENTS(ways)] = {{0}};
    bool woken[G_N_ELEMENTS(ways)] = {false};

    for (size_t i = 0; i < G_N_ELEMENTS(ways); i++) {
        const EventFilter filter = filter_of(&ways[i]);

        seen[i].way = &ways[i];
        live[i] = event_cursor_new(b->log, &filter, -1, on_wake, &woken[i]);
    }
    for (guint i = 0; i < ROUNDS / A_JOB; i++)
        g_assert_true(store_write(b->db, append_rounds, NULL, NULL));
    for (size_t i = 0; i < G_N_ELEMENTS(ways); i++) {
        follow(live[i], &seen[i], &woken[i]);
        g_assert_cmpuint(seen[i].events, ==, ways[i].events);
        event_cursor_free(live[i]);
    }
    read_by_all_ways(b);
    store_bench_close(b);
    store_bench_open(b, NULL);
    read_by_all_ways(b);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/owners/filter", test_filter);
    g_test_add_func("/owners/found", test_found);
    g_test_add_func("/owners/chain", test_chain);
    g_test_add_func("/owners/reading", test_reading);
    return g_test_run();
}

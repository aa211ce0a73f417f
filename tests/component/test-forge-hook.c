/* SPDX-License-Identifier: Apache-2.0 */
/* Webhooks, against a server that answers as a test likes. */
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "forge/forge-private.h"
#include "forge/hook-private.h"
#include "forge/pull.h"
#include "http-probe.h"
#include "http-script.h"
#include "support/forge-rows.h"

#define ANSWER(status) "HTTP/1.1 " status "\r\nContent-Length: 0\r\n\r\n"
#define SECRET "it's a secret"

static const ScriptStep ok_forever[] = {{SCRIPT_REQUEST}, {SCRIPT_SEND, ANSWER("200 OK")}, {SCRIPT_AGAIN}};

/* ROW_ASK for what takes hooks in the place of a forge. */
#define HOOK_ASK(func, world, ...)                                                                           \
    ({                                                                                                       \
        RowAnswer answer_ = {0};                                                                             \
        func((world)->hooks, (world)->owner, __VA_ARGS__, on_row_answer, &answer_);                          \
        row_answer_wait(&answer_);                                                                           \
    })
#define HOOK_FAIL(kind, text, func, world, ...)                                                              \
    do {                                                                                                     \
        RowAnswer answer_ = {0};                                                                             \
        func((world)->hooks, (world)->owner, __VA_ARGS__, on_row_answer, &answer_);                          \
        row_answer_wait_error(&answer_, kind, text);                                                         \
    } while (0)

typedef struct HookWorld {
    RowWorld *rows;
    Seal *seal;
    Hooks *hooks;
    HookOwner owner; /* the repository, unless a test says another */
    guint rendered;
} HookWorld;

static Json *
render(Repo *repo, const HookEvent *event, void *ctx)
{
    HookWorld *w = ctx;

    w->rendered++;
    return json_pack("{s:s, s:s?, s:O?, s:O?, s:O?}", "event", event->name, "action", event->action, "thread",
                     event->thread, "object", event->object, "sender", event->sender);
}

/* For squads and tasks: what the follower handed over. */
static Json *
render_told(Repo *repo, const HookEvent *event, void *ctx)
{
    g_assert_null(repo);
    return json_pack("{s:s, s:O?, s:O?, s:O?}", "kind", event->kind, "whole", event->whole, "about",
                     event->about, "hook", event->whole == NULL ? event->object : NULL);
}

static Json *
look(RowJob *job, const char *task_id, const char *squad_id, GError **error)
{
    return json_pack("{s:s?, s:s?}", "task", task_id, "squad", squad_id);
}

static void
start(HookWorld *w, bool allow_loopback)
{
    HooksSpec spec = {.loop = w->rows->forge->spec.loop,
                      .db = w->rows->forge->spec.db,
                      .events = w->rows->forge->spec.events,
                      .forge = w->rows->forge,
                      .seal = w->seal,
                      .address = "http://coop",
                      .allow_loopback = allow_loopback,
                      .render = {render, render_told, render_told},
                      .look = look,
                      .ctx = w};

    w->hooks = hooks_new(&spec);
    hooks_start(w->hooks);
    while (w->hooks->cursor == NULL)
        g_main_context_iteration(NULL, TRUE);
}

static void
settle_jobs(HookWorld *w)
{
    while (w->hooks->looking || w->hooks->busy || g_hash_table_size(w->hooks->sending) > 0)
        g_main_context_iteration(NULL, TRUE);
}

static HookWorld *
world_new(bool allow_loopback)
{
    HookWorld *w = g_new0(HookWorld, 1);

    w->rows = row_world_new();
    w->seal = seal_open(w->rows->bench->dir, NULL);
    g_assert_nonnull(w->seal);
    w->owner = (HookOwner){HOOK_OF_REPOSITORY, w->rows->repo->id};
    start(w, allow_loopback);
    return w;
}

static void
world_free(HookWorld *w)
{
    settle_jobs(w);
    hooks_free(w->hooks);
    row_world_free(w->rows);
    seal_free(w->seal);
    g_free(w);
}
G_DEFINE_AUTOPTR_CLEANUP_FUNC(HookWorld, world_free)

static gint64
add_hook(HookWorld *w, const char *url, const char *const *events)
{
    HookSpec spec = {.actor = "local", .url = url, .secret = SECRET, .events = events, .active = -1};
    g_autoptr(Json) hook = HOOK_ASK(hook_put, w, &spec);

    return row_int(hook, "id");
}

static void
open_issue(HookWorld *w)
{
    json_decref(ROW_ASK(issue_open, w->rows, &(IssueSpec){.actor = "local", .title = "Broken"}));
}

/* The newest delivery once it is in that state. */
static Json *
wait_delivery(HookWorld *w, gint64 hook, const char *state, guint tries)
{
    for (;;) {
        g_autoptr(Json) list = HOOK_ASK(delivery_list, w, hook, (gint64)0, (ForgePage){.per_page = 1});
        const Json *first = json_array_get(json_object_get(list, "items"), 0);

        if (first != NULL && strcmp(row_text(first, "state"), state) == 0 &&
            row_int(first, "tries") == (gint64)tries)
            return HOOK_ASK(delivery_list, w, hook, row_int(first, "id"), (ForgePage){0});
        g_main_context_iteration(NULL, FALSE);
    }
}

static gint64
count_deliveries(HookWorld *w)
{
    return store_read_int(w->rows->bench->db, "SELECT COUNT(*) FROM deliveries");
}

/* ---- tests ---- */

static void
test_sign(void)
{
    /* RFC 4231, test cases 1 and 2. */
    static const char first_key[] = "\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b"
                                    "\x0b\x0b";
    static const struct {
        const char *key, *text, *signature;
    } cases[] = {
        {first_key, "Hi There", "sha256=b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7"},
        {"Jefe", "what do ya want for nothing?",
         "sha256=5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *signature = hook_sign(cases[i].key, strlen(cases[i].key), cases[i].text,
                                               strlen(cases[i].text));

        g_assert_cmpstr(signature, ==, cases[i].signature);
    }
}

static void
test_pauses(void)
{
    for (guint tries = 1; tries <= HOOK_TRIES; tries++) {
        double middle = HOOK_BACKOFF_S;

        for (guint i = 1; i < tries; i++)
            middle = MIN(middle * HOOK_BACKOFF_FACTOR, HOOK_BACKOFF_MAX_S);
        for (guint i = 0; i < 100; i++) {
            double pause = (double)hook_pause_us(tries) / G_USEC_PER_SEC;

            g_assert_cmpfloat(pause, >=, 0.8 * middle - 0.001);
            g_assert_cmpfloat(pause, <=, 1.2 * middle + 0.001);
        }
    }
}

static void
test_delivers(void)
{
    static const char *const events[] = {"issues", NULL};
    g_autoptr(HookWorld) w = world_new(true);
    g_autoptr(Script) script = script_serve_one(ok_forever);
    g_autofree char *url = script_url(script, "/hook?a=b");
    gint64 hook = add_hook(w, url, events);

    open_issue(w);
    g_autoptr(Json) delivery = wait_delivery(w, hook, "done", 1);
    g_autofree char *head = script_dup_head(script);
    const char *body = row_text(delivery, "body");
    g_autofree char *signature = hook_sign(SECRET, strlen(SECRET), body, strlen(body));
    g_autofree char *signed_line = g_strconcat("\r\nX-Hub-Signature-256: ", signature, "\r\n", NULL);
    g_autofree char *guid_line = g_strconcat("\r\nX-GitHub-Delivery: ", row_text(delivery, "guid"), "\r\n",
                                             NULL);
    g_autoptr(Json) sent = json_decode(body, strlen(body), NULL);

    g_assert_true(g_str_has_prefix(head, "POST /hook?a=b HTTP/1.1\r\n"));
    g_assert_nonnull(strstr(head, signed_line));
    g_assert_nonnull(strstr(head, guid_line));
    g_assert_nonnull(strstr(head, "\r\nX-GitHub-Event: issues\r\n"));
    g_assert_cmpuint(script_body_len(script), ==, strlen(body));
    g_assert_cmpint(row_int(delivery, "status"), ==, 200);
    g_assert_cmpstr(row_text(sent, "action"), ==, "opened");
    g_assert_cmpstr(row_text(json_object_get(sent, "thread"), "title"), ==, "Broken");
    g_assert_cmpstr(row_text(json_object_get(sent, "sender"), "login"), ==, "local");

    g_autoptr(Json) again = HOOK_ASK(delivery_again, w, "local", hook, row_int(delivery, "id"));
    g_autoptr(Json) second = wait_delivery(w, hook, "done", 1);

    g_assert_cmpint(row_int(second, "id"), ==, row_int(again, "id"));
    g_assert_cmpstr(row_text(second, "guid"), ==, row_text(delivery, "guid"));
    g_assert_cmpstr(row_text(second, "body"), ==, body);
    json_decref(HOOK_ASK(hook_ping, w, "local", hook));
    g_autoptr(Json) ping = wait_delivery(w, hook, "done", 1);

    g_assert_cmpstr(row_text(ping, "event"), ==, "ping");
}

/* Only what was asked for, only what came after the hook, only while it is active. */
static void
test_chooses(void)
{
    static const char *const pulls[] = {"pull_request", NULL}, *const all[] = {"*", NULL};
    g_autoptr(HookWorld) w = world_new(true);
    g_autoptr(Script) script = script_serve_one(ok_forever);
    g_autofree char *url = script_url(script, "/");

    open_issue(w);
    gint64 picky = add_hook(w, url, pulls), greedy = add_hook(w, url, all);
    HookSpec idle = {.actor = "local", .url = url, .events = all, .active = 0};

    json_decref(HOOK_ASK(hook_put, w, &idle));
    open_issue(w);
    row_world_pull(w->rows, "local", "task-1");
    g_autoptr(Json) picked = wait_delivery(w, picky, "done", 1);

    g_assert_cmpstr(row_text(picked, "event"), ==, "pull_request");
    for (;;) {
        g_autoptr(Json) last = wait_delivery(w, greedy, "done", 1);

        if (strcmp(row_text(last, "event"), "pull_request") == 0)
            break;
    }
    g_assert_cmpint(count_deliveries(w), ==, 3);
}

static void
test_tries_again(void)
{
    static const ScriptStep down[] = {{SCRIPT_REQUEST}, {SCRIPT_SEND, ANSWER("503 Busy")}, {SCRIPT_CLOSE}};
    static const ScriptStep gone[] = {{SCRIPT_REQUEST}, {SCRIPT_RESET}};
    static const ScriptStep *const scripts[] = {down, gone, ok_forever};
    static const char *const events[] = {"*", NULL};
    g_autoptr(HookWorld) w = world_new(true);
    g_autoptr(Script) script = script_serve(scripts, G_N_ELEMENTS(scripts), NULL);
    g_autofree char *url = script_url(script, "/");
    gint64 hook = add_hook(w, url, events);

    open_issue(w);
    g_autoptr(Json) first = wait_delivery(w, hook, "waiting", 1);

    g_assert_cmpint(row_int(first, "status"), ==, 503);
    g_assert_cmpint(row_int(first, "next_us"), >, row_int(first, "created_us"));
    for (guint tries = 2; tries <= 3; tries++) {
        settle_jobs(w);
        row_world_sql(w->rows, "UPDATE deliveries SET next_us = 0"); /* its time has come */
        hooks_send(w->hooks);
        json_decref(wait_delivery(w, hook, tries == 3 ? "done" : "waiting", tries));
    }
    g_assert_cmpuint(script_accepts(script), ==, 3);
}

static void
test_gives_up(void)
{
    static const struct {
        const char *answer;
        guint tries_before, tries;
        const char *state;
    } cases[] = {
        {ANSWER("404 Not Found"), 0, 1, "failed"},
        {ANSWER("302 Found"), 0, 1, "failed"},
        {ANSWER("429 Slower"), 0, 1, "waiting"},
        {ANSWER("500 Oh"), HOOK_TRIES - 2, HOOK_TRIES - 1, "waiting"},
        {ANSWER("500 Oh"), HOOK_TRIES - 1, HOOK_TRIES, "failed"},
    };
    static const char *const events[] = {"label", NULL};

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        const ScriptStep steps[] = {{SCRIPT_REQUEST}, {SCRIPT_SEND, cases[i].answer}, {SCRIPT_CLOSE}};
        g_autoptr(HookWorld) w = world_new(true);
        g_autoptr(Script) script = script_serve_one(steps);
        g_autofree char *url = script_url(script, "/");
        gint64 hook = add_hook(w, url, events);
        g_autofree char *sql = g_strdup_printf(
            "INSERT INTO deliveries (id, hook_id, guid, event, body, state, status, tries, "
            "next_us, created_us, ended_us) VALUES (900, %d, 'g', 'label', '{}', 'waiting', "
            "0, %u, 0, 1, 0)",
            (int)hook, cases[i].tries_before);

        row_world_sql(w->rows, sql);
        hooks_send(w->hooks);
        g_autoptr(Json) delivery = wait_delivery(w, hook, cases[i].state, cases[i].tries);

        g_assert_nonnull(row_text(delivery, "problem"));
    }
}

static void
test_refuses_places(void)
{
    static const struct {
        const char *url;
        ErrKind kind;
    } cases[] = {
        {"http://127.0.0.1:1/", ERR_DENIED},      {"http://[::1]/", ERR_DENIED},
        {"http://169.254.169.254/", ERR_DENIED},  {"http://10.0.0.1/", ERR_DENIED},
        {"ftp://example.com/", ERR_INVALID},      {"http:///x", ERR_INVALID},
        {"http://a:b@example.com/", ERR_INVALID}, {"", ERR_INVALID},
    };
    static const char *const events[] = {"*", NULL}, *const odd[] = {"everything", NULL};
    g_autoptr(HookWorld) w = world_new(false);
    g_autoptr(Script) script = script_serve_one(ok_forever);
    g_autofree char *plain = script_url(script, "/");
    g_autofree char *named = g_strconcat("http://localhost", strrchr(plain, ':'), NULL);

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++)
        HOOK_FAIL(cases[i].kind, NULL, hook_put, w,
                  &(HookSpec){.actor = "local", .url = cases[i].url, .active = -1});
    HOOK_FAIL(ERR_INVALID, "everything", hook_put, w,
              &(HookSpec){.actor = "local", .url = "http://example.com/", .events = odd, .active = -1});
    /* A name is judged by where it leads when it is called. */
    gint64 hook = add_hook(w, named, events);

    open_issue(w);
    g_autoptr(Json) delivery = wait_delivery(w, hook, "failed", 1);

    g_assert_nonnull(strstr(row_text(delivery, "problem"), "loopback"));
    g_assert_cmpuint(script_accepts(script), ==, 0);
}

/* A server that was stopped between the event and its deliveries makes them at its next start; one that
 * made them makes none twice. */
static void
test_starts_again(void)
{
    static const char *const events[] = {"*", NULL};
    g_autoptr(HookWorld) w = world_new(true);
    g_autoptr(Script) script = script_serve_one(ok_forever);
    g_autofree char *url = script_url(script, "/");

    open_issue(w); /* before the hook: not for it */
    gint64 hook = add_hook(w, url, events);

    open_issue(w);
    json_decref(wait_delivery(w, hook, "done", 1));
    settle_jobs(w);
    hooks_free(w->hooks);
    open_issue(w);
    start(w, true);
    for (gint64 n = 0; n < 2; n = count_deliveries(w))
        g_main_context_iteration(NULL, FALSE);
    settle_jobs(w);
    g_assert_cmpint(count_deliveries(w), ==, 2);

    /* The place was lost: all is looked at again, and nothing is made. */
    hooks_free(w->hooks);
    row_world_sql(w->rows, "UPDATE settings SET value = '0' WHERE name = 'hooks.seq'");
    w->rendered = 0;
    start(w, true);
    while (w->rendered < 3)
        g_main_context_iteration(NULL, TRUE);
    settle_jobs(w);
    g_assert_cmpint(count_deliveries(w), ==, 2);
}

static void
test_secret_is_sealed(void)
{
    g_autoptr(HookWorld) w = world_new(true);
    gint64 hook = add_hook(w, "http://example.com/", NULL);
    g_autoptr(Json) shown = HOOK_ASK(hook_get, w, hook);
    g_autofree char *text = json_encode(shown);

    g_assert_true(row_is(shown, "has_secret"));
    g_assert_null(strstr(text, SECRET));
    g_assert_cmpint(
        store_read_int(w->rows->bench->db, "SELECT COUNT(*) FROM hooks WHERE instr(secret, 'secret') > 0"),
        ==, 0);
    HookSpec spec = {.actor = "local", .id = hook, .secret = "", .active = -1};
    g_autoptr(Json) bare = HOOK_ASK(hook_put, w, &spec);

    g_assert_false(row_is(bare, "has_secret"));
    g_assert_cmpstr(row_text(bare, "url"), ==, "http://example.com/");
    json_decref(HOOK_ASK(hook_remove, w, "local", hook));
    HOOK_FAIL(ERR_NOT_FOUND, NULL, hook_get, w, hook);
}

/* ---- squads, and tasks that answer to a chat ---- */

#define SQUAD "5db39020-292a-44ff-b3b4-a720d496f292"
#define TASK "0c1f8a54-9f0e-4d0c-8f61-0c8f6b2f9a10"
#define REPLY_PATH "/commands/T1/secret-place"

static void
add_task(HookWorld *w)
{
    row_world_sql(w->rows, "INSERT INTO squads (id, user_id, name, created_us, updated_us) VALUES ('" SQUAD
                           "', '', 'shop', 1, 1)");
    row_world_sql(w->rows,
                  "INSERT INTO tasks (id, number, squad_id, owner, actor, source, title, request, state, "
                  "created_us, updated_us) VALUES ('" TASK "', 12, '" SQUAD
                  "', '', 'local', 'slack', 'Wheel', 'a wheel', 'working', 1, 1)");
}

static void
tell(HookWorld *w, const char *kind)
{
    store_append(w->rows->bench->db, &(EventSpec){.kind = kind, .actor = "coop", .task_id = TASK}, 1);
}

static void
test_squad(void)
{
    static const char *const events[] = {"task.*", "pr.opened", NULL}, *const odd[] = {"push", NULL};
    g_autoptr(HookWorld) w = world_new(true);
    g_autoptr(Script) script = script_serve_one(ok_forever);
    g_autofree char *url = script_url(script, "/in");

    add_task(w);
    tell(w, "task.created"); /* before the hook */
    w->owner = (HookOwner){HOOK_OF_SQUAD, SQUAD};
    HOOK_FAIL(ERR_INVALID, "push", hook_put, w,
              &(HookSpec){.actor = "local", .url = url, .events = odd, .active = -1});
    gint64 hook = add_hook(w, url, events);

    tell(w, "agent.thought");
    tell(w, "task.completed");
    g_autoptr(Json) delivery = wait_delivery(w, hook, "done", 1);
    g_autofree char *head = script_dup_head(script);
    const char *text = row_text(delivery, "body");
    g_autoptr(Json) body = json_decode(text, strlen(text), NULL);
    g_autofree char *signature = hook_sign(SECRET, strlen(SECRET), text, strlen(text));

    g_assert_cmpint(count_deliveries(w), ==, 1);
    g_assert_nonnull(strstr(head, "\r\nX-Coop-Event: task.completed\r\n"));
    g_assert_nonnull(strstr(head, signature));
    g_assert_null(strstr(head, "X-GitHub"));
    g_assert_cmpstr(row_text(json_object_get(body, "about"), "squad"), ==, SQUAD);
    g_assert_cmpstr(row_text(json_object_get(body, "whole"), "kind"), ==, "task.completed");
    json_decref(HOOK_ASK(hook_ping, w, "local", hook));
    w->owner = (HookOwner){HOOK_OF_REPOSITORY, w->rows->repo->id};
    HOOK_FAIL(ERR_NOT_FOUND, NULL, hook_get, w, hook);
}

typedef struct ReplyJob {
    const Seal *seal;
    const char *url;
} ReplyJob;

static bool
add_reply(DbTx *tx, void *data, GError **error)
{
    ReplyJob *reply = data;
    g_auto(RowJob) job = {0};

    row_job_init(&job, tx, "");
    return hook_add_reply(&job, reply->seal, TASK, reply->url, error);
}

static void
begin_reply(HookWorld *w, Script *script)
{
    g_autofree char *url = script_url(script, REPLY_PATH);

    add_task(w);
    g_assert_true(store_write(w->rows->bench->db, add_reply, &(ReplyJob){w->seal, url}, NULL));
}

static void
wait_replies(HookWorld *w, gint64 n)
{
    while (store_read_int(w->rows->bench->db, "SELECT COUNT(*) FROM deliveries WHERE state = 'done'") < n)
        g_main_context_iteration(NULL, FALSE);
    settle_jobs(w);
}

/* Five at most, the last for the end; nothing but the words is shown there. */
static void
test_reply(void)
{
    g_autoptr(HookWorld) w = world_new(true);
    g_autoptr(Script) script = script_serve_one(ok_forever);

    begin_reply(w, script);
    tell(w, "tool.used");
    for (guint i = 0; i < 2 * HOOK_REPLIES_MAX; i++)
        tell(w, "human.asked");
    tell(w, "task.completed");
    wait_replies(w, HOOK_REPLIES_MAX);
    g_autofree char *head = script_dup_head(script);

    g_assert_true(g_str_has_prefix(head, "POST " REPLY_PATH " HTTP/1.1\r\n"));
    g_assert_null(strstr(head, "\r\nX-"));
    g_assert_cmpint(count_deliveries(w), ==, HOOK_REPLIES_MAX);
    g_assert_cmpint(
        store_read_int(w->rows->bench->db, "SELECT COUNT(*) FROM deliveries WHERE event = 'task.completed'"),
        ==, 1);
    g_assert_cmpint(store_read_int(w->rows->bench->db, "SELECT COUNT(*) FROM hooks WHERE url <> '' OR "
                                                       "instr(secret, 'secret-place') > 0"),
                    ==, 0);
}

/* What was said first is read first, also where it has to be said again. */
static void
test_replies_in_order(void)
{
    static const ScriptStep busy[] = {{SCRIPT_REQUEST}, {SCRIPT_SEND, ANSWER("503 Busy")}, {SCRIPT_CLOSE}};
    static const ScriptStep *const scripts[] = {busy, ok_forever};
    g_autoptr(HookWorld) w = world_new(true);
    g_autoptr(Script) script = script_serve(scripts, G_N_ELEMENTS(scripts), NULL);
    Db *db = w->rows->bench->db;

    begin_reply(w, script);
    tell(w, "task.planned");
    while (store_read_int(db, "SELECT COUNT(*) FROM deliveries WHERE tries = 1") == 0)
        g_main_context_iteration(NULL, FALSE);
    tell(w, "task.completed");
    while (count_deliveries(w) < 2)
        g_main_context_iteration(NULL, FALSE);
    settle_jobs(w);
    g_assert_cmpint(store_read_int(db, "SELECT COUNT(*) FROM deliveries WHERE state = 'waiting'"), ==, 2);
    row_world_sql(w->rows, "UPDATE deliveries SET next_us = 0");
    hooks_send(w->hooks);
    wait_replies(w, 2);
    g_assert_cmpint(
        store_read_int(db, "SELECT COUNT(*) FROM deliveries a JOIN deliveries b ON a.ended_us < b.ended_us "
                           "WHERE a.event = 'task.planned'"),
        ==, 1);
}

/* After half an hour nobody takes them: none is made, none is tried again, and the address goes with the
 * next. */
static void
test_reply_is_too_late(void)
{
    static const ScriptStep busy[] = {{SCRIPT_REQUEST}, {SCRIPT_SEND, ANSWER("503 Busy")}, {SCRIPT_AGAIN}};
    g_autoptr(HookWorld) w = world_new(true);
    g_autoptr(Script) script = script_serve_one(busy);
    g_autofree char *over = g_strdup_printf("UPDATE hooks SET created_us = %" G_GINT64_FORMAT,
                                            g_get_real_time() - HOOK_REPLY_LIFE_S * (gint64)G_USEC_PER_SEC);

    begin_reply(w, script);
    /* The pause before its seventh try is longer than that. */
    row_world_sql(w->rows,
                  "INSERT INTO deliveries (id, hook_id, guid, event, body, state, status, tries, "
                  "next_us, created_us, ended_us) SELECT 900, id, 'g', 'human.asked', '{}', 'waiting', 0, 5, "
                  "0, 1, 0 FROM hooks");
    hooks_send(w->hooks);
    while (store_read_int(w->rows->bench->db, "SELECT tries FROM deliveries") < 6)
        g_main_context_iteration(NULL, FALSE);
    settle_jobs(w);
    g_assert_cmpint(store_read_int(w->rows->bench->db,
                                   "SELECT COUNT(*) FROM deliveries WHERE state = 'failed' AND status = 503"),
                    ==, 1);
    row_world_sql(w->rows, over);
    row_world_sql(w->rows, "UPDATE deliveries SET state = 'waiting', next_us = 0, tries = 0");
    hooks_send(w->hooks);
    tell(w, "task.completed");
    while (store_read_int(w->rows->bench->db, "SELECT COUNT(*) FROM deliveries WHERE state = 'failed' AND "
                                              "problem LIKE '%not taken there any more'") == 0)
        g_main_context_iteration(NULL, FALSE);
    settle_jobs(w);
    g_assert_cmpint(count_deliveries(w), ==, 1);
    row_world_sql(w->rows,
                  "INSERT INTO tasks (id, number, squad_id, owner, actor, source, title, request, state, "
                  "created_us, updated_us) SELECT 'other', 13, squad_id, '', '', '', '', '', 'done', 1, 1 "
                  "FROM tasks");
    row_world_sql(w->rows, "UPDATE hooks SET task_id = 'other'");
    g_assert_true(store_write(w->rows->bench->db, add_reply, &(ReplyJob){w->seal, "http://x/"}, NULL));
    g_assert_cmpint(store_read_int(w->rows->bench->db, "SELECT COUNT(*) FROM hooks"), ==, 1);
    g_assert_cmpint(count_deliveries(w), ==, 0);
}

/* Many events that concern nobody: a restart does not read them again. */
static void
test_place_moves(void)
{
    g_autoptr(HookWorld) w = world_new(true);
    gint64 last = store_append(w->rows->bench->db, &(EventSpec){.kind = "box.warned", .actor = "coop"},
                               2 * HOOK_PLACE_EVERY);

    while (store_read_int(w->rows->bench->db, "SELECT COALESCE(MAX(CAST(value AS INTEGER)), 0) FROM settings "
                                              "WHERE name = 'hooks.seq'") < last - HOOK_PLACE_EVERY)
        g_main_context_iteration(NULL, FALSE);
}

/* ---- a server that is killed ---- */

static gint64
count_waiting(RowWorld *rows)
{
    return store_read_int(rows->bench->db, "SELECT COUNT(*) FROM deliveries WHERE state = 'waiting'");
}

/* In a program of its own: follows and sends until nothing is left to do. */
static int
serve(const char *dir)
{
    HookWorld w = {.rows = row_world_open(dir), .seal = seal_open(dir, NULL)};

    start(&w, true);
    while (count_deliveries(&w) == 0)
        g_main_context_iteration(NULL, FALSE);
    while (count_waiting(w.rows) > 0)
        g_main_context_iteration(NULL, FALSE);
    settle_jobs(&w);
    hooks_free(w.hooks);
    store_bench_close(w.rows->bench);
    _exit(0); /* the folder is the parent's */
}

static int
run_server(const char *program, const char *dir, const char *fail_at)
{
    const char *argv[] = {program, "--serve", dir, NULL};
    g_auto(GStrv) env = g_get_environ();
    g_autoptr(GError) error = NULL;
    int status = 0;

    env = fail_at != NULL ? g_environ_setenv(env, "COOP_FAIL_AT", fail_at, TRUE)
                          : g_environ_unsetenv(env, "COOP_FAIL_AT");
    g_spawn_sync(NULL, (char **)(guintptr)argv, env, G_SPAWN_DEFAULT, NULL, NULL, NULL, NULL, &status,
                 &error);
    g_assert_no_error(error);
    return status;
}

static void
test_killed(gconstpointer program)
{
    static const struct {
        const char *fail_at;
        guint requests;
    } cases[] = {
        {"hook-making:1", 1}, /* the delivery was not written: it is made by the next start */
        {"hook-sent:1", 2},   /* sent, not written down: sent again, under the same GUID */
    };
    static const char *const events[] = {"*", NULL};

#ifndef COOP_FAILPOINTS
    g_test_skip("a release build has no failpoints");
    return;
#endif
    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(Script) script = script_serve_one(ok_forever);
        g_autofree char *url = script_url(script, "/");
        g_autoptr(HookWorld) w = world_new(true);
        gint64 hook = add_hook(w, url, events);

        hooks_free(w->hooks);
        open_issue(w);
        store_bench_close(w->rows->bench);
        g_assert_cmpint(run_server(program, w->rows->bench->dir, cases[i].fail_at), ==, SIGKILL);
        g_autofree char *killed_head = script_dup_head(script);

        g_assert_cmpint(run_server(program, w->rows->bench->dir, NULL), ==, 0);
        store_bench_open(w->rows->bench, NULL);
        w->rows->forge->spec.db = w->rows->bench->db;
        w->rows->forge->spec.events = w->rows->bench->log;
        start(w, true);
        g_autoptr(Json) delivery = wait_delivery(w, hook, "done", 1);
        g_autofree char *head = script_dup_head(script);

        g_assert_cmpint(count_deliveries(w), ==, 1);
        g_assert_cmpuint(script_accepts(script), ==, cases[i].requests);
        g_assert_nonnull(strstr(head, row_text(delivery, "guid")));
        if (cases[i].requests == 2)
            g_assert_nonnull(strstr(killed_head, row_text(delivery, "guid")));
    }
}

int
main(int argc, char **argv)
{
    if (argc == 3 && strcmp(argv[1], "--serve") == 0)
        return serve(argv[2]);
    g_test_init(&argc, &argv, NULL);
    probe_start_watchdog();
    g_test_add_func("/forge/hook/sign", test_sign);
    g_test_add_func("/forge/hook/pauses", test_pauses);
    g_test_add_func("/forge/hook/delivers", test_delivers);
    g_test_add_func("/forge/hook/chooses", test_chooses);
    g_test_add_func("/forge/hook/tries-again", test_tries_again);
    g_test_add_func("/forge/hook/gives-up", test_gives_up);
    g_test_add_func("/forge/hook/refuses-places", test_refuses_places);
    g_test_add_func("/forge/hook/starts-again", test_starts_again);
    g_test_add_func("/forge/hook/secret-is-sealed", test_secret_is_sealed);
    g_test_add_func("/forge/hook/squad", test_squad);
    g_test_add_func("/forge/hook/reply", test_reply);
    g_test_add_func("/forge/hook/replies-in-order", test_replies_in_order);
    g_test_add_func("/forge/hook/reply-is-too-late", test_reply_is_too_late);
    g_test_add_func("/forge/hook/place-moves", test_place_moves);
    g_test_add_data_func("/forge/hook/killed", argv[0], test_killed);
    return g_test_run();
}

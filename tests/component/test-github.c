/* SPDX-License-Identifier: Apache-2.0 */
/* The client against a server that answers as GitHub does, and as it should not. */
#include <string.h>

#include "github-world.h"
#include "http-probe.h"

#define S ((gint64)G_USEC_PER_SEC)
#define OK(body) GITHUB_ANSWER("200 OK", "Content-Type: application/json\r\n", body)
#define BAD_GATEWAY                                                                                          \
    GITHUB_ANSWER("502 Bad Gateway", "Content-Type: text/html\r\n", "<html><h1>Unicorn</h1></html>")
#define CUT_BODY GITHUB_ANSWER("200 OK", "Content-Length: 100\r\n", "{\"a\":")

typedef struct CallRow {
    const char *name;
    GithubRequest request;
    const char *answers[8];
    int status; /* 0: it fails */
    ErrKind kind;
    const char *text;
    guint tries;
    gint64 waited_us;
} CallRow;

static void
check_row(const CallRow *row)
{
    g_autoptr(GithubWorld) w = github_world_new(row->answers);

    g_test_message("%s", row->name);
    github_world_call(w, &row->request);
    if (row->status != 0) {
        g_assert_no_error(w->error);
        g_assert_cmpint(w->status, ==, row->status);
    } else {
        github_world_fails(w, row->kind, row->text);
    }
    g_assert_cmpuint(script_accepts(w->script), ==, row->tries);
    g_assert_cmpint(w->waited_us, ==, row->waited_us);
}

static void
test_rows(void)
{
    g_autoptr(Json) body = json_pack("{s:s}", "title", "x");
    const GithubRequest get = {.path = "/user"}, put = {.method = "PUT", .path = "/a", .body = body},
                        post = {.method = "POST", .path = "/a", .body = body},
                        again = {.method = "POST", .path = "/a", .body = body, .repeatable = true},
                        remove = {.method = "DELETE", .path = "/a"};
    const CallRow rows[] = {
        {"plain", get, {OK("{\"login\":\"me\"}")}, 200, 0, NULL, 1, 0},
        {"empty", remove, {GITHUB_ANSWER("204 No Content", "", "")}, 204, 0, NULL, 1, 0},
        {"502 then well", get, {BAD_GATEWAY, BAD_GATEWAY, OK("{}")}, 200, 0, NULL, 3, S / 2 + S},
        {"502 for ever", get, {BAD_GATEWAY}, 0, ERR_UNAVAILABLE, "502", 5, S / 2 + S + 2 * S + 4 * S},
        {"cut body", get, {CUT_BODY, OK("{}")}, 200, 0, NULL, 2, S / 2},
        {"cut connection", get, {"cut", OK("{}")}, 200, 0, NULL, 2, S / 2},
        {"slow", get, {"slow", OK("{}")}, 200, 0, NULL, 2, S / 2},
        {"html for JSON", get, {OK("<html>")}, 0, ERR_INVALID, NULL, 1, 0},
        {"PUT repeats", put, {BAD_GATEWAY, OK("{}")}, 200, 0, NULL, 2, S},
        {"POST does not", post, {BAD_GATEWAY}, 0, ERR_UNAVAILABLE, "whether it was done is not known", 1, 0},
        {"POST cut", post, {"cut"}, 0, ERR_INVALID, "whether it was done is not known", 1, 0},
        {"POST that may", again, {BAD_GATEWAY, OK("{}")}, 200, 0, NULL, 2, S},
        {"POST that was refused for a limit",
         post,
         {GITHUB_ANSWER("429 Too Many", "Retry-After: 9\r\n", "{}"), OK("{}")},
         200,
         0,
         NULL,
         2,
         9 * S},
        {"DELETE that was done",
         remove,
         {"cut", GITHUB_ANSWER("404 Not Found", "", "{\"message\":\"Not Found\"}")},
         204,
         0,
         NULL,
         2,
         S},
        {"404",
         get,
         {GITHUB_ANSWER("404 Not Found", "", "{\"message\":\"Not Found\"}")},
         0,
         ERR_NOT_FOUND,
         "GET /user: 404: Not Found",
         1,
         0},
        {"401",
         get,
         {GITHUB_ANSWER("401 Unauthorized", "", "{\"message\":\"Bad credentials\"}")},
         0,
         ERR_DENIED,
         "Bad credentials",
         1,
         0},
        {"echoes the token",
         get,
         {GITHUB_ANSWER("401 Unauthorized", "", "{\"message\":\"" WORLD_TOKEN " is bad\"}")},
         0,
         ERR_DENIED,
         "[token] is bad",
         1,
         0},
        {"what it needs",
         get,
         {GITHUB_ANSWER("403 Forbidden", "X-Accepted-GitHub-Permissions: contents=write\r\n",
                        "{\"message\":\"Resource not accessible\"}")},
         0,
         ERR_DENIED,
         "(it needs contents=write)",
         1,
         0},
        {"409", put, {GITHUB_ANSWER("409 Conflict", "", "{}")}, 0, ERR_CONFLICT, NULL, 1, 0},
        {"422",
         put,
         {GITHUB_ANSWER("422 Unprocessable", "",
                        "{\"message\":\"Validation Failed\",\"errors\":[{\"message\":\"no commits\"}]}")},
         0,
         ERR_INVALID,
         "Validation Failed: no commits",
         1,
         0},
        {"304 unasked", get, {GITHUB_ANSWER("304 Not Modified", "", "")}, 0, ERR_INVALID, NULL, 1, 0},
        {"too many values",
         get,
         {OK("[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[")},
         0,
         ERR_INVALID,
         NULL,
         1,
         0},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(rows); i++)
        check_row(&rows[i]);
}

/* ---- limits ---- */

#define PRIMARY                                                                                              \
    GITHUB_ANSWER("403 Forbidden",                                                                           \
                  "Date: Sun, 15 Nov 2026 12:00:00 GMT\r\nX-RateLimit-Limit: 5000\r\n"                       \
                  "X-RateLimit-Remaining: 0\r\nX-RateLimit-Reset: 1794744040\r\n",                           \
                  "{\"message\":\"API rate limit exceeded\"}")
#define SECONDARY                                                                                            \
    GITHUB_ANSWER("403 Forbidden", "", "{\"message\":\"You have exceeded a secondary rate limit.\"}")

static void
test_limits(void)
{
    const GithubRequest patient = {.path = "/user", .patience_ms = 3600 * 1000}, hasty = {.path = "/user"};
    const CallRow rows[] = {
        {"primary", patient, {PRIMARY, OK("{}")}, 200, 0, NULL, 2, 41 * S},
        {"secondary without a time", patient, {SECONDARY, SECONDARY, OK("{}")}, 200, 0, NULL, 3, 150 * S},
        {"nobody waits for ever",
         patient,
         {GITHUB_ANSWER("429 T", "Retry-After: 1\r\n", "")},
         0,
         ERR_LIMIT,
         "429",
         5,
         4 * S},
        {"longer than one likes",
         hasty,
         {SECONDARY, SECONDARY, OK("{}")},
         0,
         ERR_LIMIT,
         "again in",
         2,
         60 * S},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(rows); i++)
        check_row(&rows[i]);
}

/* The last one of the hour: the next call is not sent at all. */
static void
test_budget_is_kept(void)
{
    static const char *const answers[] = {
        GITHUB_ANSWER("200 OK",
                      "Date: Sun, 15 Nov 2026 12:00:00 GMT\r\nX-RateLimit-Limit: 5000\r\n"
                      "X-RateLimit-Remaining: 0\r\nX-RateLimit-Reset: 1794747600\r\n",
                      "{}"),
        OK("{}"), NULL};
    g_autoptr(GithubWorld) w = github_world_new(answers);
    GithubStats stats;

    github_world_call(w, &(GithubRequest){.path = "/user"});
    g_assert_no_error(w->error);
    github_client_stats(w->client, &stats);
    g_assert_cmpint(stats.budget.remaining, ==, 0);
    g_assert_cmpint(stats.budget.limit, ==, 5000);
    github_world_call(w, &(GithubRequest){.path = "/user"});
    github_world_fails(w, ERR_LIMIT, "again in 3601 s");
    g_assert_cmpint(w->wait_us, ==, 3601 * S);
    g_assert_cmpuint(script_accepts(w->script), ==, 1);
    github_world_call(w, &(GithubRequest){.path = "/user", .patience_ms = 3700 * 1000});
    g_assert_no_error(w->error);
    g_assert_cmpint(w->waited_us, ==, 3601 * S);
}

static void
count(const GithubAnswer *answer, const GError *error, void *data)
{
    g_assert_no_error(error);
    ++*(guint *)data;
}

/* Writes go one after the other, a second apart; reads do not wait for them. */
static void
test_writes_are_spaced(void)
{
    static const char *const answers[] = {OK("{}"), NULL};
    g_autoptr(GithubWorld) w = github_world_new(answers);
    g_autoptr(Json) body = json_object();
    guint writes = 0, reads = 0;
    gint64 began = w->now_us;

    for (guint i = 0; i < 3; i++)
        github_call(w->client, &(GithubRequest){.method = "POST", .path = "/a", .body = body}, count,
                    &writes);
    github_call(w->client, &(GithubRequest){.path = "/b"}, count, &reads);
    while (reads < 1 || writes < 1)
        g_main_context_iteration(NULL, TRUE);
    g_assert_cmpuint(writes, ==, 1);
    for (guint i = 2; i <= 3; i++) {
        g_assert_cmpint(github_client_due_us(w->client) - w->now_us, ==, S);
        w->now_us += S;
        github_client_wake(w->client);
        while (writes < i)
            g_main_context_iteration(NULL, TRUE);
    }
    g_assert_cmpint(w->now_us - began, ==, 2 * S);
}

/* ---- redirects ---- */

#define MOVED(status, to) GITHUB_ANSWER(status, "Location: " to "\r\n", "{}")

static void
test_redirects(void)
{
    g_autoptr(Json) body = json_object();
    const GithubRequest get = {.path = "/repos/a/b"}, post = {.method = "POST", .path = "/a", .body = body};
    const CallRow rows[] = {
        {"renamed", get, {MOVED("301 Moved", "%s/api/v3/repositories/7"), OK("{}")}, 200, 0, NULL, 2, 0},
        {"relative", get, {MOVED("307 T", "/api/v3/repositories/7"), OK("{}")}, 200, 0, NULL, 2, 0},
        {"a write", post, {MOVED("308 P", "%s/api/v3/b"), OK("{}")}, 200, 0, NULL, 2, 0},
        {"another host",
         get,
         {MOVED("302 Found", "http://localhost:1/api/v3/x")},
         0,
         ERR_DENIED,
         "elsewhere",
         1,
         0},
        {"another port",
         get,
         {MOVED("302 Found", "http://127.0.0.1:1/api/v3/x")},
         0,
         ERR_DENIED,
         "elsewhere",
         1,
         0},
        {"another place there", get, {MOVED("302 Found", "%s/login")}, 0, ERR_DENIED, "elsewhere", 1, 0},
        {"up and out", get, {MOVED("302 Found", "%s/api/v3/../../login")}, 0, ERR_DENIED, "elsewhere", 1, 0},
        {"a name as a user",
         get,
         {MOVED("302 Found", "%s@localhost/api/v3/x")},
         0,
         ERR_DENIED,
         "elsewhere",
         1,
         0},
        {"no place", get, {GITHUB_ANSWER("301 Moved", "", "")}, 0, ERR_DENIED, "elsewhere", 1, 0},
        {"for ever", get, {MOVED("302 Found", "%s/api/v3/x")}, 0, ERR_INVALID, "from one place", 4, 0},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(rows); i++)
        check_row(&rows[i]);
}

/* ---- ETags, pages ---- */

static void
test_unchanged(void)
{
    static const char *const answers[] = {GITHUB_ANSWER("200 OK", "ETag: W/\"abc\"\r\n", "{\"n\":1}"),
                                          GITHUB_ANSWER("304 Not Modified", "ETag: W/\"abc\"\r\n", ""),
                                          GITHUB_ANSWER("200 OK", "ETag: W/\"def\"\r\n", "{\"n\":2}"),
                                          OK("{}"), NULL};
    static const int numbers[] = {1, 1, 2};
    g_autoptr(GithubWorld) w = github_world_new(answers);

    for (guint i = 0; i < 3; i++) {
        github_world_call(w, &(GithubRequest){.path = "/x"});
        g_assert_no_error(w->error);
        g_assert_cmpint(w->status, ==, 200);
        g_assert_cmpint(json_integer_value(json_object_get(w->json, "n")), ==, numbers[i]);
        g_assert_true(w->cached == (i == 1));
        g_autofree char *head = script_dup_head(w->script);

        g_assert_true((strstr(head, "If-None-Match: W/\"abc\"") != NULL) == (i > 0));
        g_assert_nonnull(strstr(head, "Authorization: Bearer " WORLD_TOKEN));
    }
    /* Under another token it may look different. */
    github_client_forget(w->client);
    github_world_call(w, &(GithubRequest){.path = "/x"});
    g_autofree char *head = script_dup_head(w->script);

    g_assert_null(strstr(head, "If-None-Match"));
}

static bool
add_page(const GithubAnswer *page, void *data)
{
    return json_array_size(page->json) > 0;
}

static void
test_pages(void)
{
#define PAGE(next) GITHUB_ANSWER("200 OK", "Link: <%s" next ">; rel=\"next\"\r\n", "[1]")
    static const struct {
        const char *answers[5];
        guint pages, asked;
        const char *next;
        int kind; /* -1: well */
    } rows[] = {
        {{PAGE("/api/v3/l?page=2"), PAGE("/api/v3/l?page=3"), OK("[1]")}, 0, 3, NULL, -1},
        {{PAGE("/api/v3/l?page=2")}, 2, 2, "/l?page=2", -1},                /* as many as were asked for */
        {{PAGE("/api/v3/l?page=2")}, 0, GITHUB_PAGES_MAX, "/l?page=2", -1}, /* it never ends */
        {{PAGE("/api/v3/l?page=2"), OK("[]")}, 0, 2, NULL, -1},
        {{PAGE("/api/v3/l?page=2"), BAD_GATEWAY, OK("[1]")}, 0, 3, NULL, -1},
        {{GITHUB_ANSWER("200 OK", "Link: <http://localhost:1/api/v3/l>; rel=\"next\"\r\n", "[1]")},
         0,
         1,
         NULL,
         ERR_DENIED},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(rows); i++) {
        g_autoptr(GithubWorld) w = github_world_new(rows[i].answers);

        github_pages(w->client, "/l", rows[i].pages, add_page, on_github_answer, w);
        github_world_wait(w);
        g_assert_cmpuint(script_accepts(w->script), ==, rows[i].asked);
        g_assert_cmpstr(w->next, ==, rows[i].next);
        if (rows[i].kind < 0)
            g_assert_no_error(w->error);
        else
            github_world_fails(w, (ErrKind)rows[i].kind, NULL);
    }
}

/* ---- a write whose answer was lost ---- */

static bool
is_seven(const Json *item, const Json *body)
{
    return json_integer_value(json_object_get(item, "n")) == json_integer_value(json_object_get(body, "n"));
}

static void
test_look(void)
{
    static const GithubLook look = {"/list", NULL, is_seven};
    g_autoptr(Json) body = json_pack("{s:i}", "n", 7);
    const GithubRequest post = {.method = "POST", .path = "/a", .body = body, .look = &look};
    GithubRequest first = post;
    const char *there = OK("[{\"n\":6},{\"n\":7}]"), *not_there = OK("[{\"n\":6}]"),
               *made = GITHUB_ANSWER("201 Created", "", "{\"n\":7}"), *lost = "cut",
               *absent = GITHUB_ANSWER("404 Not Found", "", "{}");

    first.look_first = true;
    const struct {
        const GithubRequest *request;
        const char *answers[8];
        guint tries;
        bool found;
    } rows[] = {
        {&post, {made}, 1, false},
        {&post, {lost, there}, 2, true},
        {&post, {BAD_GATEWAY, there}, 2, true},
        {&post, {CUT_BODY, there}, 2, true},
        {&post, {lost, not_there, made}, 3, false},
        {&post, {lost, absent, made}, 3, false},
        {&post, {lost, BAD_GATEWAY, there}, 3, true},
        {&post, {lost, not_there, lost, there}, 4, true},
        {&post, {lost, PAGE("/api/v3/list?page=2"), there}, 3, true},
        {&first, {there}, 1, true},
        {&first, {not_there, made}, 2, false},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(rows); i++) {
        g_autoptr(GithubWorld) w = github_world_new(rows[i].answers);

        g_test_message("row %zu", i);
        github_world_call(w, rows[i].request);
        g_assert_no_error(w->error);
        g_assert_true(w->found == rows[i].found);
        g_assert_cmpint(json_integer_value(json_object_get(w->json, "n")), ==, 7);
        g_assert_cmpuint(script_accepts(w->script), ==, rows[i].tries);
    }
}

/* ---- bounds and ends ---- */

static void
test_huge(void)
{
    static const ScriptStep steps[] = {{SCRIPT_REQUEST},
                                       {SCRIPT_SEND, "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n"},
                                       {SCRIPT_FILL, NULL, 64 << 20},
                                       {SCRIPT_CLOSE}};
    g_autoptr(GithubWorld) w = github_world_new((const char *const[]){OK("{}"), NULL});
    g_autoptr(Script) script = script_serve_one(steps);
    g_autofree char *base = script_url(script, "");
    g_autoptr(GithubClient)
        client = github_client_new(&(GithubClientSpec){.loop = w->loop, .base_url = base});

    github_call(client, &(GithubRequest){.path = "/x"}, on_github_answer, w);
    github_world_wait(w);
    github_world_fails(w, ERR_LIMIT, "more than 8 MiB");
    g_assert_cmpuint(script_filled(script), <, 32 << 20);
}

static void
count_cancelled(const GithubAnswer *answer, const GError *error, void *data)
{
    g_assert_error(error, ERR_DOMAIN, ERR_CANCELLED);
    ++*(guint *)data;
}

static void
test_end(void)
{
    g_autoptr(GithubWorld) w = github_world_new((const char *const[]){"slow", NULL});
    guint cancelled = 0;

    for (guint i = 0; i < 20; i++)
        github_call(w->client, &(GithubRequest){.path = "/x"}, count_cancelled, &cancelled);
    while (script_accepts(w->script) == 0)
        g_main_context_iteration(NULL, TRUE);
    g_clear_pointer(&w->client, github_client_free);
    g_assert_cmpuint(cancelled, ==, 20);
}

static void
free_it(const GithubAnswer *answer, const GError *error, void *data)
{
    GithubWorld *w = data;

    g_clear_pointer(&w->client, github_client_free);
}

/* By whoever is called back. */
static void
test_end_inside(void)
{
    g_autoptr(GithubWorld) w = github_world_new((const char *const[]){OK("{}"), NULL});
    guint cancelled = 0;

    github_call(w->client, &(GithubRequest){.method = "POST", .path = "/x"}, free_it, w);
    github_call(w->client, &(GithubRequest){.method = "POST", .path = "/x"}, count_cancelled, &cancelled);
    while (w->client != NULL)
        g_main_context_iteration(NULL, TRUE);
    g_assert_cmpuint(cancelled, ==, 1);
}

static void
test_queue_is_bounded(void)
{
    g_autoptr(GithubWorld) w = github_world_new((const char *const[]){"slow", NULL});
    guint cancelled = 0;

    for (guint i = 0; i < GITHUB_WAITING_MAX; i++)
        github_call(w->client, &(GithubRequest){.path = "/x"}, count_cancelled, &cancelled);
    github_call(w->client, &(GithubRequest){.path = "/x"}, on_github_answer, w);
    g_assert_false(w->has_come);
    while (!w->has_come)
        g_main_context_iteration(NULL, TRUE);
    github_world_fails(w, ERR_LIMIT, "wait already");
    g_clear_pointer(&w->client, github_client_free);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    probe_start_watchdog();
    g_test_add_func("/github/rows", test_rows);
    g_test_add_func("/github/limits", test_limits);
    g_test_add_func("/github/budget", test_budget_is_kept);
    g_test_add_func("/github/writes", test_writes_are_spaced);
    g_test_add_func("/github/redirects", test_redirects);
    g_test_add_func("/github/unchanged", test_unchanged);
    g_test_add_func("/github/pages", test_pages);
    g_test_add_func("/github/look", test_look);
    g_test_add_func("/github/huge", test_huge);
    g_test_add_func("/github/end", test_end);
    g_test_add_func("/github/end-inside", test_end_inside);
    g_test_add_func("/github/queue", test_queue_is_bounded);
    return g_test_run();
}

/* SPDX-License-Identifier: Apache-2.0 */
/* What GitHub's limits come to: tables of answers, no network. */
#include <string.h>

#include "github/client.h"
#include "github/look.h"
#include "github/text.h"

#define S ((gint64)G_USEC_PER_SEC)
#define DATE "Sun, 15 Nov 2026 12:00:00 GMT"
enum { DATE_S = 1794744000 }; /* the same */

static void
test_backoff(void)
{
    static const struct {
        guint tries;
        guint32 random;
        gint64 want_us;
    } rows[] = {
        {1, 0, S / 2},
        {1, G_MAXUINT32, S},
        {2, 0, S},
        {2, G_MAXUINT32, 2 * S},
        {3, 0, 2 * S},
        {6, 0, 16 * S},
        {7, 0, 30 * S},
        {7, G_MAXUINT32, 60 * S},
        {1000, G_MAXUINT32, 60 * S},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(rows); i++)
        g_assert_cmpint(github_backoff_us(rows[i].tries, rows[i].random), ==, rows[i].want_us);
}

typedef struct JudgeRow {
    int status;
    GithubHeaders headers;
    const char *message;
    guint tries;
    GithubVerdict verdict;
    gint64 wait_us;
} JudgeRow;

static void
test_judge(void)
{
    static const JudgeRow rows[] = {
        {200, {0}, NULL, 1, GITHUB_DONE, 0},
        {204, {0}, NULL, 1, GITHUB_DONE, 0},
        {304, {0}, NULL, 1, GITHUB_DONE, 0},
        {301, {0}, NULL, 1, GITHUB_MOVED, 0},
        {308, {0}, NULL, 1, GITHUB_MOVED, 0},
        {303, {0}, NULL, 1, GITHUB_FAILED, 0},
        {404, {0}, NULL, 1, GITHUB_FAILED, 0},
        {422, {0}, NULL, 1, GITHUB_FAILED, 0},
        {500, {0}, NULL, 1, GITHUB_AGAIN, S / 2},
        {502, {0}, "<html>", 3, GITHUB_AGAIN, 2 * S},
        {503, {.retry_after = "7"}, NULL, 1, GITHUB_AGAIN, 7 * S},
        {408, {0}, NULL, 1, GITHUB_AGAIN, S / 2},
        /* No right: the same tomorrow. */
        {403, {0}, "Resource not accessible by personal access token", 1, GITHUB_FAILED, 0},
        {403, {.remaining = "4999", .reset = "1794747600"}, "Forbidden", 1, GITHUB_FAILED, 0},
        /* Primary: until the hour is over, by the answer's own clock. */
        {403, {.remaining = "0", .reset = "1794744100", .date = DATE}, NULL, 1, GITHUB_HELD, 101 * S},
        {429, {.remaining = "0", .reset = "1794744100", .date = DATE}, NULL, 1, GITHUB_HELD, 101 * S},
        {403, {.remaining = "0", .reset = "1794743000", .date = DATE}, NULL, 1, GITHUB_HELD, 0},
        {403, {.remaining = "0", .reset = "99999999999999999", .date = DATE}, NULL, 1, GITHUB_HELD, 7200 * S},
        /* Ours, where it has no date. */
        {403, {.remaining = "0", .reset = "1794744010"}, NULL, 1, GITHUB_HELD, 11 * S},
        /* Secondary. */
        {403, {.retry_after = "30", .remaining = "0", .reset = "1794747600"}, NULL, 1, GITHUB_HELD, 30 * S},
        {429, {.retry_after = "0"}, NULL, 1, GITHUB_HELD, 0},
        {429, {.retry_after = "Sun, 15 Nov 2026 12:01:00 GMT", .date = DATE}, NULL, 1, GITHUB_HELD, 60 * S},
        {403, {0}, "You have exceeded a secondary rate limit. Please wait", 1, GITHUB_HELD, 60 * S},
        {403, {0}, "You have exceeded a secondary rate limit. Please wait", 3, GITHUB_HELD, 150 * S},
        {429, {0}, NULL, 1, GITHUB_HELD, 60 * S},
        /* Nonsense is no number. */
        {403, {.retry_after = "-5"}, NULL, 1, GITHUB_FAILED, 0},
        {403, {.retry_after = "soon"}, NULL, 1, GITHUB_FAILED, 0},
        {403, {.remaining = "0", .reset = "1e9"}, NULL, 1, GITHUB_FAILED, 0},
        {403, {.retry_after = "99999999999999999999999"}, NULL, 1, GITHUB_HELD, 7200 * S},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(rows); i++) {
        const JudgeRow *r = &rows[i];
        gint64 wait = -1;
        GithubVerdict verdict = github_judge(r->status, &r->headers, r->message, r->tries, 0, DATE_S * S,
                                             &wait);

        g_test_message("row %zu", i);
        g_assert_cmpint(verdict, ==, r->verdict);
        g_assert_cmpint(wait, ==, r->wait_us);
    }
}

static void
test_budget(void)
{
    GithubBudget b = GITHUB_BUDGET_INIT;
    GithubHeaders h = {.limit = "5000", .remaining = "3", .reset = "1794744100", .date = DATE};

    g_assert_cmpint(github_budget_due_us(&b, 100, 0), <=, 0); /* nothing is known */
    github_budget_note(&b, &h, 1000 * S, 0);
    g_assert_cmpint(b.limit, ==, 5000);
    g_assert_cmpint(b.reset_us, ==, 1101 * S);
    /* What is not answered yet will be taken from it. */
    g_assert_cmpint(github_budget_due_us(&b, 2, 1000 * S), <=, 1000 * S);
    g_assert_cmpint(github_budget_due_us(&b, 3, 1000 * S), ==, 1101 * S);
    g_assert_cmpint(github_budget_due_us(&b, 3, 1101 * S), <=, 1101 * S); /* the hour is over */
    /* An answer that was overtaken does not give anything back, */
    h.remaining = "4";
    github_budget_note(&b, &h, 1000 * S, 0);
    g_assert_cmpint(b.remaining, ==, 3);
    /* the next hour does; */
    h.reset = "1794747700";
    h.remaining = "4999";
    github_budget_note(&b, &h, 1102 * S, 0);
    g_assert_cmpint(b.remaining, ==, 4999);
    /* another resource's is not ours; */
    h.remaining = "0";
    h.resource = "search";
    github_budget_note(&b, &h, 1103 * S, 0);
    g_assert_cmpint(b.remaining, ==, 4999);
    /* nor is nonsense. */
    h = (GithubHeaders){.remaining = "lots", .reset = "1794747700"};
    github_budget_note(&b, &h, 1103 * S, 0);
    g_assert_cmpint(b.remaining, ==, 4999);
    github_budget_hold(&b, 2000 * S);
    github_budget_hold(&b, 1500 * S);
    g_assert_cmpint(github_budget_due_us(&b, 0, 1200 * S), ==, 2000 * S);
}

static void
test_expiry(void)
{
    static const struct {
        const char *text;
        gint64 want_s;
    } rows[] = {
        {"2026-11-15 12:00:00 UTC", DATE_S},
        {"2026-11-15 04:00:00 -0800", DATE_S},
        {"2026-11-15 17:30:00 +0530", DATE_S},
        {"2026-11-15", 0},
        {"never", 0},
        {"2026-11-15 12:00:00 PST", 0},
        {"2026-11-15 12:00:00 +05301", 0},
        {"", 0},
        {NULL, 0},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(rows); i++)
        g_assert_cmpint(github_expiry_us(rows[i].text), ==, rows[i].want_s * S);
}

static void
test_link(void)
{
    static const struct {
        const char *link, *next;
    } rows[] = {
        {"<https://h/a?page=2>; rel=\"next\", <https://h/a?page=9>; rel=\"last\"", "https://h/a?page=2"},
        {"<https://h/a?page=1>; rel=\"prev\", <https://h/a?page=3>; rel=\"next\"", "https://h/a?page=3"},
        {"<https://h/a?page=3>; rel=next", "https://h/a?page=3"},
        {"<https://h/a?page=1>; rel=\"prev\"", NULL},
        {"https://h/a; rel=\"next\"", NULL},
        {"<https://h/a; rel=\"next\"", NULL},
        {"<>; rel=\"next\"", NULL},
        {"<https://h/0123456789012345678901234567890123456789>; rel=\"next\"", NULL}, /* too long */
        {"", NULL},
        {NULL, NULL},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(rows); i++) {
        g_autofree char *next = github_link_next(rows[i].link, 40);

        g_assert_cmpstr(next, ==, rows[i].next);
    }
}

static void
test_base(void)
{
    static const struct {
        const char *text, *base;
    } rows[] = {
        {"https://api.github.com", "https://api.github.com"},
        {"https://API.github.com/", "https://api.github.com"},
        {"https://ghe.example/api/v3/", "https://ghe.example/api/v3"},
        {"http://127.0.0.1:8003/api/v3", "http://127.0.0.1:8003/api/v3"},
        {"http://[::1]:8003/api/v3", "http://[::1]:8003/api/v3"},
        {"http://localhost:1", "http://localhost:1"},
        {"http://api.github.com", NULL},
        {"http://127.0.0.1.evil.example", NULL},
        {"ftp://127.0.0.1", NULL},
        {"https://me:secret@api.github.com", NULL},
        {"https://api.github.com?x=1", NULL},
        {"https://api.github.com#x", NULL},
        {"https://", NULL},
        {"api.github.com", NULL},
        {"https://a b", NULL},
        {"", NULL},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(rows); i++) {
        g_autoptr(GError) error = NULL;
        g_autofree char *base = github_base_url(rows[i].text, &error);

        g_test_message("%s", rows[i].text);
        g_assert_cmpstr(base, ==, rows[i].base);
        g_assert_true((error == NULL) == (base != NULL));
        g_assert_true(error == NULL || strstr(error->message, "secret") == NULL);
    }
}

static void
test_texts(void)
{
    g_autoptr(Json) body = json_pack("{s:s, s:[{s:s}, {s:s, s:s}]}", "message", "No tok\x1b[31m-1", "errors",
                                     "message", "it is tok-1", "field", "head", "code", "invalid");
    g_autofree char *text = github_failure_text(body, "tok-1");
    g_autofree char *path = github_path("/a/%s/%d?x=%s", "b/../c?d", (gint64)7, "e&f");

    g_assert_cmpstr(text, ==, "No tok [31m-1: it is [token]: head invalid");
    g_assert_cmpstr(path, ==, "/a/b%2F..%2Fc%3Fd/7?x=e%26f");
}

/* ---- what was done already ---- */

typedef struct LookRow {
    bool (*is_it)(const Json *item, const Json *body);
    const char *item, *body;
    bool want;
} LookRow;

static void
test_look(void)
{
    static const LookRow rows[] = {
        {look_is_pull, "{'head':{'ref':'t'},'base':{'ref':'main'},'state':'open'}",
         "{'head':'t','base':'main'}", true},
        {look_is_pull, "{'head':{'ref':'t'},'base':{'ref':'main'},'state':'open'}",
         "{'head':'me:t','base':'main'}", true},
        {look_is_pull, "{'head':{'ref':'t'},'base':{'ref':'main'},'state':'closed'}",
         "{'head':'t','base':'main'}", false},
        {look_is_pull, "{'head':{'ref':'t'},'base':{'ref':'dev'},'state':'open'}",
         "{'head':'t','base':'main'}", false},
        {look_is_merged, "{'merged':true,'head':{'sha':'a'}}", "{'sha':'a'}", true},
        {look_is_merged, "{'merged':true,'head':{'sha':'b'}}", "{'sha':'a'}", false},
        {look_is_merged, "{'merged':true,'head':{'sha':'b'}}", "{}", true},
        {look_is_merged, "{'merged':false}", "{}", false},
        {look_is_updated, "{'head':{'sha':'b'}}", "{'expected_head_sha':'a'}", true},
        {look_is_updated, "{'head':{'sha':'a'}}", "{'expected_head_sha':'a'}", false},
        {look_is_review, "{'body':'ok\\r\\n','state':'APPROVED','commit_id':'c'}",
         "{'body':'ok','event':'APPROVE','commit_id':'c'}", true},
        {look_is_review, "{'body':'ok','state':'COMMENTED'}", "{'body':'ok','event':'APPROVE'}", false},
        {look_is_review, "{'body':'ok','state':'APPROVED','commit_id':'d'}",
         "{'body':'ok','event':'APPROVE','commit_id':'c'}", false},
        {look_is_line_comment, "{'body':'x','path':'a','line':3}", "{'body':'x','path':'a','line':3}", true},
        {look_is_line_comment, "{'body':'x','path':'a','line':4}", "{'body':'x','path':'a','line':3}", false},
        {look_is_comment, "{'body':'<!-- coop:p -->\\nold'}", "{'body':'<!-- coop:p -->\\nnew'}", true},
        {look_is_comment, "{'body':'see <!-- coop:p -->'}", "{'body':'<!-- coop:p -->\\nnew'}", false},
        {look_is_comment, "{'body':'<!-- coop:q -->\\nnew'}", "{'body':'<!-- coop:p -->\\nnew'}", false},
        {look_is_comment, "{'body':'hello\\n'}", "{'body':'hello'}", true},
        {look_is_comment, "{'body':'hello you'}", "{'body':'hello'}", false},
        {look_is_said, "{'body':'<!-- coop:p -->\\r\\nnew\\n'}", "{'body':'<!-- coop:p -->\\nnew'}", true},
        {look_is_said, "{'body':'<!-- coop:p -->\\nold'}", "{'body':'<!-- coop:p -->\\nnew'}", false},
        {look_is_issue, "{'title':'t','body':null}", "{'title':'t'}", true},
        {look_is_issue, "{'title':'t','pull_request':{}}", "{'title':'t'}", false},
        {look_is_status, "{'context':'ci','state':'success'}", "{'context':'ci','state':'success'}", true},
        {look_is_status, "{'context':'ci','state':'pending'}", "{'context':'ci','state':'success'}", false},
        {look_is_check, "{'external_id':'7','name':'n'}", "{'external_id':'7','name':'n'}", true},
        {look_is_check, "{'name':'n'}", "{'name':'n'}", false},
        {look_is_ref, "{'ref':'refs/heads/a','object':{'sha':'s'}}", "{'ref':'refs/heads/a','sha':'s'}",
         true},
        {look_is_ref, "{'ref':'refs/heads/a','object':{'sha':'t'}}", "{'ref':'refs/heads/a','sha':'s'}",
         false},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(rows); i++) {
        g_autofree char *item_text = g_strdelimit(g_strdup(rows[i].item), "'", '"');
        g_autofree char *body_text = g_strdelimit(g_strdup(rows[i].body), "'", '"');
        g_autoptr(Json) item = json_decode(item_text, strlen(item_text), NULL);
        g_autoptr(Json) body = json_decode(body_text, strlen(body_text), NULL);

        g_test_message("row %zu", i);
        g_assert_true(item != NULL && body != NULL);
        g_assert_true(rows[i].is_it(item, body) == rows[i].want);
    }
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/github/backoff", test_backoff);
    g_test_add_func("/github/judge", test_judge);
    g_test_add_func("/github/budget", test_budget);
    g_test_add_func("/github/expiry", test_expiry);
    g_test_add_func("/github/link", test_link);
    g_test_add_func("/github/base", test_base);
    g_test_add_func("/github/texts", test_texts);
    g_test_add_func("/github/look", test_look);
    return g_test_run();
}

/* SPDX-License-Identifier: Apache-2.0 */
/* What of GitHub is rows and tables: payloads, rights, work that is done once. */
#include <string.h>

#include "github/account-private.h"
#include "github/map.h"
#include "github/rights.h"
#include "github/text.h"
#include "github/work.h"
#include "support/forge-rows.h"

#define DAY_US (24 * 3600 * (gint64)G_USEC_PER_SEC)

static Json *
read_json(const char *text)
{
    g_autofree char *quoted = g_strdelimit(g_strdup(text), "'", '"');
    Json *value = json_decode(quoted, strlen(quoted), NULL);

    g_assert_nonnull(value);
    return value;
}

/* ---- payloads ---- */

static void
test_map(void)
{
    static const struct {
        const char *name, *payload, *kind, *seen; /* NULL kind: nothing follows */
        gint64 number;
    } rows[] = {
        {"pull_request", "{'action':'opened','pull_request':{'id':5,'number':7,'created_at':'x'}}",
         "pr.opened", "pr.opened:5:x:", 7},
        {"pull_request",
         "{'action':'closed','pull_request':{'id':5,'number':7,'merged':true,'merged_at':'m'}}", "pr.merged",
         "pr.merged:5:m:", 7},
        {"pull_request",
         "{'action':'closed','pull_request':{'id':5,'number':7,'merged':false,'closed_at':'c'}}", "pr.closed",
         "pr.closed:5:c:", 7},
        {"pull_request", "{'action':'synchronize','pull_request':{'id':5,'number':7,'updated_at':'u'}}",
         "pr.updated", "pr.updated:5:u:", 7},
        {"pull_request_review",
         "{'action':'submitted','review':{'id':9,'submitted_at':'s','state':'approved'},'pull_request':{'"
         "number':7}}",
         "review.submitted", "review.submitted:9:s:", 7},
        {"issue_comment", "{'action':'created','comment':{'id':3,'created_at':'t'},'issue':{'number':7}}",
         "comment.added", "comment.added:3:t:", 7},
        {"issue_comment", "{'action':'edited','comment':{'id':3,'updated_at':'t'},'issue':{'number':7}}",
         "comment.changed", "comment.changed:3:t:", 7},
        {"issues", "{'action':'labeled','issue':{'id':4,'number':8,'updated_at':'t'}}", "issue.updated",
         "issue.updated:4:t:", 8},
        {"check_run",
         "{'action':'completed','check_run':{'id':6,'status':'completed','conclusion':'success'}}",
         "check.reported", "check.reported:6:completed:success", 0},
        {"status", "{'id':2,'state':'success','sha':'s'}", "status.reported",
         "status.reported:2:success:", 0},
        {"push", "{'ref':'refs/heads/main'}", NULL, NULL, 0},
        {"ping", "{'zen':'x'}", NULL, NULL, 0},
        {"pull_request", "{'action':'opened'}", NULL, NULL, 0},
        {"pull_request", "{'action':'opened','pull_request':'x'}", NULL, NULL, 0},
        {"pull_request", "{'action':'opened','pull_request':{'id':'5'}}", NULL, NULL, 0},
        {"status", "[1]", NULL, NULL, 0},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(rows); i++) {
        g_autoptr(Json) payload = read_json(rows[i].payload);
        g_auto(GithubMapped) mapped = {0};

        g_test_message("row %zu", i);
        g_assert_true(github_map(rows[i].name, payload, &mapped) == (rows[i].kind != NULL));
        g_assert_cmpstr(mapped.kind, ==, rows[i].kind);
        g_assert_cmpstr(mapped.seen, ==, rows[i].seen);
        g_assert_cmpint(mapped.number, ==, rows[i].number);
        if (mapped.kind == NULL)
            continue;
        g_assert_true(event_kind_is_known(mapped.kind));
        g_assert_cmpstr(github_text(mapped.data, "source"), ==, "github");
        g_assert_null(json_object_get(mapped.data, "number")); /* ours alone */
    }
}

/* What strangers write is bounded, and stays what an event can hold. */
static void
test_map_hostile(void)
{
    g_autofree char *long_text = g_strnfill(100000, 'x');
    g_autoptr(Json)
        payload = json_pack("{s:s, s:{s:i, s:s, s:s, s:s, s:{s:s}}, s:{s:i}}", "action", "created", "comment",
                            "id", 3, "body", long_text, "html_url", long_text, "created_at", long_text,
                            "user", "login", "a\x1b[2Jb", "issue", "number", 7);
    g_auto(GithubMapped) mapped = {0};

    g_assert_true(github_map("issue_comment", payload, &mapped));
    g_autofree char *text = json_encode(mapped.data);

    g_assert_cmpuint(strlen(text), <, EVENT_DATA_MAX / 2);
    g_assert_cmpuint(strlen(mapped.seen), <, 200);
    g_assert_cmpstr(mapped.actor, ==, "github:a [2Jb");
}

/* ---- rights ---- */

static void
test_warnings(void)
{
    static const struct {
        const char *rights;
        gint64 expires_days;
        const char *words[4]; /* one in each warning */
    } rows[] = {
        {"{}", 0, {NULL}},
        {"{}", 20, {NULL}},
        {"{}", 14, {NULL}},
        {"{}", 13, {"expires in 13 days"}},
        {"{}", -1, {"has expired"}},
        {"{'scopes':['public_repo','read:user']}", 0, {NULL}},
        {"{'scopes':['repo','workflow','delete_repo']}", 0, {"'repo'", "'workflow'", "'delete_repo'"}},
        {"{'may':['administration'],'lacks':['pull_requests']}", 0, {"'administration'", "lack"}},
        {"{'scopes':['%s%n']}", 0, {"'%s%n'"}},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(rows); i++) {
        g_autoptr(Json) rights = read_json(rows[i].rights);
        gint64 now = 1000 * DAY_US, days = rows[i].expires_days;
        g_autoptr(Json) list = github_rights_warnings(rights, days != 0 ? now + days * DAY_US : 0, now);
        size_t n = 0;

        g_test_message("row %zu", i);
        for (; n < G_N_ELEMENTS(rows[i].words) && rows[i].words[n] != NULL; n++)
            g_assert_nonnull(strstr(json_string_value(json_array_get(list, n)), rows[i].words[n]));
        g_assert_cmpuint(json_array_size(list), ==, n);
    }
    g_assert_cmpstr(github_token_kind("github_pat_11AA"), ==, "fine-grained");
    g_assert_cmpstr(github_token_kind("ghp_11AA"), ==, "classic");
    g_assert_cmpstr(github_token_kind("coop_11AA"), ==, "other");
}

/* ---- accounts ---- */

static GithubAccounts *
make_accounts(RowWorld *w, const Seal *seal)
{
    return github_accounts_new(&(GithubAccountsSpec){.loop = w->loop, .db = w->bench->db, .seal = seal});
}

static void
add_account(GithubAccounts *accounts, const char *base, const char *hook_secret)
{
    Account *a = account_new(accounts, base, "the-token");

    a->webhook_secret = g_strdup(hook_secret);
    account_adopt(accounts, a);
}

static void
test_places(void)
{
    static const struct {
        const char *url, *base, *owner, *repo; /* NULL base: nobody's */
    } rows[] = {
        {"https://github.com/acme/widget.git", "https://api.github.com", "acme", "widget"},
        {"https://GitHub.com/acme/widget", "https://api.github.com", "acme", "widget"},
        {"https://github.com/acme/widget/", "https://api.github.com", "acme", "widget"},
        {"http://github.com/acme/widget.git", NULL, NULL, NULL},
        {"https://github.com.evil.example/acme/widget", NULL, NULL, NULL},
        {"https://evil.example/github.com/widget", NULL, NULL, NULL},
        {"https://github.com:444/acme/widget", NULL, NULL, NULL},
        {"https://github.com/widget", NULL, NULL, NULL},
        {"http://127.0.0.1:8003/git/acme/widget.git", "http://127.0.0.1:8003/api/v3", "acme", "widget"},
        {"http://127.0.0.1:8004/git/acme/widget.git", NULL, NULL, NULL},
    };
    g_autoptr(RowWorld) w = row_world_new();
    g_autoptr(Seal) seal = seal_open(w->bench->dir, NULL);
    g_autoptr(GithubAccounts) accounts = make_accounts(w, seal);

    add_account(accounts, "https://api.github.com", NULL);
    add_account(accounts, "http://127.0.0.1:8003/api/v3", NULL);
    for (size_t i = 0; i < G_N_ELEMENTS(rows); i++) {
        g_auto(GithubPlace) place = {0};
        g_autofree char *credentials = github_accounts_credentials(accounts, rows[i].url);
        bool found = github_accounts_find(accounts, rows[i].url, &place);

        g_test_message("%s", rows[i].url);
        g_assert_true(found == (rows[i].base != NULL));
        g_assert_cmpstr(place.owner, ==, rows[i].owner);
        g_assert_cmpstr(place.repo, ==, rows[i].repo);
        if (!found)
            continue;
        g_assert_cmpstr(github_client_base(place.client), ==, rows[i].base);
        g_assert_cmpstr(credentials, ==, "x-access-token:the-token");
    }
}

static void
test_verify(void)
{
    g_autoptr(RowWorld) w = row_world_new();
    g_autoptr(Seal) seal = seal_open(w->bench->dir, NULL);
    g_autoptr(GithubAccounts) accounts = make_accounts(w, seal);
    /* GitHub's own example. */
    static const char body[] = "Hello, World!";
    static const char good[] = "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17";
    static const struct {
        const char *signature;
        bool good;
    } rows[] = {
        {good, true},
        {NULL, false},
        {"", false},
        {"sha256=", false},
        {"sha1=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17", false},
        {"sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e18", false},
        {"sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e1", false},
        {"sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e177", false},
        {"757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17", false},
    };

    add_account(accounts, "https://a.example", NULL);
    g_assert_false(github_accounts_take_hooks(accounts));
    add_account(accounts, "https://b.example", "It's a Secret to Everybody");
    add_account(accounts, "https://c.example", "another");
    g_assert_true(github_accounts_take_hooks(accounts));
    for (size_t i = 0; i < G_N_ELEMENTS(rows); i++)
        g_assert_cmpstr(github_accounts_verify(accounts, rows[i].signature, body, strlen(body)), ==,
                        rows[i].good ? "https://b.example" : NULL);
    g_assert_null(github_accounts_verify(accounts, good, body, strlen(body) - 1));
}

static void
on_done(void *data, const GError *error)
{
    g_assert_no_error(error);
    *(bool *)data = true;
}

static void
load(GithubAccounts *accounts)
{
    bool done = false;

    github_accounts_load(accounts, on_done, &done);
    while (!done)
        g_main_context_iteration(NULL, TRUE);
}

/* What lies on the disk gives nothing away, and comes back with the same key only. */
static void
test_sealed(void)
{
    g_autoptr(RowWorld) w = row_world_new();
    g_autoptr(Seal) seal = seal_open(w->bench->dir, NULL);
    g_autoptr(GithubAccounts) accounts = make_accounts(w, seal);
    bool done = false;
    g_autofree char *bytes = NULL;
    gsize n;

    add_account(accounts, "https://a.example", "hook-secret");
    account_row_put(account_find(accounts, "https://a.example"), "login", "local", on_done, &done);
    while (!done)
        g_main_context_iteration(NULL, TRUE);
    g_assert_cmpint(store_read_int(w->bench->db, "SELECT COUNT(*) FROM github_accounts"), ==, 1);
    (void)store_write_sql(w->bench->db, "SELECT 1", NULL);
    g_autofree char *wal = g_strconcat(w->bench->path, "-wal", NULL);

    g_assert_true(g_file_get_contents(wal, &bytes, &n, NULL));
    g_assert_null(memmem(bytes, n, "the-token", strlen("the-token")));
    g_assert_null(memmem(bytes, n, "hook-secret", strlen("hook-secret")));
    g_assert_nonnull(memmem(bytes, n, "https://a.example", strlen("https://a.example")));

    g_autoptr(GithubAccounts) again = make_accounts(w, seal);

    load(again);
    g_assert_cmpstr(account_find(again, "https://a.example")->token, ==, "the-token");
    g_assert_cmpstr(account_find(again, "https://a.example")->webhook_secret, ==, "hook-secret");
    /* One row's secret is no other's. */
    row_world_sql(w, "UPDATE github_accounts SET base_url = 'https://evil.example'");
    load(again);
    g_assert_null(account_find(again, "https://evil.example"));
}

/* ---- work ---- */

typedef struct Job {
    bool (*func)(DbTx *tx, struct Job *job, GError **error);
    const char *kind, *name, *after;
    gint64 seq, now_us, next_us;
    WorkRow *row;
    WorkResult result;
} Job;

static bool
run_job(DbTx *tx, void *data, GError **error)
{
    Job *job = data;

    return job->func(tx, job, error);
}

static bool
ask_job(DbTx *tx, Job *job, GError **error)
{
    g_autoptr(Json) body = json_pack("{s:I, s:I}", "seq", (json_int_t)job->seq, "number", (json_int_t)7);

    return work_ask(tx,
                    &(WorkAsk){.repository_id = row_world_id,
                               .kind = job->kind,
                               .name = job->name,
                               .after = job->after,
                               .body = body},
                    error);
}

static bool
take_job(DbTx *tx, Job *job, GError **error)
{
    return work_take(tx, G_MAXINT64 / 2, &job->row, &job->next_us, error);
}

static bool
end_job(DbTx *tx, Job *job, GError **error)
{
    return work_end(tx, job->row, &job->result, error);
}

static void
run(RowWorld *w, Job *job)
{
    g_autoptr(GError) error = NULL;

    g_assert_true(store_write(w->bench->db, run_job, job, &error));
    g_assert_no_error(error);
}

static void
ask(RowWorld *w, const char *kind, const char *name, gint64 seq)
{
    g_autofree char *push = g_strconcat("push:", row_world_id, ":task-1", NULL);

    run(w, &(Job){.func = ask_job,
                  .kind = kind,
                  .name = name,
                  .after = strcmp(kind, "pull") == 0 ? push : NULL,
                  .seq = seq});
}

static WorkRow *
take(RowWorld *w)
{
    Job job = {.func = take_job};

    run(w, &job);
    return job.row;
}

static void
end(RowWorld *w, WorkRow *row, WorkResult result)
{
    run(w, &(Job){.func = end_job, .row = row, .result = result});
    work_row_free(row);
}

static gint64
count_state(RowWorld *w, const char *state)
{
    g_autofree char *sql = g_strdup_printf("SELECT COUNT(*) FROM upstream_work WHERE state = '%s'", state);

    return store_read_int(w->bench->db, sql);
}

static void
test_work(void)
{
    g_autoptr(RowWorld) w = row_world_new();
    g_autoptr(Json) answer = json_pack("{s:i, s:s}", "number", 70, "state", "open");
    g_autoptr(Json) pushed = json_pack("{s:i}", "oid", 1);

    g_assert_null(take(w));
    ask(w, "pull", "7", 10);
    ask(w, "push", "task-1", 9);
    ask(w, "push", "task-1", 9); /* the same event twice */
    g_assert_cmpint(count_state(w, "waiting"), ==, 2);
    /* The branch goes before its pull request, though it was asked for later. */
    WorkRow *row = take(w);
    g_assert_cmpstr(row->kind, ==, "push");
    g_assert_false(row->was_sent);
    work_row_free(row);
    /* Whoever finds it after a crash knows that it may have been done. */
    row = take(w);
    g_assert_cmpstr(row->kind, ==, "push");
    g_assert_true(row->was_sent);
    /* A newer one that comes meanwhile is not lost with the end of this one. */
    ask(w, "push", "task-1", 11);
    end(w, row, (WorkResult){.end = WORK_DONE});
    row = take(w);
    g_assert_cmpstr(row->kind, ==, "push");
    g_assert_cmpint(github_number(row->body, "seq"), ==, 11);
    end(w, row, (WorkResult){.end = WORK_DONE, .answer = pushed});
    row = take(w);
    g_assert_cmpstr(row->kind, ==, "pull");
    g_assert_null(row->answer);
    g_assert_cmpint(github_number(row->above, "oid"), ==, 1);
    end(w, row, (WorkResult){.end = WORK_AGAIN, .problem = "x", .next_us = 1, .counts = true});
    row = take(w);
    g_assert_cmpuint(row->tries, ==, 1);
    g_assert_true(row->was_sent); /* its end was not known: it may have been done */
    end(w, row, (WorkResult){.end = WORK_DONE, .answer = answer});
    g_assert_null(take(w));
    g_assert_cmpint(count_state(w, "done"), ==, 2);
    /* An old event, read once more after a crash, asks for nothing; a new one finds the answer. */
    ask(w, "pull", "7", 10);
    g_assert_null(take(w));
    ask(w, "pull", "7", 12);
    row = take(w);
    g_assert_cmpint(github_number(row->answer, "number"), ==, 70);
    end(w, row, (WorkResult){.end = WORK_FAILED, .problem = "no"});
    g_assert_cmpint(count_state(w, "failed"), ==, 1);
    /* So may what was given up. */
    ask(w, "pull", "7", 13);
    row = take(w);
    g_assert_true(row->was_sent);
    ask(w, "pull", "7", 14);
    end(w, row, (WorkResult){.end = WORK_FAILED, .problem = "no"});
    row = take(w);
    g_assert_true(row->was_sent);
    end(w, row, (WorkResult){.end = WORK_DONE});
    ask(w, "pull", "7", 15);
    row = take(w);
    g_assert_false(row->was_sent);
    end(w, row, (WorkResult){.end = WORK_DONE});
    g_assert_cmpint(
        store_read_int(w->bench->db, "SELECT COUNT(*) FROM upstream_work WHERE answer IS NOT NULL"), ==, 2);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/github/map", test_map);
    g_test_add_func("/github/map-hostile", test_map_hostile);
    g_test_add_func("/github/warnings", test_warnings);
    g_test_add_func("/github/places", test_places);
    g_test_add_func("/github/verify", test_verify);
    g_test_add_func("/github/sealed", test_sealed);
    g_test_add_func("/github/work", test_work);
    return g_test_run();
}

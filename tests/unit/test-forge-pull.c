/* SPDX-License-Identifier: Apache-2.0 */
/* Pull requests and whether they may be merged. */
#include <string.h>

#include "forge/check-row.h"
#include "forge/pull-private.h"
#include "forge/repo-settings.h"
#include "forge/review.h"
#include "forge/thread-private.h"
#include "support/forge-rows.h"

#define AUTHOR "agent:author"

static Json *
get_pull(RowWorld *w, gint64 number)
{
    return ROW_ASK(thread_get, w, number, "pull");
}

static bool
push_work(DbTx *tx, void *data, GError **error)
{
    return pulls_listener.write(tx, row_world_id, data, NULL, error);
}

/* As the transaction of a push does it. */
static void
push(RowWorld *w, const char *ref, const char *new)
{
    ForgePush p = {.actor = "box:1", .ref = ref, .old = row_oid('a'), .new = new};
    g_autoptr(GError) error = NULL;

    store_write(w->bench->db, push_work, &p, &error);
    g_assert_no_error(error);
}

static void
test_open(void)
{
    g_autoptr(RowWorld) w = row_world_new();
    gint64 n = row_world_pull(w, AUTHOR, "task-1");
    g_autoptr(Json) pull = get_pull(w, n);

    g_assert_cmpstr(row_text(pull, "head_oid"), ==, row_oid('a'));
    g_assert_cmpstr(row_text(pull, "compared_head"), ==, row_oid('a'));
    g_assert_cmpint(row_int(pull, "ahead"), ==, 1);
    row_world_expect(w, "pr.opened");
}

static bool
open_again(DbTx *tx, void *data, GError **error)
{
    PullLook look = {.ahead = 1};
    PullSpec spec = {.actor = "local", .head = "task-1", .base = "main", .title = "twice"};
    g_auto(RowJob) job = {0};
    g_autoptr(Json) pull = NULL;

    row_job_init(&job, tx, row_world_id);
    g_strlcpy(look.head_oid, row_oid('9'), sizeof look.head_oid);
    g_strlcpy(look.base_oid, row_oid('b'), sizeof look.base_oid);
    return pull_insert(&job, &spec, &look, &pull, error);
}

/* A second one is refused; a push between git's answer and the row is not lost. */
static void
test_open_twice(void)
{
    g_autoptr(RowWorld) w = row_world_new();
    gint64 n = row_world_pull(w, AUTHOR, "task-1");
    g_autoptr(GError) error = NULL;

    g_assert_false(store_write(w->bench->db, open_again, NULL, &error));
    g_assert_error(error, ERR_DOMAIN, ERR_CONFLICT);
    json_decref(ROW_ASK(thread_edit, w, &(ThreadEdit){.actor = "local", .number = n, .state = "closed"}));
    g_assert_true(store_write(w->bench->db, open_again, NULL, NULL));
    g_autoptr(Json) second = get_pull(w, n + 1);

    g_assert_cmpstr(row_text(second, "head_oid"), ==, row_oid('a'));
    g_assert_null(row_text(second, "compared_head"));
    ROW_FAIL(ERR_CONFLICT, "open already", thread_edit, w,
             &(ThreadEdit){.actor = "local", .number = n, .state = "open"});
}

static void
test_draft(void)
{
    g_autoptr(RowWorld) w = row_world_new();
    gint64 n = row_world_pull(w, AUTHOR, "task-1");

    json_decref(
        ROW_ASK(thread_edit, w, &(ThreadEdit){.actor = "local", .number = n, .title = "[WIP] Wheel"}));
    g_autoptr(Json) draft = ROW_ASK(pull_set_draft, w, &(PullDraft){"local", n, true});
    g_autoptr(Json) same = ROW_ASK(pull_set_draft, w, &(PullDraft){"local", n, true});
    g_autoptr(Json) ready = ROW_ASK(pull_set_draft, w, &(PullDraft){"local", n, false});

    g_assert_true(row_is(draft, "draft"));
    g_assert_cmpint(row_int(draft, "updated_us"), ==, row_int(same, "updated_us"));
    g_assert_false(row_is(ready, "draft"));
    g_assert_cmpstr(row_text(ready, "title"), ==, "Wheel");
    row_world_expect(w, "pr.opened pr.updated pr.updated pr.ready");
}

static void
test_reviewers(void)
{
    static const char *const one[] = {"key:1", NULL}, *const self[] = {AUTHOR, NULL},
                             *const unknown[] = {"nobody", NULL};
    g_autoptr(RowWorld) w = row_world_new();
    gint64 n = row_world_pull(w, AUTHOR, "task-1");
    g_autoptr(Json) asked = ROW_ASK(pull_reviewers, w, &(ThreadNames){"local", n, LIST_ADD, one});
    g_autoptr(Json) twice = ROW_ASK(pull_reviewers, w, &(ThreadNames){"local", n, LIST_ADD, one});

    g_assert_cmpuint(json_array_size(json_object_get(twice, "reviewers")), ==, 1);
    row_world_expect(w, "pr.opened review.requested");
    ROW_FAIL(ERR_INVALID, "author", pull_reviewers, w, &(ThreadNames){"local", n, LIST_ADD, self});
    ROW_FAIL(ERR_INVALID, "no user", pull_reviewers, w, &(ThreadNames){"local", n, LIST_ADD, unknown});
    json_decref(
        ROW_ASK(review_create, w, &(ReviewSpec){.actor = "key:1", .number = n, .verdict = REVIEW_APPROVE}));
    g_autoptr(Json) after = get_pull(w, n);

    g_assert_cmpuint(json_array_size(json_object_get(after, "reviewers")), ==, 0);
    row_world_expect(w, "review.submitted pr.approved");
}

static void
test_pushes(void)
{
    g_autoptr(RowWorld) w = row_world_new();
    gint64 n = row_world_pull(w, AUTHOR, "task-1"), other = row_world_pull(w, AUTHOR, "task-2");

    row_world_expect(w, "pr.opened pr.opened");
    push(w, "refs/heads/task-1", row_oid('c'));
    push(w, "refs/tags/task-1", row_oid('e'));
    push(w, "refs/heads/main", row_oid('d'));
    g_autoptr(Json) pull = get_pull(w, n);
    g_autoptr(Json) second = get_pull(w, other);

    g_assert_cmpstr(row_text(pull, "head_oid"), ==, row_oid('c'));
    g_assert_cmpstr(row_text(pull, "base_oid"), ==, row_oid('d'));
    g_assert_cmpstr(row_text(second, "head_oid"), ==, row_oid('a'));
    g_assert_cmpstr(row_text(second, "base_oid"), ==, row_oid('d'));
    row_world_expect(w, "pr.updated");
    push(w, "refs/heads/task-1", git_oid_zero);
    g_autoptr(Json) closed = get_pull(w, n);

    g_assert_cmpstr(row_text(closed, "state"), ==, "closed");
    row_world_expect(w, "pr.closed");
    row_world_sql(w, "DELETE FROM repository_refs WHERE name = 'refs/heads/task-1'");
    ROW_FAIL(ERR_CONFLICT, "is gone", thread_edit, w,
             &(ThreadEdit){.actor = "local", .number = n, .state = "open"});
    row_world_branch(w, "task-1", '7');
    g_autoptr(Json)
        again = ROW_ASK(thread_edit, w, &(ThreadEdit){.actor = "local", .number = n, .state = "open"});

    g_assert_cmpstr(row_text(again, "head_oid"), ==, row_oid('7'));
    row_world_expect(w, "pr.reopened");
}

static void
test_retarget(void)
{
    g_autoptr(RowWorld) w = row_world_new();
    gint64 n = row_world_pull(w, AUTHOR, "task-1");
    const struct {
        const char *base, *problem;
    } cases[] = {{"nowhere", "no branch"}, {"task-1", "same branch"}, {"--mirror", NULL}};

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++)
        ROW_FAIL(ERR_INVALID, cases[i].problem, thread_edit, w,
                 &(ThreadEdit){.actor = "local", .number = n, .base = cases[i].base});
    row_world_branch(w, "release", 'f');
    g_autoptr(Json)
        pull = ROW_ASK(thread_edit, w, &(ThreadEdit){.actor = "local", .number = n, .base = "release"});

    g_assert_cmpstr(row_text(pull, "base_oid"), ==, row_oid('f'));
    g_assert_cmpint(row_int(pull, "based_us"), >, row_int(pull, "created_us"));
}

/* ---- merging ---- */

static bool
merge_work(DbTx *tx, void *data, GError **error)
{
    return pull_set_merged(tx, row_world_id, data, error);
}

static void
test_merged(void)
{
    g_autoptr(RowWorld) w = row_world_new();
    gint64 n = row_world_pull(w, AUTHOR, "task-1");
    PullMerged m = {.actor = "local", .number = n, .method = "squash", .merge_oid = row_oid('c')};

    g_assert_true(store_write(w->bench->db, merge_work, &m, NULL));
    g_assert_true(store_write(w->bench->db, merge_work, &m, NULL));
    row_world_expect(w, "pr.opened pr.merged");
    m.merge_oid = row_oid('d');
    g_assert_false(store_write(w->bench->db, merge_work, &m, NULL));
    g_autoptr(Json) after = get_pull(w, n);

    g_assert_true(row_is(after, "merged"));
    g_assert_cmpstr(row_text(after, "state"), ==, "closed");
    g_assert_cmpstr(row_text(after, "merge_oid"), ==, row_oid('c'));
    ROW_FAIL(ERR_CONFLICT, "was merged", thread_edit, w,
             &(ThreadEdit){.actor = "local", .number = n, .state = "open"});
    push(w, "refs/heads/task-1", git_oid_zero);
    row_world_expect(w, "");
}

static char *
rules_of(RowWorld *w, gint64 number)
{
    g_autoptr(Json) state = ROW_ASK(pull_merge_state_get, w, number);
    GString *rules = g_string_new(row_text(state, "state"));
    size_t i;
    Json *reason;

    json_array_foreach(json_object_get(state, "reasons"), i, reason)
        g_string_append_printf(rules, " %s", row_text(reason, "rule"));
    return g_string_free(rules, FALSE);
}

#define SUITE(state, head, at)                                                                               \
    "INSERT INTO check_suites (id, repository_id, number, base_oid, head_oid, tree_oid, state, tries, "      \
    "created_us, ended_us) SELECT '" state head at "', id, 1, '', (SELECT replace(printf('%040d', 0), '0', " \
    "'" head "')), '', '" state "', 1, (SELECT based_us + " at " FROM threads WHERE number = 1), 0 "         \
    "FROM repositories;"
#define REVIEW(author, state, at)                                                                            \
    "INSERT INTO reviews (id, thread_id, author, state, body, commit_oid, created_us, updated_us, "          \
    "submitted_us) SELECT " at ", id, '" author "', '" state "', '', '', 1, 1, " at                          \
    " FROM threads WHERE number = 1;"
#define CLAIM                                                                                                \
    "INSERT INTO checks (id, repository_id, name, head_oid, seen_by, author, status, conclusion, "           \
    "started_us, completed_us, updated_us) SELECT 1, repository_id, 'tests', head_oid, 'claimed', "          \
    "'agent:1', 'completed', 'success', 1, 1, 1 FROM threads WHERE number = 1;"
#define PASSED SUITE("passed", "a", "1")

static void
test_merge_state(void)
{
    static const struct {
        const char *sql, *settings, *rules;
    } cases[] = {
        {PASSED, "{}", "clean"},
        {"", "{}", "blocked checks_missing"},
        {CLAIM, "{}", "blocked checks_claimed"},
        {CLAIM PASSED, "{}", "clean"},
        {SUITE("failed", "a", "1"), "{}", "blocked checks_failed"},
        {SUITE("failed", "a", "1") CLAIM, "{}", "blocked checks_failed"},
        {SUITE("queued", "a", "1"), "{}", "blocked checks_running"},
        {SUITE("running", "a", "1"), "{}", "blocked checks_running"},
        {SUITE("error", "a", "1"), "{}", "blocked checks_missing"},
        {SUITE("passed", "c", "1"), "{}", "blocked checks_missing"},  /* of another head */
        {SUITE("passed", "a", "-1"), "{}", "blocked checks_missing"}, /* for another base */
        {SUITE("failed", "a", "1") SUITE("passed", "a", "2"), "{}", "clean"},
        {SUITE("passed", "a", "1") SUITE("failed", "a", "2"), "{}", "blocked checks_failed"},
        {PASSED "UPDATE threads SET draft = 1;", "{}", "blocked draft"},
        {PASSED "UPDATE threads SET state = 'closed';", "{}", "blocked closed"},
        {PASSED "UPDATE threads SET conflicts = 1;", "{}", "blocked conflicts"},
        {PASSED "UPDATE threads SET behind = 3;", "{}", "clean"},
        {PASSED "UPDATE threads SET behind = 3;", "{\"up_to_date\": true}", "blocked behind"},
        {PASSED "UPDATE threads SET base_oid = 'x', conflicts = 1;", "{}", "blocked unknown"},
        {PASSED, "{\"required_approvals\": 1}", "blocked approvals"},
        {PASSED REVIEW("key:1", "APPROVED", "1"), "{\"required_approvals\": 1}", "clean"},
        {PASSED REVIEW("key:1", "APPROVED", "1") REVIEW("key:1", "APPROVED", "2"),
         "{\"required_approvals\": 2}", "blocked approvals"},
        {PASSED REVIEW(AUTHOR, "APPROVED", "1"), "{\"required_approvals\": 1}", "blocked approvals"},
        {PASSED REVIEW("key:1", "CHANGES_REQUESTED", "1"), "{}", "blocked changes_requested"},
        {PASSED REVIEW("key:1", "CHANGES_REQUESTED", "1") REVIEW("key:1", "COMMENTED", "2"), "{}",
         "blocked changes_requested"},
        {PASSED REVIEW("key:1", "CHANGES_REQUESTED", "1") REVIEW("key:2", "APPROVED", "2"), "{}",
         "blocked changes_requested"},
        {PASSED REVIEW("key:1", "CHANGES_REQUESTED", "1") REVIEW("key:1", "APPROVED", "2"), "{}", "clean"},
        {PASSED REVIEW("key:1", "DISMISSED", "1"), "{}", "clean"},
        {PASSED REVIEW("key:1", "PENDING", "1"), "{\"required_approvals\": 1}", "blocked approvals"},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(RowWorld) w = row_world_new();
        gint64 n = row_world_pull(w, AUTHOR, "task-1");
        g_auto(GStrv) statements = g_strsplit(cases[i].sql, ";", -1);
        g_autofree char *settings = g_strdup_printf("UPDATE repositories SET settings = '%s'",
                                                    cases[i].settings);

        row_world_sql(w, "DELETE FROM check_suites"); /* which its opening has queued */
        for (char **sql = statements; *sql != NULL; sql++) {
            if ((*sql)[0] != '\0')
                row_world_sql(w, *sql);
        }
        row_world_sql(w, settings);
        g_autofree char *rules = rules_of(w, n);

        g_assert_cmpstr(rules, ==, cases[i].rules);
    }
}

static void
test_settings(void)
{
    static const struct {
        const char *text, *problem; /* NULL: is fine */
    } cases[] = {
        {"{}", NULL},
        {"{\"required_approvals\": 2, \"up_to_date\": true}", NULL},
        {"{\"merge_methods\": [\"squash\"]}", NULL},
        {"{\"protected_branches\": [\"main\", \"release/1\"]}", NULL},
        {"{\"branch_pattern\": \"feature/{id}-{slug}\"}", NULL},
        {"{\"checks\": \"none\"}", NULL},
        {"{\"checks\": \"no\"}", "checks must be"},
        {"{\"required_approvals\": 7}", "required_approvals"},
        {"{\"required_approvals\": -1}", "required_approvals"},
        {"{\"surprise\": 1}", "surprise"},
        {"{\"merge_methods\": []}", "must name one"},
        {"{\"merge_methods\": [\"octopus\"]}", "merge_methods"},
        {"{\"protected_branches\": [\"--mirror\"]}", "protected_branches"},
        {"{\"branch_pattern\": \"same\"}", "{id}"},
        {"{\"branch_pattern\": \"../{id}\"}", "branch_pattern"},
        {"[]", NULL},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(cases) - 1; i++) {
        g_autoptr(GError) error = NULL;
        g_autoptr(RepoSettings) settings = repo_settings_parse(cases[i].text, &error);

        if (cases[i].problem != NULL) {
            g_assert_error(error, ERR_DOMAIN, ERR_INVALID);
            g_assert_nonnull(strstr(error->message, cases[i].problem));
            continue;
        }
        g_assert_no_error(error);
        g_autoptr(Json) shown = repo_settings_json(settings);

        g_assert_cmpuint(json_object_size(shown), ==, 9);
    }
    g_assert_null(repo_settings_parse("[]", NULL));
}

static void
test_body(void)
{
    static const char *const plan[] = {"read *all*", "![x](http://evil)", NULL};
    PullBody body = {.summary = "Fix it\n# Heading [a](b) @all <img>",
                     .task_id = "42",
                     .task_url = "http://127.0.0.1:1/tasks/42?a=(b)",
                     .task_name = "Fix](x",
                     .plan = plan,
                     .checks_url = "http://127.0.0.1:1/checks",
                     .agent = "eliza",
                     .role = "developer"};
    g_autofree char *text = pull_body_format(&body);
    g_autofree char *title = pull_title_format("Do \x1b[1mit\nnow", true);
    g_autofree char *filled = g_strnfill(400, 'x');
    g_autofree char *cut = pull_title_format(filled, true);

    g_assert_nonnull(strstr(text, "> \\# Heading \\[a\\]\\(b\\) \\@all \\<img\\>\n"));
    g_assert_nonnull(strstr(text, "**Task:** [Fix\\]\\(x](http://127.0.0.1:1/tasks/42?a=%28b%29)\n"));
    g_assert_nonnull(strstr(text, "1. read \\*all\\*\n2. \\!\\[x\\]\\(http\\:\\/\\/evil\\)\n"));
    g_assert_nonnull(strstr(text, "[What Coop saw](http://127.0.0.1:1/checks)"));
    g_assert_nonnull(strstr(text, "By eliza, developer.\n"));
    body.checks_url = NULL;
    g_autofree char *bare = pull_body_format(&body);
    g_assert_nonnull(strstr(bare, "\n\nCoop runs them itself: base and change alone"));
    g_assert_cmpstr(title, ==, "[WIP] Do  [1mit");
    g_assert_cmpint(g_utf8_strlen(cut, -1), ==, THREAD_TITLE_MAX);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/forge/pull/open", test_open);
    g_test_add_func("/forge/pull/open-twice", test_open_twice);
    g_test_add_func("/forge/pull/draft", test_draft);
    g_test_add_func("/forge/pull/reviewers", test_reviewers);
    g_test_add_func("/forge/pull/pushes", test_pushes);
    g_test_add_func("/forge/pull/retarget", test_retarget);
    g_test_add_func("/forge/pull/merged", test_merged);
    g_test_add_func("/forge/pull/merge-state", test_merge_state);
    g_test_add_func("/forge/pull/settings", test_settings);
    g_test_add_func("/forge/pull/body", test_body);
    return g_test_run();
}

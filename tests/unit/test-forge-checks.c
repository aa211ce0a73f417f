/* SPDX-License-Identifier: Apache-2.0 */
/* Suites as rows: which pull requests have one, and who may write what. */
#include <string.h>

#include "forge/check-output.h"
#include "forge/checks-private.h"
#include "forge/pull-private.h"
#include "support/forge-rows.h"

#define AUTHOR "agent:author"

typedef struct World {
    RowWorld *rows;
    Checks *checks; /* is not started: nothing is run */
} World;

static void
world_clear(World *w)
{
    checks_free(w->checks);
    row_world_free(w->rows);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(World, world_clear)

static World
world_new(void)
{
    World w = {.rows = row_world_new()};

    w.checks = checks_new(&(ChecksSpec){.forge = w.rows->forge});
    return w;
}

#define ASK(func, w, ...)                                                                                    \
    ({                                                                                                       \
        RowAnswer answer_ = {0};                                                                             \
        func((w)->checks, (w)->rows->repo, __VA_ARGS__, on_row_answer, &answer_);                            \
        row_answer_wait(&answer_);                                                                           \
    })
#define FAIL(kind, text, func, w, ...)                                                                       \
    do {                                                                                                     \
        RowAnswer answer_ = {0};                                                                             \
        func((w)->checks, (w)->rows->repo, __VA_ARGS__, on_row_answer, &answer_);                            \
        row_answer_wait_error(&answer_, kind, text);                                                         \
    } while (0)

/* "queued:a failed:c", oldest first, with the first digit of the head. */
static char *
suites(World *w)
{
    g_autoptr(Json) list = ASK(checks_list, w, &(SuiteFilter){0});
    const Json *items = json_object_get(list, "items");
    GString *text = g_string_new(NULL);

    for (size_t i = json_array_size(items); i > 0; i--) {
        const Json *suite = json_array_get(items, i - 1);

        g_string_append_printf(text, "%s%s:%c", text->len > 0 ? " " : "", row_text(suite, "state"),
                               row_text(suite, "head_oid")[0]);
    }
    return g_string_free(text, FALSE);
}

static void
expect_suites(World *w, const char *expected)
{
    g_autofree char *text = suites(w);

    g_assert_cmpstr(text, ==, expected);
}

static bool
push_work(DbTx *tx, void *data, GError **error)
{
    return pulls_listener.write(tx, row_world_id, data, NULL, error);
}

static void
push(World *w, const char *ref, const char *new)
{
    ForgePush p = {.actor = "box:1", .ref = ref, .old = row_oid('a'), .new = new};
    g_autoptr(GError) error = NULL;

    store_write(w->rows->bench->db, push_work, &p, &error);
    g_assert_no_error(error);
}

static void
set_draft(World *w, gint64 number, bool draft)
{
    json_decref(ROW_ASK(pull_set_draft, w->rows, &(PullDraft){AUTHOR, number, draft}));
}

static void
set_state(World *w, gint64 number, const char *state)
{
    json_decref(
        ROW_ASK(thread_edit, w->rows, &(ThreadEdit){.actor = AUTHOR, .number = number, .state = state}));
}

static void
test_wanted(void)
{
    g_auto(World) w = world_new();
    gint64 n = row_world_pull(w.rows, AUTHOR, "task-1");

    expect_suites(&w, "queued:a");
    set_draft(&w, n, true);
    expect_suites(&w, "cancelled:a");
    push(&w, "refs/heads/task-1", row_oid('c')); /* of a draft */
    expect_suites(&w, "cancelled:a");
    set_draft(&w, n, false);
    expect_suites(&w, "cancelled:a queued:c");
    push(&w, "refs/heads/main", row_oid('d')); /* the base alone */
    expect_suites(&w, "cancelled:a queued:c");
    push(&w, "refs/heads/task-1", row_oid('e'));
    expect_suites(&w, "cancelled:a cancelled:c queued:e");
    row_world_branch(w.rows, "task-1", 'e');
    row_world_branch(w.rows, "main", 'd');
    set_state(&w, n, "closed");
    expect_suites(&w, "cancelled:a cancelled:c cancelled:e");
    set_state(&w, n, "open");
    expect_suites(&w, "cancelled:a cancelled:c cancelled:e queued:e");
}

/* What is known of exactly this is not asked again; what could not be found out is. */
static void
test_wanted_again(void)
{
    static const struct {
        const char *state, *suites;
    } cases[] = {
        {"passed", "passed:a"},
        {"failed", "failed:a"},
        {"error", "error:a queued:a"},
        {"cancelled", "cancelled:a queued:a"},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_auto(World) w = world_new();
        gint64 n = row_world_pull(w.rows, AUTHOR, "task-1");
        g_autofree char *sql = g_strdup_printf("UPDATE check_suites SET state = '%s', ended_us = 1",
                                               cases[i].state);

        row_world_sql(w.rows, sql);
        set_draft(&w, n, true);
        set_draft(&w, n, false);
        expect_suites(&w, cases[i].suites);
    }
}

/* Another base: the commands are others. */
static void
test_other_base(void)
{
    g_auto(World) w = world_new();
    gint64 n = row_world_pull(w.rows, AUTHOR, "task-1");

    row_world_sql(w.rows, "UPDATE check_suites SET state = 'passed', ended_us = 1");
    row_world_branch(w.rows, "release", 'd');
    json_decref(ROW_ASK(thread_edit, w.rows, &(ThreadEdit){.actor = AUTHOR, .number = n, .base = "release"}));
    expect_suites(&w, "passed:a queued:a");
}

/* What the merge queue asked for is not taken away by a push. */
static void
test_asked_stays(void)
{
    g_auto(World) w = world_new();
    gint64 n = row_world_pull(w.rows, AUTHOR, "task-1");
    SuiteSpec spec = {row_oid('b'), row_oid('f'), n, "coop"};

    json_decref(ASK(checks_add, &w, &spec));
    push(&w, "refs/heads/task-1", row_oid('c'));
    expect_suites(&w, "cancelled:a queued:f queued:c");
    FAIL(ERR_INVALID, "the head", checks_add, &w, &(SuiteSpec){row_oid('b'), "main", n, "coop"});
}

static Json *
claim(World *w, const char *id)
{
    return ASK(suite_claim, w, id);
}

static void
test_tries(void)
{
    g_auto(World) w = world_new();
    SuiteSpec spec = {row_oid('b'), row_oid('a'), 0, "local"};
    g_autoptr(Json) suite = ASK(checks_add, &w, &spec);
    const char *id = row_text(suite, "id");
    g_autoptr(Json) first = claim(&w, id);
    g_autoptr(Json) second = claim(&w, id); /* after a kill */

    g_assert_cmpint(row_int(first, "tries"), ==, 1);
    g_assert_cmpint(row_int(second, "tries"), ==, 2);
    /* The first try is nobody any more. */
    SuitePlanned planned = {.id = id,
                            .head_oid = row_oid('a'),
                            .tree_oid = row_oid('7'),
                            .source = "coop.yaml",
                            .tries = 1,
                            .names = (const char *const[]){"one", NULL},
                            .commands = (const char *const[]){"true", NULL}};
    g_autoptr(Json) late = ASK(suite_planned, &w, &planned);
    g_autoptr(Json) late_end = ASK(suite_end, &w, &(SuiteEnd){.id = id, .state = "passed", .tries = 1});

    g_assert_null(json_object_get(late, "ids"));
    g_assert_cmpstr(row_text(late_end, "state"), ==, "cancelled");
    expect_suites(&w, "running:a");
    planned.tries = 2;
    g_autoptr(Json) now = ASK(suite_planned, &w, &planned);
    g_autoptr(Json)
        again = ASK(suite_end, &w, &(SuiteEnd){.id = id, .state = "queued", .tries = 2, .uncounted = true});

    g_assert_cmpuint(json_array_size(json_object_get(now, "ids")), ==, 1);
    g_assert_cmpstr(row_text(again, "state"), ==, "queued");
    g_autoptr(Json) third = claim(&w, id);
    g_autoptr(Json) shown = ASK(checks_get, &w, id);

    g_assert_cmpint(row_int(third, "tries"), ==, 2); /* it did not count */
    g_assert_cmpuint(json_array_size(json_object_get(shown, "checks")), ==, 0);
    g_autoptr(Json)
        done = ASK(suite_end, &w, &(SuiteEnd){.id = id, .state = "passed", .receipt = "{}", .tries = 2});
    g_autoptr(Json) over = claim(&w, id);

    g_assert_cmpstr(row_text(done, "state"), ==, "passed");
    g_assert_cmpstr(row_text(over, "state"), ==, "passed");
    row_world_expect(w.rows, "checks.started checks.ended");
}

static void
test_cancel(void)
{
    g_auto(World) w = world_new();
    SuiteSpec spec = {row_oid('b'), row_oid('a'), 0, "local"};
    g_autoptr(Json) suite = ASK(checks_add, &w, &spec);
    const char *id = row_text(suite, "id");

    json_decref(claim(&w, id));
    g_autoptr(Json) cancelled = ASK(checks_cancel, &w, id, "key:1");

    g_assert_cmpstr(row_text(cancelled, "state"), ==, "cancelled");
    g_autoptr(Json) late = ASK(suite_end, &w, &(SuiteEnd){.id = id, .state = "passed", .tries = 1});

    g_assert_cmpstr(row_text(late, "state"), ==, "cancelled");
    FAIL(ERR_CONFLICT, "cancelled", checks_cancel, &w, id, "key:1");
    FAIL(ERR_NOT_FOUND, NULL, checks_get, &w, "none");
    expect_suites(&w, "cancelled:a");
}

/* ---- what is kept ---- */

enum { OLD_SUITES = CHECKS_SUITES_KEPT + 20 };

static gint64
count(World *w, const char *sql)
{
    return store_read_int(w->rows->bench->db, sql);
}

/* Ended, each a moment after the other, with a check run. */
static void
make_old_suites(World *w)
{
    row_world_sql(w->rows,
                  "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 520) "
                  "INSERT INTO check_suites (id, repository_id, number, base_oid, head_oid, tree_oid, state, "
                  "tries, receipt, created_us, ended_us) SELECT 'old-' || i, (SELECT id FROM repositories), "
                  "77, 'b', 'h' || i, '', 'passed', 1, '{}', i, i FROM n");
    row_world_sql(w->rows,
                  "INSERT INTO checks (id, repository_id, suite, name, head_oid, seen_by, author, "
                  "status, started_us, completed_us, updated_us) SELECT rowid + 1000, repository_id, "
                  "id, 'n', head_oid, 'coop', 'coop', 'completed', 1, 1, 1 FROM check_suites");
}

static void
test_pruned(void)
{
    static const char merge[] =
        "INSERT INTO merges (id, repository_id, number, target, method, head_oid, actor, state, suite_id, "
        "created_us, ended_us) VALUES (%d, (SELECT id FROM repositories), 77, 'main', 'merge', 'h', 'local', "
        "'%s', 'old-%d', 1, %d)";
    static const struct {
        const char *state;
        int suite, ended_us;
        bool kept;
    } cases[] = {{"landed", 1, 1, true}, {"checking", 2, 0, true}, {"failed", 3, 1, false}};
    g_auto(World) w = world_new();
    SuiteSpec spec = {row_oid('b'), row_oid('a'), 0, "local"};
    gint64 n = row_world_pull(w.rows, AUTHOR, "task-1");
    g_autofree char *of_pull = g_strdup_printf(
        "UPDATE check_suites SET number = %" G_GINT64_FORMAT
        ", head_oid = (SELECT head_oid FROM threads LIMIT 1) WHERE id IN ('old-4', 'old-5')",
        n);

    row_world_sql(w.rows, "DELETE FROM check_suites");
    make_old_suites(&w);
    row_world_sql(w.rows, of_pull);
    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *sql = g_strdup_printf(merge, (int)i + 1, cases[i].state, cases[i].suite,
                                               cases[i].ended_us);

        row_world_sql(w.rows, sql);
    }
    for (int i = 0; i < OLD_SUITES - CHECKS_SUITES_KEPT; i++)
        json_decref(ASK(checks_add, &w, &spec));
    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *sql = g_strdup_printf("SELECT COUNT(*) FROM check_suites WHERE id = 'old-%d'",
                                               cases[i].suite);

        g_assert_cmpint(count(&w, sql), ==, cases[i].kept);
    }
    /* Of the open pull request the newest of this head, which decides; not all that were ever asked for. */
    g_assert_cmpint(count(&w, "SELECT COUNT(*) FROM check_suites WHERE id = 'old-4'"), ==, 0);
    g_assert_cmpint(count(&w, "SELECT COUNT(*) FROM check_suites WHERE id = 'old-5'"), ==, 1);
    g_assert_cmpint(count(&w, "SELECT COUNT(*) FROM check_suites WHERE ended_us <> 0"), ==,
                    CHECKS_SUITES_KEPT + 3);
    g_assert_cmpint(count(&w, "SELECT COUNT(*) FROM check_suites WHERE id = 'old-520'"), ==, 1);
    g_assert_cmpint(count(&w, "SELECT COUNT(*) FROM checks WHERE suite NOT IN (SELECT id FROM check_suites)"),
                    ==, 0);
}

/* ---- what a merge looks at ---- */

static void
expect_rules(World *w, gint64 number, const char *expected)
{
    g_autoptr(Json) state = ROW_ASK(pull_merge_state_get, w->rows, number);
    g_autoptr(GString) rules = g_string_new(row_text(state, "state"));
    size_t i;
    Json *reason;

    json_array_foreach(json_object_get(state, "reasons"), i, reason)
        g_string_append_printf(rules, " %s", row_text(reason, "rule"));
    g_assert_cmpstr(rules->str, ==, expected);
}

/* The first suite, run to this end. */
static void
run_suite(World *w, const char *id, const char *conclusion, const char *state)
{
    g_autoptr(Json) claimed = claim(w, id);
    SuitePlanned planned = {.id = id,
                            .head_oid = row_oid('a'),
                            .tree_oid = row_oid('7'),
                            .tries = row_int(claimed, "tries"),
                            .names = (const char *const[]){"tests", NULL},
                            .commands = (const char *const[]){"make test", NULL}};
    g_autoptr(Json) rows = ASK(suite_planned, w, &planned);
    CheckRow row = {.id = json_integer_value(json_array_get(json_object_get(rows, "ids"), 0)),
                    .suite = id,
                    .name = "tests",
                    .head_oid = row_oid('a'),
                    .status = "completed",
                    .conclusion = conclusion};

    json_decref(ASK(suite_put_run, w, &row));
    json_decref(ASK(suite_end, w, &(SuiteEnd){.id = id, .state = state, .tries = planned.tries}));
    /* Nobody else changes what was seen. */
    ROW_FAIL(ERR_DENIED, "not changed by anybody", check_run_put, w->rows,
             &(CheckRunSpec){.actor = AUTHOR, .id = row.id, .status = "completed", .conclusion = "success"});
}

static void
claim_success(World *w)
{
    CheckRunSpec run = {.actor = AUTHOR,
                        .name = "tests",
                        .head_oid = row_oid('a'),
                        .status = "completed",
                        .conclusion = "success"};

    json_decref(ROW_ASK(check_run_put, w->rows, &run));
    json_decref(
        ROW_ASK(status_create, w->rows,
                &(StatusSpec){.actor = AUTHOR, .oid = row_oid('a'), .state = "success", .context = "tests"}));
}

static void
test_claims(void)
{
    g_auto(World) w = world_new();
    gint64 n = row_world_pull(w.rows, AUTHOR, "task-1");
    g_autoptr(Json) first = ASK(checks_list, &w, &(SuiteFilter){.number = n});
    const char *id = row_text(json_array_get(json_object_get(first, "items"), 0), "id");

    claim_success(&w);
    expect_rules(&w, n, "blocked checks_running");
    run_suite(&w, id, "failure", "failed");
    expect_rules(&w, n, "blocked checks_failed");
    claim_success(&w);
    expect_rules(&w, n, "blocked checks_failed");
    g_autoptr(Json) again = ASK(checks_add, &w, &(SuiteSpec){row_oid('b'), row_oid('a'), n, "local"});

    expect_rules(&w, n, "blocked checks_running");
    run_suite(&w, row_text(again, "id"), "success", "passed");
    expect_rules(&w, n, "clean");
}

/* ---- output ---- */

static void
test_output(void)
{
    static const struct {
        size_t bytes, piece;
        size_t kept; /* of them */
    } cases[] = {
        {0, 1, 0},
        {10, 3, 10},
        {CHECK_OUTPUT_HEAD, 100, CHECK_OUTPUT_HEAD},
        {CHECK_OUTPUT_HEAD + 1, 4096, CHECK_OUTPUT_HEAD + 1},
        {CHECK_OUTPUT_HEAD + CHECK_OUTPUT_TAIL - 1, 1000, CHECK_OUTPUT_HEAD + CHECK_OUTPUT_TAIL - 1},
        {CHECK_OUTPUT_HEAD + CHECK_OUTPUT_TAIL, 1000, CHECK_OUTPUT_HEAD + CHECK_OUTPUT_TAIL},
        {CHECK_OUTPUT_HEAD + CHECK_OUTPUT_TAIL + 1, 1000, CHECK_OUTPUT_HEAD + CHECK_OUTPUT_TAIL},
        {1000 * 1000, 777, CHECK_OUTPUT_HEAD + CHECK_OUTPUT_TAIL},
        {1000 * 1000, 300 * 1000, CHECK_OUTPUT_HEAD + CHECK_OUTPUT_TAIL},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(CheckOutput) output = check_output_new();
        g_autofree char *all = g_malloc(cases[i].bytes + 1);
        CheckOutputEnd end;

        for (size_t n = 0; n < cases[i].bytes; n++)
            all[n] = (char)('a' + n % 23);
        for (size_t at = 0; at < cases[i].bytes; at += cases[i].piece)
            check_output_add(output, at % 2 == 0 ? REPORT_STDOUT : REPORT_STDERR, all + at,
                             MIN(cases[i].piece, cases[i].bytes - at));
        check_output_end(output, &end);
        g_autofree char *digest = g_compute_checksum_for_data(G_CHECKSUM_SHA256, (const guint8 *)all,
                                                              cases[i].bytes);
        size_t left_out = cases[i].bytes - cases[i].kept, head = MIN(cases[i].bytes, CHECK_OUTPUT_HEAD);
        g_autofree char *line = left_out > 0 ? g_strdup_printf("\n[%zu bytes are left out here]\n", left_out)
                                             : g_strdup("");
        g_autofree char *expected = g_strdup_printf("%.*s%s%.*s", (int)head, all, line,
                                                    (int)(cases[i].kept - head),
                                                    all + cases[i].bytes - (cases[i].kept - head));

        g_assert_cmpuint(end.bytes, ==, cases[i].bytes);
        g_assert_cmpstr(end.sha256, ==, digest);
        g_assert_cmpstr(end.text, ==, expected);
        g_assert_cmpuint(strlen(end.text), <=, CHECK_TEXT_MAX);
        check_output_end_clear(&end);
    }
}

static void
test_output_bytes(void)
{
    g_autoptr(CheckOutput) output = check_output_new();
    CheckOutputEnd end;

    check_output_add(output, REPORT_STDOUT, "a\0b\xff", 4);
    check_output_add(output, REPORT_STDOUT, "\n1 passed in 0.01s\n", 19);
    check_output_end(output, &end);
    g_assert_true(g_utf8_validate(end.text, -1, NULL));
    g_assert_true(g_str_has_prefix(end.text, "a"));
    g_assert_cmpuint(end.bytes, ==, 23);
    check_output_end_clear(&end);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/forge/checks/wanted", test_wanted);
    g_test_add_func("/forge/checks/wanted-again", test_wanted_again);
    g_test_add_func("/forge/checks/other-base", test_other_base);
    g_test_add_func("/forge/checks/asked-stays", test_asked_stays);
    g_test_add_func("/forge/checks/tries", test_tries);
    g_test_add_func("/forge/checks/cancel", test_cancel);
    g_test_add_func("/forge/checks/pruned", test_pruned);
    g_test_add_func("/forge/checks/claims", test_claims);
    g_test_add_func("/forge/checks/output", test_output);
    g_test_add_func("/forge/checks/output-bytes", test_output_bytes);
    return g_test_run();
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Reviews, comments on lines, check runs and statuses. */
#include <string.h>

#include "forge/check-row.h"
#include "forge/review.h"
#include "forge/row.h"
#include "support/forge-rows.h"

#define AUTHOR "agent:author"
#define OTHER "key:1"

static Json *
review(RowWorld *w, const char *actor, gint64 number, ReviewVerdict verdict, const char *body)
{
    ReviewSpec spec = {.actor = actor, .number = number, .verdict = verdict, .body = body};

    return ROW_ASK(review_create, w, &spec);
}

static gint64
count_reviews(RowWorld *w, const char *actor, gint64 number)
{
    g_autoptr(Json) list = ROW_ASK(review_list, w, &(ReviewFilter){.actor = actor, .number = number});

    return row_int(list, "total");
}

static void
test_verdicts(void)
{
    static const struct {
        const char *actor;
        ReviewVerdict verdict;
        const char *body;
        const char *problem; /* NULL: is taken */
        const char *state, *events;
    } cases[] = {
        {OTHER, REVIEW_APPROVE, NULL, NULL, "APPROVED", "review.submitted pr.approved"},
        {OTHER, REVIEW_REFUSE, "no", NULL, "CHANGES_REQUESTED", "review.submitted"},
        {OTHER, REVIEW_REFUSE, NULL, "body is missing", NULL, ""},
        {OTHER, REVIEW_COMMENT, "hm", NULL, "COMMENTED", "review.submitted"},
        {OTHER, REVIEW_COMMENT, "", "body is missing", NULL, ""},
        {OTHER, REVIEW_PENDING, NULL, NULL, "PENDING", ""},
        {AUTHOR, REVIEW_APPROVE, NULL, "his own", NULL, ""},
        {AUTHOR, REVIEW_REFUSE, "no", "his own", NULL, ""},
        {AUTHOR, REVIEW_COMMENT, "note", NULL, "COMMENTED", "review.submitted"},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(RowWorld) w = row_world_new();
        gint64 n = row_world_pull(w, AUTHOR, "task-1");
        ReviewSpec spec = {
            .actor = cases[i].actor, .number = n, .verdict = cases[i].verdict, .body = cases[i].body};

        row_world_expect(w, "pr.opened");
        if (cases[i].problem != NULL) {
            ROW_FAIL(ERR_INVALID, cases[i].problem, review_create, w, &spec);
        } else {
            g_autoptr(Json) made = ROW_ASK(review_create, w, &spec);

            g_assert_cmpstr(row_text(made, "state"), ==, cases[i].state);
            g_assert_cmpstr(row_text(made, "commit_oid"), ==, row_oid('a'));
        }
        row_world_expect(w, cases[i].events);
    }
}

static void
test_pending(void)
{
    g_autoptr(RowWorld) w = row_world_new();
    gint64 n = row_world_pull(w, AUTHOR, "task-1");
    g_autoptr(Json) made = review(w, OTHER, n, REVIEW_PENDING, NULL);
    ReviewChange change = {.actor = OTHER, .number = n, .id = row_int(made, "id")};

    g_assert_cmpint(count_reviews(w, OTHER, n), ==, 1);
    g_assert_cmpint(count_reviews(w, AUTHOR, n), ==, 0);
    ROW_FAIL(ERR_CONFLICT, "pending already", review_create, w, &(ReviewSpec){.actor = OTHER, .number = n});
    change.actor = "key:2";
    ROW_FAIL(ERR_NOT_FOUND, NULL, review_change, w, &change);
    change.actor = OTHER;
    ROW_FAIL(ERR_INVALID, "verdict", review_change, w, &change);
    change.verdict = REVIEW_APPROVE;
    g_autoptr(Json) sent = ROW_ASK(review_change, w, &change);

    g_assert_cmpstr(row_text(sent, "state"), ==, "APPROVED");
    g_assert_cmpint(row_int(sent, "submitted_us"), >, 0);
    ROW_FAIL(ERR_CONFLICT, "submitted already", review_change, w, &change);
    g_assert_cmpint(count_reviews(w, AUTHOR, n), ==, 1);

    change.act = REVIEW_ACT_DISMISS;
    ROW_FAIL(ERR_INVALID, "message", review_change, w, &change);
    change.actor = "local";
    change.body = "outdated";
    ROW_FAIL(ERR_DENIED, "another's", review_change, w, &change);
    change.is_admin = true;
    g_autoptr(Json) dismissed = ROW_ASK(review_change, w, &change);

    g_assert_cmpstr(row_text(dismissed, "state"), ==, "DISMISSED");
    ROW_FAIL(ERR_CONFLICT, "only an approval", review_change, w, &change);
    g_autoptr(Json) second = review(w, OTHER, n, REVIEW_PENDING, NULL);

    change = (ReviewChange){
        .actor = OTHER, .number = n, .id = row_int(second, "id"), .act = REVIEW_ACT_DELETE};
    json_decref(ROW_ASK(review_change, w, &change));
    g_assert_cmpint(count_reviews(w, OTHER, n), ==, 1);
}

static void
test_lines(void)
{
    static const struct {
        const char *line, *problem; /* NULL: is taken */
    } cases[] = {
        {"{\"path\": \"a.c\", \"line\": 3, \"body\": \"x\"}", NULL},
        {"{\"path\": \"a.c\", \"line\": 3, \"start_line\": 1, \"side\": \"LEFT\", \"body\": \"x\"}", NULL},
        {"{\"path\": \"a.c\", \"line\": 3, \"start_line\": 3, \"body\": \"x\"}", "before the last"},
        {"{\"path\": \"a.c\", \"line\": 0, \"body\": \"x\"}", "line"},
        {"{\"path\": \"\", \"line\": 1, \"body\": \"x\"}", "path"},
        {"{\"path\": \"/etc\", \"line\": 1, \"body\": \"x\"}", "not one of a repository"},
        {"{\"path\": \"a\\u001bb\", \"line\": 1, \"body\": \"x\"}", "not one of a repository"},
        {"{\"path\": \"a.c\", \"line\": 1, \"body\": \"\"}", "body"},
        {"{\"path\": \"a.c\", \"line\": 1, \"body\": \"x\", \"side\": \"UP\"}", "side"},
        {"{\"path\": \"a.c\", \"line\": 1, \"body\": \"x\", \"surprise\": 1}", "surprise"},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(RowWorld) w = row_world_new();
        gint64 n = row_world_pull(w, AUTHOR, "task-1");
        g_autofree char *text = g_strdup_printf("[%s]", cases[i].line);
        g_autoptr(Json) lines = json_decode(text, strlen(text), NULL);
        ReviewSpec spec = {.actor = OTHER, .number = n, .verdict = REVIEW_COMMENT, .lines = lines};

        if (cases[i].problem != NULL) {
            ROW_FAIL(ERR_INVALID, cases[i].problem, review_create, w, &spec);
            g_assert_cmpint(count_reviews(w, OTHER, n), ==, 0);
            continue;
        }
        json_decref(ROW_ASK(review_create, w, &spec));
        g_autoptr(Json) list = ROW_ASK(line_comment_list, w, &(LineFilter){.actor = OTHER, .number = n});

        g_assert_cmpint(row_int(list, "total"), ==, 1);
    }
}

static void
test_line_threads(void)
{
    g_autoptr(RowWorld) w = row_world_new();
    gint64 n = row_world_pull(w, AUTHOR, "task-1");
    LineSpec spec = {.actor = OTHER, .number = n, .body = "why?", .path = "a.c", .line = 7};
    g_autoptr(Json) first = ROW_ASK(line_comment_add, w, &spec);

    spec = (LineSpec){.actor = AUTHOR, .number = n, .body = "because", .in_reply_to = row_int(first, "id")};
    g_autoptr(Json) reply = ROW_ASK(line_comment_add, w, &spec);

    spec.in_reply_to = row_int(reply, "id");
    g_autoptr(Json) deeper = ROW_ASK(line_comment_add, w, &spec);

    g_assert_cmpint(row_int(reply, "in_reply_to"), ==, row_int(first, "id"));
    g_assert_cmpint(row_int(deeper, "in_reply_to"), ==, row_int(first, "id"));
    g_assert_cmpstr(row_text(deeper, "path"), ==, "a.c");
    g_assert_cmpint(row_int(deeper, "line"), ==, 7);

    LineChange change = {.actor = AUTHOR, .id = row_int(reply, "id"), .act = LINE_RESOLVE};
    json_decref(ROW_ASK(line_comment_change, w, &change));
    g_autoptr(Json)
        resolved = ROW_ASK(line_comment_list, w, &(LineFilter){.actor = OTHER, .id = row_int(first, "id")});

    g_assert_true(row_is(resolved, "resolved"));
    change = (LineChange){.actor = OTHER, .id = row_int(first, "id"), .act = LINE_DELETE};
    json_decref(ROW_ASK(line_comment_change, w, &change));
    g_autoptr(Json)
        heir = ROW_ASK(line_comment_list, w, &(LineFilter){.actor = OTHER, .id = row_int(reply, "id")});
    g_autoptr(Json)
        child = ROW_ASK(line_comment_list, w, &(LineFilter){.actor = OTHER, .id = row_int(deeper, "id")});

    g_assert_cmpint(row_int(heir, "in_reply_to"), ==, 0);
    g_assert_cmpint(row_int(child, "in_reply_to"), ==, row_int(reply, "id"));
    gint64 other = row_world_pull(w, AUTHOR, "task-2");

    spec = (LineSpec){.actor = AUTHOR, .number = other, .body = "x", .in_reply_to = row_int(reply, "id")};
    ROW_FAIL(ERR_INVALID, "another pull request", line_comment_add, w, &spec);
}

/* ---- checks ---- */

static bool
put_coops(DbTx *tx, void *data, GError **error)
{
    CheckRow row = {.name = "suite",
                    .head_oid = row_oid('a'),
                    .status = "completed",
                    .conclusion = "failure",
                    .has_exit_code = true,
                    .exit_code = 2};

    if (!check_row_put(tx, row_world_id, &row, error))
        return false;
    *(gint64 *)data = row.id;
    return true;
}

static void
test_check_runs(void)
{
    g_autoptr(RowWorld) w = row_world_new();
    CheckRunSpec spec = {.actor = OTHER, .name = "lint", .head_oid = row_oid('a')};
    g_autoptr(Json) queued = ROW_ASK(check_run_put, w, &spec);
    CheckRunSpec update = {.actor = OTHER, .id = row_int(queued, "id"), .status = "in_progress"};
    g_autoptr(Json) running = ROW_ASK(check_run_put, w, &update);

    g_assert_cmpstr(row_text(queued, "status"), ==, "queued");
    g_assert_cmpstr(row_text(queued, "seen_by"), ==, "claimed");
    g_assert_cmpint(row_int(queued, "started_us"), ==, 0);
    g_assert_cmpint(row_int(running, "started_us"), >, 0);
    update.status = "completed";
    ROW_FAIL(ERR_INVALID, "needs a conclusion", check_run_put, w, &update);
    update.status = NULL;
    update.conclusion = "success";
    g_autoptr(Json) done = ROW_ASK(check_run_put, w, &update);

    g_assert_cmpstr(row_text(done, "status"), ==, "completed");
    g_assert_cmpint(row_int(done, "completed_us"), >, 0);
    update.conclusion = "great";
    ROW_FAIL(ERR_INVALID, "conclusion", check_run_put, w, &update);
    spec.head_oid = "main";
    ROW_FAIL(ERR_INVALID, "40 hex digits", check_run_put, w, &spec);

    gint64 coops = 0;
    g_autoptr(GError) error = NULL;

    store_write(w->bench->db, put_coops, &coops, &error);
    g_assert_no_error(error);
    update = (CheckRunSpec){.actor = OTHER, .id = coops, .conclusion = "success"};
    ROW_FAIL(ERR_DENIED, "Coop saw", check_run_put, w, &update);
    /* A claim under the name of Coop's own stands beside it and does not take its place. */
    spec = (CheckRunSpec){.actor = OTHER, .name = "suite", .head_oid = row_oid('a'), .conclusion = "success"};
    json_decref(ROW_ASK(check_run_put, w, &spec));
    g_autoptr(Json) list = ROW_ASK(check_run_list, w, &(CheckRunFilter){.oid = row_oid('a')});

    g_assert_cmpint(row_int(list, "total"), ==, 3);
}

static void
test_statuses(void)
{
    static const struct {
        const char *const states[4]; /* of contexts a, b, a, b */
        const char *combined;
    } cases[] = {
        {{NULL}, "pending"},
        {{"success"}, "success"},
        {{"success", "pending"}, "pending"},
        {{"success", "failure"}, "failure"},
        {{"error", "success"}, "failure"},
        {{"failure", "success", "success"}, "success"},
        {{"success", "success", "pending", "error"}, "failure"},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(RowWorld) w = row_world_new();

        for (size_t k = 0; k < 4 && cases[i].states[k] != NULL; k++) {
            StatusSpec spec = {.actor = OTHER,
                               .oid = row_oid('a'),
                               .state = cases[i].states[k],
                               .context = k % 2 == 0 ? "a" : "b"};

            json_decref(ROW_ASK(status_create, w, &spec));
        }
        g_autoptr(Json) combined = ROW_ASK(status_combined, w, row_oid('a'));

        g_assert_cmpstr(row_text(combined, "state"), ==, cases[i].combined);
    }
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/forge/review/verdicts", test_verdicts);
    g_test_add_func("/forge/review/pending", test_pending);
    g_test_add_func("/forge/review/lines", test_lines);
    g_test_add_func("/forge/review/line-threads", test_line_threads);
    g_test_add_func("/forge/checks/runs", test_check_runs);
    g_test_add_func("/forge/checks/statuses", test_statuses);
    return g_test_run();
}

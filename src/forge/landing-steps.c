/* SPDX-License-Identifier: Apache-2.0 */
/* The steps of an entry as transactions.  Each begins by looking whether the entry is still where the
 * step begins from. */
#include <string.h>

#include "base/err.h"
#include "base/failpoint.h"
#include "forge/landing-private.h"
#include "forge/pull.h"
#include "forge/repo-settings.h"
#include "forge/thread-private.h"

/* What merging itself finds out, of the newest tips. */
enum {
    FOUND_BY_MERGING = 1 << PULL_BLOCK_UNKNOWN | 1 << PULL_BLOCK_CONFLICTS | 1 << PULL_BLOCK_BEHIND,
    /* The candidate was checked: that somebody has its head checked once more says nothing of it.  Whether
     * heads have to be up to date may be set while it waits. */
    FOUND_BY_CHECKING = 1 << PULL_BLOCK_UNKNOWN | 1 << PULL_BLOCK_CONFLICTS | 1 << PULL_BLOCK_CHECKS_RUNNING,
};

static const RowMember step_members[] = {
    ROW_AT_TEXT(LandingStep, target),
    ROW_AT_TEXT(LandingStep, target_oid),
    ROW_AT_TEXT(LandingStep, candidate_oid),
    ROW_AT_TEXT(LandingStep, suite_id),
    ROW_AT_END,
};

static Json *
outcome_new(const char *outcome, const Json *entry)
{
    return json_pack("{s:s, s:O?}", "outcome", outcome, "entry", entry);
}

static bool
answer(RowJob *job, const char *outcome, gint64 id, Json **ret_value, GError **error)
{
    g_autoptr(Json) entry = landing_row_get(job, LANDING_INSIDE, id, error);

    if (entry == NULL)
        return false;
    *ret_value = outcome_new(outcome, entry);
    return true;
}

/* NULL without an error: it is in another state, or gone. */
static Json *
find_in_state(RowJob *job, gint64 id, const char *state, GError **error)
{
    g_autoptr(GError) failed = NULL;
    g_autoptr(Json) entry = landing_row_get(job, LANDING_INSIDE, id, &failed);

    if (entry == NULL && !g_error_matches(failed, ERR_DOMAIN, ERR_NOT_FOUND))
        g_propagate_error(error, g_steal_pointer(&failed));
    if (entry != NULL && strcmp(row_text(entry, "state"), state) != 0)
        g_clear_pointer(&entry, json_decref);
    return g_steal_pointer(&entry);
}

static bool
end_with(RowJob *job, const Json *entry, const LandingEnd *end, Json **ret_value, GError **error)
{
    return landing_row_end(job, entry, end, error) && answer(job, "ended", end->id, ret_value, error);
}

static bool
fail(RowJob *job, const Json *entry, LandingReason reason, const char *problem, Json **ret_value,
     GError **error)
{
    return end_with(
        job, entry,
        &(LandingEnd){.id = row_int(entry, "id"), .state = "failed", .reason = reason, .problem = problem},
        ret_value, error);
}

/* ---- the rules ---- */

typedef struct Verdict {
    LandingReason reason;
    char *problem; /* NULL: nothing is against it */
    bool unsure;   /* whether it has to be up to date is set, and not known yet of these tips */
} Verdict;

static bool
is_allowed(const RepoSettings *settings, const char *name)
{
    MergeMethod method;

    return merge_method_parse(name, &method) && (settings->merge_methods & 1u << method) != 0;
}

static void
judge_pull(const Json *entry, const Json *pull, const RepoSettings *settings, guint blocks, Verdict *ret)
{
    const char *head = row_text(pull, "head_oid");

    *ret = (Verdict){.reason = LANDING_RULES};
    if (blocks != 0) {
        ret->problem = pull_blocks_format(blocks);
    } else if (!is_allowed(settings, row_text(entry, "method"))) {
        ret->problem = g_strdup_printf("this repository does not merge by %s now", row_text(entry, "method"));
    } else if (strcmp(row_text(pull, "base"), row_text(entry, "target")) != 0) {
        ret->problem = g_strdup_printf("its base is '%s' now", row_text(pull, "base"));
    } else if (row_is(entry, "pinned") && strcmp(head, row_text(entry, "head_oid")) != 0) {
        ret->reason = LANDING_HEAD_MOVED;
        ret->problem = g_strdup_printf("its head is %s now, not %s", head, row_text(entry, "head_oid"));
    }
}

static bool
judge(RowJob *job, const Json *entry, guint passing, Json **ret_pull, Verdict *ret, GError **error)
{
    gint64 number = row_int(entry, "number");
    g_autoptr(RepoSettings) settings = repo_settings_load(job->tx, job->repository_id, error);
    PullMergeState state;

    *ret_pull = settings != NULL ? thread_load(job, number, "pull", error) : NULL;
    if (*ret_pull == NULL || !pull_merge_state(job->tx, job->repository_id, number, &state, error))
        return false;
    judge_pull(entry, *ret_pull, settings, state.blocks & ~passing, ret);
    ret->unsure = settings->up_to_date && (state.blocks & 1u << PULL_BLOCK_UNKNOWN) != 0;
    return true;
}

/* ---- taking ---- */

/* What was merged last into the target is what the other side of a conflict wanted. */
static bool
find_ours(RowJob *job, const char *target, Json **ret_ours, GError **error)
{
    g_autoptr(DbRows) rows = db_query(job->tx,
                                      "SELECT title, body FROM threads WHERE repository_id = ? AND base = ? "
                                      "AND merged = 1 ORDER BY merged_us DESC, number DESC LIMIT 1",
                                      DB_ARGS(db_text(job->repository_id), db_text(target)), error);
    bool found = false;

    if (rows == NULL || !db_rows_next(rows, &found, error))
        return false;
    *ret_ours = found ? json_pack("{s:s, s:s}", "title", db_rows_text(rows, 0), "body", db_rows_text(rows, 1))
                      : json_object();
    return true;
}

static bool
answer_build(RowJob *job, gint64 id, const Json *pull, Json **ret_value, GError **error)
{
    g_autoptr(RepoSettings) settings = repo_settings_load(job->tx, job->repository_id, error);
    Json *ours = NULL;

    if (settings == NULL || !find_ours(job, row_text(pull, "base"), &ours, error))
        return false;
    if (!answer(job, "build", id, ret_value, error)) {
        json_decref(ours);
        return false;
    }
    json_object_set_new(*ret_value, "ours", ours);
    json_object_set_new(*ret_value, "pull",
                        json_pack("{s:s, s:s, s:s}", "head", row_text(pull, "head"), "title",
                                  row_text(pull, "title"), "body", row_text(pull, "body")));
    json_object_set_new(*ret_value, "up_to_date", json_boolean(settings->up_to_date));
    return true;
}

static bool
begin(RowJob *job, const Json *entry, Json **ret_value, GError **error)
{
    g_autoptr(Json) pull = NULL;
    gint64 id = row_int(entry, "id");
    Verdict verdict;

    if (!judge(job, entry, FOUND_BY_MERGING, &pull, &verdict, error))
        return false;
    g_autofree char *problem = verdict.problem;

    if (problem != NULL)
        return fail(job, entry, verdict.reason, problem, ret_value, error);
    return db_exec(job->tx,
                   "UPDATE merges SET state = 'building', head_oid = ?, target_oid = NULL, "
                   "candidate_oid = NULL, suite_id = NULL, landing_oid = NULL, leftover = ? WHERE id = ?",
                   DB_ARGS(db_text(row_text(pull, "head_oid")), db_int(LEFT_REF), db_int(id)), error) &&
           answer_build(job, id, pull, ret_value, error);
}

/* What was under way when the server was killed comes before what waits. */
static bool
run_take(RowJob *job, const void *data, Json **ret_value, GError **error)
{
    const LandingStep *step = data;
    g_autofree char *sql = g_strdup_printf(
        "SELECT id FROM merges WHERE repository_id = ? AND target = ? AND state IN %s "
        "ORDER BY CASE state WHEN 'queued' THEN 1 ELSE 0 END, id LIMIT 1",
        landing_active_sql);
    gint64 id = 0;

    if (!row_ask_int(job, sql, DB_ARGS(db_text(job->repository_id), db_text(step->target)), &id, error))
        return false;
    if (id == 0) {
        *ret_value = outcome_new("none", NULL);
        return true;
    }
    g_autoptr(Json) entry = landing_row_get(job, LANDING_INSIDE, id, error);

    if (entry == NULL)
        return false;
    const char *state = row_text(entry, "state");

    if (strcmp(state, "landing") == 0 || strcmp(state, "checking") == 0) {
        *ret_value = outcome_new(strcmp(state, "landing") == 0 ? "land" : "check", entry);
        return true;
    }
    return begin(job, entry, ret_value, error);
}

const RowOp landing_take = {ROW_WRITES, sizeof(LandingStep), step_members, run_take};

/* ---- checking ---- */

static bool
run_checking(RowJob *job, const void *data, Json **ret_value, GError **error)
{
    const LandingStep *step = data;

    if (!db_exec(job->tx,
                 "UPDATE merges SET state = 'checking', target_oid = ?, candidate_oid = ?, suite_id = ? "
                 "WHERE id = ? AND repository_id = ? AND state = 'building'",
                 DB_ARGS(db_text(step->target_oid), db_text(step->candidate_oid), db_text(step->suite_id),
                         db_int(step->id), db_text(job->repository_id)),
                 error))
        return false;
    if (db_changes(job->tx) > 0)
        return answer(job, "ok", step->id, ret_value, error);
    *ret_value = outcome_new("lost", NULL);
    return true;
}

const RowOp landing_checking = {ROW_WRITES, sizeof(LandingStep), step_members, run_checking};

/* ---- another candidate ---- */

static bool
requeue(RowJob *job, const Json *entry, Json **ret_value, GError **error)
{
    gint64 id = row_int(entry, "id");

    if (row_int(entry, "tries") >= LANDING_TRIES) {
        g_autofree char *problem = g_strdup_printf(
            "branches moved while it was checked, %d times; the last try was for %s", LANDING_TRIES,
            row_text(entry, "target_oid"));

        return fail(job, entry, LANDING_TARGET_MOVED, problem, ret_value, error);
    }
    return db_exec(job->tx,
                   "UPDATE merges SET state = 'queued', landing_oid = NULL, tries = tries + 1 WHERE id = ?",
                   DB_ARGS(db_int(id)), error) &&
           answer(job, "requeued", id, ret_value, error);
}

static bool
run_requeue(RowJob *job, const void *data, Json **ret_value, GError **error)
{
    const LandingStep *step = data;
    g_autoptr(GError) failed = NULL;
    g_autoptr(Json) entry = find_in_state(job, step->id, "landing", &failed);

    if (entry == NULL && failed == NULL)
        entry = find_in_state(job, step->id, "checking", &failed);
    if (entry != NULL)
        return requeue(job, entry, ret_value, error);
    if (failed == NULL)
        *ret_value = outcome_new("lost", NULL);
    else
        g_propagate_error(error, g_steal_pointer(&failed));
    return *ret_value != NULL;
}

const RowOp landing_requeue = {ROW_WRITES, sizeof(LandingStep), step_members, run_requeue};

/* ---- deciding ---- */

/* "": there is no such suite, or it is of something else. */
static bool
suite_state(RowJob *job, const Json *entry, char *ret_state, size_t size, GError **error)
{
    g_autoptr(DbRows) rows = db_query(
        job->tx,
        "SELECT state FROM check_suites WHERE id = ? AND repository_id = ? AND head_oid = ? AND base_oid = ?",
        DB_ARGS(db_text(row_text(entry, "suite_id")), db_text(job->repository_id),
                db_text(row_text(entry, "candidate_oid")), db_text(row_text(entry, "target_oid"))),
        error);
    bool found = false;

    if (rows == NULL || !db_rows_next(rows, &found, error))
        return false;
    g_strlcpy(ret_state, found ? db_rows_text(rows, 0) : "", size);
    return true;
}

/* The row says what the branch is about to become: from here on only the branch decides. */
static bool
decide(RowJob *job, const Json *entry, Json **ret_value, GError **error)
{
    g_autoptr(Json) pull = NULL;
    Verdict verdict;

    if (!judge(job, entry, FOUND_BY_CHECKING, &pull, &verdict, error))
        return false;
    g_autofree char *problem = verdict.problem;

    if (problem != NULL)
        return fail(job, entry, verdict.reason, problem, ret_value, error);
    /* Building asks git itself. */
    if (verdict.unsure || strcmp(row_text(pull, "head_oid"), row_text(entry, "head_oid")) != 0)
        return requeue(job, entry, ret_value, error);
    return db_exec(job->tx, "UPDATE merges SET state = 'landing', landing_oid = candidate_oid WHERE id = ?",
                   DB_ARGS(db_int(row_int(entry, "id"))), error) &&
           answer(job, "land", row_int(entry, "id"), ret_value, error);
}

static bool
run_decide(RowJob *job, const void *data, Json **ret_value, GError **error)
{
    enum { STATE_MAX = 16 };
    static const char *const under_way[] = {"queued", "running", NULL};
    const LandingStep *step = data;
    g_autoptr(GError) failed = NULL;
    g_autoptr(Json) entry = find_in_state(job, step->id, "checking", &failed);
    char state[STATE_MAX];

    if (failed != NULL) {
        g_propagate_error(error, g_steal_pointer(&failed));
        return false;
    }
    if (entry == NULL) {
        *ret_value = outcome_new("lost", NULL);
        return true;
    }
    if (!suite_state(job, entry, state, sizeof state, error))
        return false;
    if (strcmp(state, "passed") == 0)
        return decide(job, entry, ret_value, error);
    if (g_strv_contains(under_way, state)) {
        *ret_value = outcome_new("wait", entry);
        return true;
    }
    /* The pull request's own push, or its closing, ends its suites: the rules say what comes of that. */
    if (strcmp(state, "cancelled") == 0 || state[0] == '\0')
        return requeue(job, entry, ret_value, error);
    bool saw_it = strcmp(state, "failed") == 0;

    return fail(job, entry, saw_it ? LANDING_CHECKS : LANDING_FAILED,
                saw_it ? "the checks failed on what it would become" : "it could not be checked", ret_value,
                error);
}

const RowOp landing_decide = {ROW_WRITES, sizeof(LandingStep), step_members, run_decide};

/* ---- ending ---- */

static bool
run_finish(RowJob *job, const void *data, Json **ret_value, GError **error)
{
    static const char *const ended[] = {"landed", "conflict", "failed", "cancelled", NULL};
    const LandingEnd *end = data;
    g_autoptr(GError) failed = NULL;
    g_autoptr(Json) entry = landing_row_get(job, LANDING_INSIDE, end->id, &failed);

    if (entry != NULL && !g_strv_contains(ended, row_text(entry, "state")))
        return end_with(job, entry, end, ret_value, error);
    if (entry != NULL || g_error_matches(failed, ERR_DOMAIN, ERR_NOT_FOUND)) {
        *ret_value = outcome_new("lost", NULL);
        return true;
    }
    g_propagate_error(error, g_steal_pointer(&failed));
    return false;
}

const RowMember landing_end_members[] = {ROW_AT_TEXT(LandingEnd, state), ROW_AT_TEXT(LandingEnd, problem),
                                         ROW_AT_TEXT(LandingEnd, actor), ROW_AT_TEXT(LandingEnd, conflict),
                                         ROW_AT_END};
const RowOp landing_finish = {ROW_WRITES, sizeof(LandingEnd), landing_end_members, run_finish};

/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/err.h"
#include "forge/pull-private.h"
#include "forge/repo-settings.h"
#include "forge/review-private.h"
#include "forge/thread-private.h"

static const struct {
    const char *name, *text;
} blocks[PULL_BLOCK_MAX] = {
    [PULL_BLOCK_CLOSED] = {"closed", "it is not open"},
    [PULL_BLOCK_DRAFT] = {"draft", "it is a draft"},
    [PULL_BLOCK_CHECKS_MISSING] = {"checks_missing", "Coop has not checked this head"},
    [PULL_BLOCK_CHECKS_RUNNING] = {"checks_running", "Coop is checking this head"},
    [PULL_BLOCK_CHECKS_FAILED] = {"checks_failed", "Coop saw the checks fail on this head"},
    [PULL_BLOCK_CHECKS_CLAIMED] = {"checks_claimed", "the checks are claimed to pass; Coop did not see it"},
    [PULL_BLOCK_CHANGES_REQUESTED] = {"changes_requested", "a review asks for changes"},
    [PULL_BLOCK_APPROVALS] = {"approvals", "it lacks approvals"},
    [PULL_BLOCK_BEHIND] = {"behind", "the base has commits that it lacks"},
    [PULL_BLOCK_CONFLICTS] = {"conflicts", "it conflicts with the base"},
    [PULL_BLOCK_UNKNOWN] = {"unknown", "it is being compared with the base"},
};

const char *
pull_block_name(PullBlock block)
{
    return blocks[block].name;
}

char *
pull_blocks_format(guint set)
{
    GString *text = g_string_new(NULL);

    for (guint i = 0; i < PULL_BLOCK_MAX; i++) {
        if ((set & 1u << i) != 0)
            g_string_append_printf(text, "%s%s", text->len > 0 ? "; " : "", blocks[i].text);
    }
    return g_string_free(text, FALSE);
}

bool
pull_set_merged(DbTx *tx, const char *repository_id, const PullMerged *merged, GError **error)
{
    g_auto(RowJob) job = {0};

    row_job_init(&job, tx, repository_id);
    g_autoptr(Json) pull = thread_load(&job, merged->number, "pull", error);

    if (pull == NULL || !row_check_oid("the merge", merged->merge_oid, error))
        return false;
    if (row_is(pull, "merged"))
        return g_strcmp0(row_text(pull, "merge_oid"), merged->merge_oid) == 0 ||
               err_set(error, ERR_CONFLICT, "#%" G_GINT64_FORMAT " was merged as %s already", merged->number,
                       row_text(pull, "merge_oid"));
    return db_exec(tx,
                   "UPDATE threads SET state = 'closed', merged = 1, draft = 0, merge_oid = ?, "
                   "merge_method = ?, merged_by = ?, receipt = ?, closed_us = ?, merged_us = ?, "
                   "updated_us = ? WHERE id = ?",
                   DB_ARGS(db_text(merged->merge_oid), db_text(merged->method), db_text(merged->actor),
                           db_text(merged->receipt), db_int(job.now_us), db_int(job.now_us),
                           db_int(row_later_us(&job, pull)), db_int(row_int(pull, "id"))),
                   error) &&
           thread_event(&job, "pr.merged", merged->actor, pull,
                        json_pack("{s:s, s:s, s:s, s:s, s:s}", "head", row_text(pull, "head"), "base",
                                  row_text(pull, "base"), "head_oid", row_text(pull, "head_oid"), "merge_oid",
                                  merged->merge_oid, "method", merged->method),
                        error);
}

/* ---- may it be merged ---- */

/* The state of Coop's last run for exactly this head since it has this base; "": none. */
static bool
last_suite(RowJob *job, const Json *pull, char *ret_state, size_t size, GError **error)
{
    g_autoptr(DbRows) rows = db_query(
        job->tx,
        "SELECT state FROM check_suites WHERE repository_id = ? AND number = ? AND head_oid = ? "
        "AND created_us >= ? ORDER BY created_us DESC LIMIT 1",
        DB_ARGS(db_text(job->repository_id), db_int(row_int(pull, "number")),
                db_text(row_text(pull, "head_oid")), db_int(row_int(pull, "based_us"))),
        error);
    bool found = false;

    if (rows == NULL || !db_rows_next(rows, &found, error))
        return false;
    g_strlcpy(ret_state, found ? db_rows_text(rows, 0) : "", size);
    return true;
}

static bool
is_claimed(RowJob *job, const Json *pull, gint64 *ret_count, GError **error)
{
    const char *oid = row_text(pull, "head_oid");

    return row_ask_int(
        job,
        "SELECT (SELECT COUNT(*) FROM checks WHERE repository_id = ? AND head_oid = ? AND "
        "seen_by <> 'coop' AND conclusion = 'success') + (SELECT COUNT(*) FROM statuses WHERE "
        "repository_id = ? AND oid = ? AND state = 'success')",
        DB_ARGS(db_text(job->repository_id), db_text(oid), db_text(job->repository_id), db_text(oid)),
        ret_count, error);
}

static bool
judge_checks(RowJob *job, const Json *pull, guint *blocked, GError **error)
{
    enum { STATE_MAX = 16 };
    static const struct {
        const char *state;
        PullBlock block;
    } states[] = {
        {"queued", PULL_BLOCK_CHECKS_RUNNING},
        {"running", PULL_BLOCK_CHECKS_RUNNING},
        {"failed", PULL_BLOCK_CHECKS_FAILED},
        {"", PULL_BLOCK_CHECKS_MISSING},
    };
    char state[STATE_MAX];
    PullBlock block = PULL_BLOCK_CHECKS_MISSING;
    gint64 claims = 0;

    if (!last_suite(job, pull, state, sizeof state, error) || !is_claimed(job, pull, &claims, error))
        return false;
    if (strcmp(state, "passed") == 0)
        return true;
    for (size_t i = 0; i < G_N_ELEMENTS(states); i++) {
        if (strcmp(state, states[i].state) == 0)
            block = states[i].block;
    }
    *blocked |= 1u << (block == PULL_BLOCK_CHECKS_MISSING && claims > 0 ? PULL_BLOCK_CHECKS_CLAIMED : block);
    return true;
}

static void
judge_git(const Json *pull, const RepoSettings *settings, guint *blocked)
{
    if (g_strcmp0(row_text(pull, "compared_head"), row_text(pull, "head_oid")) != 0 ||
        g_strcmp0(row_text(pull, "compared_base"), row_text(pull, "base_oid")) != 0) {
        *blocked |= 1u << PULL_BLOCK_UNKNOWN;
        return;
    }
    if (row_is(pull, "conflicts"))
        *blocked |= 1u << PULL_BLOCK_CONFLICTS;
    if (settings->up_to_date && row_int(pull, "behind") > 0)
        *blocked |= 1u << PULL_BLOCK_BEHIND;
}

static bool
judge(RowJob *job, const Json *pull, PullMergeState *ret_state, GError **error)
{
    g_autoptr(RepoSettings) settings = repo_settings_load(job->tx, job->repository_id, error);
    PullMergeState state = {0};
    guint refusals = 0;

    if (settings == NULL || !judge_checks(job, pull, &state.blocks, error) ||
        !review_count(job, pull, &state.approvals, &refusals, error))
        return false;
    g_strlcpy(state.head_oid, row_text(pull, "head_oid"), sizeof state.head_oid);
    state.approvals_needed = settings->required_approvals;
    if (strcmp(row_text(pull, "state"), "open") != 0)
        state.blocks |= 1u << PULL_BLOCK_CLOSED;
    if (row_is(pull, "draft"))
        state.blocks |= 1u << PULL_BLOCK_DRAFT;
    if (refusals > 0)
        state.blocks |= 1u << PULL_BLOCK_CHANGES_REQUESTED;
    if (state.approvals < state.approvals_needed)
        state.blocks |= 1u << PULL_BLOCK_APPROVALS;
    judge_git(pull, settings, &state.blocks);
    *ret_state = state;
    return true;
}

bool
pull_merge_state(DbTx *tx, const char *repository_id, gint64 number, PullMergeState *ret_state,
                 GError **error)
{
    g_auto(RowJob) job = {0};

    row_job_init(&job, tx, repository_id);
    g_autoptr(Json) pull = thread_load(&job, number, "pull", error);

    return pull != NULL && judge(&job, pull, ret_state, error);
}

static Json *
state_json(const PullMergeState *state)
{
    g_autoptr(Json) reasons = json_array();

    for (guint i = 0; i < PULL_BLOCK_MAX; i++) {
        if ((state->blocks & 1u << i) != 0)
            json_array_append_new(reasons,
                                  json_pack("{s:s, s:s}", "rule", blocks[i].name, "text", blocks[i].text));
    }
    return json_pack("{s:s, s:O, s:i, s:i, s:s}", "state", state->blocks == 0 ? "clean" : "blocked",
                     "reasons", reasons, "approvals", (int)state->approvals, "approvals_needed",
                     (int)state->approvals_needed, "head_oid", state->head_oid);
}

bool
pull_add_merge(RowJob *job, Json *pull, GError **error)
{
    PullMergeState state;

    return judge(job, pull, &state, error) && json_object_set_new(pull, "merge", state_json(&state)) == 0;
}

static bool
run_get(RowJob *job, const void *data, Json **ret_value, GError **error)
{
    g_autoptr(Json) pull = thread_load(job, *(const gint64 *)data, "pull", error);

    if (pull == NULL || !pull_add_merge(job, pull, error))
        return false;
    *ret_value = g_steal_pointer(&pull);
    return true;
}

void
pull_get(Forge *forge, Repo *repo, gint64 number, ForgeJsonFunc done, void *data)
{
    static const RowOp op = {ROW_READS, sizeof(gint64), NULL, run_get};

    row_run(forge, repo, &op, &number, done, data);
}

static bool
run_state(RowJob *job, const void *data, Json **ret_value, GError **error)
{
    g_autoptr(Json) pull = thread_load(job, *(const gint64 *)data, "pull", error);
    PullMergeState state;

    if (pull == NULL || !judge(job, pull, &state, error))
        return false;
    *ret_value = state_json(&state);
    return true;
}

void
pull_merge_state_get(Forge *forge, Repo *repo, gint64 number, ForgeJsonFunc done, void *data)
{
    static const RowOp op = {ROW_READS, sizeof(gint64), NULL, run_state};

    row_run(forge, repo, &op, &number, done, data);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* The last transaction: the branch is where the row said it would be. */
#include <string.h>

#include "base/failpoint.h"
#include "forge/landing-private.h"
#include "forge/pull.h"
#include "forge/repo-settings.h"
#include "forge/thread-private.h"

/* Others may still work on it, or build on it. */
static bool
is_used(RowJob *job, const Json *entry, const char *branch, gint64 *ret_users, GError **error)
{
    g_autofree char *ref = g_strconcat("refs/heads/", branch, NULL);
    DbValue id = db_text(job->repository_id), name = db_text(branch);

    *ret_users = 0;
    return row_ask_int(job,
                       "SELECT (SELECT COUNT(*) FROM threads WHERE repository_id = ? AND kind = 'pull' AND "
                       "state = 'open' AND (head = ? OR base = ?) AND number <> ?) + (SELECT COUNT(*) FROM "
                       "workspaces WHERE repository_id = ? AND branch IN (?, ?))",
                       DB_ARGS(id, name, name, db_int(row_int(entry, "number")), id, name, db_text(ref)),
                       ret_users, error);
}

static bool
default_branch(RowJob *job, char **ret_branch, GError **error)
{
    g_autoptr(DbRows) rows = db_query(job->tx, "SELECT default_branch FROM repositories WHERE id = ?",
                                      DB_ARGS(db_text(job->repository_id)), error);
    bool found = false;

    if (rows == NULL || !db_rows_next(rows, &found, error))
        return false;
    *ret_branch = g_strdup(found ? db_rows_text(rows, 0) : "");
    return true;
}

static bool
find_leftover(RowJob *job, const Json *entry, gint64 *ret_leftover, GError **error)
{
    g_autoptr(RepoSettings) settings = repo_settings_load(job->tx, job->repository_id, error);
    const char *branch = row_text(entry, "head");
    g_autofree char *standard = NULL;
    gint64 users;

    if (settings == NULL)
        return false;
    if (!settings->delete_merged_branches)
        return true;
    if (!default_branch(job, &standard, error) || !is_used(job, entry, branch, &users, error))
        return false;
    if (users == 0 && strcmp(branch, standard) != 0 && !repo_settings_protect(settings, standard, branch))
        *ret_leftover |= LEFT_BRANCH;
    return true;
}

static bool
load_receipt(RowJob *job, const Json *entry, char **ret_receipt, GError **error)
{
    g_autoptr(DbRows) rows = db_query(job->tx, "SELECT receipt FROM check_suites WHERE id = ?",
                                      DB_ARGS(db_text(row_text(entry, "suite_id"))), error);
    bool found = false;

    if (rows == NULL || !db_rows_next(rows, &found, error))
        return false;
    *ret_receipt = g_strdup(found ? db_rows_text(rows, 0) : NULL);
    return true;
}

/* One that was merged at the place that it was mirrored from, while the branch was moved, stays what it is:
 * the entry has an end all the same, for others wait behind it. */
static bool
set_merged(RowJob *job, const Json *entry, const char *receipt, GError **error)
{
    g_autoptr(Json) pull = thread_load(job, row_int(entry, "number"), "pull", error);

    return pull != NULL && (row_is(pull, "merged") ||
                            pull_set_merged(job->tx, job->repository_id,
                                            &(PullMerged){.actor = row_actor(entry, "actor"),
                                                          .number = row_int(entry, "number"),
                                                          .method = row_text(entry, "method"),
                                                          .merge_oid = row_text(entry, "candidate_oid"),
                                                          .receipt = receipt},
                                            error));
}

static bool
write_rows(RowJob *job, const Json *entry, LandingLanded *landed, GError **error)
{
    const char *oid = row_text(entry, "candidate_oid");
    gint64 number = row_int(entry, "number");
    g_autofree char *receipt = NULL;
    g_autofree char *comment = g_strdup_printf("It was merged into `%s` as %s.\n", row_text(entry, "target"),
                                               oid);

    return load_receipt(job, entry, &receipt, error) && find_leftover(job, entry, &landed->leftover, error) &&
           set_merged(job, entry, receipt, error) &&
           landing_comment(job, number, comment, COMMENT_IF_THERE, error) &&
           db_exec(job->tx, "UPDATE merges SET state = 'landed', leftover = ?, ended_us = ? WHERE id = ?",
                   DB_ARGS(db_int(landed->leftover), db_int(job->now_us), db_int(landed->id)), error);
}

bool
landing_write_landed(DbTx *tx, void *data, GError **error)
{
    LandingLanded *landed = data;
    g_auto(RowJob) job = {0};

    row_job_init(&job, tx, landed->repository_id);
    g_autoptr(Json) entry = landing_row_get(&job, LANDING_INSIDE, landed->id, error);

    if (entry == NULL)
        return false;
    landed->written = strcmp(row_text(entry, "state"), "landing") == 0;
    if (landed->written && !write_rows(&job, entry, landed, error))
        return false;
    FAILPOINT("landing-writing");
    return true;
}

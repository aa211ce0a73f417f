/* SPDX-License-Identifier: Apache-2.0 */
/* Who may give a box which branch: what the caller could not push to, its box cannot either. */
#include <string.h>

#include "base/err.h"
#include "forge/forge-private.h"
#include "forge/repo-settings.h"
#include "forge/workspace-private.h"

typedef struct Guard {
    char *repository_id, *default_branch, *branch;
    BranchName task; /* its texts are ours */
    bool is_admin;
    bool is_protected;
    WorkspaceGuardFunc done;
    void *data;
} Guard;

static void
guard_free(gpointer data)
{
    Guard *g = data;

    g_free(g->repository_id);
    g_free(g->default_branch);
    g_free(g->branch);
    g_free((gpointer)(guintptr)g->task.pattern);
    g_free((gpointer)(guintptr)g->task.id);
    g_free((gpointer)(guintptr)g->task.role);
    g_free((gpointer)(guintptr)g->task.slug);
    g_free(g);
}

/* By the request's own pattern, else by the repository's; there the steps of one task get names that
 * differ, whatever the pattern is. */
static char *
name_branch(const Guard *g, const RepoSettings *settings, GError **error)
{
    BranchName task = g->task;
    bool differs = task.role == NULL || strstr(settings->branch_pattern, "{role}") != NULL;
    g_autofree char *pattern = g_strconcat(settings->branch_pattern, differs ? "" : WORKSPACE_STEP, NULL);

    if (task.pattern == NULL)
        task.pattern = pattern;
    return workspace_branch_name(&task, error);
}

/* In a thread. */
static bool
judge(DbTx *tx, void *data, GError **error)
{
    Guard *g = data;
    g_autoptr(RepoSettings) settings = repo_settings_load(tx, g->repository_id, error);

    if (settings == NULL)
        return false;
    if (g->branch == NULL)
        g->branch = name_branch(g, settings, error);
    if (g->branch == NULL)
        return false;
    g->is_protected = repo_settings_protect(settings, g->default_branch, g->branch);
    return !g->is_protected || g->is_admin ||
           err_set(error, ERR_DENIED,
                   "%s is protected: only an admin gives it to a sandbox; take another branch and open a "
                   "pull request",
                   g->branch);
}

static void
on_judged(void *data, const GError *error)
{
    Guard *g = data;

    g->done(error == NULL ? &(BranchGiven){g->branch, g->is_protected} : NULL, error, g->data);
}

void
workspace_guard(Forge *forge, const Repo *repo, const BranchWish *wish, WorkspaceGuardFunc done, void *data)
{
    Guard *g = g_new0(Guard, 1);
    RepoInfo info;

    repo_info(repo, &info);
    *g = (Guard){.repository_id = g_strdup(info.id),
                 .default_branch = g_strdup(info.default_branch),
                 .branch = g_strdup(wish->branch),
                 .is_admin = wish->is_admin,
                 .done = done,
                 .data = data};
    if (wish->task != NULL) {
        g->task = (BranchName){.pattern = g_strdup(wish->task->pattern),
                               .id = g_strdup(wish->task->id),
                               .role = g_strdup(wish->task->role),
                               .slug = g_strdup(wish->task->slug),
                               .n = wish->task->n};
    }
    db_read(forge->spec.db, judge, on_judged, g, guard_free);
}

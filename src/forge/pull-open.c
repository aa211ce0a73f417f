/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/err.h"
#include "forge/compare.h"
#include "forge/diff.h"
#include "forge/forge-private.h"
#include "forge/merge.h"
#include "forge/pull-private.h"

/* Opening asks git first, in a thread, and writes the row with the answer. */

typedef struct PullInsert {
    PullSpec spec;
    PullLook look;
} PullInsert;

static const RowMember insert_members[] = {ROW_AT_TEXT(PullInsert, spec.actor),
                                           ROW_AT_TEXT(PullInsert, spec.head),
                                           ROW_AT_TEXT(PullInsert, spec.base),
                                           ROW_AT_TEXT(PullInsert, spec.title),
                                           ROW_AT_TEXT(PullInsert, spec.body),
                                           ROW_AT_TEXT(PullInsert, spec.task_id),
                                           ROW_AT_TEXTS(PullInsert, spec.labels),
                                           ROW_AT_TEXTS(PullInsert, spec.reviewers),
                                           ROW_AT_END};

static bool
run_insert(RowJob *job, const void *data, Json **ret_value, GError **error)
{
    const PullInsert *insert = data;

    return pull_insert(job, &insert->spec, &insert->look, ret_value, error);
}

static const RowOp insert_op = {ROW_WRITES, sizeof(PullInsert), insert_members, run_insert};

typedef struct Opening {
    Forge *forge;
    Repo *repo;
    PullInsert *insert;
    ForgeJsonFunc done;
    void *data;
} Opening;

static void
opening_free(gpointer data)
{
    Opening *o = data;

    row_spec_free(&insert_op, o->insert);
    repo_unref(o->repo);
    g_free(o);
}

/* What git takes too long over is not known, and no reason to know nothing else. */
static void
look_at_files(GitRepo *git, const char *from, PullLook *look)
{
    DiffTotals totals;
    bool known = strcmp(from, look->from_oid) == 0 && look->files >= 0;

    if (known)
        return;
    g_strlcpy(look->from_oid, from, sizeof look->from_oid);
    look->files = -1;
    look->additions = look->deletions = 0;
    if (!diff_totals(git, from, look->head_oid, &totals, NULL))
        return;
    look->files = totals.files;
    look->additions = (gint64)totals.additions;
    look->deletions = (gint64)totals.deletions;
}

/* A head that was set back to what the base had already brings nothing. */
static bool
find_brought(GitRepo *git, PullLook *look, GError **error)
{
    bool had_it = true;

    if (look->was_base[0] != '\0' && !commit_is_ancestor(git, look->head_oid, look->was_base, &had_it, error))
        return false;
    look->brought = !had_it;
    return true;
}

bool
pull_look(GitRepo *git, PullLook *look, GError **error)
{
    g_auto(Comparison) comparison = {0};

    if (!compare_commits(git, look->base_oid, look->head_oid, &comparison, error))
        return false;
    look->ahead = comparison.ahead;
    look->behind = comparison.behind;
    look->conflicts = false;
    /* What was merged keeps the changes that it had. */
    if (comparison.ahead > 0 || look->from_oid[0] == '\0') {
        look->commits = comparison.ahead;
        look_at_files(git, comparison.merge_base != NULL ? comparison.merge_base : look->base_oid, look);
    }
    look->brought = false;
    if (comparison.ahead == 0)
        return find_brought(git, look, error);
    if (comparison.behind == 0)
        return true;
    g_autoptr(MergeResult) merged = merge_try(git, look->base_oid, look->head_oid, error);

    if (merged == NULL)
        return false;
    look->conflicts = !merged->clean;
    return true;
}

static bool
find_tip(GitRepo *git, const char *branch, char ret_oid[GIT_OID_LEN + 1], GError **error)
{
    g_autoptr(GError) failed = NULL;
    g_autofree char *oid = NULL;

    if (!git_branch_is_valid(branch, error))
        return false;
    oid = git_branch_oid(git, branch, &failed);
    if (g_error_matches(failed, ERR_DOMAIN, ERR_NOT_FOUND))
        return err_set(error, ERR_INVALID, "there is no branch '%s'", branch);
    if (failed != NULL) {
        g_propagate_error(error, g_steal_pointer(&failed));
        return false;
    }
    g_strlcpy(ret_oid, oid, GIT_OID_LEN + 1);
    return true;
}

static bool
look_work(GitRepo *git, void *data, GError **error)
{
    Opening *o = data;
    const PullSpec *spec = &o->insert->spec;
    PullLook *look = &o->insert->look;

    if (strcmp(spec->head, spec->base) == 0)
        return err_set(error, ERR_INVALID, "head and base are the same branch");
    if (!find_tip(git, spec->head, look->head_oid, error) ||
        !find_tip(git, spec->base, look->base_oid, error) || !pull_look(git, look, error))
        return false;
    return look->ahead > 0 ||
           err_set(error, ERR_INVALID, "there is no commit between '%s' and '%s'", spec->base, spec->head);
}

static void
look_done(void *data, const GError *error)
{
    Opening *o = data;

    if (error != NULL)
        o->done(NULL, error, o->data);
    else
        row_run(o->forge, o->repo, &insert_op, o->insert, o->done, o->data);
}

void
pull_open(Forge *forge, Repo *repo, const PullSpec *spec, ForgeJsonFunc done, void *data)
{
    Opening *o = g_new0(Opening, 1);
    PullInsert insert = {.spec = *spec};
    g_autofree char *what = g_strdup_printf("open a pull request of %s", spec->head);

    *o = (Opening){.forge = forge, .repo = repo_ref(repo), .done = done, .data = data};
    o->insert = row_spec_dup(&insert_op, &insert);
    forge_read(forge, repo, what, look_work, look_done, o, opening_free);
}

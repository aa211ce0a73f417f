/* SPDX-License-Identifier: Apache-2.0 */
/* The branch, its first commit, the draft pull request. */
#include <string.h>

#include "base/err.h"
#include "base/failpoint.h"
#include "forge/pull.h"
#include "team/flow-git.h"

/* ---- where it starts ---- */

typedef struct Base {
    const char *task_id, *branch, *oid;
} Base;

static bool
run_base(RowJob *job, const void *data, Json **ret_value, GError **error)
{
    const Base *base = data;

    return db_exec(job->tx,
                   "UPDATE tasks SET base_branch = ?, base_oid = ? WHERE id = ? AND base_oid IS NULL",
                   DB_ARGS(db_text(base->branch), db_text(base->oid), db_text(base->task_id)), error);
}

static const RowMember base_members[] = {ROW_AT_TEXT(Base, task_id), ROW_AT_TEXT(Base, branch),
                                         ROW_AT_TEXT(Base, oid), ROW_AT_END};
static const RowOp base_op = {ROW_WRITES, sizeof(Base), base_members, run_base};

static void
base_found(FlowGit *git)
{
    FlowTask *t = git->t;
    const Base base = {t->id, git->branch, git->new};

    flow_write(t, &base_op, &base);
    flow_git_free(git);
}

void
flow_do_base(FlowTask *t, const FlowChoice *choice)
{
    g_autoptr(GError) error = NULL;
    FlowGit *git = flow_git_new(t, base_found, &error);
    const char *branch = row_text(flow_row(t), "base_branch");
    RepoInfo info;

    if (git == NULL) {
        flow_problem(t, error);
        return;
    }
    repo_info(git->repo, &info);
    g_free(git->branch);
    git->branch = g_strdup(branch != NULL ? branch : info.default_branch);
    git->may_begin = info.upstream == NULL && strcmp(git->branch, info.default_branch) == 0;
    flow_git_run(git, "find the base", flow_git_base);
}

/* ---- ready to work ---- */

typedef struct Prepared {
    const char *task_id;
    gint64 number; /* 0: no pull request yet */
    const char *url;
} Prepared;

static bool
run_prepared(RowJob *job, const void *data, Json **ret_value, GError **error)
{
    const Prepared *p = data;
    g_autoptr(Json) task = flow_task_get(job, p->task_id, error);
    bool moved = false;

    if (task == NULL)
        return false;
    if (!flow_is(task, "state", "preparing") || !flow_move(job, task, "working", NULL, &moved, error))
        return flow_is(task, "state", "preparing") ? false : true;
    return p->number == 0 || db_exec(job->tx, "UPDATE tasks SET pull_number = ?, pull_url = ? WHERE id = ?",
                                     DB_ARGS(db_int(p->number), db_text(p->url), db_text(p->task_id)), error);
}

static const RowMember prepared_members[] = {ROW_AT_TEXT(Prepared, task_id), ROW_AT_TEXT(Prepared, url),
                                             ROW_AT_END};
static const RowOp prepared_op = {ROW_WRITES, sizeof(Prepared), prepared_members, run_prepared};

static void
on_pull(FlowTask *t, Repo *repo, gint64 number, const char *url)
{
    FAILPOINT("flow-pull");
    flow_write(t, &prepared_op, &(Prepared){t->id, number, url});
}

/* ---- another name ---- */

static bool
run_rename(RowJob *job, const void *data, Json **ret_value, GError **error)
{
    const Base *base = data;

    return db_exec(job->tx, "UPDATE tasks SET branch = ? WHERE id = ? AND state = 'preparing'",
                   DB_ARGS(db_text(base->branch), db_text(base->task_id)), error);
}

static const RowOp rename_op = {ROW_WRITES, sizeof(Base), base_members, run_rename};

/* Somebody had this branch before: ours gets the beginning of the task's id behind it. */
static void
rename_branch(FlowTask *t)
{
    const char *branch = row_text(flow_row(t), "branch");
    g_autofree char *suffix = g_strdup_printf("-%.8s", t->id);
    g_autofree char *name = g_strconcat(branch, suffix, NULL);

    if (g_str_has_suffix(branch, suffix)) {
        g_autoptr(GError) error = g_error_new(ERR_DOMAIN, ERR_INVALID, "the branch '%s' is in use", branch);

        flow_problem(t, error);
        return;
    }
    flow_write(t, &rename_op, &(Base){.task_id = t->id, .branch = name});
}

static void
planned(FlowGit *git)
{
    FlowTask *t = git->t;
    bool foreign = git->foreign;

    flow_git_free(git);
    if (foreign)
        rename_branch(t);
    else if (g_strcmp0(flow_policy_text(flow_row(t), "pull_request"), "end") == 0)
        on_pull(t, NULL, 0, NULL);
    else
        flow_pull_find(t, true, on_pull);
}

void
flow_do_prepare(FlowTask *t, const FlowChoice *choice)
{
    const Json *task = flow_row(t), *plan = json_object_get(t->rows, "plan");
    g_autoptr(GError) error = NULL;

    if (row_text(task, "repository_id") == NULL) {
        flow_write(t, &prepared_op, &(Prepared){t->id, 0, NULL});
        return;
    }
    FlowGit *git = flow_git_new(t, planned, &error);

    if (git == NULL) {
        flow_problem(t, error);
        return;
    }
    git->base = g_strdup(row_text(task, "base_oid"));
    git->text = plan_format(json_object_get(plan, "body"), row_text(task, "request"));
    git->message = g_strdup_printf("docs: plan task %" G_GINT64_FORMAT "\n\n%s\n\nTask: %s\n",
                                   row_int(task, "number"), row_text(task, "title"), t->id);
    flow_git_run(git, "begin the branch", flow_git_plan);
}

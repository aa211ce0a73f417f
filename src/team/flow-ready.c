/* SPDX-License-Identifier: Apache-2.0 */
/* The pull request is ready to be looked at: its plan was for the work, and is taken out. */
#include "base/failpoint.h"
#include "forge/pull.h"
#include "team/flow-git.h"

typedef struct Ready {
    const char *task_id;
    gint64 number;
    const char *url;
} Ready;

static bool
run_ready(RowJob *job, const void *data, Json **ret_value, GError **error)
{
    const Ready *ready = data;

    return db_exec(
        job->tx,
        "UPDATE tasks SET rung = 'ready', pull_number = ?, pull_url = ?, updated_us = ? "
        "WHERE id = ? AND state = 'reviewing' AND ending IS NULL",
        DB_ARGS(db_int(ready->number), db_text(ready->url), db_int(job->now_us), db_text(ready->task_id)),
        error);
}

static const RowMember ready_members[] = {ROW_AT_TEXT(Ready, task_id), ROW_AT_TEXT(Ready, url), ROW_AT_END};
static const RowOp ready_op = {ROW_WRITES, sizeof(Ready), ready_members, run_ready};

static void
on_ready(Json *value, const GError *error, void *data)
{
    FlowTask *t = data;

    if (!flow_goes_on(t, error))
        return;
    FAILPOINT("flow-ready");
    g_autofree char *url = flow_pull_url(t, row_int(value, "number"));

    flow_write(t, &ready_op, &(Ready){t->id, row_int(value, "number"), url});
}

static void
pull_found(FlowTask *t, Repo *repo, gint64 number, const char *url)
{
    const PullDraft draft = {.actor = "coop", .number = number, .draft = false};

    pull_set_draft(t->flow->team->spec.forge, repo, &draft, on_ready, t);
}

static void
unplanned(FlowGit *git)
{
    FlowTask *t = git->t;

    flow_git_free(git);
    flow_pull_find(t, false, pull_found);
}

void
flow_do_ready(FlowTask *t, const FlowChoice *choice)
{
    const Json *task = flow_row(t);
    g_autoptr(GError) error = NULL;
    FlowGit *git = flow_git_new(t, unplanned, &error);

    if (git == NULL) {
        flow_problem(t, error);
        return;
    }
    git->message = g_strdup_printf("docs: take the plan of task %" G_GINT64_FORMAT " out\n\nTask: %s\n",
                                   row_int(task, "number"), t->id);
    flow_git_run(git, "take the plan out", flow_git_unplan);
}

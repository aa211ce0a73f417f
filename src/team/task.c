/* SPDX-License-Identifier: Apache-2.0 */
#include "team/task.h"

#include <string.h>

#include "base/err.h"
#include "team/task-private.h"

/* ---- one ---- */

const RowMember task_ref_members[] = {
    ROW_AT_TEXT(TaskRef, id),
    ROW_AT_TEXT(TaskRef, owner),
    ROW_AT_TEXT(TaskRef, actor),
    ROW_AT_END,
};

static bool
run_get(RowJob *job, const void *data, Json **ret_value, GError **error)
{
    *ret_value = task_row(job, data, error);
    return *ret_value != NULL && task_add_details(job, *ret_value, error);
}

static const RowOp get_op = {ROW_READS, sizeof(TaskRef), task_ref_members, run_get};

void
task_get(Team *team, const TaskRef *ref, TeamJsonFunc done, void *data)
{
    team_run(team, &get_op, ref, done, data);
}

/* ---- many ---- */

static const RowMember filter_members[] = {
    ROW_AT_TEXT(TaskFilter, owner),
    ROW_AT_TEXT(TaskFilter, squad),
    ROW_AT_TEXT(TaskFilter, state),
    ROW_AT_END,
};

static bool
run_list(RowJob *job, const void *data, Json **ret_value, GError **error)
{
    const TaskFilter *f = data;
    g_auto(RowWhere) where = ROW_WHERE_INIT;
    size_t i;
    Json *row;

    row_where_add(&where, "(? IS NULL OR t.owner = ?)", DB_ARGS(db_text(f->owner), db_text(f->owner)));
    if (f->squad != NULL)
        row_where_add(&where, "(s.id = ? OR s.name = ?)", DB_ARGS(db_text(f->squad), db_text(f->squad)));
    if (f->state != NULL)
        row_where_add(&where, "t.state = ?", DB_ARGS(db_text(f->state)));
    if (f->open)
        row_where_add(&where, "t.state NOT IN ('done', 'failed', 'cancelled')", DB_NO_ARGS);
    *ret_value = row_list(job, &task_table, &where, "t.number DESC", f->page, error);
    if (*ret_value == NULL)
        return false;
    json_array_foreach(json_object_get(*ret_value, "items"), i, row) task_shape(row, job->now_us);
    return true;
}

static const RowOp list_op = {ROW_READS, sizeof(TaskFilter), filter_members, run_list};

void
task_list(Team *team, const TaskFilter *filter, TeamJsonFunc done, void *data)
{
    team_run(team, &list_op, filter, done, data);
}

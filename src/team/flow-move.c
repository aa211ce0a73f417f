/* SPDX-License-Identifier: Apache-2.0 */
#include "base/err.h"
#include "base/id.h"
#include "team/flow-private.h"

static const char actor[] = "coop";

bool
flow_moved(DbTx *tx, const Json *task, const char *to, const char *who, const char *reason, GError **error)
{
    return team_event(
        tx,
        &(TeamEvent){.kind = "task.moved",
                     .actor = who,
                     .task_id = row_text(task, "id"),
                     .squad_id = row_text(task, "squad_id"),
                     .data = json_pack("{s:I, s:s, s:s, s:s?}", "number", (json_int_t)row_int(task, "number"),
                                       "from", row_text(task, "state"), "to", to, "reason", reason)},
        error);
}

bool
flow_move(RowJob *job, const Json *task, const char *to, const char *rung, bool *ret_moved, GError **error)
{
    if (!db_exec(job->tx,
                 "UPDATE tasks SET state = ?, rung = COALESCE(?, rung), problem = NULL, tries = 0, "
                 "wake_us = 0, updated_us = ? WHERE id = ? AND state = ? AND ending IS NULL",
                 DB_ARGS(db_text(to), db_text(rung), db_int(row_later_us(job, task)),
                         db_text(row_text(task, "id")), db_text(row_text(task, "state"))),
                 error))
        return false;
    *ret_moved = db_changes(job->tx) > 0;
    return !*ret_moved || flow_is(task, "state", to) || flow_moved(job->tx, task, to, actor, NULL, error);
}

static bool
run_move(RowJob *job, const void *data, Json **ret_value, GError **error)
{
    const FlowMove *move = data;
    g_autoptr(Json) task = flow_task_get(job, move->task_id, error);
    bool moved;

    if (task == NULL)
        return false;
    return !flow_is(task, "state", move->from) || flow_move(job, task, move->to, move->rung, &moved, error);
}

static const RowMember move_members[] = {ROW_AT_TEXT(FlowMove, task_id), ROW_AT_TEXT(FlowMove, from),
                                         ROW_AT_TEXT(FlowMove, to), ROW_AT_TEXT(FlowMove, rung), ROW_AT_END};
const RowOp flow_move_op = {ROW_WRITES, sizeof(FlowMove), move_members, run_move};

/* ---- questions ---- */

static bool
ask(RowJob *job, const Json *task, const FlowBlock *block, GError **error)
{
    g_autofree char *text = block->question != NULL
                                ? g_strdup(block->question)
                                : g_strdup_printf("%s. What shall be done?", block->problem);
    g_autoptr(Json) choices = json_pack("[s, s]", block->first != NULL ? block->first : "retry", "stop");
    g_autofree char *options = json_encode(choices);
    char id[ID_UUID_LEN + 1];

    id_new_uuid(id);
    if (!db_exec(job->tx,
                 "INSERT INTO questions (id, task_id, step_id, text, options, state, created_us) "
                 "VALUES (?, ?, ?, ?, ?, 'open', ?)",
                 DB_ARGS(db_text(id), db_text(row_text(task, "id")), db_text(block->step_id), db_text(text),
                         db_text(options), db_int(job->now_us)),
                 error))
        return false;
    return team_event(
        job->tx,
        &(TeamEvent){.kind = "human.asked",
                     .actor = actor,
                     .task_id = row_text(task, "id"),
                     .squad_id = row_text(task, "squad_id"),
                     .data = json_pack("{s:s, s:s, s:s?, s:O, s:s}", "question_id", id, "question", text,
                                       "step_id", block->step_id, "options", choices, "seen_by", "coop")},
        error);
}

bool
flow_block(RowJob *job, const Json *task, const FlowBlock *block, GError **error)
{
    g_autofree char *problem = flow_cut(block->problem, FLOW_WORDS_MAX);
    const FlowBlock cut = {problem, block->question, block->step_id, block->first};

    if (!db_exec(job->tx,
                 "UPDATE tasks SET state = 'blocked', blocked_from = state, problem = ?, tries = 0, "
                 "wake_us = 0, updated_us = ? WHERE id = ? AND state = ? AND ending IS NULL",
                 DB_ARGS(db_text(problem), db_int(row_later_us(job, task)), db_text(row_text(task, "id")),
                         db_text(row_text(task, "state"))),
                 error))
        return false;
    return db_changes(job->tx) == 0 ||
           (flow_moved(job->tx, task, "blocked", actor, problem, error) && ask(job, task, &cut, error));
}

/* ---- what does not work now ---- */

static bool
run_fail(RowJob *job, const void *data, Json **ret_value, GError **error)
{
    const FlowFail *fail = data;
    g_autoptr(Json) task = flow_task_get(job, fail->task_id, error);

    if (task == NULL)
        return false;
    if (!flow_is(task, "state", fail->from))
        return true;
    if (json_is_null(json_object_get(task, "ending")) &&
        (fail->hopeless || row_int(task, "tries") + 1 >= FLOW_TRIES))
        return flow_block(job, task, &(FlowBlock){.problem = fail->problem}, error);
    g_autofree char *problem = flow_cut(fail->problem, FLOW_WORDS_MAX);

    return db_exec(
        job->tx, "UPDATE tasks SET tries = tries + 1, wake_us = ?, problem = ?, updated_us = ? WHERE id = ?",
        DB_ARGS(db_int(job->now_us + fail->retry_us), db_text(problem), db_int(row_later_us(job, task)),
                db_text(fail->task_id)),
        error);
}

static const RowMember fail_members[] = {ROW_AT_TEXT(FlowFail, task_id), ROW_AT_TEXT(FlowFail, from),
                                         ROW_AT_TEXT(FlowFail, problem), ROW_AT_END};
const RowOp flow_fail_op = {ROW_WRITES, sizeof(FlowFail), fail_members, run_fail};

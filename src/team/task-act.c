/* SPDX-License-Identifier: Apache-2.0 */
/* What people do to a task: stop it, let it go on, answer it. */
#include <string.h>

#include "base/err.h"
#include "team/flow-private.h"
#include "team/task-private.h"

enum {
    REASON_MAX = 500,
    TOLD_ANSWER_MAX = 4096, /* bytes in the event, each of which may become six; the row has all */
    TOLD_QUESTION_MAX = 1024,
};

/* The task as it is when all is done. */
typedef struct Act {
    Team *team;
    char *task_id, *reason, *actor;
    TeamJsonFunc done;
    void *data;
} Act;

static Act *
act_new(Team *team, const char *actor, const char *reason, TeamJsonFunc done, void *data)
{
    Act *act = g_new0(Act, 1);

    *act = (Act){.team = team_ref(team),
                 .actor = g_strdup(actor),
                 .reason = g_strdup(reason),
                 .done = done,
                 .data = data};
    return act;
}

static void
act_end(Json *task, const GError *error, void *data)
{
    Act *act = data;

    act->done(task, error, act->data);
    team_unref(act->team);
    g_free(act->task_id);
    g_free(act->reason);
    g_free(act->actor);
    g_free(act);
}

static void
act_show(Act *act)
{
    task_get(act->team, &(TaskRef){.id = act->task_id}, act_end, act);
}

/* ---- stop ---- */

static void
on_stopped(void *data, const GError *error)
{
    Act *act = data;

    if (error != NULL)
        act_end(NULL, error, act);
    else
        act_show(act);
}

static void
on_found(Json *task, const GError *error, void *data)
{
    Act *act = data;

    if (error != NULL || task_has_ended(row_text(task, "state")) || act->team->flow == NULL) {
        act_end(task, error, act);
        return;
    }
    act->task_id = g_strdup(row_text(task, "id"));
    flow_stop(act->team->flow, act->task_id, "cancelled", act->reason, act->actor, on_stopped, act);
}

void
task_stop(Team *team, const TaskRef *ref, const char *reason, TeamJsonFunc done, void *data)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *line = row_dup_line("the reason", reason, REASON_MAX, ROW_TEXT_MAY_BE_EMPTY, &error);

    if (line == NULL)
        done(NULL, error, data);
    else
        task_get(team, ref, on_found,
                 act_new(team, ref->actor, line[0] != '\0' ? line : "stopped by a person", done, data));
}

/* ---- retry ---- */

/* Coop's own questions are about why it cannot go on; agents wait for the answer to theirs. */
static bool
settle_questions(RowJob *job, const char *task_id, const char *actor, GError **error)
{
    return db_exec(
        job->tx,
        "UPDATE questions SET state = 'answered', answer = 'retry', answered_by = ?, answered_us = ? "
        "WHERE task_id = ? AND state = 'open' AND execution_id IS NULL",
        DB_ARGS(db_text(actor), db_int(job->now_us), db_text(task_id)), error);
}

static bool
run_retry(RowJob *job, const void *data, Json **ret_value, GError **error)
{
    const TaskRef *ref = data;
    g_autoptr(Json) task = task_row(job, ref, error);

    if (task == NULL)
        return false;
    const char *id = row_text(task, "id"), *state = row_text(task, "state");

    if (strcmp(state, "blocked") != 0 && strcmp(state, "failed") != 0)
        return err_set(error, ERR_CONFLICT, "the task is %s: what is blocked or has failed can be retried",
                       state);
    if (!settle_questions(job, id, ref->actor, error) || !flow_unblock(job->tx, id, ref->actor, error) ||
        !team_event(job->tx,
                    &(TeamEvent){.kind = "task.retried",
                                 .actor = ref->actor,
                                 .task_id = id,
                                 .squad_id = row_text(task, "squad_id"),
                                 .data = json_pack("{s:s, s:s?}", "from", state, "problem",
                                                   row_text(task, "problem"))},
                    error))
        return false;
    *ret_value = json_pack("{s:s}", "id", id);
    return true;
}

static const RowOp retry_op = {ROW_WRITES, sizeof(TaskRef), task_ref_members, run_retry};

static void
on_unblocked(Json *value, const GError *error, void *data)
{
    Act *act = data;

    if (error != NULL) {
        act_end(NULL, error, act);
        return;
    }
    act->task_id = g_strdup(row_text(value, "id"));
    if (act->team->flow != NULL)
        flow_wake(act->team->flow, act->task_id);
    act_show(act);
}

void
task_retry(Team *team, const TaskRef *ref, TeamJsonFunc done, void *data)
{
    team_run(team, &retry_op, ref, on_unblocked, act_new(team, ref->actor, NULL, done, data));
}

/* ---- answer ---- */

typedef struct Answer {
    TaskRef ref;
    const char *question, *answer;
} Answer;

static const RowMember answer_members[] = {
    ROW_AT_TEXT(Answer, ref.id),   ROW_AT_TEXT(Answer, ref.owner), ROW_AT_TEXT(Answer, ref.actor),
    ROW_AT_TEXT(Answer, question), ROW_AT_TEXT(Answer, answer),    ROW_AT_END,
};

static Json *
find_question(RowJob *job, const char *task_id, const char *id, GError **error)
{
    gint64 open = 0;

    if (id != NULL)
        return row_get(job, &question_table, "task_id = ? AND id = ?", DB_ARGS(db_text(task_id), db_text(id)),
                       error);
    if (!row_ask_int(job, "SELECT COUNT(*) FROM questions WHERE task_id = ? AND state = 'open'",
                     DB_ARGS(db_text(task_id)), &open, error))
        return NULL;
    if (open == 0)
        err_set(error, ERR_CONFLICT, "the task asks nothing");
    else if (open > 1)
        err_set(error, ERR_INVALID, "%" G_GINT64_FORMAT " questions are open: name one", open);
    return open == 1 ? row_get(job, &question_table, "task_id = ? AND state = 'open'",
                               DB_ARGS(db_text(task_id)), error)
                     : NULL;
}

static bool
write_answer(RowJob *job, const Answer *a, const Json *task, const Json *question, GError **error)
{
    const char *id = row_text(question, "id");
    g_autofree char *told = flow_cut(a->answer, TOLD_ANSWER_MAX);
    g_autofree char *asked = flow_cut(row_text(question, "text"), TOLD_QUESTION_MAX);

    if (!db_exec(job->tx,
                 "UPDATE questions SET state = 'answered', answer = ?, answered_by = ?, answered_us = ? "
                 "WHERE id = ?",
                 DB_ARGS(db_text(a->answer), db_text(a->ref.actor), db_int(job->now_us), db_text(id)), error))
        return false;
    return team_event(job->tx,
                      &(TeamEvent){.kind = "human.answered",
                                   .actor = a->ref.actor,
                                   .task_id = row_text(task, "id"),
                                   .squad_id = row_text(task, "squad_id"),
                                   .execution_id = row_text(question, "execution_id"),
                                   .data = json_pack("{s:s, s:s, s:s}", "question_id", id, "question", asked,
                                                     "answer", told)},
                      error);
}

static bool
offers(const Json *question, const char *choice)
{
    size_t i;
    const Json *option;

    json_array_foreach(json_object_get(question, "options"), i, option)
    {
        if (g_strcmp0(json_string_value(option), choice) == 0)
            return true;
    }
    return false;
}

/* What an answer to a question of Coop's does. */
static bool
obey(RowJob *job, const Answer *a, const Json *task, const Json *question, bool *ret_stops, GError **error)
{
    const char *id = row_text(task, "id");
    g_autofree char *word = g_ascii_strdown(a->answer, -1);

    *ret_stops = strcmp(g_strstrip(word), "stop") == 0 && offers(question, "stop");
    if (*ret_stops)
        return flow_ending(job->tx, id, "cancelled", "stopped by a person", a->ref.actor, error);
    if (offers(question, "raise") && strcmp(word, "retry") != 0 && !flow_raise(job, task, a->answer, error))
        return false;
    return flow_unblock(job->tx, id, a->ref.actor, error);
}

static bool
run_answer(RowJob *job, const void *data, Json **ret_value, GError **error)
{
    const Answer *a = data;
    g_autoptr(Json) task = task_row(job, &a->ref, error);
    g_autoptr(Json) question = task != NULL ? find_question(job, row_text(task, "id"), a->question, error)
                                            : NULL;

    bool stops = false;

    if (question == NULL)
        return false;
    const char *id = row_text(task, "id");

    if (strcmp(row_text(question, "state"), "open") != 0)
        return err_set(error, ERR_CONFLICT, "the question has an answer already");
    if (task_has_ended(row_text(task, "state")) && strcmp(row_text(task, "state"), "failed") != 0)
        return err_set(error, ERR_CONFLICT, "the task is over");
    if (!write_answer(job, a, task, question, error))
        return false;
    /* An agent's question does not keep the task from going on. */
    if (row_text(question, "execution_id") == NULL && !obey(job, a, task, question, &stops, error))
        return false;
    *ret_value = json_pack("{s:s, s:b}", "id", id, "stops", stops);
    return true;
}

static const RowOp answer_op = {ROW_WRITES, sizeof(Answer), answer_members, run_answer};

/* One that stops is answered when its boxes are gone, as task_stop() does. */
static void
on_answered(Json *value, const GError *error, void *data)
{
    Act *act = data;

    if (error != NULL || !row_is(value, "stops") || act->team->flow == NULL) {
        on_unblocked(value, error, act);
        return;
    }
    act->task_id = g_strdup(row_text(value, "id"));
    flow_stop(act->team->flow, act->task_id, "cancelled", "stopped by a person", act->actor, on_stopped, act);
}

void
task_answer(Team *team, const TaskRef *ref, const char *question, const char *answer, TeamJsonFunc done,
            void *data)
{
    const Answer a = {.ref = *ref, .question = question, .answer = answer};
    g_autoptr(GError) error = NULL;

    if (!row_check_text("the answer", answer, TASK_ANSWER_MAX, ROW_TEXT_NEEDED, &error))
        done(NULL, error, data);
    else
        team_run(team, &answer_op, &a, on_answered, act_new(team, ref->actor, NULL, done, data));
}

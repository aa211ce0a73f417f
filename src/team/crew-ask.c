/* SPDX-License-Identifier: Apache-2.0 */
/* An agent asks a person.  The question is a row; whoever answers it writes the answer there and an event
 * with it, for which the waiting agent listens. */
#include <string.h>

#include "base/err.h"
#include "base/failpoint.h"
#include "base/id.h"
#include "base/log.h"
#include "team/crew-private.h"

enum {
    QUESTION_MAX = 8192,
    OPTIONS_MAX = 10,
    OPTION_MAX = 200,
    ASK_OPEN_MAX = 5, /* of one agent */
    ASK_ALL_MAX = 50, /* of one agent, ever */
    WAIT_MAX_MS = 60 * 1000,
    WAITING_MAX = 500,
};

/* ---- asking ---- */

typedef struct AskSpec {
    const char *id, *execution_id, *task_id, *step_id, *squad_id, *box_id, *actor, *agent, *text;
    Json *options;
} AskSpec;

static bool
check_room(RowJob *job, const AskSpec *a, GError **error)
{
    gint64 lives = 0, open = 0, all = 0;

    /* It may have ended since the request came: nobody would take such a question back. */
    if (!row_ask_int(job, "SELECT COUNT(*) FROM task_executions WHERE id = ? AND ended_us = 0",
                     DB_ARGS(db_text(a->execution_id)), &lives, error))
        return false;
    if (lives == 0)
        return err_set(error, ERR_CONFLICT, "this agent has ended");
    if (!row_ask_int(job, "SELECT COUNT(*) FROM questions WHERE execution_id = ? AND state = 'open'",
                     DB_ARGS(db_text(a->execution_id)), &open, error) ||
        !row_ask_int(job, "SELECT COUNT(*) FROM questions WHERE execution_id = ?",
                     DB_ARGS(db_text(a->execution_id)), &all, error))
        return false;
    return (open < ASK_OPEN_MAX && all < ASK_ALL_MAX) ||
           err_set(error, ERR_LIMIT, "an agent has at most %d open questions, and %d in all", ASK_OPEN_MAX,
                   ASK_ALL_MAX);
}

static bool
run_ask(RowJob *job, const void *spec, Json **ret_value, GError **error)
{
    const AskSpec *a = spec;
    g_autofree char *options = json_encode(a->options);
    TeamEvent event = {.kind = "human.asked",
                       .actor = a->actor,
                       .task_id = a->task_id,
                       .squad_id = a->squad_id,
                       .box_id = a->box_id,
                       .execution_id = a->execution_id};

    if (!check_room(job, a, error) ||
        !db_exec(
            job->tx,
            "INSERT INTO questions (id, task_id, execution_id, step_id, text, options, state, created_us) "
            "VALUES (?, ?, ?, ?, ?, ?, 'open', ?)",
            DB_ARGS(db_text(a->id), db_text(a->task_id), db_text(a->execution_id), db_text(a->step_id),
                    db_text(a->text), db_text(options), db_int(job->now_us)),
            error) ||
        !db_exec(job->tx, "UPDATE task_executions SET state = 'asking' WHERE id = ? AND state = 'working'",
                 DB_ARGS(db_text(a->execution_id)), error))
        return false;
    event.data = json_pack("{s:s, s:s, s:O, s:s, s:s}", "question_id", a->id, "text", a->text, "options",
                           a->options, "agent", a->agent, "seen_by", "agent");
    *ret_value = json_pack("{s:s}", "id", a->id);
    return team_event(job->tx, &event, error);
}

static bool
check_question(Json *body, const char **ret_text, Json **ret_options, GError **error)
{
    size_t i;
    Json *one;
    const JsonField fields[] = {{"question", JSON_KIND_STRING, ret_text, true, 1, QUESTION_MAX},
                                {"options", JSON_KIND_ARRAY, ret_options, false, 0, OPTIONS_MAX},
                                {NULL}};

    if (!json_read(body, fields, error))
        return false;
    json_array_foreach(*ret_options, i, one)
    {
        if (!json_is_string(one) || json_string_length(one) > OPTION_MAX)
            return err_set(error, ERR_INVALID, "an option is a text of at most %d bytes", OPTION_MAX);
    }
    return true;
}

typedef struct Asked {
    Shift *shift;
    TeamJsonFunc done;
    void *data;
} Asked;

static void
on_asked(Json *value, const GError *error, void *data)
{
    Asked *asked = data;
    g_autoptr(Shift) s = asked->shift;

    if (error == NULL && s->crew != NULL) {
        shift_asks(s, true);
        flow_admit(s->crew->team->flow);
    }
    asked->done(value, error, asked->data);
    g_free(asked);
}

static void
write_question(Shift *s, const char *text, Json *options, TeamJsonFunc done, void *data)
{
    static const RowMember members[] = {ROW_AT_TEXT(AskSpec, id),
                                        ROW_AT_TEXT(AskSpec, execution_id),
                                        ROW_AT_TEXT(AskSpec, task_id),
                                        ROW_AT_TEXT(AskSpec, step_id),
                                        ROW_AT_TEXT(AskSpec, squad_id),
                                        ROW_AT_TEXT(AskSpec, box_id),
                                        ROW_AT_TEXT(AskSpec, actor),
                                        ROW_AT_TEXT(AskSpec, agent),
                                        ROW_AT_TEXT(AskSpec, text),
                                        ROW_AT_JSON(AskSpec, options),
                                        ROW_AT_END};
    static const RowOp op = {ROW_WRITES, sizeof(AskSpec), members, run_ask};
    char id[ID_UUID_LEN + 1];
    Asked *asked = g_new0(Asked, 1);
    BoxInfo info;

    id_new_uuid(id);
    box_info(s->box, &info);
    *asked = (Asked){shift_ref(s), done, data};
    team_run(s->crew->team, &op,
             &(AskSpec){.id = id,
                        .execution_id = s->id,
                        .task_id = shift_text(s, "task_id"),
                        .step_id = shift_text(s, "step_id"),
                        .squad_id = shift_text(s, "squad_id"),
                        .box_id = info.id,
                        .actor = s->actor,
                        .agent = shift_text(s, "agent"),
                        .text = text,
                        .options = options},
             on_asked, asked);
}

void
crew_ask(Crew *crew, const char *box_id, Json *body, TeamJsonFunc done, void *data)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(Json) none = json_array();
    const char *text = NULL;
    Json *options = none;
    Shift *s = crew_in_box(crew, box_id, &error);

    if (s != NULL && check_question(body, &text, &options, &error) && shift_text(s, "task_id") == NULL)
        err_set(&error, ERR_CONFLICT, "this agent has no task, and nobody to ask");
    if (error != NULL)
        done(NULL, error, data);
    else
        write_question(s, text, options, done, data);
}

/* ---- waiting for the answer ---- */

typedef struct CrewWait {
    LoopTimer timer; /* first: the loop hands back its address */
    Crew *crew;
    char *question_id, *execution_id;
    bool over; /* the time is, or the crew ends */
    TeamJsonFunc done;
    void *data;
} CrewWait;

static void
wait_free(CrewWait *w)
{
    crew_unref(w->crew);
    g_free(w->question_id);
    g_free(w->execution_id);
    g_free(w);
}

typedef struct AnswerSpec {
    const char *id, *execution_id;
} AnswerSpec;

static bool
run_answer(RowJob *job, const void *spec, Json **ret_value, GError **error)
{
    static const RowColumn columns[] = {
        {"id", ROW_TEXT, NULL}, {"state", ROW_TEXT, NULL}, {"answer", ROW_TEXT, NULL}};
    static const RowTable table = {"question", "questions", columns, G_N_ELEMENTS(columns)};
    const AnswerSpec *a = spec;

    *ret_value = row_get(job, &table, "id = ? AND execution_id = ?",
                         DB_ARGS(db_text(a->id), db_text(a->execution_id)), error);
    return *ret_value != NULL;
}

static void
on_answer(Json *value, const GError *error, void *data)
{
    CrewWait *w = data;
    bool open = error == NULL && strcmp(row_text(value, "state"), "open") == 0;

    if (open && !w->over && !w->crew->closed) {
        g_ptr_array_add(w->crew->waiting, w);
        return;
    }
    loop_timer_cancel(w->crew->loop, &w->timer);
    w->done(value, error, w->data);
    wait_free(w);
}

static void
look(CrewWait *w)
{
    static const RowMember members[] = {ROW_AT_TEXT(AnswerSpec, id), ROW_AT_TEXT(AnswerSpec, execution_id),
                                        ROW_AT_END};
    static const RowOp op = {ROW_READS, sizeof(AnswerSpec), members, run_answer};

    team_run(w->crew->team, &op, &(AnswerSpec){w->question_id, w->execution_id}, on_answer, w);
}

static void
look_again(CrewWait *w)
{
    if (g_ptr_array_remove_fast(w->crew->waiting, w))
        look(w);
}

static void
on_time(LoopTimer *timer)
{
    CrewWait *w = (CrewWait *)timer;

    w->over = true;
    look_again(w);
}

void
crew_answer(Crew *crew, const char *box_id, const char *question_id, guint wait_ms, TeamJsonFunc done,
            void *data)
{
    g_autoptr(GError) error = NULL;
    Shift *s = crew_in_box(crew, box_id, &error);

    if (s != NULL && crew->waiting->len >= WAITING_MAX)
        err_set(&error, ERR_LIMIT, "too many wait for answers");
    if (error != NULL) {
        done(NULL, error, data);
        return;
    }
    CrewWait *w = g_new0(CrewWait, 1);

    *w = (CrewWait){.timer = {.expired = on_time},
                    .crew = crew_ref(crew),
                    .question_id = g_strdup(question_id),
                    .execution_id = g_strdup(s->id),
                    .over = wait_ms == 0,
                    .done = done,
                    .data = data};
    if (wait_ms > 0)
        loop_timer_set(crew->loop, &w->timer, MIN(wait_ms, WAIT_MAX_MS));
    look(w);
}

typedef struct WorkSpec {
    const char *id;
} WorkSpec;

static bool
run_works(RowJob *job, const void *spec, Json **ret_value, GError **error)
{
    const WorkSpec *w = spec;

    return db_exec(
        job->tx,
        "UPDATE task_executions SET state = 'working' WHERE id = ? AND state = 'asking' AND NOT "
        "EXISTS (SELECT 1 FROM questions q WHERE q.execution_id = task_executions.id AND q.state = "
        "'open')",
        DB_ARGS(db_text(w->id)), error);
}

void
crew_answered(Crew *crew, const char *execution_id)
{
    static const RowMember members[] = {ROW_AT_TEXT(WorkSpec, id), ROW_AT_END};
    static const RowOp op = {ROW_WRITES, sizeof(WorkSpec), members, run_works};
    Shift *s = g_hash_table_lookup(crew->shifts, execution_id);

    FAILPOINT("crew-answered");
    if (s != NULL)
        team_run(crew->team, &op, &(WorkSpec){execution_id}, NULL, NULL);
    for (guint i = crew->waiting->len; i > 0; i--) {
        CrewWait *w = crew->waiting->pdata[i - 1];

        if (strcmp(w->execution_id, execution_id) == 0)
            look_again(w);
    }
    if (s != NULL && s->box != NULL)
        shift_asks(s, false);
}

void
crew_wait_end(Crew *crew)
{
    while (crew->waiting->len > 0) {
        CrewWait *w = crew->waiting->pdata[0];
        g_autoptr(GError) error = NULL;

        g_ptr_array_remove_index_fast(crew->waiting, 0);
        loop_timer_cancel(crew->loop, &w->timer);
        err_set(&error, ERR_CANCELLED, "the server is stopping");
        w->done(NULL, error, w->data);
        wait_free(w);
    }
}

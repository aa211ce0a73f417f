/* SPDX-License-Identifier: Apache-2.0 */
/* Asks what the rows say is missing, writes each answer down, and looks at the rows again. */
#include <string.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/failpoint.h"
#include "team/plan-private.h"

enum { ASK_TRIES = 3 };

typedef struct PlanWork {
    guint refs; /* one until it has ended, and one for each row that is waited for */
    Team *team; /* a reference */
    char *task_id;
    Json *rows;       /* NULL: not yet */
    char *material;   /* NULL: there is no repository */
    bool looked;      /* for it */
    bool ending;      /* the last row of a decision is being written */
    bool ended;       /* `done` has run */
    GHashTable *asks; /* "phase seat" -> PlanAsk: until its voice is a row */
    LoopTimer soon;   /* armed: it was cancelled */
    TeamJsonFunc done;
    void *data;
} PlanWork;

typedef struct PlanAsk {
    PlanWork *work;
    char *key;
    const char *phase; /* static */
    guint seat;
    guint question; /* 0: not at the mind */
    guint tries;
    LoopTimer again;
    guint order[COUNCIL_SEATS_MAX], n_order;
} PlanAsk;

static void step(PlanWork *w);

/* ---- its life ---- */

static void
ask_free(gpointer data)
{
    PlanAsk *ask = data;
    Team *team = ask->work->team;

    loop_timer_cancel(team->spec.loop, &ask->again);
    if (ask->question != 0)
        team->spec.mind.cancel(team->spec.mind.ctx, ask->question);
    g_free(ask->key);
    g_free(ask);
}

static PlanWork *
work_ref(PlanWork *w)
{
    w->refs++;
    return w;
}

static void
work_unref(PlanWork *w)
{
    if (--w->refs > 0)
        return;
    json_decref(w->rows);
    g_hash_table_unref(w->asks);
    g_free(w->material);
    g_free(w->task_id);
    team_unref(w->team);
    g_free(w);
}
G_DEFINE_AUTOPTR_CLEANUP_FUNC(PlanWork, work_unref)

static void
end(PlanWork *w, Json *plan, const GError *error)
{
    if (w->ended)
        return;
    w->ended = true;
    loop_timer_cancel(w->team->spec.loop, &w->soon);
    g_hash_table_remove_all(w->asks);
    if (w->team->planning != NULL && g_hash_table_lookup(w->team->planning, w->task_id) == w)
        g_hash_table_remove(w->team->planning, w->task_id);
    w->done(plan, error, w->data);
    work_unref(w);
}

static void
fail(PlanWork *w, ErrKind kind, const char *message)
{
    g_autoptr(GError) error = g_error_new_literal(ERR_DOMAIN, (int)kind, message);

    end(w, NULL, error);
}

static void
on_cancelled(LoopTimer *timer)
{
    fail((PlanWork *)(void *)((char *)timer - offsetof(PlanWork, soon)), ERR_CANCELLED, "it was cancelled");
}

/* ---- rows ---- */

static PlanBegin
begin_of(const PlanWork *w)
{
    return (PlanBegin){.task_id = w->task_id,
                       .provider = w->team->spec.default_provider,
                       .model = w->team->spec.default_model,
                       .can_ask = w->team->spec.mind.ask != NULL};
}

/* Takes the reference of whoever waited. */
static void
on_rows(Json *value, const GError *error, void *data)
{
    g_autoptr(PlanWork) w = data;

    if (w->ended)
        return;
    if (error != NULL) {
        end(w, NULL, error);
        return;
    }
    json_decref(w->rows);
    w->rows = json_incref(value);
    step(w);
}

static void
on_begun(Json *value, const GError *error, void *data)
{
    FAILPOINT("plan-begun");
    on_rows(value, error, data);
}

/* ---- an answer ---- */

typedef struct Written {
    PlanWork *work; /* a reference */
    char *key;
} Written;

static void
on_written(Json *value, const GError *error, void *data)
{
    g_autofree Written *written = data;
    g_autofree char *key = written->key;

    FAILPOINT("plan-voice");
    if (!written->work->ended)
        g_hash_table_remove(written->work->asks, key);
    on_rows(value, error, written->work);
}

static void
write_voice(PlanAsk *ask, const char *model, Json *voice, const MindAnswer *answer)
{
    PlanWork *w = ask->work;
    Written *written = g_new(Written, 1);
    PlanVoice spec = {.of = begin_of(w),
                      .plan_id = row_text(json_object_get(w->rows, "plan"), "id"),
                      .phase = ask->phase,
                      .seat = ask->seat,
                      .model = model,
                      .voice = voice};

    if (answer != NULL) {
        spec.input_tokens = (gint64)MIN(answer->input_tokens, (guint64)G_MAXINT32);
        spec.output_tokens = (gint64)MIN(answer->output_tokens, (guint64)G_MAXINT32);
        spec.duration_us = answer->duration_us;
    }
    *written = (Written){.work = work_ref(w), .key = g_strdup(ask->key)};
    team_run(w->team, &plan_voice_op, &spec, on_written, written);
}

static bool
is_brain(const PlanAsk *ask)
{
    return g_str_has_prefix(ask->phase, "brain");
}

/* {provider, model} of who is asked. */
static const Json *
model_of(const PlanAsk *ask)
{
    const Json *rows = ask->work->rows, *council = json_object_get(json_object_get(rows, "plan"), "council");

    if (is_brain(ask))
        return json_object_get(rows, "brain");
    return ask->seat > 0 ? json_array_get(json_object_get(council, "seats"), ask->seat - 1)
                         : json_object_get(council, "chairman");
}

static const char *
model_name(const PlanAsk *ask)
{
    const char *model = row_text(model_of(ask), "model");

    return model != NULL ? model : "";
}

/* What is left for an answer; a council's questions end together. */
static gint64
time_left_ms(const PlanAsk *ask)
{
    gint64 deadline_us = council_deadline_us(json_object_get(ask->work->rows, "plan"), ask->phase);
    gint64 most = (gint64)PLAN_BRAIN_S * 1000;

    return is_brain(ask) || deadline_us == 0 ? most : MIN(most, (deadline_us - clock_wall_us()) / 1000);
}

static void
on_error(PlanAsk *ask, const GError *error)
{
    PlanWork *w = ask->work;
    ErrKind kind = err_kind(error);
    guint wait_ms = w->team->limits.retry_ms << ask->tries;

    if (kind == ERR_UNAVAILABLE && ++ask->tries < ASK_TRIES && time_left_ms(ask) > wait_ms) {
        loop_timer_set(w->team->spec.loop, &ask->again, wait_ms);
        return;
    }
    /* The row stays as it is: the next plan_make() goes on from there. */
    if (is_brain(ask) && kind != ERR_INVALID) {
        g_autoptr(GError) copy = g_error_copy(error);

        g_prefix_error(&copy, "the planner: ");
        end(w, NULL, copy);
        return;
    }
    g_autoptr(Json) voice = json_pack("{s:s, s:s}", "state", kind == ERR_INVALID ? "malformed" : "silent",
                                      "problem", error->message);

    write_voice(ask, model_name(ask), voice, NULL);
}

static void
on_answer(const MindAnswer *answer, const GError *error, void *data)
{
    PlanAsk *ask = data;
    g_autoptr(Json) voice = json_object();

    ask->question = 0;
    if (error != NULL) {
        on_error(ask, error);
        return;
    }
    voice_read(ask->phase, answer->text, ask->order, ask->n_order, voice);
    write_voice(ask, model_name(ask), voice, answer);
}

/* ---- a question ---- */

static char *
agent_of(const PlanAsk *ask)
{
    gint64 number = row_int(json_object_get(ask->work->rows, "task"), "number");

    if (ask->seat > 0)
        return g_strdup_printf("council-%u-%" G_GINT64_FORMAT, ask->seat, number);
    return g_strdup_printf("%s-%" G_GINT64_FORMAT, is_brain(ask) ? "planner" : "chairman", number);
}

static void
ask_mind(PlanAsk *ask)
{
    PlanWork *w = ask->work;
    const Json *rows = w->rows, *who = model_of(ask);
    g_autofree char *agent = agent_of(ask);
    const Role *role = team_role(w->team, row_text(json_object_get(rows, "brain"), "role"), NULL);
    const PlanWords words = {rows, w->material, role != NULL ? role->prompt : NULL};
    g_autofree char *system = plan_words_system(&words, ask->phase, ask->seat);
    g_autofree char *prompt = plan_words_prompt(&words, ask->phase, ask->seat);
    MindAsk question = {.agent = agent,
                        .task_id = w->task_id,
                        .squad_id = row_text(json_object_get(rows, "task"), "squad_id"),
                        .provider = row_text(who, "provider"),
                        .model = model_name(ask),
                        .system = system,
                        .prompt = prompt,
                        .timeout_ms = (guint)MAX(time_left_ms(ask), 1)};

    ask->question = w->team->spec.mind.ask(w->team->spec.mind.ctx, &question, on_answer, ask);
}

static void
on_again(LoopTimer *timer)
{
    ask_mind((PlanAsk *)(void *)((char *)timer - offsetof(PlanAsk, again)));
}

static void
ask_seat(PlanWork *w, const char *phase, guint seat)
{
    g_autofree char *key = g_strdup_printf("%s %u", phase, seat);

    if (g_hash_table_contains(w->asks, key))
        return;
    PlanAsk *ask = g_new0(PlanAsk, 1);

    *ask = (PlanAsk){.work = w, .phase = phase, .seat = seat, .again = {.expired = on_again}};
    ask->key = g_steal_pointer(&key);
    if (strcmp(phase, "ranking") == 0)
        ask->n_order = council_order(w->rows, seat, ask->order);
    g_hash_table_insert(w->asks, ask->key, ask);
    ask_mind(ask);
}

/* ---- what comes next ---- */

static void
on_ended(Json *value, const GError *error, void *data)
{
    PlanWork *w = data;

    FAILPOINT("plan-ended");
    w->ending = false;
    on_rows(value, error, w);
}

static void
decide(PlanWork *w)
{
    g_auto(PlanNext) next = {0};
    const Json *plan = json_object_get(w->rows, "plan");
    PlanEnd spec = {
        .of = begin_of(w), .plan_id = row_text(plan, "id"), .producer = row_text(plan, "producer")};

    plan_next(w->rows, clock_wall_us(), &next);
    if (next.what == PLAN_ASK) {
        for (guint i = 0; i < next.n_seats; i++)
            ask_seat(w, next.phase, next.seats[i]);
        return;
    }
    spec.outcome = next.outcome;
    spec.state = next.what == PLAN_ADOPT ? "draft" : next.what == PLAN_FAIL ? "failed" : "asked";
    spec.body = next.body;
    spec.problem = next.reason;
    if (next.what == PLAN_FALL_BACK)
        spec.producer = "brain";
    w->ending = true;
    g_hash_table_remove_all(w->asks);
    team_run(w->team, &plan_end_op, &spec, on_ended, work_ref(w));
}

/* Takes a reference. */
static void
on_looked(const char *material, const GError *error, void *data)
{
    g_autoptr(PlanWork) w = data;

    if (w->ended)
        return;
    if (error != NULL) {
        end(w, NULL, error);
        return;
    }
    w->material = g_strdup(material);
    w->looked = true;
    decide(w);
}

static void
step(PlanWork *w)
{
    Json *plan = json_object_get(w->rows, "plan");
    const Json *task = json_object_get(w->rows, "task");
    const char *state = row_text(plan, "state");

    if (w->ending)
        return;
    if (strcmp(state, "failed") == 0)
        fail(w, ERR_INVALID, row_text(plan, "problem"));
    else if (strcmp(state, "asked") != 0)
        end(w, plan, NULL);
    else if (w->looked)
        decide(w);
    else
        plan_look(w->team, row_text(task, "repository_id"), row_text(task, "base_branch"), on_looked,
                  work_ref(w));
}

void
plan_make(Team *team, const char *task_id, TeamJsonFunc done, void *data)
{
    PlanWork *w = g_new0(PlanWork, 1);
    PlanBegin spec;

    if (team->planning == NULL)
        team->planning = g_hash_table_new(g_str_hash, g_str_equal);
    *w = (PlanWork){.refs = 1,
                    .team = team_ref(team),
                    .task_id = g_strdup(task_id),
                    .asks = g_hash_table_new_full(g_str_hash, g_str_equal, NULL, ask_free),
                    .soon = {.expired = on_cancelled},
                    .done = done,
                    .data = data};
    spec = begin_of(w);
    spec.is_second = g_hash_table_contains(team->planning, task_id);
    if (!spec.is_second)
        g_hash_table_insert(team->planning, w->task_id, w);
    team_run(team, &plan_begin_op, &spec, on_begun, work_ref(w));
}

void
plan_cancel(Team *team, const char *task_id)
{
    PlanWork *w = team->planning != NULL ? g_hash_table_lookup(team->planning, task_id) : NULL;

    if (w == NULL)
        return;
    g_hash_table_remove_all(w->asks);
    w->ending = true; /* nothing is begun any more */
    loop_timer_set(team->spec.loop, &w->soon, 0);
}

void
plan_end_all(Team *team)
{
    g_autoptr(GList) all = team->planning != NULL ? g_hash_table_get_values(team->planning) : NULL;

    for (GList *l = all; l != NULL; l = l->next)
        fail(l->data, ERR_CANCELLED, "the server ends");
    g_clear_pointer(&team->planning, g_hash_table_unref);
}

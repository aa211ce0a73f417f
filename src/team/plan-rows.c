/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/err.h"
#include "base/id.h"
#include "team/plan-private.h"
#include "team/repo-file.h"

static const RowColumn plan_columns[] = {
    {"id", ROW_TEXT, "p.id"},
    {"task_id", ROW_TEXT, "p.task_id"},
    {"version", ROW_INT, "p.version"},
    {"producer", ROW_TEXT, "p.producer"},
    {"state", ROW_TEXT, "p.state"},
    {"body", ROW_JSON, "p.body"},
    {"council", ROW_JSON, "p.council"},
    {"problem", ROW_TEXT, "p.problem"},
    {"actor", ROW_TEXT, "p.actor"},
    {"created_us", ROW_INT, "p.created_us"},
    {"updated_us", ROW_INT, "p.updated_us"},
};
const RowTable plan_table = {"plan", "plans p", plan_columns, G_N_ELEMENTS(plan_columns)};

static const RowColumn voice_columns[] = {
    {"phase", ROW_TEXT, "v.phase"},
    {"seat", ROW_INT, "v.seat"},
    {"model", ROW_TEXT, "v.model"},
    {"state", ROW_TEXT, "v.state"},
    {"text", ROW_TEXT, "v.text"},
    {"body", ROW_JSON, "v.body"},
    {"problem", ROW_TEXT, "v.problem"},
    {"input_tokens", ROW_INT, "v.input_tokens"},
    {"output_tokens", ROW_INT, "v.output_tokens"},
    {"duration_us", ROW_INT, "v.duration_us"},
};
const RowTable voice_table = {"voice", "plan_voices v", voice_columns, G_N_ELEMENTS(voice_columns)};

/* ---- reading ---- */

bool
plan_newest(RowJob *job, const char *task_id, Json **ret_plan, GError **error)
{
    g_autoptr(GError) none = NULL;

    *ret_plan = row_get(job, &plan_table, "p.task_id = ? ORDER BY p.version DESC", DB_ARGS(db_text(task_id)),
                        &none);
    if (*ret_plan != NULL || err_kind(none) == ERR_NOT_FOUND)
        return true;
    g_propagate_error(error, g_steal_pointer(&none));
    return false;
}

Json *
plan_voices(RowJob *job, const char *plan_id, GError **error)
{
    g_auto(RowWhere) where = ROW_WHERE_INIT;

    row_where_add(&where, "v.plan_id = ?", DB_ARGS(db_text(plan_id)));
    g_autoptr(Json) list = row_list(job, &voice_table, &where, "v.phase, v.seat",
                                    (ForgePage){.per_page = THREAD_PAGE_MAX}, error);

    return list != NULL ? json_incref(json_object_get(list, "items")) : NULL;
}

/* The squad's planner, else whoever is first. */
static Json *
find_brain(const Json *members, const PlanBegin *spec)
{
    const Json *found = NULL;

    for (size_t i = 0; i < json_array_size(members); i++) {
        const Json *m = json_array_get(members, i);
        bool plans = strcmp(row_text(m, "archetype"), "planner") == 0;

        if (!row_is(m, "is_active") || (found != NULL && !plans))
            continue;
        found = m;
        if (plans)
            break;
    }
    bool is_planner = found != NULL && strcmp(row_text(found, "archetype"), "planner") == 0;

    return json_pack("{s:s, s:s?, s:s?, s:s?}", "role", is_planner ? row_text(found, "role") : "planner",
                     "provider", found != NULL ? row_text(found, "llm_provider") : spec->provider, "model",
                     found != NULL ? row_text(found, "llm_model") : spec->model, "system_prompt",
                     row_text(found, "system_prompt"));
}

/* What its questions have cost, as the door has told. */
static bool
count_cost(RowJob *job, const char *task_id, gint64 *ret_microusd, GError **error)
{
    return row_ask_int(job,
                       "SELECT SUM(microusd) FROM usage WHERE task_id = ? AND (agent_id LIKE 'council-%' OR "
                       "agent_id LIKE 'chairman-%')",
                       DB_ARGS(db_text(task_id)), ret_microusd, error);
}

/* What the repository says (repo-file.h), {} for nothing; NULL: it cannot be read. */
static Json *
repo_file(RowJob *job, const char *task_id, GError **error)
{
    static const RowColumn columns[] = {{"file", ROW_JSON}};
    static const RowTable table = {"task", "tasks", columns, G_N_ELEMENTS(columns)};
    g_autoptr(Json) row = row_get(job, &table, "id = ?", DB_ARGS(db_text(task_id)), error);
    Json *file = json_object_get(row, "file");

    return row == NULL ? NULL : json_is_object(file) ? json_incref(file) : json_object();
}

static Json *
read_all(RowJob *job, const PlanBegin *spec, Json *task, Json *members, GError **error)
{
    const char *task_id = row_text(task, "id");
    g_autoptr(Json) plan = NULL, voices = NULL, file = NULL;
    gint64 microusd = 0;

    if (!plan_newest(job, task_id, &plan, error) || !count_cost(job, task_id, &microusd, error))
        return NULL;
    voices = plan_voices(job, plan != NULL ? row_text(plan, "id") : "", error);
    file = voices != NULL ? repo_file(job, task_id, error) : NULL;
    if (file == NULL)
        return NULL;
    return json_pack("{s:O, s:o, s:O*, s:o, s:o, s:O, s:I}", "task", task, "members",
                     repo_members_over(file, members), "roles", json_object_get(file, "roles"), "brain",
                     find_brain(members, spec), "plan", plan != NULL ? json_incref(plan) : json_null(),
                     "voices", voices, "microusd", (json_int_t)microusd);
}

static Json *
read_rows(RowJob *job, const PlanBegin *spec, GError **error)
{
    g_autoptr(Json) task = task_row(job, &(TaskRef){.id = spec->task_id}, error);
    g_autoptr(Json) members = task != NULL ? squad_members(job, row_text(task, "squad_id"), error) : NULL;

    return members != NULL ? read_all(job, spec, task, members, error) : NULL;
}

/* ---- writing ---- */

bool
plan_insert(RowJob *job, const PlanInsert *spec, GError **error)
{
    g_autofree char *body = spec->body != NULL ? json_encode(spec->body) : NULL;
    g_autofree char *council = spec->council != NULL ? json_encode(spec->council) : NULL;
    char id[ID_UUID_LEN + 1];
    gint64 version = 0;

    id_new_uuid(id);
    return row_ask_int(job, "SELECT MAX(version) FROM plans WHERE task_id = ?",
                       DB_ARGS(db_text(spec->task_id)), &version, error) &&
           db_exec(
               job->tx,
               "UPDATE plans SET state = 'replaced', updated_us = ? WHERE task_id = ? AND state IN ('asked', "
               "'draft', 'approved')",
               DB_ARGS(db_int(job->now_us), db_text(spec->task_id)), error) &&
           db_exec(
               job->tx,
               "INSERT INTO plans (id, task_id, version, producer, state, body, council, actor, created_us, "
               "updated_us) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
               DB_ARGS(db_text(id), db_text(spec->task_id), db_int(version + 1), db_text(spec->producer),
                       db_text(spec->state), db_text(body), db_text(council), db_text(spec->actor),
                       db_int(job->now_us), db_int(job->now_us)),
               error);
}

/* Takes `data`. */
static bool
tell(RowJob *job, const Json *rows, const char *kind, Json *data, GError **error)
{
    const Json *task = json_object_get(rows, "task");

    json_object_set(data, "plan_id", json_object_get(json_object_get(rows, "plan"), "id"));
    return team_event(job->tx,
                      &(TeamEvent){.kind = kind,
                                   .actor = "coop",
                                   .task_id = row_text(task, "id"),
                                   .squad_id = row_text(task, "squad_id"),
                                   .data = data},
                      error);
}

/* ---- the beginning ---- */

static bool
has_plan(const Json *rows)
{
    static const char *const usable[] = {"asked", "draft", "approved", NULL};
    const char *state = row_text(json_object_get(rows, "plan"), "state");

    return state != NULL && g_strv_contains(usable, state);
}

static bool
insert_asked(RowJob *job, const Json *rows, GError **error)
{
    const Json *task = json_object_get(rows, "task"), *policy = json_object_get(task, "policy");
    bool is_council = g_strcmp0(row_text(policy, "planner"), "council") == 0;
    g_autoptr(Json) council = is_council ? council_open(policy, json_object_get(rows, "brain")) : NULL;

    return plan_insert(job,
                       &(PlanInsert){.task_id = row_text(task, "id"),
                                     .producer = is_council ? "council" : "brain",
                                     .state = "asked",
                                     .actor = "coop",
                                     .council = council},
                       error);
}

static bool
tell_opened(RowJob *job, const Json *rows, GError **error)
{
    Json *council = json_object_get(json_object_get(rows, "plan"), "council");

    return !json_is_object(council) || tell(job, rows, "council.opened", json_copy(council), error);
}

static bool
check_begin(const PlanBegin *spec, const Json *rows, GError **error)
{
    const char *state = row_text(json_object_get(rows, "task"), "state");
    const char *planned = row_text(json_object_get(rows, "plan"), "state");

    if (spec->is_second)
        return err_set(error, ERR_CONFLICT, "the task is being planned already");
    if (!has_plan(rows) && strcmp(state, "queued") != 0 && strcmp(state, "planning") != 0)
        return err_set(error, ERR_CONFLICT, "the task is %s: there is nothing to plan", state);
    if (!spec->can_ask && (!has_plan(rows) || strcmp(planned, "asked") == 0))
        return err_set(error, ERR_UNAVAILABLE,
                       "this server has no door to ask a model through: give a plan (coop plan set)");
    return true;
}

static bool
run_begin(RowJob *job, const void *data, Json **ret_value, GError **error)
{
    const PlanBegin *spec = data;
    g_autoptr(Json) rows = read_rows(job, spec, error);

    if (rows == NULL || !check_begin(spec, rows, error))
        return false;
    if (has_plan(rows)) {
        *ret_value = g_steal_pointer(&rows);
        return true;
    }
    if (!insert_asked(job, rows, error))
        return false;
    *ret_value = read_rows(job, spec, error);
    return *ret_value != NULL && tell_opened(job, *ret_value, error);
}

static const RowMember begin_members[] = {ROW_AT_TEXT(PlanBegin, task_id), ROW_AT_TEXT(PlanBegin, provider),
                                          ROW_AT_TEXT(PlanBegin, model), ROW_AT_END};
const RowOp plan_begin_op = {ROW_WRITES, sizeof(PlanBegin), begin_members, run_begin};

/* ---- an answer ---- */

/* Still the one that is being made: a person may have given another. */
static bool
is_asked(const Json *rows, const char *plan_id)
{
    const Json *plan = json_object_get(rows, "plan");

    return g_strcmp0(row_text(plan, "id"), plan_id) == 0 && strcmp(row_text(plan, "state"), "asked") == 0;
}

static bool
insert_voice(RowJob *job, const PlanVoice *v, GError **error)
{
    const Json *body = json_object_get(v->voice, "body");
    g_autofree char *text = body != NULL ? json_encode(body) : NULL;

    return db_exec(job->tx,
                   "INSERT INTO plan_voices (plan_id, phase, seat, model, state, text, body, problem, "
                   "input_tokens, output_tokens, duration_us) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) "
                   "ON CONFLICT (plan_id, phase, seat) DO NOTHING",
                   DB_ARGS(db_text(v->plan_id), db_text(v->phase), db_int(v->seat), db_text(v->model),
                           db_text(row_text(v->voice, "state")), db_text(row_text(v->voice, "text")),
                           db_text(text), db_text(row_text(v->voice, "problem")), db_int(v->input_tokens),
                           db_int(v->output_tokens), db_int(v->duration_us)),
                   error);
}

static bool
tell_voice(RowJob *job, const Json *rows, const PlanVoice *v, GError **error)
{
    const char *kind = strcmp(v->phase, "opinion") == 0   ? "opinion.given"
                       : strcmp(v->phase, "ranking") == 0 ? "ranking.given"
                                                          : NULL;
    const Json *body = json_object_get(v->voice, "body");
    Json *data;

    if (kind == NULL)
        return true;
    data = json_pack("{s:I, s:s, s:s, s:s?, s:s}", "seat", (json_int_t)v->seat, "model", v->model, "state",
                     row_text(v->voice, "state"), "problem", row_text(v->voice, "problem"), "seen_by",
                     "agent");
    if (json_is_array(body))
        json_object_set_new(data, "ranking", json_deep_copy(body));
    else if (body != NULL)
        json_object_set(data, "summary", json_object_get(body, "summary"));
    return tell(job, rows, kind, data, error);
}

static bool
run_voice(RowJob *job, const void *data, Json **ret_value, GError **error)
{
    const PlanVoice *v = data;
    g_autoptr(Json) rows = read_rows(job, &v->of, error);

    if (rows == NULL)
        return false;
    if (is_asked(rows, v->plan_id) && voice_find(rows, v->phase, (guint)v->seat) == NULL &&
        (!insert_voice(job, v, error) || !tell_voice(job, rows, v, error)))
        return false;
    *ret_value = read_rows(job, &v->of, error);
    return *ret_value != NULL;
}

static const RowMember voice_members[] = {
    ROW_AT_TEXT(PlanVoice, of.task_id), ROW_AT_TEXT(PlanVoice, of.provider),
    ROW_AT_TEXT(PlanVoice, of.model),   ROW_AT_TEXT(PlanVoice, plan_id),
    ROW_AT_TEXT(PlanVoice, phase),      ROW_AT_TEXT(PlanVoice, model),
    ROW_AT_JSON(PlanVoice, voice),      ROW_AT_END,
};
const RowOp plan_voice_op = {ROW_WRITES, sizeof(PlanVoice), voice_members, run_voice};

/* ---- the end ---- */

/* The council as it was opened, and how it ended. */
static char *
closed_council(const Json *rows, Json *outcome)
{
    g_autoptr(Json) council = json_deep_copy(json_object_get(json_object_get(rows, "plan"), "council"));

    if (!json_is_object(council))
        return NULL;
    if (outcome != NULL)
        (void)json_object_update(council, outcome); /* both are objects */
    return json_encode(council);
}

static bool
update_plan(RowJob *job, const Json *rows, const PlanEnd *e, GError **error)
{
    g_autofree char *council = closed_council(rows, e->outcome);
    g_autofree char *body = e->body != NULL ? json_encode(e->body) : NULL;

    return db_exec(
               job->tx,
               "UPDATE plans SET state = ?, producer = ?, body = ?, council = ?, problem = ?, updated_us = ? "
               "WHERE id = ?",
               DB_ARGS(db_text(e->state), db_text(e->producer), db_text(body), db_text(council),
                       db_text(e->problem), db_int(job->now_us), db_text(e->plan_id)),
               error) &&
           (e->outcome == NULL || tell(job, rows, "council.closed", json_deep_copy(e->outcome), error));
}

static bool
write_end(RowJob *job, const void *data, Json **ret_value, GError **error)
{
    const PlanEnd *e = data;
    g_autoptr(Json) rows = read_rows(job, &e->of, error);

    if (rows == NULL || (is_asked(rows, e->plan_id) && !update_plan(job, rows, e, error)))
        return false;
    *ret_value = read_rows(job, &e->of, error);
    return *ret_value != NULL;
}

static const RowMember end_members[] = {
    ROW_AT_TEXT(PlanEnd, of.task_id), ROW_AT_TEXT(PlanEnd, of.provider),
    ROW_AT_TEXT(PlanEnd, of.model),   ROW_AT_TEXT(PlanEnd, plan_id),
    ROW_AT_TEXT(PlanEnd, state),      ROW_AT_TEXT(PlanEnd, producer),
    ROW_AT_JSON(PlanEnd, body),       ROW_AT_JSON(PlanEnd, outcome),
    ROW_AT_TEXT(PlanEnd, problem),    ROW_AT_END,
};
const RowOp plan_end_op = {ROW_WRITES, sizeof(PlanEnd), end_members, write_end};

/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/err.h"
#include "team/crew-private.h"

enum { OPEN_MAX = 10000 };

#define OPEN_STATES "('queued', 'starting', 'working', 'asking', 'proving')"

static const RowColumn columns[] = {
    {"id", ROW_TEXT, NULL},
    {"agent", ROW_TEXT, NULL},
    {"task_id", ROW_TEXT, NULL},
    {"step_id", ROW_TEXT, NULL},
    {"squad_id", ROW_TEXT, NULL},
    {"member_id", ROW_TEXT, NULL},
    {"repository_id", ROW_TEXT, NULL},
    {"owner", ROW_TEXT, NULL},
    {"kind", ROW_TEXT, NULL},
    {"role", ROW_TEXT, NULL},
    {"archetype", ROW_TEXT, NULL},
    {"specialization", ROW_TEXT, NULL},
    {"adapter", ROW_TEXT, NULL},
    {"template", ROW_TEXT, NULL},
    {"provider", ROW_TEXT, NULL},
    {"model", ROW_TEXT, NULL},
    {"lease", ROW_TEXT, NULL},
    {"box_id", ROW_TEXT, NULL},
    {"run", ROW_INT, NULL},
    {"workdir", ROW_TEXT, NULL},
    {"seen", ROW_INT, NULL},
    {"state", ROW_TEXT, NULL},
    {"problem", ROW_TEXT, NULL},
    {"try", ROW_INT, NULL},
    {"brief", ROW_JSON, NULL},
    {"report", ROW_JSON, NULL},
    {"result", ROW_JSON, NULL},
    {"git_branch", ROW_TEXT, NULL},
    {"git_base", ROW_TEXT, NULL},
    {"pull_request_url", ROW_TEXT, NULL},
    {"commit_history", ROW_JSON, NULL},
    {"turns", ROW_INT, NULL},
    {"tools", ROW_INT, NULL},
    {"created_us", ROW_INT, NULL},
    {"started_us", ROW_INT, NULL},
    {"first_call_us", ROW_INT, NULL},
    {"ended_us", ROW_INT, NULL},
};
const RowTable execution_table = {"agent", "task_executions", columns, G_N_ELEMENTS(columns)};

static const RowColumn task_columns[] = {
    {"id", ROW_TEXT, NULL},      {"number", ROW_INT, NULL},    {"title", ROW_TEXT, NULL},
    {"request", ROW_TEXT, NULL}, {"policy", ROW_JSON, NULL},   {"base_branch", ROW_TEXT, NULL},
    {"branch", ROW_TEXT, NULL},  {"base_oid", ROW_TEXT, NULL}, {"repository_id", ROW_TEXT, NULL},
};
static const RowTable task_table = {"task", "tasks", task_columns, G_N_ELEMENTS(task_columns)};

static const RowColumn step_columns[] = {
    {"id", ROW_TEXT, NULL},      {"n", ROW_INT, NULL},        {"name", ROW_TEXT, NULL},
    {"title", ROW_TEXT, NULL},   {"files", ROW_JSON, NULL},   {"checks", ROW_JSON, NULL},
    {"feature", ROW_TEXT, NULL}, {"details", ROW_TEXT, NULL},
};
static const RowTable step_table = {"step", "steps", step_columns, G_N_ELEMENTS(step_columns)};

static const RowColumn member_columns[] = {
    {"id", ROW_TEXT, NULL},          {"name", ROW_TEXT, NULL},   {"system_prompt", ROW_TEXT, NULL},
    {"identity_id", ROW_TEXT, NULL}, {"config", ROW_JSON, NULL}, {"template", ROW_TEXT, NULL},
};
static const RowTable member_table = {"member", "squad_members", member_columns,
                                      G_N_ELEMENTS(member_columns)};

typedef struct IdSpec {
    const char *id;
} IdSpec;
static const RowMember id_members[] = {ROW_AT_TEXT(IdSpec, id), ROW_AT_END};

/* What the row names, or null where it names nothing, or that is gone. */
static bool
add_named(RowJob *job, Json *row, const char *column, const char *name, const RowTable *table, GError **error)
{
    const char *id = row_text(row, column);
    g_autoptr(GError) failed = NULL;
    Json *found = id != NULL ? row_get(job, table, "id = ?", DB_ARGS(db_text(id)), &failed) : NULL;

    if (failed != NULL && err_kind(failed) != ERR_NOT_FOUND) {
        g_propagate_error(error, g_steal_pointer(&failed));
        return false;
    }
    json_object_set_new(row, name, found != NULL ? found : json_null());
    return true;
}

static bool
run_load(RowJob *job, const void *spec, Json **ret_value, GError **error)
{
    const IdSpec *s = spec;
    g_autoptr(Json) row = row_get(job, &execution_table, "id = ?", DB_ARGS(db_text(s->id)), error);
    gint64 asks = 0;

    if (row == NULL ||
        !row_ask_int(job, "SELECT COUNT(*) FROM questions WHERE execution_id = ? AND state = 'open'",
                     DB_ARGS(db_text(s->id)), &asks, error) ||
        !add_named(job, row, "task_id", "task", &task_table, error) ||
        !add_named(job, row, "step_id", "step", &step_table, error) ||
        !add_named(job, row, "member_id", "member", &member_table, error))
        return false;
    json_object_set_new(row, "asks", json_integer(asks));
    if (row_text(row, "repository_id") == NULL) {
        Json *id = json_object_get(json_object_get(row, "task"), "repository_id");

        if (id != NULL)
            json_object_set(row, "repository_id", id);
    }
    *ret_value = g_steal_pointer(&row);
    return true;
}

void
crew_load(Crew *crew, const char *execution_id, TeamJsonFunc done, void *data)
{
    static const RowOp op = {ROW_READS, sizeof(IdSpec), id_members, run_load};

    team_run(crew->team, &op, &(IdSpec){execution_id}, done, data);
}

/* Those of tasks that wait are their flow's to begin. */
static bool
run_list_open(RowJob *job, const void *spec, Json **ret_value, GError **error)
{
    g_autoptr(DbRows)
        rows = db_query(job->tx,
                        "SELECT id FROM task_executions WHERE state IN " OPEN_STATES
                        " AND (state <> 'queued' OR task_id IS NULL) ORDER BY created_us LIMIT ?",
                        DB_ARGS(db_int(OPEN_MAX)), error);
    g_autoptr(Json) ids = json_array();
    bool found = false;

    while (rows != NULL && db_rows_next(rows, &found, error) && found)
        json_array_append_new(ids, json_string(db_rows_text(rows, 0)));
    if (rows == NULL || found)
        return false;
    *ret_value = json_pack("{s:O}", "ids", ids);
    return error == NULL || *error == NULL;
}

void
crew_list_open(Crew *crew, TeamJsonFunc done, void *data)
{
    static const RowOp op = {ROW_READS, sizeof(int), NULL, run_list_open};

    team_run(crew->team, &op, &(int){0}, done, data);
}

/* ---- moves ---- */

static Json *
execution_get(RowJob *job, const char *id, GError **error)
{
    return row_get(job, &execution_table, "id = ?", DB_ARGS(db_text(id)), error);
}

static TeamEvent
event_of(const Json *row, const char *kind, const char *actor, Json *data)
{
    return (TeamEvent){.kind = kind,
                       .actor = actor,
                       .task_id = row_text(row, "task_id"),
                       .squad_id = row_text(row, "squad_id"),
                       .box_id = row_text(row, "box_id"),
                       .execution_id = row_text(row, "id"),
                       .data = data};
}

static bool
take_member(RowJob *job, const Json *row, const char *git, GError **error)
{
    return db_exec(
        job->tx, "UPDATE squad_members SET sandbox_id = ?, current_task_id = ?, git_context = ? WHERE id = ?",
        DB_ARGS(db_text(row_text(row, "box_id")), db_text(row_text(row, "task_id")), db_text(git),
                db_text(row_text(row, "member_id"))),
        error);
}

/* Unless it works elsewhere by now. */
static bool
leave_member(RowJob *job, const Json *row, GError **error)
{
    return db_exec(job->tx,
                   "UPDATE squad_members SET sandbox_id = NULL, current_task_id = NULL, git_context = NULL "
                   "WHERE id = ? AND sandbox_id = ?",
                   DB_ARGS(db_text(row_text(row, "member_id")), db_text(row_text(row, "box_id"))), error);
}

static bool
tell_joined(RowJob *job, const CrewMove *m, Json *row, GError **error)
{
    g_autoptr(Json)
        git = json_pack("{s:s?, s:s?, s:s?}", "branch", row_text(row, "git_branch"), "base",
                        row_text(row, "git_base"), "repository_id", row_text(row, "repository_id"));
    g_autofree char *text = json_encode(git);

    json_object_set_new(row, "box_id", json_string(m->box_id));
    TeamEvent event = event_of(row, "agent.joined", m->actor, json_incref(m->joined));

    return team_event(job->tx, &event, error) && take_member(job, row, text, error);
}

static bool
run_move(RowJob *job, const void *spec, Json **ret_value, GError **error)
{
    const CrewMove *m = spec;
    g_autofree char *report = m->report != NULL ? json_encode(m->report) : NULL;

    if (!db_exec(job->tx,
                 "UPDATE task_executions SET state = ?, box_id = COALESCE(?, box_id), "
                 "workdir = COALESCE(?, workdir), "
                 "run = COALESCE(?, run), seen = CASE WHEN ? > seen THEN ? ELSE seen END, report = "
                 "COALESCE(?, report), "
                 "started_us = CASE WHEN started_us = 0 THEN ? ELSE started_us END "
                 "WHERE id = ? AND state IN " OPEN_STATES,
                 DB_ARGS(db_text(m->state), db_text(m->box_id), db_text(m->workdir),
                         m->run != 0 ? db_int(m->run) : db_null(), db_int(m->seen), db_int(m->seen),
                         db_text(report), db_int(job->now_us), db_text(m->id)),
                 error))
        return false;
    bool changed = db_changes(job->tx) > 0;
    g_autoptr(Json) row = execution_get(job, m->id, error);

    if (row == NULL || (changed && m->joined != NULL && !tell_joined(job, m, row, error)))
        return false;
    *ret_value = json_pack("{s:s}", "state", row_text(row, "state"));
    return true;
}

void
crew_move(Crew *crew, const CrewMove *move, TeamJsonFunc done, void *data)
{
    static const RowMember members[] = {ROW_AT_TEXT(CrewMove, id),     ROW_AT_TEXT(CrewMove, state),
                                        ROW_AT_TEXT(CrewMove, box_id), ROW_AT_TEXT(CrewMove, workdir),
                                        ROW_AT_TEXT(CrewMove, actor),  ROW_AT_JSON(CrewMove, report),
                                        ROW_AT_JSON(CrewMove, joined), ROW_AT_END};
    static const RowOp op = {ROW_WRITES, sizeof(CrewMove), members, run_move};

    team_run(crew->team, &op, move, done, data);
}

/* ---- the end ---- */

static bool
put_end(RowJob *job, const CrewEnd *e, bool *ret_changed, GError **error)
{
    g_autofree char *result = e->result != NULL ? json_encode(e->result) : NULL;
    g_autofree char *report = e->report != NULL ? json_encode(e->report) : NULL;
    g_autofree char *commits = e->commits != NULL ? json_encode(e->commits) : NULL;

    if (!db_exec(job->tx,
                 "UPDATE task_executions SET state = ?, problem = ?, result = ?, "
                 "report = COALESCE(?, report), commit_history = COALESCE(?, commit_history), ended_us = ? "
                 "WHERE id = ? AND state IN " OPEN_STATES,
                 DB_ARGS(db_text(e->state), db_text(e->problem), db_text(result), db_text(report),
                         db_text(commits), db_int(job->now_us), db_text(e->id)),
                 error))
        return false;
    *ret_changed = db_changes(job->tx) > 0;
    return true;
}

/* What its checks came to; of scans only how many. */
static void
add_checks(Json *data, const Json *checks)
{
    Json *list = json_array();
    json_int_t scans = 0, clean = 0;
    size_t i;
    const Json *check;

    json_array_foreach(checks, i, check)
    {
        const char *name = row_text(check, "name");
        bool good = row_int(check, "exit_code") == 0;

        if (name != NULL && g_str_has_prefix(name, "scan: ")) {
            scans += row_text(check, "skipped") == NULL;
            clean += row_text(check, "skipped") == NULL && good;
        } else {
            json_array_append_new(list, json_pack("{s:s?, s:I, s:b}", "name", name, "exit_code",
                                                  (json_int_t)row_int(check, "exit_code"), "tests",
                                                  json_is_object(json_object_get(check, "tests"))));
        }
    }
    json_object_set_new(data, "checks", list);
    if (scans > 0)
        json_object_set_new(data, "scans", json_pack("{s:I, s:I}", "total", scans, "passed", clean));
}

static Json *
left_data(const CrewEnd *e, const Json *row, gint64 now_us)
{
    const Json *report = json_object_get(row, "report");
    Json *data = json_pack(
        "{s:s, s:s, s:s, s:s?, s:I, s:s, s:s?, s:s?, s:O?, s:s?, s:s}", "agent", row_text(row, "agent"),
        "kind", row_text(row, "kind"), "role", row_text(row, "role"), "model", row_text(row, "model"), "try",
        (json_int_t)row_int(row, "try"), "state", e->state, "problem", e->problem, "head_oid",
        row_text(e->result, "head_oid"), "passed", json_object_get(e->result, "passed"), "outcome",
        row_text(report, "outcome"), "seen_by", "coop");

    json_object_set_new(data, "duration_ms",
                        json_integer(team_ms_between(row_int(row, "started_us"), now_us)));
    json_object_set_new(
        data, "spawn_ms",
        json_integer(team_ms_between(row_int(row, "created_us"), row_int(row, "first_call_us"))));
    json_object_set_new(data, "memory_bytes", json_integer(e->memory_bytes));
    add_checks(data, json_object_get(e->result, "checks"));
    return data;
}

static bool
run_end_row(RowJob *job, const void *spec, Json **ret_value, GError **error)
{
    const CrewEnd *e = spec;
    bool changed;

    if (!put_end(job, e, &changed, error))
        return false;
    g_autoptr(Json) row = execution_get(job, e->id, error);

    if (row == NULL)
        return false;
    TeamEvent event = event_of(row, "agent.left", e->actor, changed ? left_data(e, row, job->now_us) : NULL);

    if (changed &&
        (!team_event(job->tx, &event, error) || !leave_member(job, row, error) ||
         !db_exec(job->tx,
                  "UPDATE questions SET state = 'withdrawn' WHERE execution_id = ? AND state = 'open'",
                  DB_ARGS(db_text(e->id)), error)))
        return false;
    *ret_value = json_pack("{s:s, s:s?}", "state", row_text(row, "state"), "task_id",
                           row_text(row, "task_id"));
    return true;
}

void
crew_end(Crew *crew, const CrewEnd *end, TeamJsonFunc done, void *data)
{
    static const RowMember members[] = {ROW_AT_TEXT(CrewEnd, id),      ROW_AT_TEXT(CrewEnd, state),
                                        ROW_AT_TEXT(CrewEnd, problem), ROW_AT_TEXT(CrewEnd, actor),
                                        ROW_AT_JSON(CrewEnd, result),  ROW_AT_JSON(CrewEnd, report),
                                        ROW_AT_JSON(CrewEnd, commits), ROW_AT_END};
    static const RowOp op = {ROW_WRITES, sizeof(CrewEnd), members, run_end_row};

    team_run(crew->team, &op, end, done, data);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* The life of a suite in rows.  Whoever writes names the try that he is: a suite that was cancelled, or
 * is in another try, is left alone. */
#include <string.h>

#include "base/err.h"
#include "base/failpoint.h"
#include "forge/checks-private.h"
#include "forge/repo-settings.h"

static const RowColumn columns[] = {
    {"id", ROW_TEXT, "s.id"},
    {"repository_id", ROW_TEXT, "s.repository_id"},
    {"number", ROW_INT, "s.number"},
    {"base_oid", ROW_TEXT, "s.base_oid"},
    {"head_oid", ROW_TEXT, "s.head_oid"},
    {"tree_oid", ROW_TEXT, "s.tree_oid"},
    {"state", ROW_TEXT, "s.state"},
    {"problem", ROW_TEXT, "s.problem"},
    {"source", ROW_TEXT, "s.source"},
    {"template", ROW_TEXT, "s.template"},
    {"box_id", ROW_TEXT, "s.box_id"},
    {"tries", ROW_INT, "s.tries"},
    {"actor", ROW_TEXT, "s.actor"},
    {"purpose", ROW_TEXT, "s.purpose"},
    {"created_us", ROW_INT, "s.created_us"},
    {"began_us", ROW_INT, "s.began_us"},
    {"ended_us", ROW_INT, "s.ended_us"},
    {"task_id", ROW_TEXT,
     "(SELECT t.task_id FROM threads t WHERE t.repository_id = s.repository_id AND t.number = s.number)"},
};
const RowTable suite_table = {"suite of checks", "check_suites s", columns, G_N_ELEMENTS(columns)};

/* ---- the beginning ---- */

Json *
suite_load(RowJob *job, const char *id, GError **error)
{
    return row_get(job, &suite_table, "s.id = ? AND s.repository_id = ?",
                   DB_ARGS(db_text(id), db_text(job->repository_id)), error);
}

static bool
is_live(const Json *suite)
{
    const char *state = row_text(suite, "state");

    return strcmp(state, "queued") == 0 || strcmp(state, "running") == 0;
}

static bool
run_claim(RowJob *job, const void *data, Json **ret_value, GError **error)
{
    const char *id = *(const char *const *)data;
    g_autoptr(Json) suite = suite_load(job, id, error);

    if (suite == NULL)
        return false;
    gint64 tries = row_int(suite, "tries");

    if (!is_live(suite)) {
        *ret_value = json_pack("{s:s}", "state", row_text(suite, "state"));
        return true;
    }
    g_autoptr(RepoSettings) settings = repo_settings_load(job->tx, job->repository_id, error);

    if (settings == NULL)
        return false;
    *ret_value = json_pack("{s:I, s:b}", "tries", (json_int_t)(tries + 1), "allow_none",
                           settings->allow_no_checks);
    return db_exec(job->tx, "DELETE FROM checks WHERE suite = ? AND seen_by = 'coop'", DB_ARGS(db_text(id)),
                   error) &&
           db_exec(job->tx,
                   "UPDATE check_suites SET state = 'running', tries = ?, box_id = NULL, began_us = ? "
                   "WHERE id = ?",
                   DB_ARGS(db_int(tries + 1), db_int(job->now_us), db_text(id)), error);
}

void
suite_claim(Checks *checks, Repo *repo, const char *id, ForgeJsonFunc done, void *data)
{
    static const RowMember members[] = {{ROW_POINTER_TEXT, 0}, ROW_AT_END};
    static const RowOp op = {ROW_WRITES, sizeof(const char *), members, run_claim};

    row_run(checks->spec.forge, repo, &op, &id, done, data);
}

/* The suite if it is still in this try; `*ret_suite` NULL: not any more. */
static bool
find_try(RowJob *job, const char *id, gint64 tries, Json **ret_suite, GError **error)
{
    g_autoptr(Json) suite = suite_load(job, id, error);

    *ret_suite = NULL;
    if (suite == NULL)
        return false;
    if (strcmp(row_text(suite, "state"), "running") == 0 && row_int(suite, "tries") == tries)
        *ret_suite = g_steal_pointer(&suite);
    return true;
}

static bool
put_runs(RowJob *job, const SuitePlanned *p, Json *ids, GError **error)
{
    for (size_t i = 0; p->names[i] != NULL; i++) {
        CheckRow row = {.suite = p->id,
                        .name = p->names[i],
                        .head_oid = p->head_oid,
                        .status = "queued",
                        .command = p->commands[i]};

        if (!check_row_put(job->tx, job->repository_id, &row, error))
            return false;
        json_array_append_new(ids, json_integer(row.id));
    }
    return true;
}

static Json *
event_data(const Json *suite)
{
    return json_pack("{s:O, s:O, s:O, s:O}", "suite", json_object_get(suite, "id"), "number",
                     json_object_get(suite, "number"), "head_oid", json_object_get(suite, "head_oid"),
                     "tries", json_object_get(suite, "tries"));
}

static bool
run_planned(RowJob *job, const void *data, Json **ret_value, GError **error)
{
    const SuitePlanned *p = data;
    g_autoptr(Json) suite = NULL;
    g_autoptr(Json) ids = json_array();

    if (!find_try(job, p->id, p->tries, &suite, error))
        return false;
    if (suite == NULL)
        return true;
    FAILPOINT("checks-planned");
    if (!db_exec(job->tx, "UPDATE check_suites SET tree_oid = ?, source = ? WHERE id = ?",
                 DB_ARGS(db_text(p->tree_oid), db_text(p->source), db_text(p->id)), error) ||
        !put_runs(job, p, ids, error) ||
        !row_event(job, "checks.started", row_text(suite, "actor"), row_text(suite, "task_id"),
                   event_data(suite), error))
        return false;
    *ret_value = json_pack("{s:O}", "ids", ids);
    return true;
}

void
suite_planned(Checks *checks, Repo *repo, const SuitePlanned *planned, ForgeJsonFunc done, void *data)
{
    static const RowMember members[] = {ROW_AT_TEXT(SuitePlanned, id),
                                        ROW_AT_TEXT(SuitePlanned, head_oid),
                                        ROW_AT_TEXT(SuitePlanned, tree_oid),
                                        ROW_AT_TEXT(SuitePlanned, source),
                                        ROW_AT_TEXTS(SuitePlanned, names),
                                        ROW_AT_TEXTS(SuitePlanned, commands),
                                        ROW_AT_END};
    static const RowOp op = {ROW_WRITES, sizeof(SuitePlanned), members, run_planned};

    row_run(checks->spec.forge, repo, &op, planned, done, data);
}

/* ---- the middle ---- */

static bool
run_filled(RowJob *job, const void *data, Json **ret_value, GError **error)
{
    const SuiteFilled *f = data;

    return db_exec(job->tx,
                   "UPDATE check_suites SET box_id = ?, template = ? WHERE id = ? AND state = 'running'",
                   DB_ARGS(db_text(f->box_id), db_text(f->template), db_text(f->id)), error);
}

void
suite_filled(Checks *checks, Repo *repo, const SuiteFilled *filled, ForgeJsonFunc done, void *data)
{
    static const RowMember members[] = {ROW_AT_TEXT(SuiteFilled, id), ROW_AT_TEXT(SuiteFilled, box_id),
                                        ROW_AT_TEXT(SuiteFilled, template), ROW_AT_END};
    static const RowOp op = {ROW_WRITES, sizeof(SuiteFilled), members, run_filled};

    row_run(checks->spec.forge, repo, &op, filled, done, data);
}

/* Whoever follows check runs follows these too. */
static bool
tell_run(RowJob *job, const CheckRow *row, GError **error)
{
    return row_event(job, "check.reported", "coop", NULL,
                     json_pack("{s:I, s:s, s:s, s:s, s:s?, s:s, s:s, s:s}", "check_id", (json_int_t)row->id,
                               "name", row->name, "head_oid", row->head_oid, "status", row->status,
                               "conclusion", row->conclusion, "seen_by", "coop", "suite", row->suite,
                               "action", row->conclusion != NULL ? "completed" : "created"),
                     error);
}

static bool
run_put(RowJob *job, const void *data, Json **ret_value, GError **error)
{
    CheckRow row = *(const CheckRow *)data;
    g_autoptr(Json) suite = suite_load(job, row.suite, error);

    if (suite == NULL)
        return false;
    if (strcmp(row_text(suite, "state"), "running") != 0)
        return true;
    return check_row_put(job->tx, job->repository_id, &row, error) && tell_run(job, &row, error);
}

void
suite_put_run(Checks *checks, Repo *repo, const CheckRow *row, ForgeJsonFunc done, void *data)
{
    static const RowMember members[] = {ROW_AT_TEXT(CheckRow, suite),
                                        ROW_AT_TEXT(CheckRow, name),
                                        ROW_AT_TEXT(CheckRow, head_oid),
                                        ROW_AT_TEXT(CheckRow, status),
                                        ROW_AT_TEXT(CheckRow, conclusion),
                                        ROW_AT_TEXT(CheckRow, title),
                                        ROW_AT_TEXT(CheckRow, details_url),
                                        ROW_AT_TEXT(CheckRow, summary),
                                        ROW_AT_TEXT(CheckRow, output),
                                        ROW_AT_TEXT(CheckRow, box_id),
                                        ROW_AT_TEXT(CheckRow, command),
                                        ROW_AT_TEXT(CheckRow, reason),
                                        ROW_AT_TEXT(CheckRow, output_sha256),
                                        ROW_AT_TEXT(CheckRow, tests),
                                        ROW_AT_END};
    static const RowOp op = {ROW_WRITES, sizeof(CheckRow), members, run_put};

    row_run(checks->spec.forge, repo, &op, row, done, data);
}

/* ---- the end ---- */

static bool
put_back(RowJob *job, const SuiteEnd *end, GError **error)
{
    return db_exec(
        job->tx, "UPDATE check_suites SET state = 'queued', problem = ?, tries = ? WHERE id = ?",
        DB_ARGS(db_text(end->problem), db_int(end->tries - (end->uncounted ? 1 : 0)), db_text(end->id)),
        error);
}

bool
suite_put_end(RowJob *job, const SuiteEnd *end, const Json *suite, const char *actor, GError **error)
{
    Json *data = event_data(suite);

    json_object_set_new(data, "state", json_string(end->state));
    json_object_set_new(data, "problem", end->problem != NULL ? json_string(end->problem) : json_null());
    FAILPOINT("checks-ending");
    /* One that nobody was told the beginning of ends in silence. */
    if (row_int(suite, "began_us") == 0)
        json_decref(data);
    else if (!row_event(job, "checks.ended", actor, row_text(suite, "task_id"), data, error))
        return false;
    return db_exec(job->tx,
                   "UPDATE checks SET status = 'completed', conclusion = 'cancelled', completed_us = ?, "
                   "updated_us = ? WHERE suite = ? AND seen_by = 'coop' AND status <> 'completed'",
                   DB_ARGS(db_int(job->now_us), db_int(job->now_us), db_text(end->id)), error) &&
           db_exec(job->tx,
                   "UPDATE check_suites SET state = ?, problem = ?, receipt = ?, ended_us = ? WHERE id = ?",
                   DB_ARGS(db_text(end->state), db_text(end->problem), db_text(end->receipt),
                           db_int(job->now_us), db_text(end->id)),
                   error);
}

static bool
run_end_suite(RowJob *job, const void *data, Json **ret_value, GError **error)
{
    const SuiteEnd *end = data;
    g_autoptr(Json) suite = NULL;

    if (!find_try(job, end->id, end->tries, &suite, error))
        return false;
    if (suite != NULL && (strcmp(end->state, "queued") == 0 ? !put_back(job, end, error)
                                                            : !suite_put_end(job, end, suite, "coop", error)))
        return false;
    *ret_value = json_pack("{s:s}", "state", suite != NULL ? end->state : "cancelled");
    return true;
}

void
suite_end(Checks *checks, Repo *repo, const SuiteEnd *end, ForgeJsonFunc done, void *data)
{
    static const RowMember members[] = {ROW_AT_TEXT(SuiteEnd, id), ROW_AT_TEXT(SuiteEnd, state),
                                        ROW_AT_TEXT(SuiteEnd, problem), ROW_AT_TEXT(SuiteEnd, receipt),
                                        ROW_AT_END};
    static const RowOp op = {ROW_WRITES, sizeof(SuiteEnd), members, run_end_suite};

    row_run(checks->spec.forge, repo, &op, end, done, data);
}

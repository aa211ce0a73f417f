/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/err.h"
#include "forge/check-private.h"

static const RowColumn columns[] = {
    {"id", ROW_INT, "s.id"},
    {"oid", ROW_TEXT, "s.oid"},
    {"context", ROW_TEXT, "s.context"},
    {"state", ROW_TEXT, "s.state"},
    {"description", ROW_TEXT, "s.description"},
    {"target_url", ROW_TEXT, "s.target_url"},
    {"author", ROW_PERSON, "s.author"},
    {"created_us", ROW_INT, "s.created_us"},
};
static const RowTable statuses = {"status", "statuses s", columns, G_N_ELEMENTS(columns)};

Json *
status_load(RowJob *job, gint64 id, GError **error)
{
    return row_get(job, &statuses, "s.id = ? AND s.repository_id = ?",
                   DB_ARGS(db_int(id), db_text(job->repository_id)), error);
}

static bool
check_spec(RowJob *job, const StatusSpec *spec, const char *context, GError **error)
{
    static const char *const states[] = {"error", "failure", "pending", "success", NULL};
    gint64 count = 0;

    if (!row_check_oid("the commit", spec->oid, error) ||
        !row_check_word("the state", spec->state, states, error) ||
        !row_check_text("the context", context, CHECK_NAME_MAX, ROW_TEXT_NEEDED, error) ||
        !row_check_text("the description", spec->description, STATUS_DESCRIPTION_MAX, ROW_TEXT_MAY_BE_EMPTY,
                        error) ||
        !row_check_text("the target", spec->target_url, CHECK_URL_MAX, ROW_TEXT_MAY_BE_EMPTY, error) ||
        !row_ask_int(job, "SELECT COUNT(*) FROM statuses WHERE repository_id = ? AND oid = ?",
                     DB_ARGS(db_text(job->repository_id), db_text(spec->oid)), &count, error))
        return false;
    return count < CHECKS_OF_COMMIT_MAX ||
           err_set(error, ERR_LIMIT, "the commit has %d statuses already", CHECKS_OF_COMMIT_MAX);
}

static bool
run_create(RowJob *job, const void *data, Json **ret_value, GError **error)
{
    const StatusSpec *spec = data;
    const char *context = spec->context != NULL ? spec->context : "default";
    gint64 id = 0;

    if (!check_spec(job, spec, context, error) || !row_next_id(job, "statuses", &id, error) ||
        !db_exec(job->tx,
                 "INSERT INTO statuses (id, repository_id, oid, context, state, description, target_url, "
                 "author, created_us) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
                 DB_ARGS(db_int(id), db_text(job->repository_id), db_text(spec->oid), db_text(context),
                         db_text(spec->state), db_text(spec->description), db_text(spec->target_url),
                         db_text(spec->actor), db_int(job->now_us)),
                 error))
        return false;
    *ret_value = status_load(job, id, error);
    return *ret_value != NULL &&
           row_event(job, "status.reported", spec->actor, NULL,
                     json_pack("{s:I, s:s, s:s, s:s}", "status_id", (json_int_t)id, "oid", spec->oid,
                               "context", context, "state", spec->state),
                     error);
}

typedef struct StatusAsk {
    const char *oid;
    ForgePage page;
} StatusAsk;

static bool
run_list(RowJob *job, const void *data, Json **ret_value, GError **error)
{
    const StatusAsk *ask = data;
    g_auto(RowWhere) where = ROW_WHERE_INIT;

    if (!row_check_oid("the commit", ask->oid, error))
        return false;
    row_where_add(&where, "s.repository_id = ? AND s.oid = ?",
                  DB_ARGS(db_text(job->repository_id), db_text(ask->oid)));
    *ret_value = row_list(job, &statuses, &where, "s.id DESC", ask->page, error);
    return *ret_value != NULL;
}

#define NEWEST_OF_CONTEXT                                                                                    \
    "s.repository_id = ? AND s.oid = ? AND NOT EXISTS (SELECT 1 FROM statuses o WHERE o.repository_id = "    \
    "s.repository_id AND o.oid = s.oid AND o.context = s.context AND o.id > s.id)"

/* The worst of all of them, also of those that no page shows; without any it is pending. */
static bool
set_state(RowJob *job, const StatusAsk *ask, Json *combined, GError **error)
{
    static const char *const states[] = {"success", "pending", "failure"};
    gint64 worst = 1;

    if (!row_ask_int(job,
                     "SELECT COALESCE(MAX(CASE s.state WHEN 'success' THEN 0 WHEN 'pending' THEN 1 ELSE 2 "
                     "END), 1) FROM statuses s WHERE " NEWEST_OF_CONTEXT,
                     DB_ARGS(db_text(job->repository_id), db_text(ask->oid)), &worst, error))
        return false;
    json_object_set_new(combined, "state", json_string(states[CLAMP(worst, 0, 2)]));
    return true;
}

static bool
run_combined(RowJob *job, const void *data, Json **ret_value, GError **error)
{
    const StatusAsk *ask = data;
    g_auto(RowWhere) where = ROW_WHERE_INIT;

    if (!row_check_oid("the commit", ask->oid, error))
        return false;
    row_where_add(&where, NEWEST_OF_CONTEXT, DB_ARGS(db_text(job->repository_id), db_text(ask->oid)));
    *ret_value = row_list(job, &statuses, &where, "s.context", (ForgePage){.per_page = THREAD_PAGE_MAX},
                          error);
    if (*ret_value == NULL)
        return false;
    return set_state(job, ask, *ret_value, error);
}

void
status_create(Forge *forge, Repo *repo, const StatusSpec *spec, ForgeJsonFunc done, void *data)
{
    static const RowMember members[] = {ROW_AT_TEXT(StatusSpec, actor),
                                        ROW_AT_TEXT(StatusSpec, oid),
                                        ROW_AT_TEXT(StatusSpec, state),
                                        ROW_AT_TEXT(StatusSpec, context),
                                        ROW_AT_TEXT(StatusSpec, description),
                                        ROW_AT_TEXT(StatusSpec, target_url),
                                        ROW_AT_END};
    static const RowOp op = {ROW_WRITES, sizeof(StatusSpec), members, run_create};

    row_run(forge, repo, &op, spec, done, data);
}

static const RowMember ask_members[] = {ROW_AT_TEXT(StatusAsk, oid), ROW_AT_END};

void
status_list(Forge *forge, Repo *repo, const char *oid, ForgePage page, ForgeJsonFunc done, void *data)
{
    static const RowOp op = {ROW_READS, sizeof(StatusAsk), ask_members, run_list};

    row_run(forge, repo, &op, &(StatusAsk){oid, page}, done, data);
}

void
status_combined(Forge *forge, Repo *repo, const char *oid, ForgeJsonFunc done, void *data)
{
    static const RowOp op = {ROW_READS, sizeof(StatusAsk), ask_members, run_combined};

    row_run(forge, repo, &op, &(StatusAsk){.oid = oid}, done, data);
}

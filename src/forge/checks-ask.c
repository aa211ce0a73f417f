/* SPDX-License-Identifier: Apache-2.0 */
/* What others ask of suites, and what pull requests ask by what they are. */
#include <string.h>

#include "base/err.h"
#include "base/id.h"
#include "forge/checks-private.h"
#include "forge/thread-private.h"

/* ---- making one ---- */

typedef struct SuiteNew {
    const char *base_oid, *head_oid, *actor, *purpose;
    gint64 number;
} SuiteNew;

static bool
insert(RowJob *job, const SuiteNew *new, Json **ret_suite, GError **error)
{
    char id[ID_UUID_LEN + 1];

    id_new_uuid(id);
    if (!check_suites_prune(job, error) ||
        !db_exec(job->tx,
                 "INSERT INTO check_suites (id, repository_id, number, base_oid, head_oid, tree_oid, state, "
                 "tries, purpose, actor, created_us, ended_us) VALUES (?, ?, ?, ?, ?, '', 'queued', 0, ?, ?, "
                 "?, 0)",
                 DB_ARGS(db_text(id), db_text(job->repository_id), db_int(new->number),
                         db_text(new->base_oid), db_text(new->head_oid), db_text(new->purpose),
                         db_text(new->actor), db_int(job->now_us)),
                 error))
        return false;
    if (ret_suite != NULL)
        *ret_suite = suite_load(job, id, error);
    return ret_suite == NULL || *ret_suite != NULL;
}

static bool
run_add(RowJob *job, const void *data, Json **ret_value, GError **error)
{
    const SuiteSpec *spec = data;
    SuiteNew new = {spec->base_oid, spec->head_oid, spec->actor, "asked", spec->number};
    gint64 waiting = 0;

    if (!row_check_oid("the base", spec->base_oid, error) ||
        !row_check_oid("the head", spec->head_oid, error) ||
        !row_ask_int(job, "SELECT COUNT(*) FROM check_suites WHERE state = 'queued'", DB_NO_ARGS, &waiting,
                     error))
        return false;
    if (waiting >= CHECKS_QUEUE_MAX)
        return err_set(error, ERR_LIMIT, "%d suites of checks are waiting already", CHECKS_QUEUE_MAX);
    return insert(job, &new, ret_value, error);
}

typedef struct Asking {
    Checks *checks;
    Repo *repo;
    ForgeJsonFunc done;
    void *data;
} Asking;

static Asking *
asking(Checks *checks, Repo *repo, ForgeJsonFunc done, void *data)
{
    Asking *a = g_new(Asking, 1);

    *a = (Asking){checks_ref(checks), repo_ref(repo), done, data};
    return a;
}

static void
asking_free(Asking *a)
{
    checks_unref(a->checks);
    repo_unref(a->repo);
    g_free(a);
}

static void
on_added(Json *value, const GError *error, void *data)
{
    Asking *a = data;

    a->done(value, error, a->data);
    checks_scan(a->checks);
    asking_free(a);
}

void
checks_add(Checks *checks, Repo *repo, const SuiteSpec *spec, ForgeJsonFunc done, void *data)
{
    static const RowMember members[] = {ROW_AT_TEXT(SuiteSpec, base_oid), ROW_AT_TEXT(SuiteSpec, head_oid),
                                        ROW_AT_TEXT(SuiteSpec, actor), ROW_AT_END};
    static const RowOp op = {ROW_WRITES, sizeof(SuiteSpec), members, run_add};

    row_run(checks->spec.forge, repo, &op, spec, on_added, asking(checks, repo, done, data));
}

/* ---- ending one ---- */

static bool
cancel(RowJob *job, const char *id, const char *actor, const char *why, GError **error)
{
    g_autoptr(Json) suite = suite_load(job, id, error);

    if (suite == NULL)
        return false;
    return suite_put_end(job, &(SuiteEnd){.id = id, .state = "cancelled", .problem = why}, suite, actor,
                         error);
}

typedef struct SuiteCancel {
    const char *id, *actor;
} SuiteCancel;

/* Without it an entry would be built anew, as often as somebody likes. */
static bool
check_free(RowJob *job, const char *suite_id, GError **error)
{
    gint64 entry = 0;

    return row_ask_int(job, "SELECT id FROM merges WHERE repository_id = ? AND suite_id = ? AND ended_us = 0",
                       DB_ARGS(db_text(job->repository_id), db_text(suite_id)), &entry, error) &&
           (entry == 0 ||
            err_set(error, ERR_CONFLICT,
                    "the suite is the merge queue's: take entry %" G_GINT64_FORMAT " out of it", entry));
}

static bool
run_cancel(RowJob *job, const void *data, Json **ret_value, GError **error)
{
    const SuiteCancel *c = data;
    g_autoptr(Json) suite = suite_load(job, c->id, error);

    if (suite == NULL)
        return false;
    if (row_int(suite, "ended_us") != 0)
        return err_set(error, ERR_CONFLICT, "the suite has ended: %s", row_text(suite, "state"));
    if (strcmp(c->actor, "coop") != 0 && !check_free(job, c->id, error))
        return false;
    if (!cancel(job, c->id, c->actor, "it was cancelled", error))
        return false;
    *ret_value = suite_load(job, c->id, error);
    return *ret_value != NULL;
}

static void
on_cancelled(Json *value, const GError *error, void *data)
{
    Asking *a = data;

    a->done(value, error, a->data);
    if (error == NULL)
        checks_cancelled(a->checks, a->repo, row_text(value, "id"));
    asking_free(a);
}

void
checks_cancel(Checks *checks, Repo *repo, const char *suite_id, const char *actor, ForgeJsonFunc done,
              void *data)
{
    static const RowMember members[] = {ROW_AT_TEXT(SuiteCancel, id), ROW_AT_TEXT(SuiteCancel, actor),
                                        ROW_AT_END};
    static const RowOp op = {ROW_WRITES, sizeof(SuiteCancel), members, run_cancel};

    row_run(checks->spec.forge, repo, &op, &(SuiteCancel){suite_id, actor}, on_cancelled,
            asking(checks, repo, done, data));
}

/* ---- reading ---- */

static bool
add_runs(RowJob *job, Json *suite, GError **error)
{
    g_auto(RowWhere) where = ROW_WHERE_INIT;

    row_where_add(&where, "k.suite = ?", DB_ARGS(db_text(row_text(suite, "id"))));
    g_autoptr(Json)
        list = row_list(job, &check_table, &where, "k.id", (ForgePage){.per_page = PLAN_COMMANDS_MAX}, error);

    if (list == NULL)
        return false;
    json_object_set(suite, "checks", json_object_get(list, "items"));
    return true;
}

static bool
add_receipt(RowJob *job, Json *suite, GError **error)
{
    g_autoptr(DbRows) rows = db_query(job->tx, "SELECT receipt FROM check_suites WHERE id = ?",
                                      DB_ARGS(db_text(row_text(suite, "id"))), error);
    bool found = false;

    if (rows == NULL || !db_rows_next(rows, &found, error))
        return false;
    const char *text = found ? db_rows_text(rows, 0) : NULL;

    json_object_set_new(suite, "receipt", text != NULL ? json_string(text) : json_null());
    return true;
}

static bool
run_get(RowJob *job, const void *data, Json **ret_value, GError **error)
{
    g_autoptr(Json) suite = suite_load(job, *(const char *const *)data, error);

    if (suite == NULL || !add_runs(job, suite, error) || !add_receipt(job, suite, error))
        return false;
    *ret_value = g_steal_pointer(&suite);
    return true;
}

void
checks_get(Checks *checks, Repo *repo, const char *suite_id, ForgeJsonFunc done, void *data)
{
    static const RowMember members[] = {{ROW_POINTER_TEXT, 0}, ROW_AT_END};
    static const RowOp op = {ROW_READS, sizeof(const char *), members, run_get};

    row_run(checks->spec.forge, repo, &op, &suite_id, done, data);
}

static bool
run_list(RowJob *job, const void *data, Json **ret_value, GError **error)
{
    const SuiteFilter *f = data;
    g_auto(RowWhere) where = ROW_WHERE_INIT;

    row_where_add(&where, "s.repository_id = ?", DB_ARGS(db_text(job->repository_id)));
    if (f->number > 0)
        row_where_add(&where, "s.number = ?", DB_ARGS(db_int(f->number)));
    if (f->head_oid != NULL)
        row_where_add(&where, "s.head_oid = ?", DB_ARGS(db_text(f->head_oid)));
    *ret_value = row_list(job, &suite_table, &where, "s.created_us DESC, s.id", f->page, error);
    return *ret_value != NULL;
}

void
checks_list(Checks *checks, Repo *repo, const SuiteFilter *filter, ForgeJsonFunc done, void *data)
{
    static const RowMember members[] = {ROW_AT_TEXT(SuiteFilter, head_oid), ROW_AT_END};
    static const RowOp op = {ROW_READS, sizeof(SuiteFilter), members, run_list};

    row_run(checks->spec.forge, repo, &op, filter, done, data);
}

/* ---- pull requests ---- */

/* Those of it that are live; but for one that is about what it is now. */
static bool
cancel_older(RowJob *job, const Json *pull, const char *keep_head, const char *actor, GError **error)
{
    g_auto(RowWhere) where = ROW_WHERE_INIT;
    size_t i;
    Json *suite;

    row_where_add(&where,
                  "s.repository_id = ? AND s.number = ? AND s.purpose = 'pull' AND s.state IN ('queued', "
                  "'running') AND (s.head_oid <> ? OR s.created_us < ?)",
                  DB_ARGS(db_text(job->repository_id), db_int(row_int(pull, "number")), db_text(keep_head),
                          db_int(row_int(pull, "based_us"))));
    g_autoptr(Json)
        list = row_list(job, &suite_table, &where, "s.id", (ForgePage){.per_page = THREAD_PAGE_MAX}, error);

    if (list == NULL)
        return false;
    json_array_foreach(json_object_get(list, "items"), i, suite)
    {
        if (!cancel(job, row_text(suite, "id"), actor, "the pull request has changed", error))
            return false;
    }
    return true;
}

bool
check_suite_want(RowJob *job, gint64 number, const char *actor, GError **error)
{
    g_autoptr(Json) pull = thread_load(job, number, "pull", error);
    gint64 there = 0;

    if (pull == NULL)
        return false;
    const char *head = row_text(pull, "head_oid");
    bool wanted = strcmp(row_text(pull, "state"), "open") == 0 && !row_is(pull, "draft");

    if (!cancel_older(job, pull, wanted ? head : "", actor, error))
        return false;
    if (!wanted)
        return true;
    if (!row_ask_int(
            job,
            "SELECT COUNT(*) FROM check_suites WHERE repository_id = ? AND number = ? AND "
            "head_oid = ? AND created_us >= ? AND state IN ('queued', 'running', 'passed', 'failed')",
            DB_ARGS(db_text(job->repository_id), db_int(number), db_text(head),
                    db_int(row_int(pull, "based_us"))),
            &there, error))
        return false;
    SuiteNew new = {row_text(pull, "base_oid"), head, actor, "pull", number};

    return there > 0 || insert(job, &new, NULL, error);
}

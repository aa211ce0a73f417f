/* SPDX-License-Identifier: Apache-2.0 */
#include "forge/check-private.h"

#include <string.h>

#include "base/err.h"

static const char *const statuses[] = {"queued", "in_progress", "completed", NULL};
static const char *const conclusions[] = {"success",   "failure",         "neutral", "cancelled", "skipped",
                                          "timed_out", "action_required", "stale",   NULL};

static const RowColumn columns[] = {
    {"id", ROW_INT, "k.id"},
    {"repository_id", ROW_TEXT, "k.repository_id"},
    {"suite", ROW_TEXT, "k.suite"},
    {"name", ROW_TEXT, "k.name"},
    {"head_oid", ROW_TEXT, "k.head_oid"},
    {"seen_by", ROW_TEXT, "k.seen_by"},
    {"author", ROW_PERSON, "k.author"},
    {"status", ROW_TEXT, "k.status"},
    {"conclusion", ROW_TEXT, "k.conclusion"},
    {"external_id", ROW_TEXT, "k.external_id"},
    {"details_url", ROW_TEXT, "k.details_url"},
    {"title", ROW_TEXT, "k.title"},
    {"summary", ROW_TEXT, "k.summary"},
    {"output", ROW_TEXT, "k.output"},
    {"box_id", ROW_TEXT, "k.box_id"},
    {"command", ROW_TEXT, "k.command"},
    {"exit_code", ROW_INT, "k.exit_code"},
    {"reason", ROW_TEXT, "k.reason"},
    {"output_sha256", ROW_TEXT, "k.output_sha256"},
    {"output_bytes", ROW_INT, "k.output_bytes"},
    {"tests", ROW_JSON, "k.tests"},
    {"started_us", ROW_INT, "k.started_us"},
    {"completed_us", ROW_INT, "k.completed_us"},
    {"updated_us", ROW_INT, "k.updated_us"},
};
const RowTable check_table = {"check run", "checks k", columns, G_N_ELEMENTS(columns)};

Json *
check_run_load(RowJob *job, gint64 id, GError **error)
{
    return row_get(job, &check_table, "k.id = ? AND k.repository_id = ?",
                   DB_ARGS(db_int(id), db_text(job->repository_id)), error);
}

static bool
check_texts(const CheckRunSpec *spec, GError **error)
{
    const struct {
        const char *what, *text;
        size_t max;
    } rows[] = {
        {"the name", spec->name, CHECK_NAME_MAX},
        {"the external id", spec->external_id, CHECK_NAME_MAX},
        {"the details", spec->details_url, CHECK_URL_MAX},
        {"the title", spec->title, CHECK_TITLE_MAX},
        {"the summary", spec->summary, CHECK_TEXT_MAX},
        {"the text", spec->output, CHECK_TEXT_MAX},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(rows); i++) {
        if (!row_check_text(rows[i].what, rows[i].text, rows[i].max, ROW_TEXT_MAY_BE_EMPTY, error))
            return false;
    }
    return (spec->status == NULL || row_check_word("the status", spec->status, statuses, error)) &&
           (spec->conclusion == NULL ||
            row_check_word("the conclusion", spec->conclusion, conclusions, error));
}

static bool
insert(RowJob *job, const CheckRunSpec *spec, gint64 *ret_id, GError **error)
{
    gint64 count = 0;

    if (!row_check_text("the name", spec->name, CHECK_NAME_MAX, ROW_TEXT_NEEDED, error) ||
        !row_check_oid("the head", spec->head_oid, error) ||
        !row_ask_int(job, "SELECT COUNT(*) FROM checks WHERE repository_id = ? AND head_oid = ?",
                     DB_ARGS(db_text(job->repository_id), db_text(spec->head_oid)), &count, error))
        return false;
    if (count >= CHECKS_OF_COMMIT_MAX)
        return err_set(error, ERR_LIMIT, "the commit has %d check runs already", CHECKS_OF_COMMIT_MAX);
    return row_next_id(job, "checks", ret_id, error) &&
           db_exec(job->tx,
                   "INSERT INTO checks (id, repository_id, name, head_oid, seen_by, author, status, "
                   "started_us, completed_us, updated_us) VALUES (?, ?, ?, ?, 'claimed', ?, 'queued', 0, 0, "
                   "0)",
                   DB_ARGS(db_int(*ret_id), db_text(job->repository_id), db_text(spec->name),
                           db_text(spec->head_oid), db_text(spec->actor)),
                   error);
}

/* The columns that go together: a conclusion means completed, and completed needs one. */
typedef struct Progress {
    const char *status, *conclusion;
    gint64 started_us, completed_us;
} Progress;

static bool
progress_of(RowJob *job, const CheckRunSpec *spec, const Json *old, Progress *ret, GError **error)
{
    Progress p = {.status = spec->status != NULL ? spec->status : row_text(old, "status"),
                  .conclusion = spec->conclusion,
                  .started_us = spec->started_us != 0 ? spec->started_us : row_int(old, "started_us"),
                  .completed_us = spec->completed_us};

    if (p.conclusion != NULL)
        p.status = "completed";
    bool is_completed = strcmp(p.status, "completed") == 0;

    if (is_completed && p.conclusion == NULL)
        p.conclusion = row_text(old, "conclusion");
    if (is_completed && p.conclusion == NULL)
        return err_set(error, ERR_INVALID, "a completed check run needs a conclusion");
    if (p.started_us == 0 && strcmp(p.status, "queued") != 0)
        p.started_us = job->now_us;
    if (p.completed_us == 0)
        p.completed_us = row_int(old, "completed_us") != 0 ? row_int(old, "completed_us") : job->now_us;
    if (!is_completed)
        p.completed_us = 0;
    *ret = p;
    return true;
}

static bool
update(RowJob *job, const CheckRunSpec *spec, const Json *old, GError **error)
{
    Progress p = {0};

    return progress_of(job, spec, old, &p, error) &&
           db_exec(job->tx,
                   "UPDATE checks SET name = COALESCE(?, name), status = ?, conclusion = ?, "
                   "external_id = COALESCE(?, external_id), details_url = COALESCE(?, details_url), "
                   "title = COALESCE(?, title), summary = COALESCE(?, summary), "
                   "output = COALESCE(?, output), started_us = ?, completed_us = ?, updated_us = ? "
                   "WHERE id = ?",
                   DB_ARGS(db_text(spec->name), db_text(p.status), db_text(p.conclusion),
                           db_text(spec->external_id), db_text(spec->details_url), db_text(spec->title),
                           db_text(spec->summary), db_text(spec->output), db_int(p.started_us),
                           db_int(p.completed_us), db_int(row_later_us(job, old)),
                           db_int(row_int(old, "id"))),
                   error);
}

static bool
run_put(RowJob *job, const void *data, Json **ret_value, GError **error)
{
    const CheckRunSpec *spec = data;
    gint64 id = spec->id;

    if (!check_texts(spec, error) || (id == 0 && !insert(job, spec, &id, error)))
        return false;
    g_autoptr(Json) old = check_run_load(job, id, error);

    if (old == NULL)
        return false;
    if (strcmp(row_text(old, "seen_by"), "coop") == 0)
        return err_set(error, ERR_DENIED, "what Coop saw itself is not changed by anybody");
    if (!update(job, spec, old, error))
        return false;
    *ret_value = check_run_load(job, id, error);
    return *ret_value != NULL &&
           row_event(job, "check.reported", spec->actor, NULL,
                     json_pack("{s:I, s:s, s:s, s:s, s:O, s:s, s:s}", "check_id", (json_int_t)id, "name",
                               row_text(*ret_value, "name"), "head_oid", row_text(*ret_value, "head_oid"),
                               "status", row_text(*ret_value, "status"), "conclusion",
                               json_object_get(*ret_value, "conclusion"), "seen_by", "claimed", "action",
                               spec->id == 0 ? "created" : "updated"),
                     error);
}

bool
check_row_put(DbTx *tx, const char *repository_id, CheckRow *row, GError **error)
{
    g_auto(RowJob) job = {0};

    row_job_init(&job, tx, repository_id);
    if (row->id == 0 && !row_next_id(&job, "checks", &row->id, error))
        return false;
    return db_exec(
        tx,
        "INSERT INTO checks (id, repository_id, suite, name, head_oid, seen_by, author, status, "
        "conclusion, details_url, title, summary, output, box_id, command, exit_code, reason, "
        "output_sha256, output_bytes, tests, started_us, completed_us, updated_us) VALUES (?, ?, ?, ?, ?, "
        "'coop', ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (id) DO UPDATE SET status = "
        "excluded.status, "
        "conclusion = excluded.conclusion, details_url = excluded.details_url, "
        "title = excluded.title, summary = excluded.summary, output = excluded.output, "
        "box_id = excluded.box_id, exit_code = excluded.exit_code, reason = excluded.reason, "
        "output_sha256 = excluded.output_sha256, output_bytes = excluded.output_bytes, "
        "tests = excluded.tests, "
        "started_us = excluded.started_us, completed_us = excluded.completed_us, "
        "updated_us = excluded.updated_us",
        DB_ARGS(db_int(row->id), db_text(repository_id), db_text(row->suite), db_text(row->name),
                db_text(row->head_oid), db_text(row->author != NULL ? row->author : "coop"),
                db_text(row->status), db_text(row->conclusion), db_text(row->details_url),
                db_text(row->title), db_text(row->summary), db_text(row->output), db_text(row->box_id),
                db_text(row->command), row->has_exit_code ? db_int(row->exit_code) : db_null(),
                db_text(row->reason), db_text(row->output_sha256),
                row->output_sha256 != NULL ? db_int(row->output_bytes) : db_null(), db_text(row->tests),
                db_int(row->started_us), db_int(row->completed_us), db_int(job.now_us)),
        error);
}

static bool
run_list(RowJob *job, const void *data, Json **ret_value, GError **error)
{
    const CheckRunFilter *filter = data;
    g_auto(RowWhere) where = ROW_WHERE_INIT;

    if (filter->id > 0) {
        *ret_value = check_run_load(job, filter->id, error);
        return *ret_value != NULL;
    }
    if (!row_check_oid("the commit", filter->oid, error))
        return false;
    row_where_add(&where, "k.repository_id = ? AND k.head_oid = ?",
                  DB_ARGS(db_text(job->repository_id), db_text(filter->oid)));
    if (filter->name != NULL)
        row_where_add(&where, "k.name = ?", DB_ARGS(db_text(filter->name)));
    if (filter->status != NULL)
        row_where_add(&where, "k.status = ?", DB_ARGS(db_text(filter->status)));
    if (!filter->all)
        row_where_add(
            &where,
            "NOT EXISTS (SELECT 1 FROM checks o WHERE o.repository_id = k.repository_id AND "
            "o.head_oid = k.head_oid AND o.name = k.name AND o.seen_by = k.seen_by AND o.id > k.id)",
            DB_NO_ARGS);
    *ret_value = row_list(job, &check_table, &where, "k.id", filter->page, error);
    return *ret_value != NULL;
}

void
check_run_put(Forge *forge, Repo *repo, const CheckRunSpec *spec, ForgeJsonFunc done, void *data)
{
    static const RowMember members[] = {ROW_AT_TEXT(CheckRunSpec, actor),
                                        ROW_AT_TEXT(CheckRunSpec, name),
                                        ROW_AT_TEXT(CheckRunSpec, head_oid),
                                        ROW_AT_TEXT(CheckRunSpec, status),
                                        ROW_AT_TEXT(CheckRunSpec, conclusion),
                                        ROW_AT_TEXT(CheckRunSpec, external_id),
                                        ROW_AT_TEXT(CheckRunSpec, details_url),
                                        ROW_AT_TEXT(CheckRunSpec, title),
                                        ROW_AT_TEXT(CheckRunSpec, summary),
                                        ROW_AT_TEXT(CheckRunSpec, output),
                                        ROW_AT_END};
    static const RowOp op = {ROW_WRITES, sizeof(CheckRunSpec), members, run_put};

    row_run(forge, repo, &op, spec, done, data);
}

void
check_run_list(Forge *forge, Repo *repo, const CheckRunFilter *filter, ForgeJsonFunc done, void *data)
{
    static const RowMember members[] = {ROW_AT_TEXT(CheckRunFilter, oid), ROW_AT_TEXT(CheckRunFilter, name),
                                        ROW_AT_TEXT(CheckRunFilter, status), ROW_AT_END};
    static const RowOp op = {ROW_READS, sizeof(CheckRunFilter), members, run_list};

    row_run(forge, repo, &op, filter, done, data);
}

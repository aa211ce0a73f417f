/* SPDX-License-Identifier: Apache-2.0 */
#include "github/work.h"

#include <string.h>

#include "base/clock.h"
#include "base/err.h"
#include "github/text.h"

void
work_row_free(WorkRow *row)
{
    if (row == NULL)
        return;
    g_free(row->repository_id);
    g_free(row->key);
    g_free(row->kind);
    json_decref(row->body);
    json_decref(row->answer);
    json_decref(row->above);
    g_free(row);
}

static Json *
decode(const char *text)
{
    return text != NULL ? json_decode(text, strlen(text), NULL) : NULL;
}

#define COLUMNS                                                                                              \
    "id, repository_id, key, kind, body, answer, state, tries, "                                             \
    "(SELECT a.answer FROM upstream_work a WHERE a.key = w.after_key)"

static WorkRow *
read_row(DbRows *rows)
{
    WorkRow *row = g_new0(WorkRow, 1);

    *row = (WorkRow){.id = db_rows_int(rows, 0),
                     .repository_id = g_strdup(db_rows_text(rows, 1)),
                     .key = g_strdup(db_rows_text(rows, 2)),
                     .kind = g_strdup(db_rows_text(rows, 3)),
                     .body = decode(db_rows_text(rows, 4)),
                     .answer = decode(db_rows_text(rows, 5)),
                     .was_sent = strcmp(db_rows_text(rows, 6), "sent") == 0,
                     .is_pending = strcmp(db_rows_text(rows, 6), "sent") == 0 ||
                                   strcmp(db_rows_text(rows, 6), "waiting") == 0,
                     .tries = (guint)db_rows_int(rows, 7),
                     .above = decode(db_rows_text(rows, 8))};
    return row;
}

/* At most `max` rows of them. */
static GPtrArray *
read_rows(DbTx *tx, const char *sql, const DbValue *args, size_t n_args, GError **error)
{
    g_autoptr(GPtrArray) list = g_ptr_array_new_with_free_func((GDestroyNotify)work_row_free);
    g_autoptr(DbRows) rows = db_query(tx, sql, args, n_args, error);
    bool more = rows != NULL;

    while (more) {
        if (!db_rows_next(rows, &more, error))
            return NULL;
        if (more)
            g_ptr_array_add(list, read_row(rows));
    }
    return rows != NULL ? g_steal_pointer(&list) : NULL;
}

/* ---- asking ---- */

static bool
read_seq(DbTx *tx, const char *key, gint64 *ret_seq, GError **error)
{
    g_autoptr(DbRows)
        rows = db_query(tx, "SELECT body FROM upstream_work WHERE key = ?", DB_ARGS(db_text(key)), error);
    bool more = false;

    if (rows == NULL || !db_rows_next(rows, &more, error))
        return false;
    g_autoptr(Json) body = more ? decode(db_rows_text(rows, 0)) : NULL;

    *ret_seq = more ? github_number(body, "seq") : -1;
    return true;
}

bool
work_ask(DbTx *tx, const WorkAsk *ask, GError **error)
{
    g_autofree char *key = g_strconcat(ask->kind, ":", ask->repository_id, ":", ask->name, NULL);
    g_autofree char *body = json_encode(ask->body);
    gint64 now = clock_wall_us(), seq;

    if (!read_seq(tx, key, &seq, error))
        return false;
    if (seq >= github_number(ask->body, "seq"))
        return true;
    return db_exec(
        tx,
        "INSERT INTO upstream_work (id, repository_id, key, kind, after_key, body, state, tries, next_us, "
        "created_us) SELECT COALESCE(MAX(id), 0) + 1, ?, ?, ?, ?, ?, 'waiting', 0, ?, ? FROM upstream_work "
        "WHERE TRUE "
        "ON CONFLICT (key) DO UPDATE SET body = excluded.body, after_key = excluded.after_key, "
        "state = CASE WHEN upstream_work.state IN ('sent', 'failed') THEN 'sent' ELSE 'waiting' END, "
        "tries = 0, next_us = excluded.next_us, problem = NULL",
        DB_ARGS(db_text(ask->repository_id), db_text(key), db_text(ask->kind), db_text(ask->after),
                db_text(body), db_int(now), db_int(now)),
        error);
}

/* ---- doing ---- */

static bool
next_time(DbTx *tx, gint64 *ret_next_us, GError **error)
{
    g_autoptr(DbRows) rows = db_query(
        tx, "SELECT MIN(next_us) FROM upstream_work WHERE state IN ('waiting', 'sent')", DB_NO_ARGS, error);
    bool more = false;

    if (rows == NULL || !db_rows_next(rows, &more, error))
        return false;
    *ret_next_us = more && !db_rows_is_null(rows, 0) ? db_rows_int(rows, 0) : 0;
    return true;
}

bool
work_take(DbTx *tx, gint64 now_us, WorkRow **ret_row, gint64 *ret_next_us, GError **error)
{
    g_autoptr(GPtrArray) due = read_rows(
        tx,
        "SELECT " COLUMNS " FROM upstream_work w WHERE state IN ('waiting', 'sent') AND next_us <= ? AND "
        "NOT EXISTS (SELECT 1 FROM upstream_work p WHERE p.key = w.after_key AND p.state IN ('waiting', "
        "'sent')) ORDER BY next_us, id LIMIT 1",
        DB_ARGS(db_int(now_us)), error);

    *ret_row = NULL;
    if (due == NULL || !next_time(tx, ret_next_us, error))
        return false;
    if (due->len == 0)
        return true;
    WorkRow *row = g_ptr_array_steal_index(due, 0);

    *ret_row = row;
    return db_exec(tx, "UPDATE upstream_work SET state = 'sent' WHERE id = ?", DB_ARGS(db_int(row->id)),
                   error);
}

/* The state only if nothing newer was asked for.  What has not ended well may have been done all the same,
 * by a try whose answer was lost: it stays marked. */
bool
work_end(DbTx *tx, const WorkRow *row, const WorkResult *result, GError **error)
{
    static const char *const states[] = {
        [WORK_DONE] = "done", [WORK_FAILED] = "failed", [WORK_AGAIN] = "sent"};
    g_autofree char *answer = result->answer != NULL ? json_encode(result->answer) : NULL;
    gint64 seq;

    if (!read_seq(tx, row->key, &seq, error))
        return false;
    bool is_newest = seq <= github_number(row->body, "seq");
    const char *newer = result->end == WORK_DONE ? "waiting" : "sent";

    if (result->item.kind != NULL && !upstream_item_put(tx, row->repository_id, &result->item, error))
        return false;
    return db_exec(tx,
                   "UPDATE upstream_work SET state = ?, tries = ?, next_us = ?, problem = ?, "
                   "answer = COALESCE(?, answer) WHERE id = ?",
                   DB_ARGS(db_text(is_newest ? states[result->end] : newer),
                           db_int(is_newest ? row->tries + result->counts : 0),
                           db_int(result->end == WORK_AGAIN ? result->next_us : clock_wall_us()),
                           db_text(result->problem), db_text(answer), db_int(row->id)),
                   error);
}

/* ---- pull requests there ---- */

bool
work_set_answer(DbTx *tx, const WorkRow *row, GError **error)
{
    g_autofree char *answer = json_encode(row->answer);

    return db_exec(tx, "UPDATE upstream_work SET answer = ? WHERE id = ?",
                   DB_ARGS(db_text(answer), db_int(row->id)), error);
}

bool
work_find_pull(DbTx *tx, const char *repository_id, gint64 upstream_number, WorkRow **ret_row, GError **error)
{
    g_autoptr(GPtrArray)
        list = read_rows(tx,
                         "SELECT " COLUMNS " FROM upstream_work w WHERE repository_id = ? AND "
                         "kind = 'pull' AND answer IS NOT NULL ORDER BY id DESC LIMIT ?",
                         DB_ARGS(db_text(repository_id), db_int(WORK_PULLS_MAX)), error);

    *ret_row = NULL;
    for (guint i = 0; list != NULL && i < list->len && *ret_row == NULL; i++) {
        const WorkRow *row = list->pdata[i];

        if (github_number(row->answer, "number") == upstream_number)
            *ret_row = g_ptr_array_steal_index(list, i);
    }
    return list != NULL;
}

GPtrArray *
work_open_pulls(DbTx *tx, GError **error)
{
    GPtrArray *list = read_rows(tx,
                                "SELECT " COLUMNS
                                " FROM upstream_work w WHERE kind = 'pull' AND answer IS NOT "
                                "NULL ORDER BY id DESC LIMIT ?",
                                DB_ARGS(db_int(WORK_PULLS_MAX)), error);

    for (guint i = 0; list != NULL && i < list->len;) {
        const WorkRow *row = list->pdata[i];

        if (g_strcmp0(github_text(row->answer, "state"), "open") == 0)
            i++;
        else
            g_ptr_array_remove_index(list, i);
    }
    return list;
}

/* ---- showing ---- */

static Json *
list_json(DbTx *tx, GError **error)
{
    g_autoptr(DbRows) rows = db_query(tx,
                                      "SELECT id, kind, repository_id, state, tries, problem, answer, body "
                                      "FROM upstream_work ORDER BY id DESC LIMIT ?",
                                      DB_ARGS(db_int(WORK_LIST_MAX)), error);
    g_autoptr(Json) list = json_array();
    bool more = rows != NULL;

    while (more) {
        if (!db_rows_next(rows, &more, error))
            return NULL;
        if (more)
            json_array_append_new(
                list,
                json_pack("{s:I, s:s, s:s, s:s, s:I, s:s?, s:o?, s:o?}", "id",
                          (json_int_t)db_rows_int(rows, 0), "kind", db_rows_text(rows, 1), "repository_id",
                          db_rows_text(rows, 2), "state", db_rows_text(rows, 3), "tries",
                          (json_int_t)db_rows_int(rows, 4), "problem", db_rows_text(rows, 5), "answer",
                          decode(db_rows_text(rows, 6)), "body", decode(db_rows_text(rows, 7))));
    }
    return rows != NULL ? g_steal_pointer(&list) : NULL;
}

Json *
work_json(DbTx *tx, GError **error)
{
    g_autoptr(Json) list = list_json(tx, error);
    g_autoptr(DbRows)
        rows = db_query(tx,
                        "SELECT COALESCE(SUM(CASE WHEN state IN ('waiting', 'sent') THEN 1 ELSE 0 END), 0), "
                        "COALESCE(SUM(CASE WHEN state = 'failed' THEN 1 ELSE 0 END), 0) FROM upstream_work",
                        DB_NO_ARGS, error);
    bool more = false;

    if (list == NULL || rows == NULL || !db_rows_next(rows, &more, error))
        return NULL;
    return json_pack("{s:O, s:I, s:I}", "work", list, "waiting", (json_int_t)db_rows_int(rows, 0), "failed",
                     (json_int_t)db_rows_int(rows, 1));
}

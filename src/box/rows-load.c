/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "box/rows.h"
#include "box/state.h"
#include "json/json.h"

/* What a query gives, row by row; false from `func` stops it. */
typedef bool (*RowFunc)(DbRows *rows, void *data, GError **error);

static bool
each_row(DbTx *tx, const char *sql, const DbValue *args, size_t n_args, RowFunc func, void *data,
         GError **error)
{
    g_autoptr(DbRows) rows = db_query(tx, sql, args, n_args, error);
    bool more = true;

    if (rows == NULL)
        return false;
    while (db_rows_next(rows, &more, error)) {
        if (!more)
            return true;
        if (!func(rows, data, error))
            return false;
    }
    return false;
}

void
loaded_box_free(LoadedBox *loaded)
{
    box_row_clear(&loaded->row);
    g_ptr_array_unref(loaded->commands);
    g_free(loaded);
}

/* Entries that are no text are left out: they were checked before they came here. */
static char **
parse_env(const char *text)
{
    g_autoptr(Json) list = json_decode(text, strlen(text), NULL);
    g_autoptr(GPtrArray) env = g_ptr_array_new();
    size_t i;
    Json *item;

    json_array_foreach(list, i, item)
    {
        if (json_is_string(item))
            g_ptr_array_add(env, g_strdup(json_string_value(item)));
    }
    g_ptr_array_add(env, NULL);
    return (char **)g_ptr_array_steal(env, NULL);
}

static void
read_facts(DbRows *rows, BoxFacts *f)
{
    f->owner = g_strdup(db_rows_text(rows, 2));
    f->name = g_strdup(db_rows_text(rows, 3));
    f->template = g_strdup(db_rows_text(rows, 4));
    f->template_hash = g_strdup(db_rows_text(rows, 5));
    f->agent_id = g_strdup(db_rows_text(rows, 6));
    f->task_id = g_strdup(db_rows_text(rows, 7));
    f->repo_url = g_strdup(db_rows_text(rows, 8));
    f->lease = g_strdup(db_rows_text(rows, 9));
    f->metadata = g_strdup(db_rows_text(rows, 10));
    f->env = parse_env(db_rows_text(rows, 11));
    f->user = g_strdup(db_rows_text(rows, 12));
    f->workdir = g_strdup(db_rows_text(rows, 13));
    f->limits = (KeeperLimits){.memory_bytes = (uint64_t)db_rows_int(rows, 16),
                               .disk_bytes = (uint64_t)db_rows_int(rows, 17),
                               .inodes = (uint32_t)db_rows_int(rows, 18),
                               .pids = (uint32_t)db_rows_int(rows, 19),
                               .cpu_milli = (uint32_t)db_rows_int(rows, 20)};
    f->from_pool = db_rows_int(rows, 22) != 0;
    f->keep = db_rows_int(rows, 23) != 0;
    f->squad_id = g_strdup(db_rows_text(rows, 34));
}

static bool
add_box(DbRows *rows, void *data, GError **error)
{
    LoadedBox *loaded = g_new0(LoadedBox, 1);
    BoxRow *row = &loaded->row;

    loaded->commands = g_ptr_array_new_with_free_func((GDestroyNotify)command_row_unref);
    g_strlcpy(row->uuid, db_rows_text(rows, 0), sizeof row->uuid);
    g_strlcpy(row->id, db_rows_text(rows, 1), sizeof row->id);
    read_facts(rows, &row->facts);
    if (!box_state_parse(db_rows_text(rows, 14), &row->state))
        row->state = BOX_READY;
    row->reason = g_strdup(db_rows_text(rows, 15));
    row->degraded = (guint32)db_rows_int(rows, 21);
    row->life = (BoxLife){.lifetime_ms = db_rows_int(rows, 24),
                          .idle_ms = db_rows_int(rows, 25),
                          .born_us = db_rows_int(rows, 26),
                          .deadline_us = db_rows_int(rows, 27)};
    row->executions = (guint64)db_rows_int(rows, 28);
    row->last_run = (guint32)MAX(db_rows_int(rows, 29), db_rows_int(rows, 33));
    row->created_us = db_rows_int(rows, 30);
    row->updated_us = db_rows_int(rows, 31);
    row->last_used_us = db_rows_int(rows, 32);
    g_ptr_array_add(data, loaded);
    return true;
}

static CommandRow *
read_command(DbRows *rows)
{
    CommandRow *c = command_row_new();

    g_strlcpy(c->box_id, db_rows_text(rows, 0), sizeof c->box_id);
    c->run = (guint32)db_rows_int(rows, 1);
    c->command = g_strdup(db_rows_text(rows, 2));
    c->argv = g_strdup(db_rows_text(rows, 3));
    c->user = g_strdup(db_rows_text(rows, 4));
    c->cwd = g_strdup(db_rows_text(rows, 5));
    c->tty = db_rows_int(rows, 6) != 0;
    c->actor = g_strdup(db_rows_text(rows, 7));
    c->started_us = db_rows_int(rows, 8);
    c->task_id = g_strdup(db_rows_text(rows, 9));
    return c;
}

static bool
add_command(DbRows *rows, void *data, GError **error)
{
    g_ptr_array_add(data, read_command(rows));
    return true;
}

#define OPEN_COMMANDS                                                                                        \
    "SELECT c.box_id, c.run, c.command, c.argv, c.run_user, c.cwd, c.tty, c.actor, c.started_us, s.task_id " \
    "FROM commands c JOIN sandboxes s ON s.e2b_id = c.box_id WHERE c.ended_us = 0 "

bool
rows_load(DbTx *tx, GPtrArray *ret_boxes, GError **error)
{
    if (!each_row(
            tx,
            "SELECT id, e2b_id, owner, name, template, template_hash, agent_id, task_id, repo_url, lease, "
            "metadata, env, run_user, workdir, status, reason, memory_bytes, disk_bytes, inodes, pids, "
            "cpu_milli, degraded, from_pool, keep, lifetime_ms, idle_ms, born_mono_us, "
            "deadline_mono_us, executions, last_run, created_us, updated_us, last_used_us, "
            "(SELECT COALESCE(MAX(run), 0) FROM commands WHERE box_id = e2b_id), squad_id "
            "FROM sandboxes WHERE ended_us = 0 ORDER BY created_us, id",
            DB_NO_ARGS, add_box, ret_boxes, error))
        return false;
    for (guint i = 0; i < ret_boxes->len; i++) {
        LoadedBox *loaded = ret_boxes->pdata[i];

        if (!each_row(tx, OPEN_COMMANDS "AND c.box_id = ? ORDER BY c.run", DB_ARGS(db_text(loaded->row.id)),
                      add_command, loaded->commands, error))
            return false;
    }
    return true;
}

bool
rows_skip_runs(DbTx *tx, GPtrArray *boxes, guint32 n, GError **error)
{
    for (guint i = 0; i < boxes->len; i++) {
        BoxRow *row = &((LoadedBox *)boxes->pdata[i])->row;

        row->last_run += n;
        if (!db_exec(tx, "UPDATE sandboxes SET last_run = ? WHERE e2b_id = ?",
                     DB_ARGS(db_int(row->last_run), db_text(row->id)), error))
            return false;
    }
    return true;
}

bool
rows_end_strays(DbTx *tx, gint64 now_us, GError **error)
{
    g_autoptr(GPtrArray) strays = g_ptr_array_new_with_free_func((GDestroyNotify)command_row_unref);
    const RunEnd end = {.reason = RUN_LOST};
    bool changed;

    if (!each_row(tx, OPEN_COMMANDS "AND s.ended_us <> 0", DB_NO_ARGS, add_command, strays, error))
        return false;
    for (guint i = 0; i < strays->len; i++) {
        if (!rows_end_command(tx, strays->pdata[i], &end, NULL, now_us, &changed, error) ||
            !rows_command_ended_event(tx, strays->pdata[i], &end, error))
            return false;
    }
    return true;
}

static bool
add_text(DbRows *rows, void *data, GError **error)
{
    g_ptr_array_add(data, g_strdup(db_rows_text(rows, 0)));
    return true;
}

bool
rows_live_ids(DbTx *tx, gint64 before_us, GPtrArray *ret_ids, GError **error)
{
    return each_row(tx, "SELECT e2b_id FROM sandboxes WHERE ended_us = 0 AND created_us < ?",
                    DB_ARGS(db_int(before_us)), add_text, ret_ids, error);
}

bool
rows_mark_lost(DbTx *tx, const char *box_id, gint64 now_us, GError **error)
{
    if (!db_exec(tx,
                 "UPDATE sandboxes SET status = 'error', reason = 'lost', env = '[]', updated_us = ?, "
                 "ended_us = ? WHERE e2b_id = ? AND ended_us = 0",
                 DB_ARGS(db_int(now_us), db_int(now_us), db_text(box_id)), error))
        return false;
    return db_changes(tx) == 0 ||
           rows_event(tx, "box.failed", "coop", NULL, box_id, "{\"reason\":\"lost\"}", error);
}

bool
rows_prune(DbTx *tx, gint64 before_us, guint max, GPtrArray *ret_ids, GError **error)
{
    if (!each_row(
            tx, "SELECT e2b_id FROM sandboxes WHERE ended_us <> 0 AND ended_us < ? ORDER BY ended_us LIMIT ?",
            DB_ARGS(db_int(before_us), db_int(max)), add_text, ret_ids, error))
        return false;
    for (guint i = 0; i < ret_ids->len; i++) {
        DbValue id = db_text(ret_ids->pdata[i]);

        /* Its commands go with it. */
        if (!db_exec(tx, "DELETE FROM sandboxes WHERE e2b_id = ?", DB_ARGS(id), error))
            return false;
    }
    return true;
}

bool
rows_exists(DbTx *tx, const char *box_id, bool *ret_exists, GError **error)
{
    g_autoptr(GPtrArray) found = g_ptr_array_new_with_free_func(g_free);

    if (!each_row(tx, "SELECT e2b_id FROM sandboxes WHERE e2b_id = ?", DB_ARGS(db_text(box_id)), add_text,
                  found, error))
        return false;
    *ret_exists = found->len > 0;
    return true;
}

bool
rows_get_setting(DbTx *tx, const char *name, char **ret_value, GError **error)
{
    g_autoptr(GPtrArray) found = g_ptr_array_new_with_free_func(g_free);

    if (!each_row(tx, "SELECT value FROM settings WHERE name = ?", DB_ARGS(db_text(name)), add_text, found,
                  error))
        return false;
    *ret_value = found->len > 0 ? g_strdup(found->pdata[0]) : NULL;
    return true;
}

bool
rows_set_setting(DbTx *tx, const char *name, const char *value, GError **error)
{
    return db_exec(tx,
                   "INSERT INTO settings (name, value) VALUES (?, ?) "
                   "ON CONFLICT (name) DO UPDATE SET value = excluded.value",
                   DB_ARGS(db_text(name), db_text(value)), error);
}

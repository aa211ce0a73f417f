/* SPDX-License-Identifier: Apache-2.0 */
#include "box/rows-json.h"

#include <string.h>

#include "base/clock.h"
#include "box/state.h"

static void
set_text(Json *object, const char *name, const char *text)
{
    json_object_set_new(object, name, text != NULL ? json_string(text) : json_null());
}

static void
set_time(Json *object, const char *name, gint64 wall_us)
{
    char text[CLOCK_ISO_LEN + 1];

    if (wall_us != 0)
        clock_format_iso(wall_us, text);
    set_text(object, name, wall_us != 0 ? text : NULL);
}

/* JSON that was stored as text; damaged, it is left out. */
static void
set_json(Json *object, const char *name, const char *text)
{
    Json *value = text != NULL ? json_decode(text, strlen(text), NULL) : NULL;

    json_object_set_new(object, name, value != NULL ? value : json_null());
}

static Json *
degraded_json(guint32 degraded)
{
    const char *names[33];
    Json *list = json_array();

    box_degraded_names(degraded, names);
    for (size_t i = 0; names[i] != NULL; i++)
        json_array_append_new(list, json_string(names[i]));
    return list;
}

#define BOX_COLUMNS                                                                                          \
    "SELECT id, e2b_id, owner, name, template, template_hash, agent_id, task_id, repo_url, lease, "          \
    "metadata, "                                                                                             \
    "status, reason, memory_bytes, disk_bytes, inodes, pids, cpu_milli, degraded, from_pool, lifetime_ms, "  \
    "idle_ms, executions, created_us, updated_us, last_used_us, ended_us, squad_id FROM sandboxes "

static Json *
box_json(DbRows *rows)
{
    static const char *const texts[] = {"id",       "e2b_id",        "owner",    "name",
                                        "template", "template_hash", "agent_id", "task_id",
                                        "repo_url", "lease"};
    Json *o = json_object();
    BoxState state = BOX_ERROR;

    for (int i = 0; i < (int)G_N_ELEMENTS(texts); i++)
        set_text(o, texts[i], db_rows_text(rows, i));
    (void)box_state_parse(db_rows_text(rows, 11), &state); /* an unknown word is shown as an error */
    set_json(o, "metadata", db_rows_text(rows, 10));
    set_text(o, "state", box_state_name(state, false));
    set_text(o, "status", box_status_name(state));
    set_text(o, "reason", db_rows_text(rows, 12));
    json_object_set_new(
        o, "limits",
        json_pack("{s:I, s:I, s:I, s:I, s:I}", "memory_bytes", (json_int_t)db_rows_int(rows, 13),
                  "disk_bytes", (json_int_t)db_rows_int(rows, 14), "inodes",
                  (json_int_t)db_rows_int(rows, 15), "pids", (json_int_t)db_rows_int(rows, 16), "cpu_milli",
                  (json_int_t)db_rows_int(rows, 17)));
    json_object_set_new(o, "degraded", degraded_json((guint32)db_rows_int(rows, 18)));
    json_object_set_new(o, "from_pool", json_boolean(db_rows_int(rows, 19)));
    json_object_set_new(o, "lifetime_ms", json_integer(db_rows_int(rows, 20)));
    json_object_set_new(o, "idle_ms", json_integer(db_rows_int(rows, 21)));
    json_object_set_new(o, "executions", json_integer(db_rows_int(rows, 22)));
    set_time(o, "created_at", db_rows_int(rows, 23));
    set_time(o, "updated_at", db_rows_int(rows, 24));
    set_time(o, "last_used_at", db_rows_int(rows, 25));
    set_time(o, "ended_at", db_rows_int(rows, 26));
    set_text(o, "squad_id", db_rows_text(rows, 27));
    return o;
}

typedef struct CommandView {
    gint64 run;
    const char *command, *argv, *user, *cwd, *actor;
    bool tty;
    gint64 started_us, ended_us;
    const char *reason, *tests; /* NULL: none */
    gint64 numbers[7];          /* in the order of their names below */
} CommandView;

static Json *
show_command(const CommandView *view)
{
    static const char *const numbers[] = {"code",        "exit_code", "stdout_bytes", "stderr_bytes",
                                          "duration_us", "cpu_us",    "max_rss_bytes"};
    Json *o = json_object();

    json_object_set_new(o, "run", json_integer(view->run));
    set_text(o, "command", view->command);
    set_json(o, "argv", view->argv);
    set_text(o, "user", view->user);
    set_text(o, "cwd", view->cwd);
    json_object_set_new(o, "tty", json_boolean(view->tty));
    set_text(o, "actor", view->actor);
    set_time(o, "started_at", view->started_us);
    set_time(o, "ended_at", view->ended_us);
    set_text(o, "reason", view->reason);
    for (size_t i = 0; i < G_N_ELEMENTS(numbers); i++)
        json_object_set_new(o, numbers[i],
                            view->ended_us != 0 ? json_integer(view->numbers[i]) : json_null());
    set_json(o, "tests", view->tests);
    return o;
}

static Json *
command_json(DbRows *rows)
{
    CommandView view = {.run = db_rows_int(rows, 0),
                        .command = db_rows_text(rows, 1),
                        .argv = db_rows_text(rows, 2),
                        .user = db_rows_text(rows, 3),
                        .cwd = db_rows_text(rows, 4),
                        .tty = db_rows_int(rows, 5) != 0,
                        .actor = db_rows_text(rows, 6),
                        .started_us = db_rows_int(rows, 7),
                        .ended_us = db_rows_int(rows, 8),
                        .reason = db_rows_text(rows, 9),
                        .tests = db_rows_text(rows, 17)};

    for (int i = 0; i < (int)G_N_ELEMENTS(view.numbers); i++)
        view.numbers[i] = db_rows_int(rows, 10 + i);
    return show_command(&view);
}

Json *
command_row_json(const CommandRow *row, const RunEnd *end, gint64 ended_us)
{
    CommandView view = {.run = row->run,
                        .command = row->command,
                        .argv = row->argv,
                        .user = row->user,
                        .cwd = row->cwd,
                        .tty = row->tty,
                        .actor = row->actor,
                        .started_us = row->started_us};

    if (end != NULL) {
        gint64 numbers[] = {end->code,
                            run_end_exit_code(end),
                            (gint64)end->out_bytes,
                            (gint64)end->err_bytes,
                            (gint64)end->duration_us,
                            (gint64)end->cpu_us,
                            (gint64)end->max_rss_bytes};

        view.ended_us = ended_us;
        view.reason = run_reason_name(end->reason);
        memcpy(view.numbers, numbers, sizeof numbers);
    }
    return show_command(&view);
}

static bool
collect(DbTx *tx, const char *sql, const DbValue *args, size_t n_args, Json *(*make)(DbRows *rows),
        Json *ret_list, GError **error)
{
    g_autoptr(DbRows) rows = db_query(tx, sql, args, n_args, error);
    bool more = true;

    if (rows == NULL)
        return false;
    while (db_rows_next(rows, &more, error)) {
        if (!more)
            return true;
        json_array_append_new(ret_list, make(rows));
    }
    return false;
}

static const char *
bare_id(const char *box_id)
{
    return g_str_has_prefix(box_id, "sb-") ? box_id + strlen("sb-") : box_id;
}

bool
rows_boxes_json(DbTx *tx, const char *id, const char *owner, guint limit, Json *ret_list, GError **error)
{
    if (id == NULL)
        return collect(tx,
                       BOX_COLUMNS "WHERE ended_us <> 0 AND (? IS NULL OR owner = ?) "
                                   "ORDER BY ended_us DESC, id LIMIT ?",
                       DB_ARGS(db_text(owner), db_text(owner), db_int(limit)), box_json, ret_list, error);
    id = bare_id(id);
    return collect(tx, BOX_COLUMNS "WHERE (e2b_id = ? OR id = ?) AND (? IS NULL OR owner = ?)",
                   DB_ARGS(db_text(id), db_text(id), db_text(owner), db_text(owner)), box_json, ret_list,
                   error);
}

#define COMMAND_COLUMNS                                                                                      \
    "SELECT run, command, argv, run_user, cwd, tty, actor, started_us, ended_us, reason, code, exit_code, "  \
    "out_bytes, err_bytes, duration_us, cpu_us, max_rss_bytes, tests FROM commands "

bool
rows_commands_json(DbTx *tx, const char *box_id, guint limit, Json *ret_list, GError **error)
{
    return collect(tx,
                   "SELECT * FROM (" COMMAND_COLUMNS
                   "WHERE box_id = ? ORDER BY run DESC LIMIT ?) AS newest ORDER BY run",
                   DB_ARGS(db_text(bare_id(box_id)), db_int(limit)), command_json, ret_list, error);
}

bool
rows_command_json(DbTx *tx, const char *box_id, guint32 run, Json *ret_list, GError **error)
{
    return collect(tx, COMMAND_COLUMNS "WHERE box_id = ? AND run = ?",
                   DB_ARGS(db_text(bare_id(box_id)), db_int(run)), command_json, ret_list, error);
}

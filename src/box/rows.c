/* SPDX-License-Identifier: Apache-2.0 */
#include "box/rows.h"

#include <string.h>

#include "box/state.h"
#include "store/events.h"
#include "json/json.h"

/* ---- values ---- */

static void
facts_copy(BoxFacts *to, const BoxFacts *from)
{
    *to = *from;
    to->owner = g_strdup(from->owner);
    to->name = g_strdup(from->name);
    to->template = g_strdup(from->template);
    to->template_hash = g_strdup(from->template_hash);
    to->agent_id = g_strdup(from->agent_id);
    to->task_id = g_strdup(from->task_id);
    to->squad_id = g_strdup(from->squad_id);
    to->repo_url = g_strdup(from->repo_url);
    to->lease = g_strdup(from->lease);
    to->metadata = g_strdup(from->metadata);
    to->env = g_strdupv(from->env);
    to->user = g_strdup(from->user);
    to->workdir = g_strdup(from->workdir);
}

static void
facts_clear(BoxFacts *facts)
{
    g_free(facts->owner);
    g_free(facts->name);
    g_free(facts->template);
    g_free(facts->template_hash);
    g_free(facts->agent_id);
    g_free(facts->task_id);
    g_free(facts->squad_id);
    g_free(facts->repo_url);
    g_free(facts->lease);
    g_free(facts->metadata);
    g_strfreev(facts->env);
    g_free(facts->user);
    g_free(facts->workdir);
}

void
box_row_copy(BoxRow *to, const BoxRow *from)
{
    *to = *from;
    facts_copy(&to->facts, &from->facts);
    to->reason = g_strdup(from->reason);
}

void
box_row_clear(BoxRow *row)
{
    facts_clear(&row->facts);
    g_free(row->reason);
}

CommandRow *
command_row_new(void)
{
    return g_atomic_rc_box_new0(CommandRow);
}

CommandRow *
command_row_ref(CommandRow *row)
{
    return g_atomic_rc_box_acquire(row);
}

static void
command_row_clear(gpointer data)
{
    CommandRow *row = data;

    g_free(row->command);
    g_free(row->argv);
    g_free(row->user);
    g_free(row->cwd);
    g_free(row->actor);
    g_free(row->task_id);
}

void
command_row_unref(CommandRow *row)
{
    g_atomic_rc_box_release_full(row, command_row_clear);
}

/* ---- what people read of a command ---- */

static bool
is_shell_line(const char *const *argv)
{
    return argv[0] != NULL && argv[1] != NULL && argv[2] != NULL && argv[3] == NULL &&
           g_str_has_suffix(argv[0], "sh") && (strcmp(argv[1], "-c") == 0 || strcmp(argv[1], "-lc") == 0);
}

static bool
needs_no_quotes(const char *word)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_@%+=:,./-";

    return word[0] != '\0' && word[strspn(word, plain)] == '\0';
}

char *
command_dup_line(const char *const *argv)
{
    g_autoptr(GString) line = g_string_new(NULL);

    if (is_shell_line(argv)) {
        g_string_append(line, argv[2]);
    } else {
        for (size_t i = 0; argv[i] != NULL && line->len <= COMMAND_SHOWN_MAX; i++) {
            g_autofree char *quoted = needs_no_quotes(argv[i]) ? g_strdup(argv[i]) : g_shell_quote(argv[i]);

            g_string_append_printf(line, i > 0 ? " %s" : "%s", quoted);
        }
    }
    return g_utf8_make_valid(line->str, (gssize)MIN(line->len, (gsize)COMMAND_SHOWN_MAX));
}

char *
command_dup_argv_json(const char *const *argv)
{
    g_autoptr(Json) list = json_array();

    for (size_t i = 0; argv[i] != NULL; i++) {
        g_autofree char *valid = g_utf8_make_valid(argv[i], -1);

        json_array_append_new(list, json_string(valid));
    }
    return json_encode(list);
}

/* ---- writing ---- */

static char *
env_json(const BoxRow *row)
{
    return row->ended_us != 0 || row->facts.env == NULL
               ? g_strdup("[]")
               : command_dup_argv_json((const char *const *)row->facts.env);
}

bool
rows_put_box(DbTx *tx, const BoxRow *row, GError **error)
{
    const BoxFacts *f = &row->facts;
    const KeeperLimits *l = &f->limits;
    const BoxLife *life = &row->life;
    g_autofree char *env = env_json(row);

    return db_exec(
        tx,
        "INSERT INTO sandboxes (id, e2b_id, owner, name, template, template_hash, agent_id, task_id, "
        "squad_id, repo_url, lease, metadata, env, run_user, workdir, status, reason, memory_bytes, "
        "disk_bytes, inodes, pids, "
        "cpu_milli, degraded, from_pool, keep, lifetime_ms, idle_ms, born_mono_us, deadline_mono_us, "
        "executions, last_run, created_us, updated_us, last_used_us, ended_us) VALUES (?, ?, ?, ?, ?, ?, ?, "
        "?, ?, "
        "?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) "
        "ON CONFLICT (id) DO UPDATE SET status = excluded.status, reason = excluded.reason, "
        "env = excluded.env, degraded = excluded.degraded, lifetime_ms = excluded.lifetime_ms, "
        "deadline_mono_us = excluded.deadline_mono_us, executions = excluded.executions, "
        "last_run = excluded.last_run, updated_us = excluded.updated_us, "
        "last_used_us = excluded.last_used_us, ended_us = excluded.ended_us",
        DB_ARGS(db_text(row->uuid), db_text(row->id), db_text(f->owner), db_text(f->name),
                db_text(f->template), db_text(f->template_hash), db_text(f->agent_id), db_text(f->task_id),
                db_text(f->squad_id), db_text(f->repo_url), db_text(f->lease), db_text(f->metadata),
                db_text(env), db_text(f->user), db_text(f->workdir),
                db_text(box_state_name(row->state, false)), db_text(row->reason),
                db_int((gint64)l->memory_bytes), db_int((gint64)l->disk_bytes), db_int(l->inodes),
                db_int(l->pids), db_int(l->cpu_milli), db_int(row->degraded), db_int(f->from_pool),
                db_int(f->keep), db_int(life->lifetime_ms), db_int(life->idle_ms), db_int(life->born_us),
                db_int(life->deadline_us), db_int((gint64)row->executions), db_int(row->last_run),
                db_int(row->created_us), db_int(row->updated_us), db_int(row->last_used_us),
                db_int(row->ended_us)),
        error);
}

#define COMMAND_COLUMNS                                                                                      \
    "INSERT INTO commands (box_id, run, command, argv, run_user, cwd, tty, actor, started_us, ended_us, "    \
    "reason, code, exit_code, out_bytes, err_bytes, duration_us, cpu_us, max_rss_bytes, tests) "
#define COMMAND_VALUES "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) "
#define COMMAND_START(r)                                                                                     \
    db_text((r)->box_id), db_int((r)->run), db_text((r)->command), db_text((r)->argv), db_text((r)->user),   \
        db_text((r)->cwd), db_int((r)->tty), db_text((r)->actor), db_int((r)->started_us)

bool
rows_put_command(DbTx *tx, const CommandRow *row, GError **error)
{
    return db_exec(tx, COMMAND_COLUMNS COMMAND_VALUES "ON CONFLICT (box_id, run) DO NOTHING",
                   DB_ARGS(COMMAND_START(row), db_int(0), db_null(), db_int(0), db_int(0), db_int(0),
                           db_int(0), db_int(0), db_int(0), db_int(0), db_null()),
                   error);
}

bool
rows_end_command(DbTx *tx, const CommandRow *row, const RunEnd *end, const char *tests, gint64 ended_us,
                 bool *ret_changed, GError **error)
{
    bool ok = db_exec(
        tx,
        COMMAND_COLUMNS COMMAND_VALUES
        "ON CONFLICT (box_id, run) DO UPDATE SET ended_us = excluded.ended_us, "
        "reason = excluded.reason, code = excluded.code, exit_code = excluded.exit_code, "
        "out_bytes = excluded.out_bytes, err_bytes = excluded.err_bytes, "
        "duration_us = excluded.duration_us, cpu_us = excluded.cpu_us, "
        "max_rss_bytes = excluded.max_rss_bytes, tests = excluded.tests WHERE commands.ended_us = 0",
        DB_ARGS(COMMAND_START(row), db_int(ended_us), db_text(run_reason_name(end->reason)),
                db_int(end->code), db_int(run_end_exit_code(end)), db_int((gint64)end->out_bytes),
                db_int((gint64)end->err_bytes), db_int((gint64)end->duration_us), db_int((gint64)end->cpu_us),
                db_int((gint64)end->max_rss_bytes), db_text(tests)),
        error);

    if (ok)
        *ret_changed = db_changes(tx) > 0;
    return ok;
}

bool
rows_event(DbTx *tx, const char *kind, const char *actor, const char *task_id, const char *box_id,
           const char *data, GError **error)
{
    EventSpec event = {.kind = kind, .actor = actor, .task_id = task_id, .box_id = box_id, .data = data};

    return event_append(tx, &event, NULL, error);
}

bool
rows_command_started_event(DbTx *tx, const CommandRow *row, GError **error)
{
    g_autoptr(Json) object = json_pack("{s:I, s:s, s:s, s:s, s:b}", "run", (json_int_t)row->run, "command",
                                       row->command, "user", row->user, "cwd", row->cwd, "tty", row->tty);

    if (row->found)
        json_object_set_new(object, "found", json_true());
    g_autofree char *text = json_encode(object);

    return rows_event(tx, "command.started", row->actor, row->task_id, row->box_id, text, error);
}

bool
rows_command_ended_event(DbTx *tx, const CommandRow *row, const RunEnd *end, GError **error)
{
    g_autoptr(Json) object = json_pack(
        "{s:I, s:s, s:s, s:i, s:i, s:I, s:I, s:I}", "run", (json_int_t)row->run, "command", row->command,
        "reason", run_reason_name(end->reason), "code", end->code, "exit_code", run_end_exit_code(end),
        "stdout_bytes", (json_int_t)end->out_bytes, "stderr_bytes", (json_int_t)end->err_bytes, "duration_ms",
        (json_int_t)(end->duration_us / 1000));
    g_autofree char *text = json_encode(object);

    return rows_event(tx, "command.ended", row->actor, row->task_id, row->box_id, text, error);
}

bool
rows_tests_reported_event(DbTx *tx, const CommandRow *row, const char *tests, GError **error)
{
    g_autoptr(Json) object = json_decode(tests, strlen(tests), error);

    if (object == NULL)
        return false;
    report_json_shorten(object);
    json_object_set_new(object, "run", json_integer(row->run));
    g_autofree char *text = json_encode(object);

    return rows_event(tx, "tests.reported", row->actor, row->task_id, row->box_id, text, error);
}

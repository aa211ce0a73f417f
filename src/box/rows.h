/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include "box/box.h"
#include "box/life.h"
#include "store/db.h"

/* Boxes and their commands as rows.  The functions that take a DbTx run in the store's
 * threads and work on copies; nothing here knows a Box. */

/* What a box was made as; it does not change. */
typedef struct BoxFacts {
    char *owner, *name, *template, *template_hash;
    char *agent_id, *task_id, *squad_id, *repo_url, *lease; /* NULL: none */
    char *metadata;                                         /* JSON object */
    char **env;                                             /* the template's and its own, no name twice */
    char *user, *workdir;                                   /* the template's */
    KeeperLimits limits;
    bool keep, from_pool;
} BoxFacts;

typedef struct BoxRow {
    char id[ID_BOX_LEN + 1], uuid[ID_UUID_LEN + 1];
    BoxFacts facts;
    BoxState state;
    char *reason;
    BoxLife life;
    gint64 created_us, updated_us, last_used_us, ended_us;
    guint64 executions;
    guint32 last_run, degraded;
} BoxRow;

void box_row_copy(BoxRow *to, const BoxRow *from); /* `to` is not initialised */
void box_row_clear(BoxRow *row);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(BoxRow, box_row_clear)

/* Immutable and shared with the store's threads. */
typedef struct CommandRow {
    char box_id[ID_BOX_LEN + 1];
    guint32 run;
    char *command, *argv; /* argv: JSON array */
    char *user, *cwd, *actor;
    char *task_id; /* of its box; NULL: none */
    bool tty, found;
    gint64 started_us;
} CommandRow;

CommandRow *command_row_new(void); /* fields are to be filled before it is shared */
CommandRow *command_row_ref(CommandRow *row);
void command_row_unref(CommandRow *row);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(CommandRow, command_row_unref)

enum { COMMAND_SHOWN_MAX = 4096 };
/* The line of `sh -c LINE`, else the words quoted; cut at COMMAND_SHOWN_MAX, valid UTF-8. */
char *command_dup_line(const char *const *argv);
char *command_dup_argv_json(const char *const *argv);

/* ---- inside a write job ---- */

/* Inserts, or brings up to date what can change: so a content that was replaced by a backup's
 * gets its live boxes again. */
bool rows_put_box(DbTx *tx, const BoxRow *row, GError **error);
bool rows_put_command(DbTx *tx, const CommandRow *row, GError **error);
/* `tests`: JSON, or NULL.  *ret_changed false: its end is there already. */
bool rows_end_command(DbTx *tx, const CommandRow *row, const RunEnd *end, const char *tests, gint64 ended_us,
                      bool *ret_changed, GError **error);
bool rows_event(DbTx *tx, const char *kind, const char *actor, const char *task_id, const char *box_id,
                const char *data, GError **error);
bool rows_command_started_event(DbTx *tx, const CommandRow *row, GError **error);
bool rows_command_ended_event(DbTx *tx, const CommandRow *row, const RunEnd *end, GError **error);
bool rows_tests_reported_event(DbTx *tx, const CommandRow *row, const char *tests, GError **error);

/* ---- loading ---- */

typedef struct LoadedBox {
    BoxRow row;
    GPtrArray *commands; /* CommandRow*, those without an end, by id */
} LoadedBox;
void loaded_box_free(LoadedBox *loaded);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(LoadedBox, loaded_box_free)

/* Every box whose row has no end. */
bool rows_load(DbTx *tx, GPtrArray *ret_boxes, GError **error);
/* Their next run has a number that is higher by `n`. */
bool rows_skip_runs(DbTx *tx, GPtrArray *boxes, guint32 n, GError **error);
/* Commands of boxes that have ended get theirs, with its event. */
bool rows_end_strays(DbTx *tx, gint64 now_us, GError **error);
/* Ids of rows without an end that were made before `before_us`. */
bool rows_live_ids(DbTx *tx, gint64 before_us, GPtrArray *ret_ids, GError **error);
bool rows_mark_lost(DbTx *tx, const char *box_id, gint64 now_us, GError **error);
/* Deletes up to `max` boxes that ended before `before_us`, and gives their ids. */
bool rows_prune(DbTx *tx, gint64 before_us, guint max, GPtrArray *ret_ids, GError **error);
bool rows_exists(DbTx *tx, const char *box_id, bool *ret_exists, GError **error);
bool rows_get_setting(DbTx *tx, const char *name, char **ret_value, GError **error); /* NULL: none */
bool rows_set_setting(DbTx *tx, const char *name, const char *value, GError **error);

/* SPDX-License-Identifier: Apache-2.0 */
#include "team/kept.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/path.h"
#include "box/host.h"
#include "team/task-private.h"

static const RowColumn columns[] = {
    {"id", ROW_TEXT, "k.id"},
    {"task_id", ROW_TEXT, "k.task_id"},
    {"number", ROW_INT, "(SELECT t.number FROM tasks t WHERE t.id = k.task_id)"},
    {"execution_id", ROW_TEXT, "k.execution_id"},
    {"agent", ROW_TEXT,
     "(SELECT e.agent FROM task_executions e WHERE e.id = k.execution_id OR (k.execution_id IS NULL AND "
     "e.box_id = k.box_id) ORDER BY e.created_us DESC LIMIT 1)"},
    {"box_id", ROW_TEXT, "k.box_id"},
    {"kind", ROW_TEXT, "k.kind"},
    {"path", ROW_TEXT, "k.path"},
    {"bytes", ROW_INT, "k.bytes"},
    {"created_us", ROW_INT, "k.created_us"},
    {"expires_us", ROW_INT, "k.expires_us"},
};
#define THERE "(SELECT * FROM kept WHERE " KEPT_IS_THERE ") k"
const RowTable kept_table = {"kept box", THERE, columns, G_N_ELEMENTS(columns)};

/* Whose it is follows from its task, or from its agent where there is no task. */
#define OWNED                                                                                                \
    "(? IS NULL OR EXISTS (SELECT 1 FROM tasks t WHERE t.id = k.task_id AND t.owner = ?) OR "                \
    "EXISTS (SELECT 1 FROM task_executions e WHERE e.id = k.execution_id AND e.owner = ?))"

/* ---- looking ---- */

static const RowMember filter_members[] = {
    ROW_AT_TEXT(KeptFilter, owner),
    ROW_AT_TEXT(KeptFilter, task),
    ROW_AT_END,
};

static bool
run_list(RowJob *job, const void *data, Json **ret_value, GError **error)
{
    const KeptFilter *f = data;
    g_auto(RowWhere) where = ROW_WHERE_INIT;
    g_autoptr(Json)
        task = f->task != NULL ? task_row(job, &(TaskRef){.id = f->task, .owner = f->owner}, error) : NULL;
    gint64 bytes = 0;

    if (f->task != NULL && task == NULL)
        return false;
    row_where_add(&where, OWNED, DB_ARGS(db_text(f->owner), db_text(f->owner), db_text(f->owner)));
    if (task != NULL)
        row_where_add(&where, "k.task_id = ?", DB_ARGS(db_text(row_text(task, "id"))));
    g_autofree char *sum = g_strdup_printf("SELECT SUM(k.bytes) FROM " THERE " WHERE %s", where.sql->str);

    if (!row_ask_int(job, sum, where.args, where.n, &bytes, error))
        return false;
    *ret_value = row_list(job, &kept_table, &where, "k.created_us DESC, k.id", f->page, error);
    if (*ret_value != NULL)
        json_object_update_new(*ret_value, json_pack("{s:I, s:I}", "bytes", (json_int_t)bytes, "bytes_max",
                                                     (json_int_t)f->bytes_max));
    return *ret_value != NULL;
}

static const RowOp list_op = {ROW_READS, sizeof(KeptFilter), filter_members, run_list};

void
kept_list(Team *team, const KeptFilter *filter, TeamJsonFunc done, void *data)
{
    KeptFilter whole = *filter;

    whole.bytes_max = team->limits.kept_max;
    team_run(team, &list_op, &whole, done, data);
}

static bool
run_get(RowJob *job, const void *data, Json **ret_value, GError **error)
{
    const TaskRef *ref = data;

    *ret_value = row_get(
        job, &kept_table, "k.id = ? AND " OWNED,
        DB_ARGS(db_text(ref->id), db_text(ref->owner), db_text(ref->owner), db_text(ref->owner)), error);
    return *ret_value != NULL;
}

static const RowOp get_op = {ROW_READS, sizeof(TaskRef), task_ref_members, run_get};

void
kept_get(Team *team, const char *id, const char *owner, TeamJsonFunc done, void *data)
{
    team_run(team, &get_op, &(TaskRef){.id = id, .owner = owner}, done, data);
}

/* ---- files ---- */

/* Whatever a row says, it is a name in that folder. */
static int
open_folder(Team *team, GError **error)
{
    g_autofree char *folder = g_build_filename(team->spec.home, "kept", NULL);
    int fd = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);

    if (fd < 0)
        err_errno(error, "open '%s'", folder);
    return fd;
}

int
kept_open(Team *team, const Json *row, GError **error)
{
    const char *path = row_text(row, "path");
    g_autofree char *name = path != NULL ? g_path_get_basename(path) : NULL;
    autofd folder = path != NULL ? open_folder(team, error) : -1;

    if (path == NULL)
        err_set(error, ERR_NOT_FOUND, "no files were kept, but the box");
    return folder >= 0 ? open_beneath(folder, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW, 0, error) : -1;
}

bool
kept_remove_file(Team *team, const char *path, GError **error)
{
    g_autofree char *name = g_path_get_basename(path);
    autofd folder = open_folder(team, NULL);

    if (folder < 0)
        return true;
    return unlinkat(folder, name, 0) == 0 || errno == ENOENT || err_errno(error, "remove '%s'", path);
}

/* ---- letting go ---- */

static bool
run_drop(RowJob *job, const void *data, Json **ret_value, GError **error)
{
    return db_exec(job->tx, "DELETE FROM kept WHERE id = ?", DB_ARGS(db_text(*(const char *const *)data)),
                   error);
}

static const RowMember one_text[] = {{ROW_POINTER_TEXT, 0}, ROW_AT_END};
static const RowOp drop_op = {ROW_WRITES, sizeof(char *), one_text, run_drop};

typedef struct Drop {
    Team *team;
    char *id;
    TeamJsonFunc done;
    void *data;
} Drop;

static void
drop_end(Json *value, const GError *error, void *data)
{
    Drop *d = data;

    d->done(value, error, d->data);
    team_unref(d->team);
    g_free(d->id);
    g_free(d);
}

static void
drop_row(Drop *d)
{
    const char *id = d->id;

    team_run(d->team, &drop_op, &id, drop_end, d);
}

static void
on_killed(Box *box, const GError *error, void *data)
{
    drop_row(data);
}

static void
drop(Drop *d, const Json *row)
{
    const char *box_id = row_text(row, "box_id"), *path = row_text(row, "path");
    bool is_box = strcmp(row_text(row, "kind"), "box") == 0;
    Box *box = is_box && box_id != NULL && d->team->spec.boxes != NULL && d->team->flow != NULL
                   ? box_host_find(d->team->spec.boxes, box_id, NULL)
                   : NULL;
    g_autoptr(GError) error = NULL;

    d->id = g_strdup(row_text(row, "id"));
    if (path != NULL && !kept_remove_file(d->team, path, &error))
        drop_end(NULL, error, d);
    else if (box != NULL)
        box_kill(box, "killed", "coop", on_killed, d);
    else
        drop_row(d);
}

static void
on_found(Json *row, const GError *error, void *data)
{
    if (error != NULL)
        drop_end(NULL, error, data);
    else
        drop(data, row);
}

void
kept_remove(Team *team, const char *id, const char *owner, TeamJsonFunc done, void *data)
{
    Drop *d = g_new0(Drop, 1);

    *d = (Drop){.team = team_ref(team), .done = done, .data = data};
    kept_get(team, id, owner, on_found, d);
}

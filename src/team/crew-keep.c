/* SPDX-License-Identifier: Apache-2.0 */
/* What is kept of boxes: an archive of their files below HOME/kept, or the box itself, paused.  The row comes
 * last: an archive without one is removed at the next start.  Its id is that of the box or of the agent, so
 * that a server that is killed meanwhile keeps nothing twice. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/failpoint.h"
#include "base/io.h"
#include "base/log.h"
#include "team/crew-keep.h"
#include "team/kept.h"

enum {
    FOLDER_MODE = 0700,
    FILE_MODE = 0600,
    PIECE = 64 * 1024,
    MS_PER_S = 1000,
    PIECES_AT_ONCE = 16, /* then others have their turn: a box may write as fast as we read */
    SWEEP_MS = 10 * 60 * 1000,
    SWEEP_MAX = 500, /* rows at once */
};

/* ---- an archive ---- */

struct Archive {
    LoopTimer more; /* first: the loop hands back its address; armed: others have their turn */
    LoopTimer deadline;
    Crew *crew;
    Box *box;
    char *path, *full, *part; /* `path` is below the home; `part` is what it is until it is whole */
    int fd;
    guint64 bytes;
    BoxRead *read;
    GError *error;
    ArchiveFunc done;
    void *data;
};

static void
archive_finish(Archive *a, const GError *error)
{
    if (error != NULL && a->error == NULL)
        a->error = g_error_copy(error);
    loop_timer_cancel(a->crew->loop, &a->more);
    loop_timer_cancel(a->crew->loop, &a->deadline);
    g_ptr_array_remove_fast(a->crew->archives, a);
    if (a->fd >= 0)
        close(a->fd);
    if (a->error == NULL && rename(a->part, a->full) < 0)
        err_errno(&a->error, "keep '%s'", a->path);
    if (a->error != NULL)
        (void)unlink(a->part); /* else the next start does it */
    a->done(a->error == NULL ? a->path : NULL, a->bytes, a->error, a->data);
    g_clear_error(&a->error);
    box_unref(a->box);
    crew_unref(a->crew);
    g_free(a->path);
    g_free(a->full);
    g_free(a->part);
    g_free(a);
}

static void
archive_give_up(Archive *a, BoxRead *read)
{
    box_read_cancel(read);
    archive_finish(a, NULL);
}

static void
on_ready(BoxRead *read, void *ctx)
{
    Archive *a = ctx;
    guint8 piece[PIECE];
    gssize n = 1;

    for (guint i = 0; i < PIECES_AT_ONCE && a->error == NULL; i++) {
        n = box_read_bytes(read, piece, sizeof piece);
        if (n <= 0)
            break;
        a->bytes += (guint64)n;
        if (a->bytes > CREW_KEEP_MAX)
            err_set(&a->error, ERR_LIMIT, "the files are more than %d MiB", CREW_KEEP_MAX >> 20);
        else if (!io_write_all(a->fd, piece, (size_t)n))
            err_errno(&a->error, "write what is kept of a box");
    }
    if (a->error == NULL && n > 0)
        loop_timer_set(a->crew->loop, &a->more, 0);
    /* A hole may be as long as its maker likes: nobody waits for its end. */
    if (a->error != NULL)
        archive_give_up(a, read);
}

static void
on_more(LoopTimer *timer)
{
    Archive *a = (Archive *)timer;

    on_ready(a->read, a);
}

/* Whoever stops a task waits for this. */
static void
on_deadline(LoopTimer *timer)
{
    Archive *a = (Archive *)(void *)((char *)timer - offsetof(Archive, deadline));

    err_set(&a->error, ERR_TIMEOUT, "the files did not come within %d s", CREW_KEEP_S);
    archive_give_up(a, a->read);
}

static void
on_end(BoxRead *read, const GError *error, void *ctx)
{
    archive_finish(ctx, error);
}

static bool
open_archive(Archive *a, GError **error)
{
    g_autofree char *folder = g_build_filename(a->crew->team->spec.home, "kept", NULL);

    if (mkdir(folder, FOLDER_MODE) < 0 && errno != EEXIST)
        return err_errno(error, "make '%s'", folder);
    a->fd = open(a->part, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, FILE_MODE);
    return a->fd >= 0 || err_errno(error, "make '%s'", a->part);
}

void
archive_start(Crew *crew, Box *box, const char *id, const char *path, ArchiveFunc done, void *data)
{
    static const BoxReadEvents events = {NULL, on_ready, on_end};
    const BoxFileSpec place = {.box = box, .actor = "coop"};
    Archive *a = g_new0(Archive, 1);
    g_autoptr(GError) error = NULL;

    *a = (Archive){.more.expired = on_more,
                   .deadline.expired = on_deadline,
                   .crew = crew_ref(crew),
                   .box = box_ref(box),
                   .fd = -1,
                   .done = done,
                   .data = data};
    a->path = g_strdup_printf("kept/%s.tar", id);
    a->full = g_build_filename(crew->team->spec.home, a->path, NULL);
    a->part = g_strconcat(a->full, ".part", NULL);
    g_ptr_array_add(crew->archives, a);
    if (open_archive(a, &error))
        a->read = box_tree_read(&place, path, &events, a, &error);
    if (a->read == NULL)
        archive_finish(a, error);
    else
        loop_timer_set(crew->loop, &a->deadline, CREW_KEEP_S * MS_PER_S);
}

/* The next server begins them anew. */
void
crew_keep_end(Crew *crew)
{
    while (crew->archives->len > 0) {
        Archive *a = crew->archives->pdata[0];

        if (a->error == NULL)
            err_set(&a->error, ERR_CANCELLED, "the server stops");
        archive_give_up(a, a->read);
    }
}

/* ---- rows ---- */

static bool
run_keep(RowJob *job, const void *spec, Json **ret_value, GError **error)
{
    const KeptSpec *k = spec;

    return db_exec(job->tx,
                   "INSERT INTO kept (id, task_id, execution_id, box_id, kind, path, bytes, created_us, "
                   "expires_us) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (id) DO UPDATE SET kind = "
                   "excluded.kind, path = excluded.path, bytes = excluded.bytes",
                   DB_ARGS(db_text(k->id), db_text(k->task_id), db_text(k->execution_id), db_text(k->box_id),
                           db_text(k->kind), db_text(k->path), db_int(k->bytes), db_int(job->now_us),
                           db_int(job->now_us + k->keep_us)),
                   error);
}

typedef struct BoxId {
    const char *id;
} BoxId;

static bool
run_forget(RowJob *job, const void *spec, Json **ret_value, GError **error)
{
    return db_exec(job->tx, "DELETE FROM kept WHERE kind = 'box' AND box_id = ?",
                   DB_ARGS(db_text(((const BoxId *)spec)->id)), error);
}

void
kept_forget_box(Crew *crew, const char *box_id)
{
    static const RowMember members[] = {ROW_AT_TEXT(BoxId, id), ROW_AT_END};
    static const RowOp op = {ROW_WRITES, sizeof(BoxId), members, run_forget};

    team_run(crew->team, &op, &(BoxId){box_id}, NULL, NULL);
}

void
kept_put(Crew *crew, const KeptSpec *kept, TeamJsonFunc done, void *data)
{
    static const RowMember members[] = {ROW_AT_TEXT(KeptSpec, id),
                                        ROW_AT_TEXT(KeptSpec, task_id),
                                        ROW_AT_TEXT(KeptSpec, execution_id),
                                        ROW_AT_TEXT(KeptSpec, box_id),
                                        ROW_AT_TEXT(KeptSpec, kind),
                                        ROW_AT_TEXT(KeptSpec, path),
                                        ROW_AT_END};
    static const RowOp op = {ROW_WRITES, sizeof(KeptSpec), members, run_keep};

    team_run(crew->team, &op, kept, done, data);
}

/* ---- the files of an agent without a repository ---- */

typedef struct FilesKept {
    Shift *shift;
    char *path;
} FilesKept;

static void
on_files_row(Json *value, const GError *error, void *data)
{
    FilesKept *f = data;
    g_autoptr(Shift) s = f->shift;

    if (s->crew != NULL && s->phase == SHIFT_PROVING)
        shift_kept(s, error == NULL ? f->path : NULL);
    g_free(f->path);
    g_free(f);
}

static void
on_files(const char *path, guint64 bytes, const GError *error, void *data)
{
    g_autoptr(Shift) s = data;
    BoxInfo info;

    if (s->crew == NULL || s->phase != SHIFT_PROVING)
        return;
    if (error != NULL) {
        log_warn("crew", "an agent's files could not be kept", log_str("execution", s->id),
                 log_gerror(error));
        shift_kept(s, NULL);
        return;
    }
    FAILPOINT("crew-kept");
    FilesKept *f = g_new0(FilesKept, 1);

    *f = (FilesKept){shift_ref(s), g_strdup(path)};
    box_info(s->box, &info);
    kept_put(s->crew,
             &(KeptSpec){.id = s->id,
                         .task_id = shift_text(s, "task_id"),
                         .execution_id = s->id,
                         .box_id = info.id,
                         .kind = "files",
                         .path = path,
                         .bytes = (gint64)bytes,
                         .keep_us = (gint64)s->crew->team->limits.keep_s * G_USEC_PER_SEC},
             on_files_row, f);
}

void
shift_keep_files(Shift *s)
{
    archive_start(s->crew, s->box, s->id, s->workdir, on_files, shift_ref(s));
}

/* ---- what is over ---- */

static const RowColumn kept_columns[] = {
    {"id", ROW_TEXT, NULL}, {"path", ROW_TEXT, NULL}, {"box_id", ROW_TEXT, NULL}, {"kind", ROW_TEXT, NULL}};
static const RowTable kept_rows = {"what is kept", "kept", kept_columns, G_N_ELEMENTS(kept_columns)};

static bool
run_expired(RowJob *job, const void *spec, Json **ret_value, GError **error)
{
    *ret_value = row_all(job, &kept_rows,
                         "expires_us < ? OR NOT " KEPT_IS_THERE " ORDER BY expires_us LIMIT ?",
                         DB_ARGS(db_int(job->now_us), db_int(SWEEP_MAX)), error);
    return *ret_value != NULL;
}

static bool
run_drop(RowJob *job, const void *spec, Json **ret_value, GError **error)
{
    const Json *ids = *(Json *const *)spec;
    size_t i;
    const Json *id;

    json_array_foreach(ids, i, id)
    {
        if (!db_exec(job->tx, "DELETE FROM kept WHERE id = ?", DB_ARGS(db_text(json_string_value(id))),
                     error))
            return false;
    }
    return true;
}

static bool
run_paths(RowJob *job, const void *spec, Json **ret_value, GError **error)
{
    *ret_value = row_all(job, &kept_rows, "path IS NOT NULL", DB_NO_ARGS, error);
    return *ret_value != NULL;
}

static void
on_box_gone(Box *box, const GError *error, void *data)
{
    /* Its own time ends it, if nothing else does. */
}

/* False: it is still there, and so must be its row. */
static bool
remove_kept(Crew *crew, const Json *kept)
{
    const char *path = row_text(kept, "path"), *box_id = row_text(kept, "box_id");
    g_autofree char *full = path != NULL ? g_build_filename(crew->team->spec.home, path, NULL) : NULL;
    Box *box = strcmp(row_text(kept, "kind"), "box") == 0 && crew->team->spec.boxes != NULL
                   ? box_host_find(crew->team->spec.boxes, box_id, NULL)
                   : NULL;

    if (box != NULL)
        box_kill(box, "expired", "coop", on_box_gone, NULL);
    if (full == NULL || unlink(full) == 0 || errno == ENOENT)
        return true;
    log_warn("crew", "what was kept cannot be removed", log_str("path", path),
             log_str("error", g_strerror(errno)));
    return false;
}

/* Archives whose row was never written.  Only before any is begun. */
static void
remove_strays(Crew *crew, const Json *kept)
{
    g_autofree char *folder = g_build_filename(crew->team->spec.home, "kept", NULL);
    g_autoptr(GDir) dir = g_dir_open(folder, 0, NULL);
    g_autoptr(GHashTable) paths = g_hash_table_new(g_str_hash, g_str_equal);
    const char *name;
    size_t i;
    const Json *row;

    json_array_foreach(kept, i, row) g_hash_table_add(paths, (gpointer)(guintptr)row_text(row, "path"));
    while (dir != NULL && (name = g_dir_read_name(dir)) != NULL) {
        g_autofree char *path = g_build_filename("kept", name, NULL);
        g_autofree char *full = g_build_filename(folder, name, NULL);

        if (!g_hash_table_contains(paths, path))
            (void)unlink(full); /* the next start tries again */
    }
}

static void
on_paths(Json *value, const GError *error, void *data)
{
    Crew *crew = data;

    if (!crew->closed && !crew->begun) {
        if (error == NULL)
            remove_strays(crew, value);
        crew_swept(crew);
    }
    crew_unref(crew);
}

static void
swept(Crew *crew)
{
    static const RowOp op = {ROW_READS, 0, NULL, run_paths};

    loop_timer_set(crew->loop, &crew->timer, SWEEP_MS);
    if (!crew->begun)
        team_run(crew->team, &op, NULL, on_paths, crew_ref(crew));
}

static void
on_dropped(Json *value, const GError *error, void *data)
{
    Crew *crew = data;

    if (!crew->closed && error == NULL)
        crew_sweep(crew); /* there may be more */
    else if (!crew->closed)
        swept(crew);
    crew_unref(crew);
}

static void
on_expired(Json *value, const GError *error, void *data)
{
    static const RowMember members[] = {{ROW_POINTER_JSON, 0}, ROW_AT_END};
    static const RowOp op = {ROW_WRITES, sizeof(Json *), members, run_drop};
    g_autoptr(Json) gone = json_array();
    Crew *crew = data;
    size_t i;
    Json *one;

    json_array_foreach(value, i, one)
    {
        if (!crew->closed && remove_kept(crew, one))
            json_array_append(gone, json_object_get(one, "id"));
    }
    if (!crew->closed && json_array_size(gone) > 0)
        team_run(crew->team, &op, &gone, on_dropped, crew_ref(crew));
    else if (!crew->closed)
        swept(crew);
    crew_unref(crew);
}

static void
on_timer(LoopTimer *timer)
{
    crew_sweep((Crew *)timer);
}

void
crew_sweep(Crew *crew)
{
    static const RowOp op = {ROW_READS, 0, NULL, run_expired};

    crew->timer.expired = on_timer;
    team_run(crew->team, &op, NULL, on_expired, crew_ref(crew));
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Archives of what is in boxes, below HOME/kept.  The row comes last (crew-kept.c): an archive without one is
 * removed at the next start.  Its id is that of the box or of the agent, so that a server that is killed
 * meanwhile keeps nothing twice. */
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
    MIB_BITS = 20,
    PIECES_AT_ONCE = 16, /* then others have their turn: a box may write as fast as we read */
};

/* ---- an archive ---- */

struct Archive {
    LoopTimer more; /* first: the loop hands back its address; armed: others have their turn */
    LoopTimer deadline;
    Crew *crew;
    Box *box;
    char *path, *full, *part; /* `path` is below the home; `part` is what it is until it is whole */
    int fd;
    guint64 bytes, max;
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
    if (a->fd >= 0 && close(a->fd) < 0 && a->error == NULL)
        err_errno(&a->error, "write '%s'", a->path);
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
        if (a->bytes > a->max)
            err_set(&a->error, ERR_LIMIT,
                    "the files are more than the %" G_GUINT64_FORMAT " MiB that are kept",
                    a->max >> MIB_BITS);
        else if (!io_write_all(a->fd, piece, (size_t)n))
            err_errno(&a->error, "write '%s'", a->path);
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
                   .max = MIN((guint64)CREW_KEEP_MAX, (guint64)crew->team->limits.kept_max),
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

/* ---- the files of an agent without a repository ---- */

typedef struct FilesKept {
    Shift *shift;
    char *path;
} FilesKept;

static KeptSpec
kept_of(const Shift *s, const BoxInfo *info)
{
    return (KeptSpec){.id = s->id,
                      .task_id = shift_text(s, "task_id"),
                      .execution_id = s->id,
                      .box_id = info->id,
                      .kind = "files",
                      .keep_us = (gint64)s->crew->team->limits.keep_s * G_USEC_PER_SEC};
}

/* Once the server stops, the next one keeps them. */
static bool
waits_for_files(const Shift *s)
{
    return s->crew != NULL && !s->crew->closed && s->phase == SHIFT_PROVING;
}

static void
end_files(Shift *s, const char *path, const GError *error)
{
    BoxInfo info;

    box_info(s->box, &info);
    KeptSpec kept = kept_of(s, &info);

    if (error != NULL)
        kept_failed(s->crew, &kept, error);
    shift_kept(s, error == NULL ? path : NULL, error);
}

static void
on_files_row(Json *value, const GError *error, void *data)
{
    FilesKept *f = data;
    g_autoptr(Shift) s = f->shift;

    if (waits_for_files(s))
        end_files(s, f->path, error);
    g_free(f->path);
    g_free(f);
}

static void
on_files(const char *path, guint64 bytes, const GError *error, void *data)
{
    g_autoptr(Shift) s = data;
    BoxInfo info;

    if (!waits_for_files(s))
        return;
    if (error != NULL) {
        end_files(s, NULL, error);
        return;
    }
    FAILPOINT("crew-kept");
    FilesKept *f = g_new0(FilesKept, 1);

    *f = (FilesKept){shift_ref(s), g_strdup(path)};
    box_info(s->box, &info);
    KeptSpec kept = kept_of(s, &info);

    kept.path = path;
    kept.bytes = (gint64)bytes;
    kept_put(s->crew, &kept, on_files_row, f);
}

void
shift_keep_files(Shift *s)
{
    archive_start(s->crew, s->box, s->id, s->workdir, on_files, shift_ref(s));
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files and trees on their way out: the entry first, then bytes, straight from the pipe that the
 * operation in the box writes to.  Nothing is kept here: what nobody fetches stays in the pipe,
 * and the writer waits.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "base/err.h"
#include "box/file-op.h"
#include "box/file-pipe.h"

struct BoxRead {
    FilePipe pipe; /* first */
    FilePlace place;
    Run *run;
    char *path;
    const BoxReadEvents *events;
    void *ctx;
    Buf head;      /* until the entry is whole */
    Buf words;     /* what it says about an error */
    GError *error; /* of the run's end */
    LoopTimer soon;
    bool wants_entry, nonsense;
    bool over;              /* the run has ended: what lies in the pipe is all there is */
    bool waiting;           /* nobody fetches until `ready` */
    bool inside, cancelled; /* a callback runs; it asked for the end */
};

static void
read_free(BoxRead *read)
{
    g_clear_pointer(&read->run, run_unref);
    file_pipe_close(&read->pipe);
    loop_timer_cancel(read->place.loop, &read->soon);
    buf_clear(&read->head);
    buf_clear(&read->words);
    g_clear_error(&read->error);
    file_place_clear(&read->place);
    g_free(read->path);
    g_free(read);
}

/* After a callback; false: it freed the read. */
static bool
still_wanted(BoxRead *read)
{
    read->inside = false;
    if (!read->cancelled)
        return true;
    read_free(read);
    return false;
}

static void
finish(BoxRead *read)
{
    if (read->error == NULL && (read->nonsense || read->wants_entry))
        err_set(&read->error, ERR_INTERNAL, "'%s': the box talks nonsense", read->path);
    read->inside = true;
    read->events->end(read, read->error, read->ctx);
    read_free(read);
}

static void
on_soon(LoopTimer *timer)
{
    finish((BoxRead *)(void *)((char *)timer - offsetof(BoxRead, soon)));
}

/* ---- the entry ---- */

/* How many bytes of it are still to come, so that not one behind it is read. */
static size_t
entry_missing(const BoxRead *read)
{
    BuiltinEntry entry;
    size_t n;
    const guint8 *bytes = buf_peek(&read->head, &n);

    if (n < sizeof entry)
        return sizeof entry - n;
    memcpy(&entry, bytes, sizeof entry);
    return sizeof entry + entry.name_bytes + entry.target_bytes - n;
}

/* False: it is not whole. */
static bool
read_entry(BoxRead *read)
{
    guint8 bytes[512];

    for (size_t missing; (missing = entry_missing(read)) > 0;) {
        ssize_t n = file_pipe_read(&read->pipe, bytes, MIN(missing, sizeof bytes));

        if (n <= 0)
            return false;
        if (!buf_put(&read->head, bytes, (size_t)n)) {
            read->nonsense = true;
            return false;
        }
    }
    return true;
}

/* True: it was told. */
static bool
tell_entry(BoxRead *read)
{
    BoxEntry entry = {0};
    size_t n;

    if (!read_entry(read))
        return false;
    const guint8 *bytes = buf_peek(&read->head, &n);
    if (file_entry_parse(bytes, n, &entry) != (gssize)n) {
        read->nonsense = true;
        return false;
    }
    read->wants_entry = false;
    buf_clear(&read->head);
    read->inside = true;
    read->events->entry(read, &entry, read->ctx);
    box_entry_clear(&entry);
    return true;
}

/* ---- what happens ---- */

/* Somebody waits, and there may be something for them. */
static void
look(BoxRead *read)
{
    if (read->wants_entry && !read->nonsense && tell_entry(read) && !still_wanted(read))
        return;
    if (!read->wants_entry && read->events->ready == NULL && file_pipe_has_bytes(&read->pipe))
        read->nonsense = true;
    /* Who is not read from any more must not be left waiting for it. */
    if (read->nonsense)
        file_pipe_close(&read->pipe);
    if (!read->waiting)
        return;
    if (!read->wants_entry && read->events->ready != NULL && file_pipe_has_bytes(&read->pipe)) {
        read->waiting = false;
        read->inside = true;
        read->events->ready(read, read->ctx);
        (void)still_wanted(read);
    } else if (read->over) {
        finish(read);
    } else if (!file_pipe_has_ended(&read->pipe)) {
        file_pipe_await(&read->pipe);
    }
}

static void
on_pipe(FilePipe *pipe)
{
    look((BoxRead *)pipe);
}

static bool
on_output(Run *run, FrameStream stream, const guint8 *bytes, size_t n, void *ctx)
{
    BoxRead *read = ctx;

    if (stream == STREAM_STDERR)
        (void)!buf_put(&read->words, bytes, MIN(n, buf_room(&read->words)));
    return true;
}

static void
on_ended(Run *run, const RunEnd *end, void *ctx)
{
    BoxRead *read = ctx;

    read->error = file_end_error(end, read->path, &read->words);
    read->over = true;
    if (read->waiting)
        look(read);
}

static const RunSink read_sink = {on_output, on_ended, NULL};

/* ---- calls ---- */

BoxRead *
file_read(const FilePlace *place, const char *const *argv, bool has_entry, const BoxReadEvents *events,
          void *ctx, GError **error)
{
    BoxRead *read = g_new0(BoxRead, 1);

    file_place_hold(&read->place, place);
    read->path = g_strdup(argv[1]);
    read->events = events;
    read->ctx = ctx;
    read->wants_entry = has_entry;
    read->waiting = true;
    read->soon.expired = on_soon;
    buf_init(&read->head, FILE_ENTRY_MAX);
    buf_init(&read->words, FILE_WORDS_MAX);
    read->run = file_start_piped(&read->place, argv, FILE_PIPE_OUT, &read->pipe, &read_sink, read, error);
    if (read->run == NULL) {
        read_free(read);
        return NULL;
    }
    read->pipe.ready = on_pipe;
    file_pipe_await(&read->pipe);
    return read;
}

/* What a look into the pipe has brought.  Nothing, and nothing can come: the end is told from the
 * loop. */
static gssize
took(BoxRead *read, gssize n)
{
    read->waiting = n == 0 || (n < 0 && errno == EAGAIN);
    if (n > 0) {
        run_is_active(read->run);
        return n;
    }
    if (read->waiting) {
        if (read->over)
            loop_timer_set(read->place.loop, &read->soon, 0);
        else if (n < 0)
            file_pipe_await(&read->pipe);
        errno = EAGAIN;
    }
    return -1;
}

gssize
box_read_bytes(BoxRead *read, void *bytes, size_t n)
{
    return took(read, file_pipe_read(&read->pipe, bytes, n));
}

gssize
box_read_splice(BoxRead *read, int fd, size_t n)
{
    return took(read, file_pipe_splice_to(&read->pipe, fd, n));
}

void
box_read_cancel(BoxRead *read)
{
    if (read == NULL)
        return;
    run_abandon(read->run);
    if (read->inside)
        read->cancelled = true;
    else
        read_free(read);
}

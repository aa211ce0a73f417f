/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files and trees on their way in.  Where the operation can tell by itself whether all came (it
 * knows the length, or an archive has an end of its own) bytes go through a pipe; else as frames,
 * because the end of a pipe is also what a server that was killed leaves behind.
 */
#include <errno.h>

#include "base/err.h"
#include "box/file-op.h"
#include "box/file-pipe.h"

struct BoxWrite {
    FilePipe pipe; /* first */
    FilePlace place;
    Run *run;
    char *path;
    const BoxWriteEvents *events;
    void *ctx;
    Buf words;
    bool piped;
    bool ending; /* `end` runs and frees it after */
};

static void
write_free(BoxWrite *write)
{
    g_clear_pointer(&write->run, run_unref);
    if (write->piped)
        file_pipe_close(&write->pipe);
    buf_clear(&write->words);
    file_place_clear(&write->place);
    g_free(write->path);
    g_free(write);
}

static bool
on_output(Run *run, FrameStream stream, const guint8 *bytes, size_t n, void *ctx)
{
    BoxWrite *write = ctx;

    if (stream == STREAM_STDERR)
        (void)!buf_put(&write->words, bytes, MIN(n, buf_room(&write->words)));
    return true;
}

static void
on_ended(Run *run, const RunEnd *end, void *ctx)
{
    BoxWrite *write = ctx;
    g_autoptr(GError) error = file_end_error(end, write->path, &write->words);

    write->ending = true;
    write->events->end(write, error, write->ctx);
    write_free(write);
}

static void
tell_room(BoxWrite *write)
{
    if (write->events->room != NULL)
        write->events->room(write, write->ctx);
}

static void
on_room(Run *run, void *ctx)
{
    tell_room(ctx);
}

static void
on_pipe(FilePipe *pipe)
{
    tell_room((BoxWrite *)pipe);
}

static const RunSink write_sink = {on_output, on_ended, on_room};

BoxWrite *
file_write(const FilePlace *place, const char *const *argv, bool piped, const BoxWriteEvents *events,
           void *ctx, GError **error)
{
    BoxWrite *write = g_new0(BoxWrite, 1);

    file_place_hold(&write->place, place);
    write->path = g_strdup(argv[1]);
    write->events = events;
    write->ctx = ctx;
    write->piped = piped;
    buf_init(&write->words, FILE_WORDS_MAX);
    if (piped)
        write->run = file_start_piped(&write->place, argv, FILE_PIPE_IN, &write->pipe, &write_sink, write,
                                      error);
    else
        write->run = file_start(&write->place, argv, START_STDIN, 0, &write_sink, write, error);
    write->pipe.ready = on_pipe;
    if (write->run == NULL)
        g_clear_pointer(&write, write_free);
    return write;
}

/* A pipe without a reader has no room any more: the operation has ended, and says why. */
static void
await_room(BoxWrite *write, int error)
{
    if (error == EAGAIN)
        file_pipe_await(&write->pipe);
}

size_t
box_write_data(BoxWrite *write, const void *bytes, size_t n)
{
    if (!write->piped)
        return run_write(write->run, bytes, n);
    ssize_t put = file_pipe_write(&write->pipe, bytes, n);

    if (put < (ssize_t)n)
        await_room(write, put < 0 ? errno : EAGAIN);
    if (put > 0)
        run_is_active(write->run);
    return put > 0 ? (size_t)put : 0;
}

gssize
box_write_splice(BoxWrite *write, int fd, size_t n)
{
    gssize moved = file_pipe_splice_from(&write->pipe, fd, n);

    if (moved > 0) {
        run_is_active(write->run);
    } else if (moved < 0 && errno == ENOBUFS) {
        await_room(write, EAGAIN);
        errno = ENOBUFS;
    } else if (moved < 0 && errno == EPIPE) {
        errno = ENOBUFS;
    }
    return moved;
}

void
box_write_end(BoxWrite *write)
{
    if (write->piped)
        file_pipe_close(&write->pipe);
    else
        run_close_input(write->run);
}

void
box_write_cancel(BoxWrite *write)
{
    if (write == NULL || write->ending)
        return;
    run_abandon(write->run);
    write_free(write);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Files and trees on their way in. */
#include "base/err.h"
#include "box/file-op.h"

struct BoxWrite {
    FilePlace place;
    Run *run;
    char *path;
    const BoxWriteEvents *events;
    void *ctx;
    Buf words;
    bool ending; /* `end` runs and frees it after */
};

static void
write_free(BoxWrite *write)
{
    g_clear_pointer(&write->run, run_unref);
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
on_room(Run *run, void *ctx)
{
    BoxWrite *write = ctx;

    if (write->events->room != NULL)
        write->events->room(write, write->ctx);
}

static const RunSink write_sink = {on_output, on_ended, on_room};

BoxWrite *
file_write(const FilePlace *place, const char *const *argv, const BoxWriteEvents *events, void *ctx,
           GError **error)
{
    BoxWrite *write = g_new0(BoxWrite, 1);

    file_place_hold(&write->place, place);
    write->path = g_strdup(argv[1]);
    write->events = events;
    write->ctx = ctx;
    buf_init(&write->words, FILE_WORDS_MAX);
    write->run = file_start(&write->place, argv, START_STDIN, 0, &write_sink, write, error);
    if (write->run == NULL)
        g_clear_pointer(&write, write_free);
    return write;
}

size_t
box_write_data(BoxWrite *write, const void *bytes, size_t n)
{
    return run_write(write->run, bytes, n);
}

void
box_write_end(BoxWrite *write)
{
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

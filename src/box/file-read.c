/* SPDX-License-Identifier: Apache-2.0 */
/* Files and trees on their way out: the entry first, then bytes as fast as they are taken. */
#include <string.h>

#include "base/err.h"
#include "box/file-op.h"

enum { ENTRY_MAX = sizeof(BuiltinEntry) + 2 * FRAME_PATH_MAX };

struct BoxRead {
    FilePlace place;
    Run *run;
    char *path;
    const BoxReadEvents *events;
    void *ctx;
    Buf head;  /* until the entry is whole */
    Buf words; /* what it says about an error */
    bool wants_entry, nonsense;
    bool inside, cancelled; /* a callback runs; it asked for the end */
};

static void
read_free(BoxRead *read)
{
    g_clear_pointer(&read->run, run_unref);
    buf_clear(&read->head);
    buf_clear(&read->words);
    file_place_clear(&read->place);
    g_free(read->path);
    g_free(read);
}

/* The entry is taken off the beginning; how many of these bytes belonged to it. */
static size_t
take_entry(BoxRead *read, const guint8 *bytes, size_t n)
{
    size_t before = buf_len(&read->head);
    size_t more = MIN(n, buf_room(&read->head));
    BoxEntry entry = {0};
    size_t len;

    (void)!buf_put(&read->head, bytes, more);
    const guint8 *head = buf_peek(&read->head, &len);
    gssize used = file_entry_parse(head, len, &entry);

    if (used < 0 || (used == 0 && len == ENTRY_MAX)) {
        read->nonsense = true;
        return n;
    }
    if (used == 0)
        return n;
    read->wants_entry = false;
    buf_clear(&read->head);
    if (read->events->entry != NULL)
        read->events->entry(read, &entry, read->ctx);
    box_entry_clear(&entry);
    return (size_t)used - before;
}

static bool
on_output(Run *run, FrameStream stream, const guint8 *bytes, size_t n, void *ctx)
{
    BoxRead *read = ctx;
    size_t skip = 0;
    bool more = true;

    if (stream == STREAM_STDERR) {
        (void)!buf_put(&read->words, bytes, MIN(n, buf_room(&read->words)));
        return true;
    }
    if (read->nonsense)
        return true;
    read->inside = true;
    if (read->wants_entry)
        skip = take_entry(read, bytes, n);
    if (!read->cancelled && !read->nonsense && n > skip)
        more = read->events->data(read, bytes + skip, n - skip, read->ctx);
    read->inside = false;
    if (read->cancelled)
        read_free(read);
    return more;
}

static void
on_ended(Run *run, const RunEnd *end, void *ctx)
{
    BoxRead *read = ctx;
    g_autoptr(GError) error = file_end_error(end, read->path, &read->words);

    if (error == NULL && (read->nonsense || read->wants_entry))
        err_set(&error, ERR_INTERNAL, "'%s': the box talks nonsense", read->path);
    read->inside = true;
    read->events->end(read, error, read->ctx);
    read_free(read);
}

static const RunSink read_sink = {on_output, on_ended, NULL};

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
    buf_init(&read->head, ENTRY_MAX);
    buf_init(&read->words, FILE_WORDS_MAX);
    read->run = file_start(&read->place, argv, 0, 0, &read_sink, read, error);
    if (read->run == NULL)
        g_clear_pointer(&read, read_free);
    return read;
}

void
box_read_resume(BoxRead *read)
{
    run_resume(read->run);
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

/* SPDX-License-Identifier: Apache-2.0 */
/* Two ends that end on their own: the body (client) and the write (box).  Whichever fails first
 * decides the answer; the memory goes with the second. */
#include "api/file-receive.h"

#include <errno.h>

#include "api/state.h"
#include "base/buf.h"
#include "base/err.h"
#include "http/limits.h"

typedef struct FileReceive {
    FileCall *file;  /* owned */
    BoxWrite *write; /* NULL: over */
    Buf waiting;     /* what the box had no room for */
    guint64 bytes;
    bool body_over;
    bool held; /* a function up the stack still needs us */
} FileReceive;

static void
free_if_over(FileReceive *r)
{
    if (r->write != NULL || !r->body_over || r->held)
        return;
    buf_clear(&r->waiting);
    file_call_free(r->file);
    g_free(r);
}

/* ---- to the box ---- */

static void
push(FileReceive *r)
{
    size_t n;
    const guint8 *bytes = buf_peek(&r->waiting, &n);

    if (n > 0)
        buf_skip(&r->waiting, box_write_data(r->write, bytes, n));
}

static void
on_room(BoxWrite *write, void *ctx)
{
    FileReceive *r = ctx;

    push(r);
    if (buf_len(&r->waiting) > 0)
        return;
    if (r->body_over)
        box_write_end(r->write);
    else
        http_request_resume_body(r->file->call->request);
}

static void
on_written(BoxWrite *write, const GError *error, void *ctx)
{
    FileReceive *r = ctx;
    ApiCall *call = r->file->call;
    g_autofree char *path = g_utf8_make_valid(r->file->path, -1);

    r->write = NULL;
    /* The answer may end the body. */
    r->held = true;
    if (error != NULL)
        call_respond_error(call, error);
    else
        call_respond_json(call, 201, json_pack("{s:s, s:I}", "path", path, "size", (json_int_t)r->bytes));
    r->held = false;
    free_if_over(r);
}

/* ---- from the client ---- */

static void
give_up(FileReceive *r)
{
    if (r->write != NULL)
        box_write_cancel(g_steal_pointer(&r->write));
}

/* Asked before each piece: with the last of them the file is whole, and in its place. */
static bool
may_go_on(FileReceive *r)
{
    if (r->write == NULL)
        return false; /* answered: the rest is nobody's */
    if (caller_is_still_known(r->file->call))
        return true;
    give_up(r);
    /* The answer may end the body. */
    r->held = true;
    respond_error(r->file->call->request, 401, "the key of this call is not valid any more");
    r->held = false;
    return false;
}

static bool
on_body(void *ctx, const guint8 *bytes, size_t n)
{
    FileReceive *r = ctx;

    if (!may_go_on(r))
        return false;
    size_t taken = buf_len(&r->waiting) == 0 ? box_write_data(r->write, bytes, n) : 0;
    bool ok = buf_put(&r->waiting, bytes + taken, n - taken);
    g_assert(ok); /* asked for only when it was empty, and one read at a time */
    r->bytes += n;
    return buf_len(&r->waiting) == 0;
}

static gssize
on_splice(void *ctx, int fd, size_t n)
{
    FileReceive *r = ctx;

    if (!may_go_on(r)) {
        errno = ENOBUFS;
        return -1;
    }
    gssize moved = box_write_splice(r->write, fd, n);
    r->bytes += moved > 0 ? (guint64)moved : 0;
    return moved;
}

static void
on_body_end(void *ctx, const GError *error)
{
    FileReceive *r = ctx;
    bool undecided = r->write != NULL;

    r->body_over = true;
    if (error != NULL) {
        give_up(r);
        if (undecided)
            call_respond_body_error(r->file->call, error);
    } else if (undecided && !caller_is_still_known(r->file->call)) {
        give_up(r);
        respond_error(r->file->call->request, 401, "the key of this call is not valid any more");
    } else if (undecided && buf_len(&r->waiting) == 0) {
        box_write_end(r->write);
    }
    free_if_over(r);
}

/* ---- the start ---- */

static const BoxWriteEvents write_events = {.room = on_room, .end = on_written};

static bool
is_plain(HttpRequest *request)
{
    const char *coding = http_request_header(request, "Content-Encoding");

    if (coding == NULL || g_ascii_strcasecmp(coding, "identity") == 0)
        return true;
    respond_error(request, 415, "compressed bodies are not read");
    return false;
}

static FileReceive *
receive_new(FileCall *file)
{
    FileReceive *r = g_new0(FileReceive, 1);

    r->file = file;
    buf_init(&r->waiting, HTTP_READ_SIZE);
    return r;
}

/* Takes a write that was opened, or the error. */
static void
start(FileReceive *r, const GError *error)
{
    static const HttpSink sink = {.data = on_body, .end = on_body_end, .splice = on_splice};

    if (r->write == NULL) {
        call_respond_error(r->file->call, error);
        r->body_over = true;
        free_if_over(r);
        return;
    }
    http_request_read_body(r->file->call->request, &sink, r, G_MAXINT64);
}

void
file_receive(FileCall *file, int mode)
{
    g_autoptr(GError) error = NULL;

    if (!is_plain(file->call->request)) {
        file_call_free(file);
        return;
    }
    FileReceive *r = receive_new(file);
    r->write = box_file_write(&file->spec, file->path, mode, http_request_content_length(file->call->request),
                              &write_events, r, &error);
    start(r, error);
}

void
file_receive_tree(FileCall *file)
{
    g_autoptr(GError) error = NULL;

    if (!is_plain(file->call->request)) {
        file_call_free(file);
        return;
    }
    FileReceive *r = receive_new(file);
    r->write = box_tree_write(&file->spec, file->path, &write_events, r, &error);
    start(r, error);
}

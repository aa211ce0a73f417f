/* SPDX-License-Identifier: Apache-2.0 */
/* Files to and from the wire.  A transfer has one piece of HTTP_PULL_ROOM bytes: while a
 * thread of the pool fills or writes it, the transfer waits; the client is held up through
 * TCP.  So memory is one piece per transfer, whatever the file's size.
 *
 * The connection may go while a piece is with the pool.  The transfer then only notes it, and
 * is freed when the piece comes back. */
#include "http/file.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/io.h"
#include "http/conn.h"
#include "http/limits.h"
#include "http/negotiate.h"
#include "http/range.h"

/* ---- out ---- */

typedef struct FileOut {
    HttpRequest *request; /* a reference */
    int fd;
    guint64 at, left; /* of the file, not read yet */
    bool busy;        /* the piece is with the pool */
    bool closed;      /* the answer is over */
    bool failed;
    size_t piece_len, piece_at;
    guint8 piece[HTTP_PULL_ROOM];
} FileOut;

static void
out_free(FileOut *o)
{
    close(o->fd);
    http_request_unref(o->request);
    g_free(o);
}

static void
read_piece(void *data)
{
    FileOut *o = data;
    size_t want = MIN(o->left, (guint64)sizeof o->piece);

    o->piece_len = 0;
    o->piece_at = 0;
    while (o->piece_len < want) {
        ssize_t n = pread(o->fd, o->piece + o->piece_len, want - o->piece_len, (off_t)(o->at + o->piece_len));

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0) {
            o->failed = true; /* cut short under us: what was promised cannot be sent */
            return;
        }
        o->piece_len += (size_t)n;
    }
    o->at += want;
    o->left -= want;
}

static void
on_piece_read(void *data)
{
    FileOut *o = data;

    o->busy = false;
    if (o->closed)
        out_free(o);
    else
        http_request_wake(o->request);
}

static HttpPull
pull_file(void *ctx, Buf *out)
{
    FileOut *o = ctx;

    if (o->busy)
        return HTTP_PULL_WAIT;
    if (o->failed)
        return HTTP_PULL_FAIL;
    size_t n = MIN(o->piece_len - o->piece_at, buf_room(out));
    if (n > 0) {
        bool ok = buf_put(out, o->piece + o->piece_at, n);

        g_assert(ok);
        o->piece_at += n;
        return HTTP_PULL_DATA;
    }
    if (o->left == 0)
        return HTTP_PULL_END;
    o->busy = true;
    loop_offload(o->request->server->loop, read_piece, on_piece_read, o);
    return HTTP_PULL_WAIT;
}

static void
close_file(void *ctx)
{
    FileOut *o = ctx;

    o->closed = true;
    if (!o->busy)
        out_free(o);
}

static void
send_part(HttpRequest *request, int fd, int status, const char *type, guint64 first, guint64 length)
{
    static const HttpSource source = {.pull = pull_file, .closed = close_file};
    FileOut *o = g_new(FileOut, 1);

    o->request = http_request_ref(request);
    o->fd = fd;
    o->at = first;
    o->left = length;
    o->busy = o->closed = o->failed = false;
    o->piece_len = o->piece_at = 0;
    http_respond_stream(request, status, type, (gint64)length, &source, o);
}

/* A range of another version of the file would be a lie; a date or a weak tag does not say
 * which version it is (RFC 9110, 13.1.5).  Of several ranges none is taken. */
static bool
range_applies(HttpRequest *request, const char *etag)
{
    const char *condition = http_request_header(request, "If-Range");

    if (http_request_header_count(request, "Range") != 1)
        return false;
    return condition == NULL || (etag != NULL && etag[0] == '"' && strcmp(condition, etag) == 0);
}

static bool
is_known(HttpRequest *request, const char *etag)
{
    const char *method = http_request_method(request);

    if (etag == NULL || (strcmp(method, "GET") != 0 && strcmp(method, "HEAD") != 0))
        return false;
    for (guint i = 0; i < http_request_headers(request); i++) {
        const char *name, *value;

        http_request_header_at(request, i, &name, &value);
        if (g_ascii_strcasecmp(name, "If-None-Match") == 0 && etag_is_listed(value, etag))
            return true;
    }
    return false;
}

static void
set_headers(HttpRequest *request, const HttpFileSpec *spec)
{
    http_response_header(request, "Accept-Ranges", spec->whole ? "none" : "bytes");
    if (spec->etag != NULL)
        http_response_header(request, "ETag", spec->etag);
    if (spec->disposition != NULL)
        http_response_header(request, "Content-Disposition", spec->disposition);
}

static RangeResult
find_range(HttpRequest *request, const HttpFileSpec *spec, guint64 size, guint64 *ret_first,
           guint64 *ret_last)
{
    if (spec->whole || strcmp(http_request_method(request), "GET") != 0 ||
        !range_applies(request, spec->etag))
        return RANGE_NONE;
    return range_parse(http_request_header(request, "Range"), size, ret_first, ret_last);
}

void
http_respond_file(HttpRequest *request, int fd, const HttpFileSpec *spec)
{
    struct stat st;
    guint64 first = 0, last = 0;

    if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode)) {
        if (fd >= 0)
            close(fd);
        http_respond(request, 404, NULL, NULL, 0);
        return;
    }
    guint64 size = (guint64)st.st_size;
    set_headers(request, spec);
    if (is_known(request, spec->etag)) {
        close(fd);
        http_respond(request, 304, NULL, NULL, 0);
        return;
    }
    RangeResult range = find_range(request, spec, size, &first, &last);
    if (range == RANGE_NONE) {
        send_part(request, fd, 200, spec->type, 0, size);
        return;
    }
    g_autofree char *where = range == RANGE_ONE ? g_strdup_printf("bytes %" G_GUINT64_FORMAT
                                                                  "-%" G_GUINT64_FORMAT "/%" G_GUINT64_FORMAT,
                                                                  first, last, size)
                                                : g_strdup_printf("bytes */%" G_GUINT64_FORMAT, size);
    http_response_header(request, "Content-Range", where);
    if (range == RANGE_ONE) {
        send_part(request, fd, 206, spec->type, first, last - first + 1);
        return;
    }
    close(fd);
    http_respond(request, 416, NULL, NULL, 0);
}

/* ---- in ---- */

typedef struct FileIn {
    HttpRequest *request; /* a reference */
    Loop *loop;           /* its server's */
    int fd;               /* borrowed until `done` */
    HttpUploadFunc done;  /* NULL: told already */
    void *data;
    guint64 bytes;
    GError *error; /* the first thing that went wrong */
    bool busy;     /* the piece is with the pool */
    bool ended;    /* the body is over, whichever way */
    int write_errno;
    size_t piece_len;
    /* Small chunks are gathered: one read's worth goes to the pool, and what came with it. */
    guint8 piece[2 * HTTP_READ_SIZE];
} FileIn;

static void
tell(FileIn *in)
{
    HttpUploadFunc done = g_steal_pointer(&in->done);

    if (done != NULL)
        done(in->request, in->bytes, in->error, in->data);
}

static void
settle_upload(FileIn *in)
{
    if (in->busy)
        return;
    /* The answer that is given now may end the body, and call us again. */
    in->busy = true;
    if (in->ended || in->error != NULL)
        tell(in);
    in->busy = false;
    if (!in->ended)
        return;
    g_clear_error(&in->error);
    http_request_unref(in->request);
    g_free(in);
}

static void
write_piece(void *data)
{
    FileIn *in = data;

    in->write_errno = io_write_all(in->fd, in->piece, in->piece_len) ? 0 : errno;
}

static void
on_piece_written(void *data)
{
    FileIn *in = data;

    in->busy = false;
    if (in->write_errno != 0 && in->error == NULL) {
        errno = in->write_errno;
        err_errno(&in->error, "store the upload");
    }
    if (in->error == NULL) {
        in->bytes += in->piece_len;
        in->piece_len = 0;
        if (!in->ended) {
            http_request_resume_body(in->request);
            return;
        }
    }
    settle_upload(in);
}

static void
start_write(FileIn *in)
{
    in->busy = true;
    loop_offload(in->loop, write_piece, on_piece_written, in);
}

static bool
take_piece(void *ctx, const guint8 *bytes, size_t n)
{
    FileIn *in = ctx;

    g_assert(!in->busy && n <= sizeof in->piece - in->piece_len);
    memcpy(in->piece + in->piece_len, bytes, n);
    in->piece_len += n;
    if (in->piece_len < HTTP_READ_SIZE)
        return true;
    start_write(in);
    return false;
}

static void
end_upload(void *ctx, const GError *error)
{
    FileIn *in = ctx;

    in->ended = true;
    if (error != NULL && in->error == NULL)
        in->error = g_error_copy(error);
    if (in->error == NULL && in->piece_len > 0)
        start_write(in);
    settle_upload(in);
}

void
http_request_read_to_file(HttpRequest *request, int fd, guint64 max, HttpUploadFunc done, void *data)
{
    static const HttpSink sink = {.data = take_piece, .end = end_upload};
    FileIn *in = g_new(FileIn, 1);

    in->request = http_request_ref(request);
    in->fd = fd;
    in->done = done;
    in->data = data;
    in->loop = request->conn != NULL ? request->server->loop : NULL; /* gone: nothing will come */
    in->bytes = 0;
    in->error = NULL;
    in->busy = in->ended = false;
    in->piece_len = 0;
    http_request_read_body(request, &sink, in, max);
}

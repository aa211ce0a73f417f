/* SPDX-License-Identifier: Apache-2.0 */
/* GET …/commands/{command}/output: events, or the bytes of one stream.
 *
 * The bytes come without a length, since a command that goes on has none and a log may have a
 * hole; where one is, a line says so.  A range has a length and no such line: it begins with
 * the first byte that is there and ends before the next hole, and Content-Range tells which
 * bytes these are.  So a long one is read twice: to see how far it goes, and then to the client.
 * Of a stream that still grows it is no longer than what is kept of the first reading: the log
 * would drop the rest while a slow client takes it, and the length was promised. */
#include <string.h>

#include "api/command-find.h"
#include "api/output-feed.h"
#include "api/output-reader.h"
#include "api/routes.h"
#include "api/state.h"
#include "base/err.h"
#include "http/limits.h"
#include "http/range.h"
#include "http/url.h"

enum { RANGE_KEPT_MAX = 1024 * 1024 }; /* of a range, while its length is not known */

#define TYPE "application/octet-stream"

typedef struct Bytes {
    ApiCall *call; /* of the stream: not a reference, it closes us before it goes */
    OutputReader *reader;
    FrameStream stream;
    /* Where they are: */
    Run *run; /* a reference; NULL: in the logs */
    char *folder;
    guint32 id;
    /* Of a range: */
    guint64 first, last, at;
    guint64 size;    /* of the stream so far */
    bool grows;      /* more may come */
    GByteArray *got; /* its beginning */
    size_t sent;     /* of that */
} Bytes;

static void
bytes_free(void *ctx)
{
    Bytes *b = ctx;

    output_reader_free(b->reader);
    run_unref(b->run);
    g_free(b->folder);
    if (b->got != NULL)
        g_byte_array_unref(b->got);
    g_free(b);
}

static Bytes *
bytes_new(ApiCall *call, const CommandPlace *place, FrameStream stream)
{
    Bytes *b = g_new0(Bytes, 1);

    b->call = call;
    b->stream = stream;
    b->run = place->run != NULL ? run_ref(place->run) : NULL;
    b->folder = box_host_dup_log_folder(call->api->boxes, place->box_id);
    b->id = place->id;
    return b;
}

static void
open_reader(Bytes *b, guint64 offset, void (*wake)(void *data))
{
    OutputSpec spec = {
        .loop = b->call->api->loop,
        .run = b->run,
        .folder = b->folder,
        .id = b->id,
        .out_offset = b->stream == STREAM_STDOUT ? offset : 0,
        .err_offset = b->stream == STREAM_STDERR ? offset : 0,
        .only = b->stream,
        .wake = wake,
        .data = b,
    };

    b->reader = output_reader_new(&spec);
}

/* ---- everything ---- */

static HttpPull
put_hole(Buf *out, guint64 n)
{
    return buf_printf(out, "\n[%" G_GUINT64_FORMAT " bytes left out]\n", n) ? HTTP_PULL_DATA : HTTP_PULL_FAIL;
}

static HttpPull
pull_bytes(void *ctx, Buf *out)
{
    Bytes *b = ctx;
    RunPiece piece;

    if (!caller_is_still_known(b->call))
        return HTTP_PULL_FAIL;
    switch (output_reader_next(b->reader, &piece)) {
    case RUN_STEP_DATA:
        return buf_put(out, piece.bytes, piece.n) ? HTTP_PULL_DATA : HTTP_PULL_FAIL;
    case RUN_STEP_GAP:
        return put_hole(out, piece.n);
    case RUN_STEP_WAIT:
        return HTTP_PULL_WAIT;
    case RUN_STEP_END:
        return HTTP_PULL_END;
    case RUN_STEP_FAILED:
        return HTTP_PULL_FAIL;
    }
    g_assert_not_reached();
}

static void
wake_stream(void *data)
{
    Bytes *b = data;

    http_request_wake(b->call->request);
}

static void
send_all(ApiCall *call, const CommandPlace *place, FrameStream stream)
{
    static const HttpSource source = {.pull = pull_bytes, .closed = bytes_free};
    Bytes *b = bytes_new(call, place, stream);

    open_reader(b, 0, wake_stream);
    http_response_header(call->request, "Accept-Ranges", "bytes");
    http_response_header(call->request, "Cache-Control", "no-store");
    http_respond_stream(call->request, 200, TYPE, -1, &source, b);
}

/* ---- a range ---- */

static void
answer_unsatisfiable(ApiCall *call, guint64 size)
{
    g_autofree char *where = g_strdup_printf("bytes */%" G_GUINT64_FORMAT, size);

    http_response_header(call->request, "Content-Range", where);
    respond_error(call->request, 416, "there are no such bytes");
}

/* What is not there any more when its turn comes cuts the answer: a length was promised. */
static HttpPull
pull_range(void *ctx, Buf *out)
{
    Bytes *b = ctx;
    size_t n = MIN(b->got->len - b->sent, buf_room(out));
    RunPiece piece;

    if (!caller_is_still_known(b->call))
        return HTTP_PULL_FAIL;
    if (n > 0) {
        bool ok = buf_put(out, b->got->data + b->sent, n);

        g_assert(ok); /* looked at its room */
        b->sent += n;
        return HTTP_PULL_DATA;
    }
    switch (output_reader_next(b->reader, &piece)) {
    case RUN_STEP_DATA:
        n = (size_t)MIN(piece.n, b->last - b->at + 1);
        b->at += n;
        return buf_put(out, piece.bytes, n) ? HTTP_PULL_DATA : HTTP_PULL_FAIL;
    case RUN_STEP_WAIT:
        return HTTP_PULL_WAIT;
    case RUN_STEP_GAP:
    case RUN_STEP_END:
    case RUN_STEP_FAILED:
        return HTTP_PULL_FAIL;
    }
    g_assert_not_reached();
}

/* From `first` to before `at` it is there. */
static void
answer_range(Bytes *b)
{
    static const HttpSource source = {.pull = pull_range, .closed = bytes_free};
    g_autoptr(HttpRequest) request = b->call->request;
    g_autofree char *size = b->grows ? g_strdup("*") : g_strdup_printf("%" G_GUINT64_FORMAT, b->size);
    guint64 n = b->at - b->first;

    if (b->got->len == 0) {
        answer_unsatisfiable(b->call, b->size);
        bytes_free(b);
        return;
    }
    b->last = b->at - 1;
    b->at = b->first + b->got->len;
    g_clear_pointer(&b->reader, output_reader_free);
    if (b->at <= b->last)
        open_reader(b, b->at, wake_stream);
    g_autofree char *where = g_strdup_printf("bytes %" G_GUINT64_FORMAT "-%" G_GUINT64_FORMAT "/%s", b->first,
                                             b->last, size);
    http_response_header(request, "Content-Range", where);
    http_response_header(request, "Accept-Ranges", "bytes");
    http_response_header(request, "Cache-Control", "no-store");
    http_respond_stream(request, 206, TYPE, (gint64)n, &source, b);
}

/* False: that is all there is to it. */
static bool
take_piece(Bytes *b, const RunPiece *piece)
{
    size_t n = (size_t)MIN(piece->n, b->last - b->at + 1);
    size_t kept = MIN(n, (size_t)RANGE_KEPT_MAX - b->got->len);

    /* Either all before it was kept, or there is no room. */
    g_byte_array_append(b->got, piece->bytes, (guint)kept);
    b->at += b->grows ? kept : n;
    return b->at <= b->last && !(b->grows && b->got->len == RANGE_KEPT_MAX);
}

static bool
take_hole(Bytes *b, const RunPiece *piece)
{
    if (b->got->len > 0)
        return false;
    b->first = b->at = piece->offset + piece->n;
    return b->first <= b->last;
}

/* Nobody is there any more, or one who may not have it. */
static bool
is_unwanted(ApiCall *call)
{
    if (http_request_is_gone(call->request))
        return true;
    if (caller_is_still_known(call))
        return false;
    respond_error(call->request, 401, "the key of this call is not valid any more");
    return true;
}

/* Of a log one piece each time. */
static void
read_range(void *data)
{
    Bytes *b = data;
    bool more = true;
    RunPiece piece;

    if (is_unwanted(b->call)) {
        HttpRequest *request = b->call->request;

        bytes_free(b);
        http_request_unref(request);
        return;
    }
    while (more) {
        switch (output_reader_next(b->reader, &piece)) {
        case RUN_STEP_DATA:
            more = take_piece(b, &piece);
            break;
        case RUN_STEP_GAP:
            more = take_hole(b, &piece);
            break;
        case RUN_STEP_WAIT:
            return;
        case RUN_STEP_END:
        case RUN_STEP_FAILED:
            more = false;
            break;
        }
    }
    answer_range(b);
}

static guint64
stream_size(const CommandPlace *place, FrameStream stream)
{
    const char *name = stream == STREAM_STDERR ? "stderr_bytes" : "stdout_bytes";
    Json *end = json_object_get(place->object, "end");

    if (place->run != NULL && !run_has_ended(place->run))
        return run_output_bytes(place->run, stream);
    return (guint64)json_integer_value(json_object_get(end, name));
}

static bool
send_range(ApiCall *call, const CommandPlace *place, FrameStream stream)
{
    guint64 size = stream_size(place, stream), first, last;
    const char *header = http_request_header(call->request, "Range");
    RangeResult range = http_request_header_count(call->request, "Range") == 1
                            ? range_parse(header, size, &first, &last)
                            : RANGE_NONE;

    if (range == RANGE_NONE)
        return false;
    if (range == RANGE_UNSATISFIABLE) {
        answer_unsatisfiable(call, size);
        return true;
    }
    Bytes *b = bytes_new(call, place, stream);
    b->first = b->at = first;
    b->last = last;
    b->size = size;
    b->grows = place->run != NULL && !run_has_ended(place->run);
    b->got = g_byte_array_new();
    open_reader(b, first, read_range);
    http_request_ref(call->request);
    read_range(b);
    return true;
}

/* ---- the route ---- */

static bool
read_stream(ApiCall *call, FrameStream *ret_stream, GError **error)
{
    static const char *const names[] = {"stream", NULL};
    const char *query = http_request_query(call->request);
    g_autofree char *name = NULL;

    if (!url_query_only(query, names, error) || !url_query_get(query, "stream", &name, error))
        return false;
    if (name != NULL && strcmp(name, "stdout") != 0 && strcmp(name, "stderr") != 0)
        return err_set(error, ERR_INVALID, "'stream' must be stdout or stderr");
    *ret_stream = g_strcmp0(name, "stderr") == 0 ? STREAM_STDERR : STREAM_STDOUT;
    return true;
}

static void
feed(ApiCall *call, const CommandPlace *place)
{
    g_autofree char *folder = box_host_dup_log_folder(call->api->boxes, place->box_id);
    OutputFeedSpec spec = {.run = place->run, .folder = folder, .id = place->id};
    g_autoptr(GError) error = NULL;

    if (!output_offsets_read(http_request_header(call->request, "Last-Event-ID"), &spec.offsets, &error)) {
        call_respond_error(call, error);
        return;
    }
    spec.end = json_incref(json_object_get(place->object, "end"));
    call_respond_output_feed(call, &spec);
}

static void
send_output(ApiCall *call, const CommandPlace *place)
{
    FrameStream stream = STREAM_STDOUT;
    g_autoptr(GError) error = NULL;

    if (!read_stream(call, &stream, &error))
        call_respond_error(call, error);
    else if (call_wants_stream(call))
        feed(call, place);
    else if (!send_range(call, place, stream))
        send_all(call, place, stream);
}

static void
get_output(ApiCall *call)
{
    call_command(call, send_output);
}

const ApiRoute command_output_routes[] = {
    {"GET", "/api/v1/sandboxes/{id}/commands/{command}/output", SCOPE_READ, ROUTE_STREAM, get_output},
    {NULL},
};

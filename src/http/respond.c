/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/err.h"
#include "base/tcp.h"
#include "http/conn.h"
#include "http/limits.h"
#include "http/status.h"

/* Wide enough for every size, so that the line can be written before the size is known. */
static const char chunk_line[] = "00000000\r\n";
enum { CHUNK_LINE_LEN = sizeof chunk_line - 1 };

typedef enum Framing { FRAMING_NONE, FRAMING_LENGTH, FRAMING_CHUNKED, FRAMING_CLOSE, FRAMING_RAW } Framing;

static void
put(Buf *out, const char *text, size_t n)
{
    bool ok = buf_put(out, text, n);

    g_assert(ok); /* heads are small, and nothing but a 100 stands before one */
}

static void
puts_(Buf *out, const char *text)
{
    put(out, text, strlen(text));
}

static void
put_number(Buf *out, guint64 n)
{
    char digits[20];
    size_t at = sizeof digits;

    do {
        digits[--at] = (char)('0' + n % 10);
        n /= 10;
    } while (n > 0);
    put(out, digits + at, sizeof digits - at);
}

static void
put_header(Buf *out, const char *name, const char *value)
{
    puts_(out, name);
    put(out, ": ", 2);
    puts_(out, value);
    put(out, "\r\n", 2);
}

static void
put_connection(HttpRequest *r, Framing framing)
{
    Buf *out = &r->conn->out;
    bool unread = r->body != BODY_NONE && r->body != BODY_ENDED;

    if (framing == FRAMING_RAW) {
        if (r->status == 101)
            puts_(out, "Connection: Upgrade\r\n");
        return;
    }
    /* A body that is being read may still come to its end; one that nobody reads will not. */
    if (framing == FRAMING_CLOSE || r->last || r->body == BODY_FAILED || (unread && r->body == BODY_UNREAD) ||
        r->conn->server->draining)
        r->head.keep_alive = false;
    if (!r->head.keep_alive)
        puts_(out, "Connection: close\r\n");
    else if (r->head.minor == 0)
        puts_(out, "Connection: keep-alive\r\n");
}

static void
put_head(HttpRequest *r, const char *type, Framing framing, guint64 length)
{
    Buf *out = &r->conn->out;

    puts_(out, "HTTP/1.1 ");
    put_number(out, (guint64)r->status);
    put(out, " ", 1);
    puts_(out, http_status_reason(r->status));
    puts_(out, "\r\nDate: ");
    puts_(out, server_date(r->server));
    put(out, "\r\n", 2);
    if (r->server->server_name != NULL)
        put_header(out, "Server", r->server->server_name);
    if (type != NULL)
        put_header(out, "Content-Type", type);
    if (framing == FRAMING_LENGTH) {
        puts_(out, "Content-Length: ");
        put_number(out, length);
        put(out, "\r\n", 2);
    } else if (framing == FRAMING_CHUNKED) {
        puts_(out, "Transfer-Encoding: chunked\r\n");
    }
    put_connection(r, framing);
    if (r->extra != NULL)
        put(out, r->extra->str, r->extra->len);
    put(out, "\r\n", 2);
}

static bool
is_plain_text(const char *text)
{
    for (const char *p = text; *p != '\0'; p++) {
        if ((guchar)*p < ' ' && *p != '\t')
            return false;
    }
    return true;
}

void
http_response_header(HttpRequest *request, const char *name, const char *value)
{
    g_assert(is_plain_text(name) && is_plain_text(value));
    if (request->extra == NULL)
        request->extra = g_string_sized_new(128);
    g_string_append(request->extra, name);
    g_string_append_len(request->extra, ": ", 2);
    g_string_append(request->extra, value);
    g_string_append_len(request->extra, "\r\n", 2);
    g_assert(request->extra->len < HTTP_HEAD_MAX);
}

void
http_response_close(HttpRequest *request)
{
    request->last = true;
}

static bool
may_answer(HttpRequest *r, int status)
{
    if (r->conn == NULL || r->answer != ANSWER_NONE)
        return false;
    r->status = status;
    return true;
}

static bool
is_bodyless(const HttpRequest *r)
{
    return r->status == 204 || r->status == 304 || strcmp(r->head.method, "HEAD") == 0;
}

/* ---- whole answers ---- */

void
http_respond(HttpRequest *request, int status, const char *type, const void *body, size_t n)
{
    HttpRequest *r = request;

    if (n > HTTP_OUT_HIGH) {
        g_autoptr(GBytes) copy = g_bytes_new(body, n);

        http_respond_bytes(r, status, type, copy);
        return;
    }
    if (!may_answer(r, status))
        return;
    put_head(r, type, status == 204 || status == 304 ? FRAMING_NONE : FRAMING_LENGTH, n);
    if (!is_bodyless(r)) {
        put(&r->conn->out, body, n);
        r->bytes_out = n;
    }
    r->answer = ANSWER_WRITTEN;
    conn_run(r->conn);
}

void
http_respond_text(HttpRequest *request, int status, const char *type, const char *body)
{
    http_respond(request, status, type, body, strlen(body));
}

typedef struct BytesSource {
    GBytes *bytes;
    size_t at;
} BytesSource;

static HttpPull
pull_bytes(void *ctx, Buf *out)
{
    BytesSource *s = ctx;
    size_t size;
    const guint8 *data = g_bytes_get_data(s->bytes, &size);
    size_t n = MIN(size - s->at, buf_room(out));

    if (n == 0)
        return HTTP_PULL_END;
    put(out, (const char *)data + s->at, n);
    s->at += n;
    return HTTP_PULL_DATA;
}

static void
close_bytes(void *ctx)
{
    BytesSource *s = ctx;

    g_bytes_unref(s->bytes);
    g_free(s);
}

void
http_respond_bytes(HttpRequest *request, int status, const char *type, GBytes *body)
{
    static const HttpSource source = {.pull = pull_bytes, .closed = close_bytes};
    BytesSource *s = g_new0(BytesSource, 1);

    s->bytes = g_bytes_ref(body);
    http_respond_stream(request, status, type, (gint64)g_bytes_get_size(body), &source, s);
}

/* ---- streams ---- */

static void
set_source(HttpRequest *r, const HttpSource *source, void *ctx)
{
    r->source = source;
    r->source_ctx = ctx;
    r->conn->server->stats.streams++;
}

static void
close_source(HttpRequest *r)
{
    const HttpSource *source = g_steal_pointer(&r->source);

    r->conn->server->stats.streams--;
    if (source->closed != NULL)
        source->closed(r->source_ctx);
}

/* A stream may last for hours with nothing to read: it keeps no parser and no slack. */
static void
slim_down(HttpRequest *r)
{
    HttpHead *h = &r->head;

    if (r->body == BODY_NONE)
        g_clear_pointer(&r->conn->parser, http_parser_free);
    h->text = g_realloc(h->text, h->len);
    h->size = h->len;
    if (h->n_headers > 0)
        h->headers = g_renew(HttpHeaderSpan, h->headers, h->n_headers);
    h->headers_size = h->n_headers;
    if (r->extra != NULL)
        g_string_free(g_steal_pointer(&r->extra), TRUE);
}

void
http_respond_stream(HttpRequest *request, int status, const char *type, gint64 length,
                    const HttpSource *source, void *ctx)
{
    HttpRequest *r = request;

    if (!may_answer(r, status)) {
        if (source->closed != NULL)
            source->closed(ctx);
        return;
    }
    Framing framing = length >= 0 ? FRAMING_LENGTH : r->head.minor == 0 ? FRAMING_CLOSE : FRAMING_CHUNKED;
    put_head(r, type, framing, (guint64)MAX(length, 0));
    set_source(r, source, ctx);
    r->length_left = length;
    r->chunked = framing == FRAMING_CHUNKED;
    if (is_bodyless(r) || length == 0) {
        r->answer = ANSWER_WRITTEN;
        close_source(r);
    } else {
        r->answer = ANSWER_STREAM;
        slim_down(r);
    }
    conn_run(r->conn);
}

static HttpPull
pull_into(HttpRequest *r, Buf *out, size_t *ret_added)
{
    size_t max = out->max;
    size_t before;

    if (r->chunked)
        put(out, chunk_line, CHUNK_LINE_LEN);
    before = buf_len(out);
    out->max = before + HTTP_PULL_ROOM;
    r->waiting = true; /* http_request_wake() during the pull clears it again */
    HttpPull result = r->source->pull(r->source_ctx, out);
    if (result != HTTP_PULL_WAIT)
        r->waiting = false;
    out->max = max;
    *ret_added = buf_len(out) - before;
    return result;
}

bool
respond_is_spliced(const HttpRequest *r)
{
    return r->source->splice != NULL && r->length_left > HTTP_SPLICE_MIN && r->answer == ANSWER_STREAM;
}

/* One step for each turn of the loop, so that a fast reader holds up nobody. */
static HttpPull
splice_some(HttpConn *conn, size_t *ret_moved)
{
    HttpRequest *r = conn->request;

    r->waiting = true; /* as above */
    HttpPull result = r->source->splice(r->source_ctx, conn->watch.fd, (size_t)r->length_left, ret_moved);
    if (result != HTTP_PULL_WAIT)
        r->waiting = false;
    conn->later = result == HTTP_PULL_FULL || result == HTTP_PULL_DATA;
    if (*ret_moved > 0) {
        conn->progress = true;
        conn->server->stats.bytes_out += *ret_moved;
    }
    return result;
}

static void
frame_chunk(Buf *out, size_t n)
{
    static const char hex[] = "0123456789abcdef";

    if (n == 0) {
        out->tail -= CHUNK_LINE_LEN;
        return;
    }
    guint8 *line = out->data + out->tail - n - CHUNK_LINE_LEN;
    for (int i = 7; i >= 0; i--, n >>= 4)
        line[i] = (guint8)hex[n & 15];
    put(out, "\r\n", 2);
}

/* A body that ends with the connection looks whole after a plain close; a reset does not. */
static bool
cut(HttpConn *conn)
{
    tcp_reset_on_close(conn->watch.fd);
    return false;
}

bool
respond_pull(HttpConn *conn)
{
    HttpRequest *r = conn->request;
    size_t n = 0;
    HttpPull result = respond_is_spliced(r) ? splice_some(conn, &n) : pull_into(r, &conn->out, &n);

    if (r->chunked)
        frame_chunk(&conn->out, n);
    r->bytes_out += n;
    if (r->length_left >= 0) {
        g_assert((guint64)r->length_left >= n); /* the source promised a length */
        r->length_left -= (gint64)n;
    }
    if (result == HTTP_PULL_FAIL || (result == HTTP_PULL_END && r->length_left > 0))
        return cut(conn);
    if (result == HTTP_PULL_END || r->length_left == 0) {
        if (r->chunked)
            puts_(&conn->out, "0\r\n\r\n");
        r->answer = ANSWER_WRITTEN;
        close_source(r);
    }
    return true;
}

void
http_request_wake(HttpRequest *request)
{
    if (!request->waiting)
        return;
    request->waiting = false;
    if (request->conn != NULL)
        conn_run(request->conn);
}

/* ---- taking over ---- */

void
http_respond_duplex(HttpRequest *request, int status, const HttpSource *source, const HttpSink *sink,
                    void *ctx)
{
    HttpRequest *r = request;

    if (!may_answer(r, status)) {
        g_autoptr(GError) error = NULL;

        err_set(&error, ERR_CANCELLED, "the client is gone");
        sink->end(ctx, error);
        if (source->closed != NULL)
            source->closed(ctx);
        return;
    }
    g_assert(r->sink == NULL && r->body == BODY_NONE);
    put_head(r, NULL, FRAMING_RAW, 0);
    slim_down(r);
    set_source(r, source, ctx);
    r->sink = sink;
    r->sink_ctx = ctx;
    r->body = BODY_READING;
    r->answer = ANSWER_DUPLEX;
    r->conn->state = CONN_DUPLEX;
    conn_run(r->conn);
}

void
http_request_cut(HttpRequest *request)
{
    if (request->conn != NULL)
        conn_kill(request->conn);
}

void
http_respond_hijack(HttpRequest *request, int status, HttpHijackFunc func, void *data)
{
    HttpRequest *r = request;

    if (!may_answer(r, status)) {
        func(-1, NULL, data);
        return;
    }
    put_head(r, NULL, FRAMING_RAW, 0);
    r->hijack = func;
    r->hijack_data = data;
    r->answer = ANSWER_HIJACK;
    conn_run(r->conn);
}

/* ---- refusals ---- */

void
respond_refuse(HttpConn *conn, int status, const char *reason)
{
    Buf *out = &conn->out;
    g_autofree char *body = g_strdup_printf("{\"code\":%d,\"message\":\"%s\"}\n", status, reason);

    puts_(out, "HTTP/1.1 ");
    put_number(out, (guint64)status);
    put(out, " ", 1);
    puts_(out, http_status_reason(status));
    puts_(out, "\r\nDate: ");
    puts_(out, server_date(conn->server));
    puts_(out, "\r\nContent-Type: application/json\r\nConnection: close\r\nContent-Length: ");
    put_number(out, strlen(body));
    puts_(out, "\r\n\r\n");
    puts_(out, body);
    conn->state = CONN_LINGER;
    conn->lingered = 0;
}

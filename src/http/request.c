/* SPDX-License-Identifier: Apache-2.0 */
#include "http/request.h"

#include <string.h>

#include "base/clock.h"
#include "base/err.h"
#include "http/conn.h"
#include "http/limits.h"

HttpRequest *
request_new(HttpConn *conn)
{
    HttpRequest *r = g_new0(HttpRequest, 1);

    r->refs = 1;
    r->conn = conn;
    r->server = conn->server;
    r->id_prefix = conn->server->id_prefix;
    r->number = conn->server->next_number++;
    r->started_us = clock_mono_us();
    r->peer = conn->peer;
    r->listener_data = conn->listener->data;
    r->length_left = -1;
    http_parser_take_head(conn->parser, &r->head);
    r->body = r->head.has_body ? BODY_UNREAD : BODY_NONE;
    if (r->body == BODY_NONE)
        http_parser_reset(conn->parser);
    return r;
}

HttpRequest *
http_request_ref(HttpRequest *request)
{
    g_atomic_int_inc(&request->refs);
    return request;
}

static void
request_free(HttpRequest *r)
{
    if (r->data_destroy != NULL)
        r->data_destroy(r->data);
    if (r->extra != NULL)
        g_string_free(r->extra, TRUE);
    http_head_clear(&r->head);
    g_free(r->path);
    g_free(r);
}

void
http_request_unref(HttpRequest *request)
{
    HttpRequest *r = request;

    if (r == NULL)
        return;
    /* The connection's reference is left: whoever could have answered has let go. */
    if (r->refs == 2 && r->conn != NULL && r->answer == ANSWER_NONE && r->body != BODY_READING &&
        r->body != BODY_PAUSED)
        http_respond_text(r, 500, "application/json", "{\"code\":500,\"message\":\"no answer was made\"}");
    if (g_atomic_int_dec_and_test(&r->refs))
        request_free(r);
}

void
request_end_body(HttpRequest *r, BodyState how, const GError *error)
{
    const HttpSink *sink = r->sink;

    if (r->body == BODY_NONE && how != BODY_ENDED)
        return;
    r->body = how;
    r->sink = NULL;
    if (sink != NULL)
        sink->end(r->sink_ctx, error);
}

static void
end_answer(HttpRequest *r)
{
    const HttpSource *source = g_steal_pointer(&r->source);
    HttpHijackFunc hijack = g_steal_pointer(&r->hijack);

    if (source != NULL && source->closed != NULL)
        source->closed(r->source_ctx);
    if (hijack != NULL)
        hijack(-1, NULL, r->hijack_data);
}

void
request_end(HttpRequest *r, bool complete)
{
    HttpConn *conn = g_steal_pointer(&r->conn);

    g_assert(conn != NULL && conn->request == r);
    conn->request = NULL;
    conn->server->stats.requests_active--;
    if (r->source != NULL)
        conn->server->stats.streams--;
    r->gone = !complete;
    if (r->sink != NULL) {
        g_autoptr(GError) error = NULL;

        err_set(&error, ERR_CANCELLED,
                complete ? "answered before the whole body came" : "the client is gone");
        request_end_body(r, BODY_FAILED, error);
    }
    end_answer(r);
    if (!complete && r->on_gone != NULL)
        r->on_gone(r, r->gone_data);
    if (r->on_over != NULL) {
        HttpOutcome outcome = {
            .status = r->status,
            .bytes_out = r->bytes_out,
            .duration_us = clock_mono_us() - r->started_us,
            .complete = complete,
        };
        r->on_over(r, &outcome, r->over_data);
    }
    http_request_unref(r);
}

/* ---- the head ---- */

const char *
http_request_id(const HttpRequest *request)
{
    /* Made when somebody asks: most requests are never logged. */
    HttpRequest *r = (HttpRequest *)(guintptr)request;

    if (r->id[0] == '\0')
        g_snprintf(r->id, sizeof r->id, "%04x%08" G_GINT64_MODIFIER "x", r->id_prefix & 0xffff,
                   r->number & 0xffffffff);
    return r->id;
}

const char *
http_request_method(const HttpRequest *request)
{
    return request->head.method;
}

const char *
http_request_target(const HttpRequest *request)
{
    return http_head_target(&request->head);
}

const char *
http_request_path(const HttpRequest *request)
{
    HttpRequest *r = (HttpRequest *)(guintptr)request;
    const char *target = http_request_target(r);

    if (r->path == NULL)
        r->path = target[0] == '/' ? g_strndup(target, strcspn(target, "?")) : g_strdup("");
    return r->path;
}

const char *
http_request_query(const HttpRequest *request)
{
    const char *mark = strchr(http_request_target(request), '?');

    return mark != NULL ? mark + 1 : NULL;
}

int
http_request_minor(const HttpRequest *request)
{
    return request->head.minor;
}

const char *
http_request_header(const HttpRequest *request, const char *name)
{
    return http_head_find(&request->head, name);
}

guint
http_request_header_count(const HttpRequest *request, const char *name)
{
    return http_head_count(&request->head, name);
}

guint
http_request_headers(const HttpRequest *request)
{
    return request->head.n_headers;
}

void
http_request_header_at(const HttpRequest *request, guint i, const char **ret_name, const char **ret_value)
{
    const HttpHead *h = &request->head;

    g_assert(i < h->n_headers);
    *ret_name = h->text + h->headers[i].name;
    *ret_value = h->text + h->headers[i].value;
}

bool
http_request_has_body(const HttpRequest *request)
{
    return request->head.has_body;
}

gint64
http_request_content_length(const HttpRequest *request)
{
    return request->head.content_length;
}

bool
http_request_wants_upgrade(const HttpRequest *request, const char *protocol)
{
    const char *wanted = http_request_header(request, "Upgrade");

    return request->head.upgrade && wanted != NULL && g_ascii_strcasecmp(wanted, protocol) == 0;
}

const HttpPeer *
http_request_peer(const HttpRequest *request)
{
    return &request->peer;
}

void *
http_request_listener_data(const HttpRequest *request)
{
    return request->listener_data;
}

/* ---- life ---- */

bool
http_request_is_gone(const HttpRequest *request)
{
    return request->gone;
}

bool
http_request_is_answered(const HttpRequest *request)
{
    return request->answer != ANSWER_NONE;
}

void
http_request_on_gone(HttpRequest *request, void (*gone)(HttpRequest *request, void *data), void *data)
{
    request->on_gone = gone;
    request->gone_data = data;
}

void
http_request_on_over(HttpRequest *request,
                     void (*over)(HttpRequest *request, const HttpOutcome *outcome, void *data), void *data)
{
    request->on_over = over;
    request->over_data = data;
}

void
http_request_set_data(HttpRequest *request, void *data, GDestroyNotify destroy)
{
    if (request->data_destroy != NULL)
        request->data_destroy(request->data);
    request->data = data;
    request->data_destroy = destroy;
}

void *
http_request_data(const HttpRequest *request)
{
    return request->data;
}

/* ---- the body ---- */

static void
send_continue(HttpRequest *r)
{
    const char *expect = http_request_header(r, "Expect");

    if (expect == NULL || r->head.minor == 0 || g_ascii_strcasecmp(expect, "100-continue") != 0 ||
        buf_len(&r->conn->in) > 0)
        return;
    bool ok = buf_puts(&r->conn->out, "HTTP/1.1 100 Continue\r\n\r\n");
    g_assert(ok); /* nothing was written before it */
}

void
http_request_read_body(HttpRequest *request, const HttpSink *sink, void *ctx, guint64 max)
{
    HttpRequest *r = request;
    g_autoptr(GError) error = NULL;

    g_assert(r->sink == NULL);
    r->sink = sink;
    r->sink_ctx = ctx;
    r->body_max = max;
    if (r->body == BODY_NONE) {
        request_end_body(r, BODY_ENDED, NULL);
        return;
    }
    if (r->conn == NULL) {
        err_set(&error, ERR_CANCELLED, "the client is gone");
        request_end_body(r, BODY_FAILED, error);
        return;
    }
    g_assert(r->body == BODY_UNREAD);
    if (r->head.content_length > 0 && (guint64)r->head.content_length > max) {
        err_set(&error, ERR_LIMIT, "the body is longer than %" G_GUINT64_FORMAT " bytes", max);
        request_end_body(r, BODY_FAILED, error);
        return;
    }
    r->body = BODY_READING;
    send_continue(r);
    conn_run(r->conn);
}

void
http_request_resume_body(HttpRequest *request)
{
    if (request->body != BODY_PAUSED)
        return;
    request->body = BODY_READING;
    if (request->conn != NULL)
        conn_run(request->conn);
}

typedef struct WholeBody {
    HttpRequest *request; /* a reference */
    Buf bytes;
    HttpBodyFunc func;
    void *data;
} WholeBody;

static bool
on_whole_data(void *ctx, const guint8 *bytes, size_t n)
{
    WholeBody *w = ctx;
    bool ok = buf_put(&w->bytes, bytes, n);

    g_assert(ok); /* read_body() has the same bound */
    return true;
}

static void
on_whole_end(void *ctx, const GError *error)
{
    WholeBody *w = ctx;
    size_t n;
    const guint8 *bytes = buf_peek(&w->bytes, &n);

    w->func(w->request, bytes, error == NULL ? n : 0, error, w->data);
    buf_clear(&w->bytes);
    http_request_unref(w->request);
    g_free(w);
}

void
http_request_read_all(HttpRequest *request, size_t max, HttpBodyFunc func, void *data)
{
    static const HttpSink sink = {.data = on_whole_data, .end = on_whole_end};
    WholeBody *w = g_new0(WholeBody, 1);

    w->request = http_request_ref(request);
    buf_init(&w->bytes, max);
    w->func = func;
    w->data = data;
    http_request_read_body(request, &sink, w, max);
}

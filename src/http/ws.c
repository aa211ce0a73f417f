/* SPDX-License-Identifier: Apache-2.0 */
/* A WebSocket over a duplex answer.
 *
 *     OPEN -> CLOSING -> OVER      ws_close(): our close frame first, then the peer's
 *       +--------------> OVER      the peer's close frame, its fault, or its end
 *
 * In OVER no byte of the peer is looked at any more; what is queued goes out, then our side is
 * closed, and the peer has until the deadline to close its own.
 *
 * Frames to send are encoded at once into `out`, in order, so a close comes after the messages
 * before it.  A client is free to send pings and read nothing: pongs have CONTROL_ROOM beyond
 * the queue's bound, and when that is used up the client is not read.
 *
 * Nothing here runs the connection from inside a function the handler's owner calls, since
 * that could end it under the caller: such calls set `kick`, a timer that is due at once. */
#include "http/ws.h"

#include <string.h>
#include <wslay/wslay.h>

#include "base/loop.h"
#include "http/limits.h"
#include "http/ws-read.h"

enum {
    HEADER_MAX = 10,
    CONTROL_FRAME_MAX = 2 + WS_CONTROL_MAX,
    CONTROL_ROOM = 32 * CONTROL_FRAME_MAX,
    /* A close frame and the excess of one message's header always fit. */
    CONTROL_RESERVE = 2 * CONTROL_FRAME_MAX + HEADER_MAX,
    PINGS_UNANSWERED_MAX = 2,
    REASON_MAX = WS_CONTROL_MAX - 2,
    KEY_LEN = 24, /* base64 of 16 bytes */
};

typedef enum WsState { WS_OPEN, WS_CLOSING, WS_OVER } WsState;

struct WsConn {
    LoopTimer timer; /* pings, then the deadline */
    LoopTimer kick;
    Loop *loop;           /* borrowed: it outlives the server, which ends us */
    HttpRequest *request; /* a reference */
    const WsHandler *handler;
    void *ctx;
    size_t queue_max;
    guint ping_ms, close_ms;
    WsReader reader;
    Buf in; /* came while the handler wanted nothing */
    Buf out;
    WsState state;
    guint16 code;
    guint16 pings;  /* sent since a byte came */
    bool paused;    /* the handler wants no message */
    bool stalled;   /* the connection was told to stop reading */
    bool blocked;   /* ws_send() was refused */
    bool accepting; /* inside ws_accept(): the handler does not know us yet */
    bool held;      /* a function up the stack still needs us */
    bool in_turn;   /* `out` is looked at when we return */
    bool sink_over, source_over;
};

/* ---- the end ---- */

static void
finish_if_over(WsConn *ws)
{
    if (!ws->sink_over || !ws->source_over || ws->held)
        return;
    loop_timer_cancel(ws->loop, &ws->timer);
    loop_timer_cancel(ws->loop, &ws->kick);
    ws->handler->closed(ws, ws->code, ws->ctx);
    ws_reader_clear(&ws->reader);
    buf_clear(&ws->in);
    buf_clear(&ws->out);
    http_request_unref(ws->request);
    g_free(ws);
}

/* ---- frames out ---- */

/* Written here and not by wslay, whose context would be needed in each idle connection. */
static void
put_frame(WsConn *ws, guint8 opcode, const void *bytes, size_t n)
{
    guint8 head[HEADER_MAX] = {0x80 | opcode};
    size_t len = 2;

    if (n <= WS_CONTROL_MAX) {
        head[1] = (guint8)n;
    } else if (n <= G_MAXUINT16) {
        guint16 be = GUINT16_TO_BE((guint16)n);

        head[1] = 126;
        memcpy(head + len, &be, sizeof be);
        len += sizeof be;
    } else {
        guint64 be = GUINT64_TO_BE((guint64)n);

        head[1] = 127;
        memcpy(head + len, &be, sizeof be);
        len += sizeof be;
    }
    bool ok = buf_put(&ws->out, head, len) && buf_put(&ws->out, bytes, n);
    g_assert(ok); /* callers look at the queue first; control frames have their reserve */
}

static void
put_close(WsConn *ws, guint16 code, const char *reason)
{
    guint8 payload[WS_CONTROL_MAX] = {(guint8)(code >> 8), (guint8)code};
    size_t n = reason != NULL ? strlen(reason) : 0;

    if (n > REASON_MAX) {
        for (n = REASON_MAX; n > 0 && (reason[n] & 0xc0) == 0x80; n--)
            ;
    }
    if (n > 0)
        memcpy(payload + 2, reason, n);
    put_frame(ws, WSLAY_CONNECTION_CLOSE, payload, code == WSLAY_CODE_NO_STATUS_RCVD ? 0 : n + 2);
    loop_timer_cancel(ws->loop, &ws->timer); /* the deadline begins when this frame is gone */
}

static void
kick(WsConn *ws)
{
    if (ws->kick.queue == NULL)
        loop_timer_set(ws->loop, &ws->kick, 0);
}

bool
ws_send(WsConn *ws, WsKind kind, const void *bytes, size_t n)
{
    if (ws->state != WS_OPEN || n > ws->queue_max)
        return false;
    if (buf_len(&ws->out) + n > ws->queue_max) {
        ws->blocked = true;
        return false;
    }
    put_frame(ws, kind == WS_TEXT ? WSLAY_TEXT_FRAME : WSLAY_BINARY_FRAME, bytes, n);
    if (!ws->in_turn)
        kick(ws);
    return true;
}

void
ws_close(WsConn *ws, guint16 code, const char *reason)
{
    g_assert(ws_code_is_valid(code));
    if (ws->state != WS_OPEN)
        return;
    ws->state = WS_CLOSING;
    ws->paused = false; /* the peer's close frame is awaited */
    put_close(ws, code, reason);
    kick(ws);
}

size_t
ws_queued(const WsConn *ws)
{
    return buf_len(&ws->out);
}

/* ---- frames in ---- */

static bool
may_read(const WsConn *ws)
{
    return ws->state != WS_OVER && !ws->paused && buf_room(&ws->out) >= CONTROL_RESERVE;
}

static void
on_close_event(WsConn *ws, const WsEvent *e)
{
    bool answer = ws->state == WS_OPEN;

    ws->state = WS_OVER;
    ws->code = e->code;
    if (answer)
        put_close(ws, e->code, NULL);
}

static void
on_event(WsConn *ws, const WsEvent *e)
{
    switch (e->kind) {
    case WS_EVENT_MESSAGE:
        if (ws->state == WS_OPEN && !ws->handler->message(ws, e->type, e->bytes, e->n, ws->ctx))
            ws->paused = ws->state == WS_OPEN;
        break;
    case WS_EVENT_PING:
        if (ws->state == WS_OPEN)
            put_frame(ws, WSLAY_PONG, e->bytes, e->n);
        break;
    case WS_EVENT_CLOSE:
    case WS_EVENT_FAIL:
        on_close_event(ws, e);
        break;
    case WS_EVENT_PONG:
    case WS_EVENT_NONE:
        break;
    }
}

static void
read_frames(WsConn *ws, WsInput *in)
{
    while (may_read(ws)) {
        WsEvent e = ws_reader_next(&ws->reader, in);

        if (e.kind == WS_EVENT_NONE)
            return;
        on_event(ws, &e);
    }
}

static bool
on_data(void *ctx, const guint8 *bytes, size_t n)
{
    WsConn *ws = ctx;
    WsInput in = {.bytes = bytes, .n = n};

    ws->pings = 0;
    if (!ws->accepting) {
        ws->in_turn = true;
        read_frames(ws, &in);
        ws->in_turn = false;
        http_request_wake(ws->request);
    }
    if (ws->state == WS_OVER)
        return true; /* thrown away, until the peer closes or the deadline comes */
    bool ok = buf_put(&ws->in, in.bytes, in.n);
    g_assert(ok); /* one read at most: it was empty when we asked for more */
    ws->stalled = ws->accepting || !may_read(ws);
    return !ws->stalled;
}

static void
read_kept(WsConn *ws)
{
    WsInput in;
    in.bytes = buf_peek(&ws->in, &in.n);
    size_t n = in.n;

    ws->in_turn = true;
    read_frames(ws, &in);
    ws->in_turn = false;
    buf_skip(&ws->in, n - in.n);
    if (ws->state == WS_OVER)
        buf_clear(&ws->in);
    if (ws->state == WS_OVER || may_read(ws)) {
        ws->stalled = false;
        http_request_resume_body(ws->request);
    }
}

void
ws_resume(WsConn *ws)
{
    ws->paused = false;
    kick(ws);
}

static void
on_end(void *ctx, const GError *error)
{
    WsConn *ws = ctx;

    ws->sink_over = true;
    ws->state = WS_OVER;
    http_request_wake(ws->request);
    finish_if_over(ws);
}

/* ---- bytes out ---- */

static void
after_pull(WsConn *ws)
{
    if (ws->state != WS_OPEN && buf_len(&ws->out) == 0)
        loop_timer_set(ws->loop, &ws->timer, ws->close_ms);
    if (ws->stalled && may_read(ws))
        kick(ws);
    if (ws->state != WS_OPEN || !ws->blocked || buf_len(&ws->out) > ws->queue_max / 2)
        return;
    ws->blocked = false;
    ws->in_turn = true;
    ws->handler->drained(ws, ws->ctx);
    ws->in_turn = false;
}

static HttpPull
on_pull(void *ctx, Buf *out)
{
    WsConn *ws = ctx;
    size_t n;
    const guint8 *bytes = buf_peek(&ws->out, &n);

    n = MIN(n, buf_room(out));
    if (n == 0)
        return ws->state == WS_OVER ? HTTP_PULL_END : HTTP_PULL_WAIT;
    bool ok = buf_put(out, bytes, n);
    g_assert(ok); /* looked at its room */
    buf_skip(&ws->out, n);
    after_pull(ws);
    return HTTP_PULL_DATA;
}

static void
on_closed(void *ctx)
{
    WsConn *ws = ctx;

    ws->source_over = true;
    finish_if_over(ws);
}

/* ---- timers ---- */

static void
on_kick(LoopTimer *timer)
{
    WsConn *ws = (WsConn *)((char *)timer - G_STRUCT_OFFSET(WsConn, kick));

    ws->held = true;
    if (ws->stalled)
        read_kept(ws);
    http_request_wake(ws->request);
    ws->held = false;
    finish_if_over(ws);
}

static void
on_timer(LoopTimer *timer)
{
    WsConn *ws = (WsConn *)((char *)timer - G_STRUCT_OFFSET(WsConn, timer));

    if (ws->stalled)
        ws->pings = 0; /* it may have answered: we have not looked */
    if (ws->state != WS_OPEN || ws->pings == PINGS_UNANSWERED_MAX) {
        http_request_cut(ws->request);
        return;
    }
    loop_timer_set(ws->loop, &ws->timer, ws->ping_ms);
    /* With bytes waiting the peer is not reading, and the write stall's deadline runs. */
    if (buf_len(&ws->out) == 0) {
        ws->pings++;
        put_frame(ws, WSLAY_PING, "", 0);
        kick(ws);
    }
}

/* ---- the handshake ---- */

static bool
is_key(const char *key)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

    return key != NULL && strspn(key, digits) == KEY_LEN - 2 && strcmp(key + KEY_LEN - 2, "==") == 0;
}

static bool
has_version(const HttpRequest *request)
{
    const char *version = http_request_header(request, "Sec-WebSocket-Version");

    return version != NULL && strcmp(version, "13") == 0 &&
           http_request_header_count(request, "Sec-WebSocket-Version") == 1;
}

static bool
asks_for_websocket(const HttpRequest *request)
{
    return strcmp(http_request_method(request), "GET") == 0 && http_request_minor(request) == 1 &&
           http_request_wants_upgrade(request, "websocket") &&
           is_key(http_request_header(request, "Sec-WebSocket-Key")) &&
           http_request_header_count(request, "Sec-WebSocket-Key") == 1;
}

bool
ws_is_handshake(const HttpRequest *request)
{
    return asks_for_websocket(request) && has_version(request);
}

static char *
accept_value(const char *key)
{
    g_autoptr(GChecksum) sum = g_checksum_new(G_CHECKSUM_SHA1);
    guint8 digest[20];
    gsize n = sizeof digest;

    g_checksum_update(sum, (const guchar *)key, -1);
    g_checksum_update(sum, (const guchar *)"258EAFA5-E914-47DA-95CA-C5AB0DC85B11", -1);
    g_checksum_get_digest(sum, digest, &n);
    return g_base64_encode(digest, n);
}

static bool
offers(const HttpRequest *request, const char *subprotocol)
{
    for (guint i = 0; i < http_request_headers(request); i++) {
        const char *name, *value;

        http_request_header_at(request, i, &name, &value);
        if (g_ascii_strcasecmp(name, "Sec-WebSocket-Protocol") != 0)
            continue;
        g_auto(GStrv) parts = g_strsplit(value, ",", -1);
        for (char **p = parts; *p != NULL; p++) {
            if (strcmp(g_strstrip(*p), subprotocol) == 0)
                return true;
        }
    }
    return false;
}

static void
refuse(HttpRequest *request)
{
    if (!asks_for_websocket(request)) {
        http_respond_text(request, 400, "application/json",
                          "{\"code\":400,\"message\":\"a WebSocket handshake is expected here\"}\n");
        return;
    }
    http_response_header(request, "Sec-WebSocket-Version", "13");
    http_respond_text(request, 426, "application/json",
                      "{\"code\":426,\"message\":\"only WebSocket version 13 is spoken here\"}\n");
}

static WsConn *
ws_new(HttpRequest *request, Loop *loop, const WsSpec *spec, const WsHandler *handler, void *ctx)
{
    WsConn *ws = g_new0(WsConn, 1);

    ws->timer.expired = on_timer;
    ws->kick.expired = on_kick;
    ws->loop = loop;
    ws->request = http_request_ref(request);
    ws->handler = handler;
    ws->ctx = ctx;
    ws->queue_max = spec->queue_max;
    ws->ping_ms = spec->ping_ms;
    ws->close_ms = spec->close_ms;
    ws->code = WSLAY_CODE_ABNORMAL_CLOSURE;
    ws_reader_init(&ws->reader, spec->message_max);
    buf_init(&ws->in, HTTP_READ_SIZE);
    buf_init(&ws->out, spec->queue_max + CONTROL_ROOM);
    return ws;
}

WsConn *
ws_accept(HttpRequest *request, Loop *loop, const WsSpec *spec, const WsHandler *handler, void *ctx)
{
    static const HttpSource source = {.pull = on_pull, .closed = on_closed};
    static const HttpSink sink = {.data = on_data, .end = on_end};

    if (!ws_is_handshake(request)) {
        refuse(request);
        return NULL;
    }
    if (http_request_is_gone(request) || http_request_is_answered(request))
        return NULL;
    g_autofree char *value = accept_value(http_request_header(request, "Sec-WebSocket-Key"));
    http_response_header(request, "Upgrade", "websocket");
    http_response_header(request, "Sec-WebSocket-Accept", value);
    if (spec->subprotocol != NULL && offers(request, spec->subprotocol))
        http_response_header(request, "Sec-WebSocket-Protocol", spec->subprotocol);

    WsConn *ws = ws_new(request, loop, spec, handler, ctx);
    if (ws->ping_ms > 0)
        loop_timer_set(loop, &ws->timer, ws->ping_ms);
    ws->held = ws->accepting = true;
    http_respond_duplex(request, 101, &source, &sink, ws);
    ws->held = ws->accepting = false;
    if (ws->stalled || ws->sink_over)
        kick(ws);
    return ws;
}

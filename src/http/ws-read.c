/* SPDX-License-Identifier: Apache-2.0 */
/* wslay's frame layer takes the bytes apart; messages are put together here, not by its event
 * layer, because that one allocates whatever length a frame announces and once more to join
 * the fragments, keeps 8 KiB for each idle connection, cannot stop between two messages that
 * it has read, checks a close reason's UTF-8 wrongly when it comes in pieces, and closes
 * without a code where a control frame is too long.
 *
 * The frame layer's context is 4 KiB of read-ahead.  It exists only while a frame is
 * incomplete or bytes wait in it, so an idle connection has none: `ahead` counts the bytes
 * that went in and belong to no frame we have seen. */
#include "http/ws-read.h"

#include <string.h>
#include <wslay/wslay.h>

enum { MASK_LEN = 4 };

void
ws_reader_init(WsReader *reader, size_t message_max)
{
    *reader = (WsReader){0};
    buf_init(&reader->message, message_max);
    buf_init(&reader->control, WS_CONTROL_MAX);
}

void
ws_reader_clear(WsReader *reader)
{
    wslay_frame_context_free(g_steal_pointer(&reader->frames));
    buf_clear(&reader->message);
    buf_clear(&reader->control);
}

bool
ws_code_is_valid(guint16 code)
{
    return (code >= 1000 && code <= 1014 && (code < 1004 || code > 1006)) || (code >= 3000 && code <= 4999);
}

static bool
is_control(guint8 opcode)
{
    return (opcode & 8) != 0;
}

static bool
is_utf8(const guint8 *bytes, size_t n)
{
    const char *p = (const char *)bytes;
    const char *end = p + n;

    /* GLib stops at a NUL, which is a character like any other here. */
    while (p < end) {
        if (g_utf8_validate_len(p, (size_t)(end - p), &p))
            return true;
        if (*p++ != '\0')
            return false;
    }
    return true;
}

static WsEvent
fail(guint16 code)
{
    return (WsEvent){.kind = WS_EVENT_FAIL, .code = code};
}

/* ---- frames ---- */

static ssize_t
on_recv(uint8_t *buf, size_t len, int flags, void *user_data)
{
    WsReader *r = user_data;
    size_t n = MIN(len, r->in->n);

    if (n == 0)
        return -1;
    memcpy(buf, r->in->bytes, n);
    r->in->bytes += n;
    r->in->n -= n;
    r->ahead += n;
    return (ssize_t)n;
}

static size_t
header_len(const struct wslay_frame_iocb *f)
{
    /* wslay refuses a length that is not in its shortest form. */
    size_t length_len = f->payload_length > G_MAXUINT16 ? 8 : f->payload_length > WS_CONTROL_MAX ? 2 : 0;

    return 2 + length_len + MASK_LEN;
}

/* The code to close with; 0: the frame may come.  wslay has refused a control frame that is
 * long or fragmented. */
static guint16
check_frame(const WsReader *r, const struct wslay_frame_iocb *f)
{
    if (f->mask == 0 || f->rsv != WSLAY_RSV_NONE)
        return WSLAY_CODE_PROTOCOL_ERROR;
    switch (f->opcode) {
    case WSLAY_CONTINUATION_FRAME:
        if (!r->in_message)
            return WSLAY_CODE_PROTOCOL_ERROR;
        break;
    case WSLAY_TEXT_FRAME:
    case WSLAY_BINARY_FRAME:
        if (r->in_message)
            return WSLAY_CODE_PROTOCOL_ERROR;
        break;
    case WSLAY_CONNECTION_CLOSE:
    case WSLAY_PING:
    case WSLAY_PONG:
        return 0;
    default:
        return WSLAY_CODE_PROTOCOL_ERROR;
    }
    return f->payload_length > buf_room(&r->message) ? WSLAY_CODE_MESSAGE_TOO_BIG : 0;
}

static void
begin_frame(WsReader *r, const struct wslay_frame_iocb *f)
{
    r->in_frame = true;
    r->left = f->payload_length;
    r->ahead -= header_len(f);
    r->opcode = f->opcode;
    r->fin = f->fin != 0;
    if (f->opcode == WSLAY_TEXT_FRAME || f->opcode == WSLAY_BINARY_FRAME) {
        r->in_message = true;
        r->type = f->opcode == WSLAY_TEXT_FRAME ? WS_TEXT : WS_BINARY;
    }
}

/* ---- what a complete frame means ---- */

static WsEvent
close_event(const guint8 *bytes, size_t n)
{
    if (n == 0)
        return (WsEvent){.kind = WS_EVENT_CLOSE, .code = WSLAY_CODE_NO_STATUS_RCVD};
    guint16 code = n > 1 ? (guint16)(bytes[0] << 8 | bytes[1]) : 0;
    if (!ws_code_is_valid(code))
        return fail(WSLAY_CODE_PROTOCOL_ERROR);
    if (!is_utf8(bytes + 2, n - 2))
        return fail(WSLAY_CODE_INVALID_FRAME_PAYLOAD_DATA);
    return (WsEvent){.kind = WS_EVENT_CLOSE, .code = code};
}

static WsEvent
control_event(WsReader *r)
{
    WsEvent e = {.kind = r->opcode == WSLAY_PING ? WS_EVENT_PING : WS_EVENT_PONG};

    e.bytes = buf_peek(&r->control, &e.n);
    r->delivered = &r->control;
    return r->opcode == WSLAY_CONNECTION_CLOSE ? close_event(e.bytes, e.n) : e;
}

static WsEvent
message_event(WsReader *r)
{
    WsEvent e = {.kind = WS_EVENT_MESSAGE, .type = r->type};

    e.bytes = buf_peek(&r->message, &e.n);
    r->delivered = &r->message;
    r->in_message = false;
    if (r->type == WS_TEXT && !is_utf8(e.bytes, e.n))
        return fail(WSLAY_CODE_INVALID_FRAME_PAYLOAD_DATA);
    return e;
}

static WsEvent
take_chunk(WsReader *r, const struct wslay_frame_iocb *f)
{
    static const WsEvent none = {.kind = WS_EVENT_NONE};

    if (!r->in_frame) {
        guint16 code = check_frame(r, f);

        if (code != 0)
            return fail(code);
        begin_frame(r, f);
    }
    bool ok = buf_put(is_control(r->opcode) ? &r->control : &r->message, f->data, f->data_length);
    g_assert(ok); /* check_frame() saw the whole length */
    r->ahead -= f->data_length;
    r->left -= f->data_length;
    if (r->left > 0)
        return none;
    r->in_frame = false;
    if (is_control(r->opcode))
        return control_event(r);
    return r->fin ? message_event(r) : none;
}

static void
begin_frames(WsReader *r)
{
    static const struct wslay_frame_callbacks callbacks = {.recv_callback = on_recv};

    if (wslay_frame_context_init(&r->frames, &callbacks, r) != 0)
        g_error("wslay: out of memory");
}

WsEvent
ws_reader_next(WsReader *reader, WsInput *in)
{
    WsReader *r = reader;
    WsEvent e = {.kind = WS_EVENT_NONE};

    if (r->delivered != NULL)
        buf_clear(g_steal_pointer(&r->delivered));
    if (r->frames == NULL) {
        if (in->n == 0)
            return e;
        begin_frames(r);
    }
    r->in = in;
    while (e.kind == WS_EVENT_NONE) {
        struct wslay_frame_iocb f;
        ssize_t n = wslay_frame_recv(r->frames, &f);

        if (n == WSLAY_ERR_WANT_READ)
            break;
        e = n < 0 ? fail(WSLAY_CODE_PROTOCOL_ERROR) : take_chunk(r, &f);
    }
    if (e.kind == WS_EVENT_NONE && r->ahead == 0 && !r->in_frame)
        wslay_frame_context_free(g_steal_pointer(&r->frames));
    return e;
}

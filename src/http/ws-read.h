/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <glib.h>
#include <stdbool.h>

#include "base/buf.h"
#include "http/ws.h"

/* A client's bytes in, what they mean out: messages put together, control frames, or the
 * close code for a client that broke the rules.  Private to this folder.
 *
 * Call ws_reader_next() until it returns WS_EVENT_NONE, which means that all of `in` was
 * taken; a caller that stops before has only to call again later, since the reader keeps what
 * it took.  After WS_EVENT_CLOSE or WS_EVENT_FAIL nothing more may be read. */
typedef enum WsEventKind {
    WS_EVENT_NONE,
    WS_EVENT_MESSAGE,
    WS_EVENT_PING,
    WS_EVENT_PONG,
    WS_EVENT_CLOSE, /* `code` is the peer's, 1005 if it gave none */
    WS_EVENT_FAIL,  /* `code` is what to close with */
} WsEventKind;

typedef struct WsEvent {
    WsEventKind kind;
    WsKind type; /* of a message */
    guint16 code;
    const guint8 *bytes; /* of a message, a ping, a pong: valid until the next call */
    size_t n;
} WsEvent;

typedef struct WsInput {
    const guint8 *bytes; /* moves on as bytes are taken */
    size_t n;
} WsInput;

enum { WS_CONTROL_MAX = 125 };

/* Embedded, and never moved. */
typedef struct WsReader {
    struct wslay_frame_context *frames; /* NULL: no byte is held */
    WsInput *in;                        /* during a call */
    Buf message;
    Buf control;
    Buf *delivered; /* the last event's bytes are in it */
    guint64 left;   /* bytes of the current frame still to come */
    size_t ahead;   /* bytes wslay has read that no frame has accounted for */
    guint8 opcode;  /* of the current frame */
    bool fin;
    bool in_frame;
    bool in_message;
    WsKind type;
} WsReader;

void ws_reader_init(WsReader *reader, size_t message_max);
void ws_reader_clear(WsReader *reader);
WsEvent ws_reader_next(WsReader *reader, WsInput *in);

/* Whether a close frame may carry `code`. */
bool ws_code_is_valid(guint16 code);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <glib.h>

/* What a WebSocket client sends, made by hand. */

/* Appends one masked frame; `first` is its first byte (FIN, reserved bits, opcode). */
void ws_put_frame(GByteArray *to, guint8 first, const void *payload, size_t n);

/* Sequences of frames that break a rule, under a message maximum of WS_ROW_MAX: the close code
 * that has to come of each.  Their mask is zero, so that the payload can be read here. */
enum { WS_ROW_MAX = 200 };
typedef struct WsRow {
    const char *name, *bytes; /* NULL ends the table */
    size_t n;
    guint16 code;
} WsRow;
extern const WsRow ws_bad_rows[];

/* What the reader makes of the bytes when they come in two pieces, cut at `at`; `at` 0: byte by
 * byte.  "text 5 Hello\n", "binary …", "ping …", "pong …", "close 1000\n", "fail 1002\n". */
GString *ws_transcript(const void *bytes, size_t n, size_t at);

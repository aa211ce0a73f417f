/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <glib.h>
#include <stdbool.h>

#include "base/buf.h"

/* ---- writing ---- */

/* One server-sent event.  `id` and `event` may be NULL; they must not contain CR or LF
 * (asserted).  `data` may have lines, ended by CR, LF or CRLF; each becomes a data line, so the
 * reader sees LF.  All or nothing. */
bool
sse_put(Buf *out, const char *id, const char *event, const char *data, size_t n) G_GNUC_WARN_UNUSED_RESULT;

/* ---- reading (a browser's rules: CR, LF, CRLF, BOM, comments, last id) ---- */

typedef struct SseDecoder SseDecoder;

typedef struct SseEvent {
    const char *event; /* "message" when none was given */
    const char *data;
    size_t data_len;
    const char *last_id; /* "" when none was ever given */
} SseEvent;

/* The event is valid during the call, which must not free the decoder. */
typedef void (*SseEventFunc)(const SseEvent *event, void *data);

/* `max` bounds the bytes of one event's lines, their ends and comments left out.  Bytes that are
 * not UTF-8 are handed on as they came. */
SseDecoder *sse_decoder_new(size_t max, SseEventFunc func, void *data);
void sse_decoder_free(SseDecoder *decoder);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(SseDecoder, sse_decoder_free)
/* False with ERR_LIMIT when an event passes the bound; the decoder is finished then. */
bool sse_decoder_feed(SseDecoder *decoder, const void *bytes, size_t n, GError **error);
gint64 sse_decoder_retry_ms(const SseDecoder *decoder); /* -1: the server said nothing */

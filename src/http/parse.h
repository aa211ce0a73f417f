/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

/* Bytes in, one HTTP/1 message out: llhttp with the checks it leaves to us.  Private to this
 * folder; the request feed of the server and the answers a proxy reads both pass through
 * here, so that there is one opinion of where a message ends.
 *
 * A message: feed until HTTP_PARSE_HEAD, look at the head, then feed on (body bytes go to
 * `body`) until HTTP_PARSE_DONE.  Bytes that were not consumed belong to what follows. */

typedef struct HttpHeaderSpan {
    guint32 name, value; /* offsets into `text` */
} HttpHeaderSpan;

typedef struct HttpHead {
    char *text; /* target and headers, each ended by NUL */
    guint32 len, size;
    guint32 n_headers, headers_size;
    HttpHeaderSpan *headers;
    const char *method; /* requests; static */
    int status;         /* responses */
    int minor;
    gint64 content_length; /* -1: chunked; -2: until the end (responses only) */
    bool has_body;
    bool keep_alive;
    bool upgrade; /* Connection: upgrade with an Upgrade header, or CONNECT */
} HttpHead;

void http_head_clear(HttpHead *head);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(HttpHead, http_head_clear)
const char *http_head_find(const HttpHead *head, const char *name);
guint http_head_count(const HttpHead *head, const char *name);
static inline const char *
http_head_target(const HttpHead *head)
{
    return head->text;
}

typedef enum HttpParseResult {
    HTTP_PARSE_MORE,
    HTTP_PARSE_HEAD,
    HTTP_PARSE_PAUSED, /* `body` said so; feed the rest later, even if it is empty: it may be DONE */
    HTTP_PARSE_DONE,
    HTTP_PARSE_BAD, /* see http_parser_status() */
} HttpParseResult;

typedef struct HttpParser HttpParser;

typedef enum HttpParseKind { HTTP_PARSE_REQUEST, HTTP_PARSE_RESPONSE } HttpParseKind;

/* Returns false to pause after these bytes, which are taken. */
typedef bool (*HttpParseBody)(void *ctx, const guint8 *bytes, size_t n);

HttpParser *http_parser_new(HttpParseKind kind, HttpParseBody body, void *ctx);
void http_parser_free(HttpParser *parser);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(HttpParser, http_parser_free)
/* Ready for another message; a head that was not taken is freed. */
void http_parser_reset(HttpParser *parser);

HttpParseResult http_parser_feed(HttpParser *parser, const guint8 *bytes, size_t n, size_t *ret_consumed);
/* The peer closed its side: true when the message is complete by that (a response that lasts
 * until the end). */
bool http_parser_finish(HttpParser *parser);

/* After HTTP_PARSE_HEAD; moved out once. */
void http_parser_take_head(HttpParser *parser, HttpHead *ret_head);
bool http_parser_is_paused(const HttpParser *parser); /* the last feed was */

/* How much is still to come of a body with a Content-Length; 0: it has none, or that was all. */
guint64 http_parser_body_left(const HttpParser *parser);
/* That many of them, but not the last, went another way and will not be fed. */
void http_parser_skip_body(HttpParser *parser, guint64 n);

/* After HTTP_PARSE_BAD: the status a server answers with, and why in a few words. */
int http_parser_status(const HttpParser *parser);
const char *http_parser_reason(const HttpParser *parser);

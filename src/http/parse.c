/* SPDX-License-Identifier: Apache-2.0 */
#include "http/parse.h"

#include <llhttp.h>
#include <string.h>

#include "http/limits.h"

enum { HEAD_TEXT_START = 512, HEADERS_START = 16 };

typedef enum Phase { PHASE_HEAD, PHASE_BODY, PHASE_DONE } Phase;

struct HttpParser {
    llhttp_t llhttp;
    HttpParseKind kind;
    Phase phase;
    HttpParseBody body;
    void *ctx;
    HttpHead head;
    size_t head_bytes;    /* raw bytes of the head so far: padding counts too */
    size_t framing_bytes; /* bytes since the last byte of body that were not body */
    const char *cursor;   /* PHASE_BODY: end of what was accounted for in this feed */
    int bad_status;
    const char *bad_reason;
    bool saw_line;      /* a non-empty line of the head has begun */
    bool at_line_start; /* the next byte is the first of a line */
    bool in_value;
    bool paused;
};

static int
bad(HttpParser *p, int status, const char *reason)
{
    if (p->bad_status == 0) {
        p->bad_status = status;
        p->bad_reason = reason;
    }
    return HPE_USER;
}

/* ---- the head's storage ---- */

static int
head_put(HttpParser *p, const char *at, size_t n)
{
    HttpHead *h = &p->head;

    if (n == 0)
        return 0;
    if (h->len + n > HTTP_HEAD_MAX)
        return bad(p, 431, "the head is too large");
    if (h->len + n > h->size) {
        h->size = MAX(h->size * 2, (guint32)(h->len + n));
        h->size = MAX(h->size, (guint32)HEAD_TEXT_START);
        h->text = g_realloc(h->text, h->size);
    }
    memcpy(h->text + h->len, at, n);
    h->len += (guint32)n;
    return 0;
}

static int
head_end_string(HttpParser *p)
{
    return head_put(p, "", 1);
}

static int
head_begin_header(HttpParser *p)
{
    HttpHead *h = &p->head;

    if (h->n_headers == HTTP_HEADER_COUNT_MAX)
        return bad(p, 431, "too many headers");
    if (h->n_headers == h->headers_size) {
        h->headers_size = MAX(h->headers_size * 2, (guint32)HEADERS_START);
        h->headers = g_renew(HttpHeaderSpan, h->headers, h->headers_size);
    }
    h->headers[h->n_headers++] = (HttpHeaderSpan){.name = h->len};
    return 0;
}

/* ---- what llhttp calls ---- */

static bool
is_token_char(char c)
{
    return g_ascii_isalnum(c) || (c != '\0' && strchr("!#$%&'*+-.^_`|~", c) != NULL);
}

static int
on_url(llhttp_t *l, const char *at, size_t n)
{
    HttpParser *p = l->data;

    if (p->head.len + n > HTTP_TARGET_MAX)
        return bad(p, 414, "the request target is too long");
    for (size_t i = 0; i < n; i++) {
        if (at[i] <= ' ' || at[i] >= 0x7f || at[i] == '#')
            return bad(p, 400, "a character that is not allowed in the request target");
    }
    return head_put(p, at, n);
}

static int
on_url_complete(llhttp_t *l)
{
    return head_end_string(l->data);
}

static int
on_status_complete(llhttp_t *l)
{
    /* Responses have no target; an empty string keeps the offsets alike. */
    return head_end_string(l->data);
}

static int
on_field(llhttp_t *l, const char *at, size_t n)
{
    HttpParser *p = l->data;

    if (p->phase != PHASE_HEAD)
        return 0; /* trailers are dropped; their bytes count as framing */
    if (p->in_value || p->head.n_headers == 0) {
        p->in_value = false;
        if (head_begin_header(p) != 0)
            return HPE_USER;
    }
    for (size_t i = 0; i < n; i++) {
        if (!is_token_char(at[i]))
            return bad(p, 400, "a header name that is not a token");
    }
    return head_put(p, at, n);
}

static int
on_field_complete(llhttp_t *l)
{
    HttpParser *p = l->data;
    HttpHead *h = &p->head;

    if (p->phase != PHASE_HEAD)
        return 0;
    if (h->n_headers == 0 || p->in_value || h->len == h->headers[h->n_headers - 1].name)
        return bad(p, 400, "an empty header name");
    if (head_end_string(p) != 0)
        return HPE_USER;
    h->headers[h->n_headers - 1].value = h->len;
    p->in_value = true;
    return 0;
}

static int
on_value(llhttp_t *l, const char *at, size_t n)
{
    HttpParser *p = l->data;

    return p->phase == PHASE_HEAD ? head_put(p, at, n) : 0;
}

static int
on_value_complete(llhttp_t *l)
{
    HttpParser *p = l->data;

    if (p->phase != PHASE_HEAD)
        return 0;
    HttpHead *h = &p->head;
    /* llhttp keeps white space at the end of a value. */
    while (h->len > h->headers[h->n_headers - 1].value &&
           (h->text[h->len - 1] == ' ' || h->text[h->len - 1] == '\t'))
        h->len--;
    return head_end_string(p);
}

static int
check_framing(HttpParser *p)
{
    const HttpHead *h = &p->head;
    const char *coding = http_head_find(h, "Transfer-Encoding");

    if (coding != NULL) {
        if (h->minor == 0)
            return bad(p, 400, "Transfer-Encoding in HTTP/1.0");
        if (g_ascii_strcasecmp(coding, "chunked") != 0 || http_head_count(h, "Transfer-Encoding") != 1)
            return bad(p, 400, "only Transfer-Encoding: chunked is understood");
        if (http_head_find(h, "Content-Length") != NULL)
            return bad(p, 400, "Content-Length beside Transfer-Encoding");
    }
    if (h->content_length > G_MAXINT64 / 2)
        return bad(p, 400, "Content-Length is too large");
    return 0;
}

static int
check_request(HttpParser *p)
{
    const HttpHead *h = &p->head;
    guint hosts = http_head_count(h, "Host");

    if (hosts > 1 || (h->minor == 1 && hosts != 1))
        return bad(p, 400, "exactly one Host header is needed");
    if (h->upgrade && h->has_body)
        return bad(p, 400, "Upgrade or CONNECT with a body");
    return 0;
}

static int
on_headers_complete(llhttp_t *l)
{
    HttpParser *p = l->data;
    HttpHead *h = &p->head;

    if (l->http_major != 1 || l->http_minor > 1)
        return bad(p, 505, "only HTTP/1.0 and HTTP/1.1 are spoken here");
    h->minor = l->http_minor;
    h->keep_alive = llhttp_should_keep_alive(l) != 0;
    h->upgrade = l->upgrade != 0;
    if ((l->flags & F_CHUNKED) != 0)
        h->content_length = -1;
    else if ((l->flags & F_CONTENT_LENGTH) != 0)
        h->content_length = l->content_length > G_MAXINT64 ? G_MAXINT64 : (gint64)l->content_length;
    else
        h->content_length = p->kind == HTTP_PARSE_REQUEST ? 0 : -2;
    h->has_body = h->content_length != 0;
    if (p->kind == HTTP_PARSE_REQUEST)
        h->method = llhttp_method_name((llhttp_method_t)l->method);
    else
        h->status = l->status_code;
    if (check_framing(p) != 0 || (p->kind == HTTP_PARSE_REQUEST && check_request(p) != 0))
        return HPE_USER;
    p->phase = PHASE_BODY;
    return HPE_PAUSED;
}

static int
count_framing(HttpParser *p, const char *until)
{
    p->framing_bytes += (size_t)(until - p->cursor);
    p->cursor = until;
    if (p->framing_bytes > HTTP_CHUNK_FRAMING_MAX)
        return bad(p, 400, "chunk framing or trailers without end");
    return 0;
}

static int
on_chunk_header(llhttp_t *l)
{
    return l->content_length > G_MAXINT64 / 2 ? bad(l->data, 400, "a chunk that is too large") : 0;
}

static int
on_body(llhttp_t *l, const char *at, size_t n)
{
    HttpParser *p = l->data;

    if (n == 0)
        return 0; /* nothing was fed after a pause */
    if (count_framing(p, at) != 0)
        return HPE_USER;
    p->framing_bytes = 0;
    p->cursor = at + n;
    return p->body(p->ctx, (const guint8 *)at, n) ? 0 : HPE_PAUSED;
}

static int
on_message_complete(llhttp_t *l)
{
    HttpParser *p = l->data;

    p->phase = PHASE_DONE;
    return HPE_PAUSED;
}

static const llhttp_settings_t settings = {
    .on_url = on_url,
    .on_url_complete = on_url_complete,
    .on_status_complete = on_status_complete,
    .on_header_field = on_field,
    .on_header_field_complete = on_field_complete,
    .on_header_value = on_value,
    .on_header_value_complete = on_value_complete,
    .on_headers_complete = on_headers_complete,
    .on_chunk_header = on_chunk_header,
    .on_body = on_body,
    .on_message_complete = on_message_complete,
};

/* ---- life ---- */

static void
begin(HttpParser *p)
{
    /* llhttp wants a settings pointer without const, and does not write through it. */
    llhttp_init(&p->llhttp, p->kind == HTTP_PARSE_REQUEST ? HTTP_REQUEST : HTTP_RESPONSE,
                (llhttp_settings_t *)(guintptr)&settings);
    p->llhttp.data = p;
    p->phase = PHASE_HEAD;
    p->head_bytes = p->framing_bytes = 0;
    p->bad_status = 0;
    p->bad_reason = NULL;
    p->saw_line = p->in_value = p->paused = false;
    p->at_line_start = true;
}

HttpParser *
http_parser_new(HttpParseKind kind, HttpParseBody body, void *ctx)
{
    HttpParser *p = g_new0(HttpParser, 1);

    p->kind = kind;
    p->body = body;
    p->ctx = ctx;
    begin(p);
    return p;
}

void
http_parser_free(HttpParser *parser)
{
    if (parser == NULL)
        return;
    http_head_clear(&parser->head);
    g_free(parser);
}

void
http_parser_reset(HttpParser *parser)
{
    http_head_clear(&parser->head);
    begin(parser);
}

/* ---- feeding ---- */

/* A line of the head that begins with white space continues the one before it (obs-fold).
 * llhttp 8 accepts that, and a Content-Length written so was a way to smuggle a request; it
 * has to be found before the parser sees it.  Lines after the head are not looked at. */
static bool
has_folded_line(HttpParser *p, const guint8 *bytes, size_t n)
{
    for (size_t i = 0; i < n;) {
        if (!p->at_line_start) {
            const guint8 *lf = memchr(bytes + i, '\n', n - i);

            if (lf == NULL)
                return false;
            i = (size_t)(lf - bytes) + 1;
            p->at_line_start = true;
        } else if (bytes[i] == '\r') {
            i++;
        } else if (bytes[i] == '\n') {
            if (p->saw_line)
                return false; /* the empty line: what follows is not head */
            i++;
        } else {
            if (p->saw_line && (bytes[i] == ' ' || bytes[i] == '\t'))
                return true;
            p->saw_line = true;
            p->at_line_start = false;
        }
    }
    return false;
}

static HttpParseResult
fail(HttpParser *p, llhttp_errno_t e)
{
    bool spoken = p->llhttp.http_major == 1 && p->llhttp.http_minor <= 1;

    /* llhttp 9 also calls a bare line feed after a good version an invalid version. */
    if (e == HPE_INVALID_VERSION && !spoken)
        bad(p, 505, "only HTTP/1.0 and HTTP/1.1 are spoken here");
    else
        bad(p, 400, "the request is not valid HTTP");
    return HTTP_PARSE_BAD;
}

static HttpParseResult
after_execute(HttpParser *p, llhttp_errno_t e, Phase before)
{
    if (e == HPE_PAUSED) {
        llhttp_resume(&p->llhttp);
        if (p->phase == PHASE_DONE)
            return HTTP_PARSE_DONE;
        return before == PHASE_HEAD ? HTTP_PARSE_HEAD : HTTP_PARSE_PAUSED;
    }
    return e == HPE_OK ? HTTP_PARSE_MORE : fail(p, e);
}

HttpParseResult
http_parser_feed(HttpParser *parser, const guint8 *bytes, size_t n, size_t *ret_consumed)
{
    HttpParser *p = parser;
    const char *start = (const char *)bytes;
    Phase before = p->phase;

    g_assert(p->phase != PHASE_DONE);
    *ret_consumed = n;
    if (p->bad_status != 0)
        return HTTP_PARSE_BAD;
    if (before == PHASE_HEAD && has_folded_line(p, bytes, n)) {
        bad(p, 400, "a folded header line");
        return HTTP_PARSE_BAD;
    }
    p->cursor = start;
    llhttp_errno_t e = llhttp_execute(&p->llhttp, start, n);
    if (e == HPE_PAUSED || e == HPE_PAUSED_UPGRADE)
        *ret_consumed = (size_t)(llhttp_get_error_pos(&p->llhttp) - start);

    HttpParseResult result = after_execute(p, e, before);
    p->paused = result == HTTP_PARSE_PAUSED;
    if (before == PHASE_HEAD && result != HTTP_PARSE_BAD) {
        p->head_bytes += *ret_consumed;
        if (p->head_bytes > HTTP_HEAD_MAX) {
            bad(p, 431, "the head is too large");
            return HTTP_PARSE_BAD;
        }
    } else if ((result == HTTP_PARSE_MORE || result == HTTP_PARSE_DONE) &&
               count_framing(p, start + *ret_consumed) != 0) {
        return HTTP_PARSE_BAD;
    }
    return result;
}

bool
http_parser_finish(HttpParser *parser)
{
    HttpParser *p = parser;
    size_t used;

    /* Right after the head llhttp has not decided yet how the body ends. */
    if (p->phase == PHASE_BODY)
        (void)http_parser_feed(p, (const guint8 *)"", 0, &used);
    if (p->phase == PHASE_BODY)
        (void)llhttp_finish(&p->llhttp); /* what counts is whether it completes the message */
    return p->phase == PHASE_DONE;
}

void
http_parser_take_head(HttpParser *parser, HttpHead *ret_head)
{
    g_assert(parser->phase != PHASE_HEAD);
    *ret_head = parser->head;
    parser->head = (HttpHead){0};
}

bool
http_parser_is_paused(const HttpParser *parser)
{
    return parser->paused;
}

guint64
http_parser_body_left(const HttpParser *parser)
{
    const llhttp_t *l = &parser->llhttp;

    return parser->phase == PHASE_BODY && (l->flags & F_CONTENT_LENGTH) != 0 ? l->content_length : 0;
}

void
http_parser_skip_body(HttpParser *parser, guint64 n)
{
    /* llhttp counts down here and looks at nothing else until the last byte, which it has to see. */
    g_assert(n < http_parser_body_left(parser));
    parser->llhttp.content_length -= n;
}

int
http_parser_status(const HttpParser *parser)
{
    return parser->bad_status;
}

const char *
http_parser_reason(const HttpParser *parser)
{
    return parser->bad_reason;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "fuzz.h"
#include "http/limits.h"
#include "http/parse.h"

/* The input is what a client sends on one connection: requests, one after the other, until it
 * ends or breaks a rule.  However it is cut, and however often its reader says "enough for
 * now", the same requests with the same bodies have to come of it. */

typedef struct Reading {
    HttpParser *parser;
    GString *log;
    GString *body;
    bool pauses;
    bool over;
} Reading;

static bool
on_body(void *ctx, const guint8 *bytes, size_t n)
{
    Reading *r = ctx;

    g_assert(n > 0);
    g_string_append_len(r->body, (const char *)bytes, (gssize)n);
    return !r->pauses;
}

/* What every handler may rely on. */
static void
check_head(const HttpHead *h)
{
    const char *coding = http_head_find(h, "Transfer-Encoding");
    guint lengths = http_head_count(h, "Content-Length");

    g_assert(h->minor == 0 || h->minor == 1);
    g_assert(h->len <= HTTP_HEAD_MAX && h->n_headers <= HTTP_HEADER_COUNT_MAX);
    g_assert(strlen(http_head_target(h)) <= HTTP_TARGET_MAX);
    g_assert(http_head_count(h, "Host") <= 1);
    g_assert(h->minor == 0 ? coding == NULL : http_head_count(h, "Host") == 1);
    g_assert(lengths + http_head_count(h, "Transfer-Encoding") <= 1);
    g_assert((coding != NULL) == (h->content_length == -1));
    g_assert(coding != NULL || lengths == 1 || h->content_length == 0);
    g_assert(!(h->upgrade && h->has_body));
    for (const char *p = http_head_target(h); *p != '\0'; p++)
        g_assert(*p > ' ' && *p < 0x7f);
}

static void
note_head(Reading *r)
{
    HttpHead h;

    http_parser_take_head(r->parser, &h);
    check_head(&h);
    g_string_append_printf(r->log, "%s %s 1.%d length=%" G_GINT64_FORMAT "%s%s%s\n", h.method,
                           http_head_target(&h), h.minor, h.content_length, h.has_body ? " body" : "",
                           h.keep_alive ? " keep" : "", h.upgrade ? " upgrade" : "");
    for (guint32 i = 0; i < h.n_headers; i++) {
        const char *name = h.text + h.headers[i].name;
        const char *value = h.text + h.headers[i].value;

        g_assert(name[0] != '\0' && strpbrk(name, " \t\r\n:") == NULL);
        g_assert(strpbrk(value, "\r\n") == NULL);
        g_string_append_printf(r->log, "  %s: %s\n", name, value);
    }
    r->over = h.upgrade; /* what follows is not HTTP */
    http_head_clear(&h);
}

static void
note_end(Reading *r, const char *how)
{
    g_string_append_printf(r->log, "%s %zu ", how, r->body->len);
    g_string_append_len(r->log, r->body->str, (gssize)r->body->len);
    g_string_append_c(r->log, '\n');
    g_string_truncate(r->body, 0);
}

static void
note_bad(Reading *r)
{
    g_assert(http_parser_status(r->parser) >= 400 && http_parser_reason(r->parser) != NULL);
    note_end(r, "bad");
    r->over = true;
}

static bool
feed(void *ctx, const guint8 *bytes, size_t n)
{
    Reading *r = ctx;

    for (size_t at = 0; !r->over && (at < n || http_parser_is_paused(r->parser));) {
        size_t used;
        HttpParseResult result = http_parser_feed(r->parser, bytes + at, n - at, &used);

        g_assert(used <= n - at);
        at += used;
        if (result == HTTP_PARSE_HEAD) {
            note_head(r);
        } else if (result == HTTP_PARSE_DONE) {
            note_end(r, "done");
            http_parser_reset(r->parser);
        } else if (result == HTTP_PARSE_BAD) {
            note_bad(r);
        } else {
            g_assert(result == HTTP_PARSE_PAUSED ? r->pauses : at == n);
        }
    }
    return !r->over;
}

static GString *
read_requests(const guint8 *data, size_t n, size_t cut, bool pauses)
{
    Reading r = {.log = g_string_new(NULL), .body = g_string_new(NULL), .pauses = pauses};

    r.parser = http_parser_new(HTTP_PARSE_REQUEST, on_body, &r);
    if (fuzz_feed(data, n, cut, feed, &r))
        note_end(&r, "open");
    g_string_free(r.body, TRUE);
    http_parser_free(r.parser);
    return r.log;
}

void
fuzz_input(const guint8 *data, size_t n, size_t cut)
{
    g_autoptr(GString) whole = read_requests(data, n, n, false);
    g_autoptr(GString) pieces = read_requests(data, n, cut, false);
    g_autoptr(GString) pausing = read_requests(data, n, cut, true);

    g_assert(g_string_equal(whole, pieces));
    g_assert(g_string_equal(whole, pausing));
}

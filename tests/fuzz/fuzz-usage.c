/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "brain/event-cut.h"
#include "brain/usage-private.h"
#include "fuzz.h"

/* The first byte says which answer it is; the rest is the answer. */

enum { ASKED = 1000 };

typedef struct Reading {
    UsageReader *reader;
    bool ok;
} Reading;

static bool
feed(void *ctx, const guint8 *bytes, size_t n)
{
    Reading *r = ctx;

    r->ok = usage_reader_feed(r->reader, bytes, n, NULL);
    return r->ok;
}

static bool
read_all(Dialect dialect, bool stream, const guint8 *data, size_t n, size_t cut, Usage *ret,
         bool *ret_complete)
{
    Reading r = {.reader = usage_reader_new(dialect, stream), .ok = true};

    fuzz_feed(data, n, cut, feed, &r);
    if (!r.ok)
        g_assert(!usage_reader_feed(r.reader, "\n\n", 2, NULL));
    usage_reader_result(r.reader, ASKED, ret);
    *ret_complete = usage_reader_is_complete(r.reader);
    usage_reader_free(r.reader);
    return r.ok;
}

typedef struct Cutting {
    EventCut cut;
    GString *out;
} Cutting;

static bool
cut_feed(void *ctx, const guint8 *bytes, size_t n)
{
    Cutting *c = ctx;
    const guint8 *event;
    size_t len;

    g_assert(event_cut_put(&c->cut, bytes, n));
    while ((event = event_cut_next(&c->cut, &len)) != NULL) {
        g_assert(len > 0 && (event[len - 1] == '\n' || event[len - 1] == '\r'));
        g_string_append_len(c->out, (const char *)event, (gssize)len);
    }
    return true;
}

/* No byte is lost, added or moved. */
static void
check_cutting(const guint8 *data, size_t n, size_t cut)
{
    Cutting c = {.out = g_string_new(NULL)};
    size_t len;

    event_cut_init(&c.cut, n + 1);
    fuzz_feed(data, n, cut, cut_feed, &c);
    const guint8 *rest = event_cut_rest(&c.cut, &len);
    g_string_append_len(c.out, (const char *)rest, (gssize)len);
    g_assert(c.out->len == n && (n == 0 || memcmp(c.out->str, data, n) == 0));
    g_string_free(c.out, TRUE);
    event_cut_clear(&c.cut);
}

void
fuzz_input(const guint8 *data, size_t n, size_t cut)
{
    Usage whole, pieces;
    bool whole_complete, pieces_complete;

    if (n == 0)
        return;
    Dialect dialect = (*data & 1) != 0 ? DIALECT_ANTHROPIC : DIALECT_OPENAI;
    bool stream = (*data & 2) != 0;
    data++;
    n--;
    if (cut != FUZZ_EACH_BYTE)
        cut = MIN(cut, n);
    bool ok = read_all(dialect, stream, data, n, n, &whole, &whole_complete);
    bool cut_ok = read_all(dialect, stream, data, n, cut, &pieces, &pieces_complete);
    g_assert(ok == cut_ok && whole_complete == pieces_complete);
    g_assert(whole.input_tokens == pieces.input_tokens && whole.output_tokens == pieces.output_tokens);
    g_assert(whole.cached_tokens == pieces.cached_tokens && whole.estimated == pieces.estimated);
    g_assert(whole.input_tokens <= 1000000000 && whole.cached_tokens <= 1000000000);
    check_cutting(data, n, cut);
}

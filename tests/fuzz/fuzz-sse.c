/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/err.h"
#include "fuzz.h"
#include "http/sse.h"

/* The input is a stream for the decoder, and data for the encoder. */

enum { LARGE_MAX = 1024 * 1024 };

static void
note_event(GString *log, const char *event, const char *id, const char *data, size_t n)
{
    g_string_append_printf(log, "%zu %s|%s|", n, event, id);
    g_string_append_len(log, data, (gssize)n);
    g_string_append_c(log, '\n');
}

static void
on_event(const SseEvent *event, void *ctx)
{
    g_assert(event->data[event->data_len] == '\0');
    note_event(ctx, event->event, event->last_id, event->data, event->data_len);
}

static bool
feed(void *ctx, const guint8 *bytes, size_t n)
{
    g_autoptr(GError) error = NULL;
    bool ok = sse_decoder_feed(ctx, bytes, n, &error);

    if (!ok) {
        g_assert(err_kind(error) == ERR_LIMIT);
        g_assert(!sse_decoder_feed(ctx, (const guint8 *)"\n\n", 2, NULL));
    }
    return ok;
}

static GString *
decode(const guint8 *data, size_t n, size_t cut, size_t max, bool *ret_ok)
{
    GString *log = g_string_new(NULL);
    g_autoptr(SseDecoder) decoder = sse_decoder_new(max, on_event, log);

    *ret_ok = fuzz_feed(data, n, cut, feed, decoder);
    g_string_append_printf(log, "retry %" G_GINT64_FORMAT, sse_decoder_retry_ms(decoder));
    return log;
}

static GString *
with_lf(const guint8 *data, size_t n)
{
    GString *text = g_string_new(NULL);

    for (size_t i = 0; i < n; i++) {
        if (data[i] == '\r' && i + 1 < n && data[i + 1] == '\n')
            continue;
        g_string_append_c(text, data[i] == '\r' ? '\n' : (char)data[i]);
    }
    return text;
}

/* The same reading, line by line over the whole text. */
typedef struct Plain {
    GString *log, *data, *event, *id;
    gint64 retry_ms;
    size_t used, most; /* bytes of this event's lines, and of the longest event's */
} Plain;

static void
plain_count(Plain *p, const char *line, size_t n)
{
    p->used = n == 0 ? 0 : p->used + (*line != ':' ? n : 0);
    p->most = MAX(p->most, p->used);
}

static void
plain_line(Plain *p, const char *line, size_t n)
{
    const char *colon = memchr(line, ':', n);
    size_t name_len = colon != NULL ? (size_t)(colon - line) : n;
    g_autofree char *name = g_strndup(line, name_len);
    size_t from = MIN(n, name_len + 1);

    if (from < n && line[from] == ' ')
        from++;
    g_autoptr(GString) value = g_string_new_len(line + from, (gssize)(n - from));

    if (n == 0) {
        if (p->data->len > 0)
            note_event(p->log, p->event->len > 0 ? p->event->str : "message", p->id->str, p->data->str,
                       p->data->len - 1);
        g_string_truncate(p->data, 0);
        g_string_truncate(p->event, 0);
    } else if (strlen(name) != name_len) {
        return;
    } else if (strcmp(name, "data") == 0) {
        g_string_append_len(p->data, value->str, (gssize)value->len);
        g_string_append_c(p->data, '\n');
    } else if (strcmp(name, "event") == 0) {
        g_string_truncate(p->event, 0);
        g_string_append_len(p->event, value->str, (gssize)value->len);
    } else if (strcmp(name, "id") == 0 && strlen(value->str) == value->len) {
        g_string_assign(p->id, value->str);
    } else if (strcmp(name, "retry") == 0 && value->len > 0 && strlen(value->str) == value->len &&
               strspn(value->str, "0123456789") == value->len) {
        guint64 ms = g_ascii_strtoull(value->str, NULL, 10);

        p->retry_ms = ms <= G_MAXINT64 ? (gint64)ms : p->retry_ms;
    }
}

/* `log` is what a decoder with room for everything said.  Gives the bound that just suffices. */
static size_t
check_reading(const guint8 *data, size_t n, const GString *log)
{
    bool mark = n >= 3 && memcmp(data, "\xef\xbb\xbf", 3) == 0;
    g_autoptr(GString) text = with_lf(data + (mark ? 3 : 0), n - (mark ? 3 : 0));
    Plain p = {g_string_new(NULL), g_string_new(NULL), g_string_new(NULL), g_string_new(NULL), -1, 0, 0};
    const char *line = text->str;
    const char *end = line + text->len;

    for (const char *lf; (lf = memchr(line, '\n', (size_t)(end - line))) != NULL; line = lf + 1) {
        plain_count(&p, line, (size_t)(lf - line));
        plain_line(&p, line, (size_t)(lf - line));
    }
    plain_count(&p, line, (size_t)(end - line));
    g_string_append_printf(p.log, "retry %" G_GINT64_FORMAT, p.retry_ms);
    g_assert(g_string_equal(p.log, log));
    g_string_free(p.log, TRUE);
    g_string_free(p.data, TRUE);
    g_string_free(p.event, TRUE);
    g_string_free(p.id, TRUE);
    return p.most;
}

/* Two events, whatever their data: one each comes out, and nothing of the data becomes a
 * field. */
static void
check_round_trip(const guint8 *data, size_t n, size_t cut)
{
    size_t half = MIN(cut, n);
    g_autofree char *name = fuzz_string(data, MIN(half, 8));
    g_autoptr(GString) want = g_string_new(NULL);
    g_autoptr(GString) first = with_lf(data, half);
    g_autoptr(GString) second = with_lf(data + half, n - half);
    g_auto(Buf) out;
    size_t size;
    bool ok;

    g_strdelimit(name, "\r\n", '-');
    buf_init(&out, 64 + 8 * n);
    g_assert(sse_put(&out, name, name, (const char *)data, half));
    g_assert(sse_put(&out, NULL, NULL, (const char *)data + half, n - half));
    const guint8 *bytes = buf_peek(&out, &size);
    g_autoptr(GString) log = decode(bytes, size, size, LARGE_MAX, &ok);

    note_event(want, *name != '\0' ? name : "message", name, first->str, first->len);
    note_event(want, "message", name, second->str, second->len);
    g_string_append(want, "retry -1");
    g_assert(ok && g_string_equal(log, want));
}

/* The same with `max`, whole or in pieces; false: it did not suffice. */
static bool
check_pieces(const guint8 *data, size_t n, size_t cut, size_t max)
{
    bool ok;
    bool cut_ok;
    g_autoptr(GString) whole = decode(data, n, n, max, &ok);
    g_autoptr(GString) pieces = decode(data, n, cut, max, &cut_ok);

    g_assert(ok == cut_ok && g_string_equal(whole, pieces));
    return ok;
}

void
fuzz_input(const guint8 *data, size_t n, size_t cut)
{
    bool ok;
    g_autoptr(GString) log = decode(data, n, n, LARGE_MAX, &ok);
    size_t most = check_reading(data, n, log);

    g_assert(ok);
    g_assert(check_pieces(data, n, cut, most));
    /* An unfinished byte order mark may be all there is, and is not counted. */
    if (most >= sizeof "\xef\xbb\xbf")
        g_assert(!check_pieces(data, n, cut, most - 1));
    check_round_trip(data, n, cut);
}

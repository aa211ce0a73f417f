/* SPDX-License-Identifier: Apache-2.0 */
#include "http/sse.h"

#include <string.h>

#include "base/err.h"

/* ---- writing ---- */

static guint8 *
put_bytes(guint8 *to, const void *bytes, size_t n)
{
    if (n > 0)
        memcpy(to, bytes, n);
    return to + n;
}

static guint8 *
put_field(guint8 *to, const char *name, const char *value, size_t n)
{
    to = put_bytes(to, name, strlen(name));
    to = put_bytes(to, ": ", 2);
    to = put_bytes(to, value, n);
    return put_bytes(to, "\n", 1);
}

static size_t
field_size(const char *name, const char *value)
{
    if (value == NULL)
        return 0;
    g_assert(strpbrk(value, "\r\n") == NULL);
    return strlen(name) + strlen(value) + 3;
}

/* The line at `*p`, without its end; CR, LF and CRLF each end one, as they do for the reader:
 * a lone CR that was passed on would begin a field of the sender's choice.  False: that was
 * the last line. */
static bool
next_line(const char **p, const char *end, const char **ret_line, size_t *ret_len)
{
    const char *at = *p;

    while (at < end && *at != '\r' && *at != '\n')
        at++;
    *ret_line = *p;
    *ret_len = (size_t)(at - *p);
    if (at == end)
        return false;
    *p = at + (*at == '\r' && end - at > 1 && at[1] == '\n' ? 2 : 1);
    return true;
}

bool
sse_put(Buf *out, const char *id, const char *event, const char *data, size_t n)
{
    size_t size = field_size("id", id) + field_size("event", event) + 1;
    const char *text = n > 0 ? data : "";
    const char *end = text + n;
    const char *p = text;
    const char *line;
    size_t len;
    bool more;

    do {
        more = next_line(&p, end, &line, &len);
        size += strlen("data: \n") + len;
    } while (more);
    guint8 *to = buf_reserve(out, size);
    if (to == NULL)
        return false;
    if (id != NULL)
        to = put_field(to, "id", id, strlen(id));
    if (event != NULL)
        to = put_field(to, "event", event, strlen(event));
    p = text;
    do {
        more = next_line(&p, end, &line, &len);
        to = put_field(to, "data", line, len);
    } while (more);
    put_bytes(to, "\n", 1);
    buf_grow(out, size);
    return true;
}

/* ---- reading ---- */

static const guint8 bom[] = {0xef, 0xbb, 0xbf};

struct SseDecoder {
    size_t max;
    size_t used; /* bytes of this event's lines, comments left out */
    SseEventFunc func;
    void *func_data;

    guint8 bom_seen; /* bytes of a byte order mark at the stream's start */
    bool started;    /* past the place where one may be */
    bool after_cr;   /* a LF that comes next belongs to it */
    bool in_comment; /* skipped, never held */
    bool failed;     /* the bound was passed */
    gint64 retry_ms;
    GString *line;
    GString *data;
    GString *event;
    GString *last_id;
};

SseDecoder *
sse_decoder_new(size_t max, SseEventFunc func, void *data)
{
    SseDecoder *d = g_new0(SseDecoder, 1);

    d->max = max;
    d->func = func;
    d->func_data = data;
    d->retry_ms = -1;
    d->line = g_string_new(NULL);
    d->data = g_string_new(NULL);
    d->event = g_string_new(NULL);
    d->last_id = g_string_new(NULL);
    return d;
}

void
sse_decoder_free(SseDecoder *decoder)
{
    if (decoder == NULL)
        return;
    g_string_free(decoder->line, TRUE);
    g_string_free(decoder->data, TRUE);
    g_string_free(decoder->event, TRUE);
    g_string_free(decoder->last_id, TRUE);
    g_free(decoder);
}

static void
dispatch(SseDecoder *d)
{
    /* Every data line added a LF, so an event with one empty line is not empty. */
    if (d->data->len > 0) {
        g_string_truncate(d->data, d->data->len - 1);
        SseEvent event = {
            .event = d->event->len > 0 ? d->event->str : "message",
            .data = d->data->str,
            .data_len = d->data->len,
            .last_id = d->last_id->str,
        };

        d->func(&event, d->func_data);
    }
    g_string_truncate(d->data, 0);
    g_string_truncate(d->event, 0);
    d->used = 0;
}

static void
set_retry(SseDecoder *d, const char *value, size_t n)
{
    guint64 ms;

    if (strspn(value, "0123456789") != n)
        return;
    if (g_ascii_string_to_unsigned(value, 10, 0, G_MAXINT64, &ms, NULL))
        d->retry_ms = (gint64)ms;
}

static void
take_field(SseDecoder *d, const char *name, size_t name_len, const char *value, size_t n)
{
    if (name_len == 4 && memcmp(name, "data", 4) == 0) {
        g_string_append_len(d->data, value, (gssize)n);
        g_string_append_c(d->data, '\n');
    } else if (name_len == 5 && memcmp(name, "event", 5) == 0) {
        g_string_truncate(d->event, 0);
        g_string_append_len(d->event, value, (gssize)n);
    } else if (name_len == 2 && memcmp(name, "id", 2) == 0) {
        if (memchr(value, '\0', n) == NULL)
            g_string_assign(d->last_id, value);
    } else if (name_len == 5 && memcmp(name, "retry", 5) == 0) {
        set_retry(d, value, n);
    }
}

static void
end_line(SseDecoder *d)
{
    const char *line = d->line->str;
    size_t n = d->line->len;

    if (d->in_comment) {
        d->in_comment = false;
        return;
    }
    if (n == 0) {
        dispatch(d);
        return;
    }
    const char *colon = memchr(line, ':', n);
    size_t name_len = colon != NULL ? (size_t)(colon - line) : n;
    const char *value = colon != NULL ? colon + 1 : line + n;

    if (*value == ' ')
        value++;
    take_field(d, line, name_len, value, (size_t)(line + n - value));
    g_string_truncate(d->line, 0);
}

static bool
add_to_line(SseDecoder *d, const void *bytes, size_t n, GError **error)
{
    if (n > 0 && d->line->len == 0 && *(const char *)bytes == ':')
        d->in_comment = true;
    if (d->in_comment)
        return true;
    if (n > d->max - d->used) {
        d->failed = true;
        return err_set(error, ERR_LIMIT, "a server-sent event is longer than %zu bytes", d->max);
    }
    d->used += n;
    g_string_append_len(d->line, bytes, (gssize)n);
    return true;
}

/* Steps over a byte order mark, which may come in pieces.  What looked like one and was not
 * belongs to the first line. */
static bool
skip_bom(SseDecoder *d, const guint8 **p, const guint8 *end, GError **error)
{
    while (!d->started && *p < end) {
        if (**p != bom[d->bom_seen]) {
            d->started = true;
            return add_to_line(d, bom, d->bom_seen, error);
        }
        (*p)++;
        d->started = ++d->bom_seen == sizeof bom;
    }
    return true;
}

bool
sse_decoder_feed(SseDecoder *decoder, const void *bytes, size_t n, GError **error)
{
    if (decoder->failed)
        return err_set(error, ERR_LIMIT, "a server-sent event was too long");
    if (n == 0)
        return true;
    const guint8 *p = bytes;
    const guint8 *end = p + n;

    if (!skip_bom(decoder, &p, end, error))
        return false;
    while (p < end) {
        const guint8 *at = p;

        if (decoder->after_cr && *p == '\n')
            at = ++p;
        decoder->after_cr = false;
        while (at < end && *at != '\r' && *at != '\n')
            at++;
        if (!add_to_line(decoder, p, (size_t)(at - p), error))
            return false;
        if (at == end)
            break;
        decoder->after_cr = *at == '\r';
        end_line(decoder);
        p = at + 1;
    }
    return true;
}

gint64
sse_decoder_retry_ms(const SseDecoder *decoder)
{
    return decoder->retry_ms;
}

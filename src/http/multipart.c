/* SPDX-License-Identifier: Apache-2.0 */
#include "http/multipart.h"

#include <string.h>

#include "base/err.h"
#include "http/multipart-head.h"

/* A delimiter is CRLF, "--" and the boundary.  CR occurs in it only at its start, so a match
 * that fails can begin again only at the byte that broke it, and the bytes that were held back
 * need no storage: they equal the delimiter's own beginning.
 *
 * Where a body or a part's content begins a delimiter may stand without its CRLF (RFC 2046
 * counts the line end before it).  The match then begins with two bytes that nobody sent, which
 * `unsent` leaves out of the content if it fails.
 *
 * A line that begins with the delimiter and goes on is refused instead of being taken for
 * content: RFC 2046 forbids it, and readers differ in what they make of it. */
enum { MARGIN_MAX = 8 * 1024, CRLF_LEN = 2 }; /* bytes before the first delimiter; after the last */

typedef enum State {
    STATE_PREAMBLE,
    STATE_DELIMITED, /* behind a delimiter: CRLF or "--" follows */
    STATE_HEAD,
    STATE_DATA,
    STATE_CLOSED, /* behind the last delimiter: CRLF or the end follows */
    STATE_EPILOGUE,
    STATE_FAILED,
} State;

struct Multipart {
    MultipartHandler handler;
    void *ctx;
    State state;
    char *delimiter;
    size_t delimiter_len;
    size_t matched; /* bytes of the delimiter that were seen */
    size_t unsent;
    size_t margin; /* bytes of the preamble or epilogue */
    char after[2]; /* what follows a delimiter, */
    guint n_after; /* and how much of it came */
    guint n_parts;
    bool in_part; /* its end was not told yet */
    GString *head;
};

Multipart *
multipart_new(const char *content_type, const MultipartHandler *handler, void *ctx, GError **error)
{
    g_autofree char *boundary = multipart_boundary(content_type, error);

    if (boundary == NULL)
        return NULL;
    Multipart *mp = g_new0(Multipart, 1);

    mp->handler = *handler;
    mp->ctx = ctx;
    mp->delimiter = g_strconcat("\r\n--", boundary, NULL);
    mp->delimiter_len = strlen(mp->delimiter);
    mp->matched = mp->unsent = CRLF_LEN;
    mp->head = g_string_new(NULL);
    return mp;
}

void
multipart_free(Multipart *mp)
{
    if (mp == NULL)
        return;
    g_free(mp->delimiter);
    g_string_free(mp->head, TRUE);
    g_free(mp);
}

static bool
skip_margin(Multipart *mp, size_t n, GError **error)
{
    if (n > MARGIN_MAX - mp->margin)
        return err_set(error, ERR_INVALID, "more than %d bytes stand %s boundary", MARGIN_MAX,
                       mp->state == STATE_PREAMBLE ? "before the first" : "after the closing");
    mp->margin += n;
    return true;
}

static bool
content(Multipart *mp, const void *bytes, size_t n, GError **error)
{
    if (n == 0)
        return true;
    if (mp->state == STATE_PREAMBLE)
        return skip_margin(mp, n, error);
    return mp->handler.data(bytes, n, mp->ctx, error);
}

/* Takes bytes up to and with the next delimiter. */
static bool
feed_content(Multipart *mp, const guint8 **p, const guint8 *end, GError **error)
{
    while (*p < end) {
        while (*p < end && mp->matched > 0 && mp->matched < mp->delimiter_len &&
               **p == (guint8)mp->delimiter[mp->matched]) {
            (*p)++;
            mp->matched++;
        }
        if (mp->matched == mp->delimiter_len) {
            mp->state = STATE_DELIMITED;
            mp->n_after = 0;
            return true;
        }
        if (*p == end)
            return true;
        size_t held = mp->matched - mp->unsent;
        const char *from = mp->delimiter + mp->unsent;

        mp->matched = mp->unsent = 0;
        if (!content(mp, from, held, error))
            return false;
        const guint8 *cr = memchr(*p, '\r', (size_t)(end - *p));
        const guint8 *stop = cr != NULL ? cr : end;

        if (!content(mp, *p, (size_t)(stop - *p), error))
            return false;
        *p = stop;
        if (cr != NULL) {
            mp->matched = 1;
            (*p)++;
        }
    }
    return true;
}

static bool
end_part(Multipart *mp, GError **error)
{
    if (!mp->in_part)
        return true;
    mp->in_part = false;
    return mp->handler.part_end(mp->ctx, error);
}

static bool
begin_head(Multipart *mp, GError **error)
{
    if (!end_part(mp, error))
        return false;
    if (mp->n_parts == MULTIPART_PARTS_MAX)
        return err_set(error, ERR_INVALID, "the body has more than %d parts", MULTIPART_PARTS_MAX);
    mp->n_parts++;
    mp->state = STATE_HEAD;
    g_string_truncate(mp->head, 0);
    return true;
}

/* The two bytes after a delimiter; the closing one may also be the last of all. */
static bool
feed_after(Multipart *mp, guint8 byte, GError **error)
{
    bool closed = mp->state == STATE_CLOSED;

    mp->after[mp->n_after++] = (char)byte;
    if (memcmp(mp->after, "\r\n", mp->n_after) != 0 && (closed || memcmp(mp->after, "--", mp->n_after) != 0))
        return err_set(error, ERR_INVALID, "a boundary is followed by neither CRLF nor '--'");
    if (mp->n_after < sizeof mp->after)
        return true;
    mp->n_after = 0;
    if (closed) {
        mp->state = STATE_EPILOGUE;
        mp->margin = 0;
        return true;
    }
    if (byte == '\n')
        return begin_head(mp, error);
    mp->state = STATE_CLOSED;
    return end_part(mp, error);
}

static bool
end_head(Multipart *mp, GError **error)
{
    g_auto(PartHead) head;

    g_string_truncate(mp->head, mp->head->len - CRLF_LEN);
    if (!part_head_parse(mp->head->str, &head, error)) {
        g_prefix_error(error, "part %u: ", mp->n_parts);
        return false;
    }
    MultipartPart part = {.name = head.name, .filename = head.filename, .content_type = head.content_type};

    mp->state = STATE_DATA;
    mp->in_part = true;
    mp->matched = mp->unsent = CRLF_LEN;
    return mp->handler.part(&part, mp->ctx, error);
}

/* The head ends with CRLF; was its last line empty? */
static bool
is_blank_line(const GString *head)
{
    return head->len == CRLF_LEN ||
           (head->len >= 2 * CRLF_LEN && memcmp(head->str + head->len - 2 * CRLF_LEN, "\r\n", CRLF_LEN) == 0);
}

static bool
feed_head(Multipart *mp, guint8 byte, GError **error)
{
    GString *head = mp->head;
    bool after_cr = head->len > 0 && head->str[head->len - 1] == '\r';

    if (head->len == MULTIPART_HEAD_MAX)
        return err_set(error, ERR_INVALID, "part %u: its headers are longer than %d bytes", mp->n_parts,
                       MULTIPART_HEAD_MAX);
    if (after_cr != (byte == '\n'))
        return err_set(error, ERR_INVALID, "part %u: a header line does not end with CRLF", mp->n_parts);
    if (byte == '\0')
        return err_set(error, ERR_INVALID, "part %u: a header has a NUL", mp->n_parts);
    g_string_append_c(head, (char)byte);
    if (byte == '\n' && is_blank_line(head))
        return end_head(mp, error);
    return true;
}

static bool
feed_some(Multipart *mp, const guint8 **p, const guint8 *end, GError **error)
{
    const guint8 *from;

    switch (mp->state) {
    case STATE_PREAMBLE:
    case STATE_DATA:
        return feed_content(mp, p, end, error);
    case STATE_DELIMITED:
    case STATE_CLOSED:
        return feed_after(mp, *(*p)++, error);
    case STATE_HEAD:
        return feed_head(mp, *(*p)++, error);
    case STATE_EPILOGUE:
        from = *p;
        *p = end;
        return skip_margin(mp, (size_t)(end - from), error);
    case STATE_FAILED:
    default:
        return err_set(error, ERR_INVALID, "the multipart body was refused");
    }
}

bool
multipart_feed(Multipart *mp, const guint8 *bytes, size_t n, GError **error)
{
    const guint8 *p = bytes;

    if (n == 0)
        return mp->state != STATE_FAILED || feed_some(mp, &p, p, error);
    for (const guint8 *end = bytes + n; p < end;) {
        if (!feed_some(mp, &p, end, error)) {
            mp->state = STATE_FAILED;
            return false;
        }
    }
    return true;
}

bool
multipart_finish(Multipart *mp, GError **error)
{
    if (mp->state == STATE_EPILOGUE || (mp->state == STATE_CLOSED && mp->n_after == 0))
        return true;
    if (mp->state == STATE_PREAMBLE)
        return err_set(error, ERR_INVALID, "the body does not have the boundary that its Content-Type names");
    if (mp->state == STATE_FAILED)
        return err_set(error, ERR_INVALID, "the multipart body was refused");
    return err_set(error, ERR_INVALID, "the body ends before its closing boundary");
}

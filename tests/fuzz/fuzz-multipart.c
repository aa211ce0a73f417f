/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/err.h"
#include "fuzz.h"
#include "http/multipart.h"

/* The input's first line is a Content-Type, the rest a body.  It is also content for parts that
 * are written here and read back. */

typedef struct Reading {
    Multipart *mp;
    GString *log;
    GString *content; /* of the part under way */
    bool in_part;
    GError *error;
} Reading;

static void
note(GString *log, const char *what, const char *text)
{
    g_string_append_printf(log, "%s %zu %s\n", what, text != NULL ? strlen(text) : 0,
                           text != NULL ? text : "-");
}

static bool
on_part(const MultipartPart *part, void *ctx, GError **error)
{
    Reading *r = ctx;

    g_assert(!r->in_part);
    g_assert(g_utf8_validate(part->name, -1, NULL));
    r->in_part = true;
    g_string_truncate(r->content, 0);
    note(r->log, "name", part->name);
    note(r->log, "filename", part->filename);
    note(r->log, "type", part->content_type);
    return true;
}

static bool
on_data(const guint8 *bytes, size_t n, void *ctx, GError **error)
{
    Reading *r = ctx;

    g_assert(r->in_part && n > 0);
    g_string_append_len(r->content, (const char *)bytes, (gssize)n);
    return true;
}

static void
note_content(Reading *r, const char *how)
{
    g_string_append_printf(r->log, "%s %zu ", how, r->content->len);
    g_string_append_len(r->log, r->content->str, (gssize)r->content->len);
    g_string_append_c(r->log, '\n');
}

static bool
on_end(void *ctx, GError **error)
{
    Reading *r = ctx;

    g_assert(r->in_part);
    r->in_part = false;
    note_content(r, "whole");
    return true;
}

static const MultipartHandler handler = {.part = on_part, .data = on_data, .part_end = on_end};

static bool
feed(void *ctx, const guint8 *bytes, size_t n)
{
    Reading *r = ctx;

    return multipart_feed(r->mp, bytes, n, &r->error);
}

static GString *
read_body(const char *type, const guint8 *body, size_t n, size_t cut)
{
    Reading r = {.log = g_string_new(NULL), .content = g_string_new(NULL)};

    r.mp = multipart_new(type, &handler, &r, &r.error);
    bool ok = r.mp != NULL && fuzz_feed(body, n, cut, feed, &r) && multipart_finish(r.mp, &r.error);

    g_assert(ok == (r.error == NULL));
    g_assert(!ok || !r.in_part);
    if (r.in_part)
        note_content(&r, "broken");
    if (!ok) {
        g_assert(err_kind(r.error) == ERR_INVALID);
        g_assert(r.mp == NULL || !multipart_finish(r.mp, NULL));
    }
    note(r.log, "end", ok ? "ok" : r.error->message);
    g_clear_error(&r.error);
    g_string_free(r.content, TRUE);
    multipart_free(r.mp);
    return r.log;
}

static void
append_quoted(GString *to, const char *text)
{
    g_string_append_c(to, '"');
    for (; *text != '\0'; text++) {
        if (*text == '"' || *text == '\\')
            g_string_append_c(to, '\\');
        g_string_append_c(to, *text);
    }
    g_string_append_c(to, '"');
}

static void
append_part(GString *body, GString *want, const char *name, const guint8 *data, size_t n)
{
    g_string_append(body, "--B0undary\r\nContent-Disposition: form-data; name=");
    append_quoted(body, name);
    g_string_append(body, "; filename=");
    append_quoted(body, name);
    g_string_append(body, "\r\n\r\n");
    g_string_append_len(body, (const char *)data, (gssize)n);
    g_string_append(body, "\r\n");
    note(want, "name", name);
    note(want, "filename", name);
    note(want, "type", NULL);
    g_string_append_printf(want, "whole %zu ", n);
    g_string_append_len(want, (const char *)data, (gssize)n);
    g_string_append_c(want, '\n');
}

/* Any content that does not hold the delimiter comes back byte for byte. */
static void
check_round_trip(const guint8 *data, size_t n, size_t cut)
{
    size_t half = MIN(cut, n);
    g_autofree char *raw = fuzz_string(data, MIN(n, 64));
    g_autofree char *name = g_utf8_make_valid(raw, -1);
    g_autoptr(GString) body = g_string_new(NULL);
    g_autoptr(GString) want = g_string_new(NULL);

    if (memmem(data, n, "--B0undary", 10) != NULL)
        return;
    for (char *p = name; *p != '\0'; p++)
        *p = g_ascii_iscntrl(*p) ? ' ' : *p;
    append_part(body, want, name, data, half);
    append_part(body, want, "", data + half, n - half);
    g_string_append(body, "--B0undary--\r\n");
    note(want, "end", "ok");
    for (guint each = 0; each < 2; each++) {
        g_autoptr(GString) log = read_body("multipart/form-data; boundary=B0undary", (guint8 *)body->str,
                                           body->len, each ? FUZZ_EACH_BYTE : body->len);

        g_assert(g_string_equal(log, want));
    }
}

void
fuzz_input(const guint8 *data, size_t n, size_t cut)
{
    const guint8 *lf = memchr(data, '\n', n);
    size_t head = lf != NULL ? (size_t)(lf - data) : n;
    size_t skip = lf != NULL ? head + 1 : n;
    g_autofree char *type = fuzz_string(data, head);

    if (cut != FUZZ_EACH_BYTE)
        cut = cut > skip ? cut - skip : 0;
    g_autoptr(GString) whole = read_body(type, data + skip, n - skip, n - skip);
    g_autoptr(GString) pieces = read_body(type, data + skip, n - skip, cut);

    g_assert(g_string_equal(whole, pieces));
    check_round_trip(data, n, cut);
}

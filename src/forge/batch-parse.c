/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "forge/batch.h"

enum { HEADER_MAX = GIT_OID_LEN + 32 };

void
batch_parser_init(BatchParser *p, const char *const *names, size_t n, const BatchSink *sink, void *ctx)
{
    *p = (BatchParser){.names = names, .n_names = n, .sink = sink, .ctx = ctx, .line = g_string_new(NULL)};
}

void
batch_parser_clear(BatchParser *p)
{
    if (p->line != NULL)
        g_string_free(p->line, TRUE);
    p->line = NULL;
}

bool
batch_parser_is_done(const BatchParser *p)
{
    return p->stopped || (!p->broken && p->index == p->n_names && p->left == 0);
}

/* A name may have newlines of its own: then its answer is there when the whole of it is. */
static bool
is_missing(const char *line, const char *name, bool *ret_partly)
{
    size_t n = strlen(name), have = strlen(line);

    *ret_partly = have < n && memcmp(line, name, have) == 0 && name[have] == '\n';
    return have > n && memcmp(line, name, n) == 0 &&
           (strcmp(line + n, " missing") == 0 || strcmp(line + n, " ambiguous") == 0);
}

/* "OID TYPE SIZE" */
static bool
read_header(BatchParser *p)
{
    g_auto(GStrv) words = g_strsplit(p->line->str, " ", 4);
    guint64 size;

    if (g_strv_length(words) != 3 || !git_oid_is_valid(words[0]) || strlen(words[1]) > 6 ||
        !g_ascii_string_to_unsigned(words[2], 10, 0, G_MAXINT64, &size, NULL))
        return false;
    p->left = p->sink->bytes != NULL ? size + 1 : 0;
    if (p->sink->object(p->index, words[0], words[1], size, p->ctx))
        p->index += p->left == 0;
    else
        p->stopped = true;
    return true;
}

static bool
end_line(BatchParser *p)
{
    bool partly = false;

    if (p->index == p->n_names || strlen(p->line->str) != p->line->len)
        return false;
    if (is_missing(p->line->str, p->names[p->index], &partly)) {
        if (!p->sink->object(p->index++, NULL, NULL, 0, p->ctx))
            p->stopped = true;
    } else if (partly) {
        g_string_append_c(p->line, '\n');
        return true;
    } else if (!read_header(p)) {
        return false;
    }
    g_string_truncate(p->line, 0);
    return true;
}

static size_t
feed_line(BatchParser *p, const guint8 *bytes, size_t n)
{
    const guint8 *end = memchr(bytes, '\n', n);
    size_t part = end != NULL ? (size_t)(end - bytes) : n;

    if (p->line->len + part > BATCH_NAME_MAX + HEADER_MAX) {
        p->broken = true;
        return n;
    }
    g_string_append_len(p->line, (const char *)bytes, (gssize)part);
    if (end == NULL)
        return part;
    if (!end_line(p))
        p->broken = true;
    return part + 1;
}

static size_t
feed_bytes(BatchParser *p, const guint8 *bytes, size_t n)
{
    size_t part = (size_t)MIN(p->left - 1, n);

    if (part > 0 && !p->sink->bytes(p->index, bytes, part, p->ctx))
        p->stopped = true;
    p->left -= part;
    if (p->left > 1 || part == n)
        return part;
    p->broken |= bytes[part] != '\n';
    p->left = 0;
    p->index++;
    return part + 1;
}

bool
batch_parser_feed(BatchParser *p, const guint8 *bytes, size_t n)
{
    size_t at = 0;

    while (at < n && !p->stopped && !p->broken)
        at += p->left > 0 ? feed_bytes(p, bytes + at, n - at) : feed_line(p, bytes + at, n - at);
    return !p->stopped && !p->broken;
}

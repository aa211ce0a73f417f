/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "forge/batch.h"
#include "fuzz.h"

/* The input is what `git cat-file --batch` answers.  Each object has as many bytes as it says, however the
 * answer is cut. */

#define OID "0123456789012345678901234567890123456789"

typedef struct Seen {
    GString *log;
    size_t index;
    guint64 left;
} Seen;

static bool
on_object(size_t index, const char *oid, const char *type, guint64 size, void *ctx)
{
    Seen *seen = ctx;

    g_assert_cmpuint(seen->left, ==, 0);
    g_assert_cmpuint(index, ==, seen->index++);
    g_assert_true(oid == NULL || git_oid_is_valid(oid));
    g_string_append_printf(seen->log, "%s %s\n", oid != NULL ? oid : "none", oid != NULL ? type : "");
    seen->left = size;
    return true;
}

static bool
on_bytes(size_t index, const guint8 *bytes, size_t n, void *ctx)
{
    Seen *seen = ctx;

    g_assert_cmpuint(index + 1, ==, seen->index);
    g_assert_cmpuint(n, <=, seen->left);
    seen->left -= n;
    g_string_append_len(seen->log, (const char *)bytes, (gssize)n);
    return true;
}

static bool
on_piece(void *ctx, const guint8 *bytes, size_t n)
{
    return batch_parser_feed(ctx, bytes, n);
}

static GString *
read_all(const guint8 *data, size_t n, size_t cut, bool *ret_done)
{
    static const char *const names[] = {OID, OID ":a\nb\nc", OID, "refs/heads/x^{commit}"};
    static const BatchSink sink = {on_object, on_bytes, 0};
    g_auto(BatchParser) parser = {0};
    Seen seen = {.log = g_string_new(NULL)};

    batch_parser_init(&parser, names, G_N_ELEMENTS(names), &sink, &seen);
    (void)fuzz_feed(data, n, cut, on_piece, &parser);
    *ret_done = batch_parser_is_done(&parser);
    g_assert_true(!*ret_done || (seen.left == 0 && seen.index == G_N_ELEMENTS(names)));
    return seen.log;
}

void
fuzz_input(const guint8 *data, size_t n, size_t cut)
{
    bool whole_done, done;
    g_autoptr(GString) whole = read_all(data, n, n, &whole_done);
    g_autoptr(GString) pieces = read_all(data, n, cut, &done);

    g_assert_true(whole_done == done);
    g_assert_true(g_string_equal(whole, pieces));
}

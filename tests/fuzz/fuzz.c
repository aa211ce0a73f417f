/* SPDX-License-Identifier: Apache-2.0 */
#include "fuzz.h"

bool
fuzz_feed(const guint8 *data, size_t n, size_t cut, FuzzFeedFunc feed, void *ctx)
{
    for (size_t i = 0; i < n;) {
        size_t piece = cut == FUZZ_EACH_BYTE ? 1 : i < cut ? cut - i : n - i;
        g_autofree guint8 *exact = g_memdup2(data + i, piece);

        if (!feed(ctx, exact, piece))
            return false;
        i += piece;
    }
    return true;
}

char *
fuzz_string(const guint8 *data, size_t n)
{
    return n > 0 ? g_strndup((const char *)data, n) : g_strdup("");
}

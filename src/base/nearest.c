/* SPDX-License-Identifier: Apache-2.0 */
#include "base/nearest.h"

#include <glib.h>
#include <string.h>

/* Optimal string alignment: edit distance in which swapping two neighbours counts once. */
static guint
distance(const char *a, size_t a_len, const char *b, size_t b_len)
{
    guint d[NEAREST_WORD_MAX + 1][NEAREST_WORD_MAX + 1];

    for (guint i = 0; i <= a_len; i++)
        d[i][0] = i;
    for (guint j = 0; j <= b_len; j++)
        d[0][j] = j;
    for (guint i = 1; i <= a_len; i++) {
        for (guint j = 1; j <= b_len; j++) {
            guint best = d[i - 1][j - 1] + (a[i - 1] != b[j - 1]);

            best = MIN(best, d[i - 1][j] + 1);
            best = MIN(best, d[i][j - 1] + 1);
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                best = MIN(best, d[i - 2][j - 2] + 1);
            d[i][j] = best;
        }
    }
    return d[a_len][b_len];
}

const char *
nearest(const char *word, const char *const *names, size_t n)
{
    size_t len = strlen(word);
    const char *found = NULL;
    /* A third of the word may be wrong; more, and the suggestion would be a guess. */
    guint best = (guint)len / 3 + 1;

    if (len == 0 || len > NEAREST_WORD_MAX)
        return NULL;
    for (size_t i = 0; i < n; i++) {
        size_t name_len = strlen(names[i]);

        if (name_len > NEAREST_WORD_MAX)
            continue;
        guint d = distance(word, len, names[i], name_len);
        if (d < best || (d == best && found == NULL)) {
            best = d;
            found = names[i];
        }
    }
    return found;
}

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <glib.h>
#include <stdbool.h>

/* Pieces of a line.  Each call moves `*p` past what it took, and leaves it if it took nothing. */

bool match_text(const char **p, const char *text);
/* At least one. */
bool match_blanks(const char **p);
/* Up to MATCH_DIGITS_MAX digits; more are no count of tests. */
enum { MATCH_DIGITS_MAX = 9 };
bool match_number(const char **p, gint64 *ret);
/* "1.5s", "12ms", "2m", "1.5 s", "1.50 sec"; a number without a unit is of `unit_ms`. */
bool match_duration(const char **p, gint64 unit_ms, gint64 *ret_ms);

/* "3 failed, 5 passed": numbers with the words of the table, in any order; each is added to
 * where its row says, or to nothing.  False for a word that is not in it.  A row without a word
 * ends the table. */
typedef struct MatchCount {
    const char *word;
    gint64 *to;
} MatchCount;
bool match_counts(const char **p, const char *separator, const MatchCount *words);

/* The text ends here. */
static inline bool
match_end(const char *p)
{
    return *p == '\0';
}

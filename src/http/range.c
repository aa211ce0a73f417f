/* SPDX-License-Identifier: Apache-2.0 */
#include "http/range.h"

#include <string.h>

/* RFC 9110, 14.1.2.  A server may ignore any Range, so whatever is not one plain range is
 * answered in full rather than refused. */

static const char *
skip_blanks(const char *p)
{
    return p + strspn(p, " \t");
}

/* Digits at `*p`; a number too large for 64 bits becomes the largest, which lies past every
 * size.  False: no digit there. */
static bool
take_number(const char **p, guint64 *ret_number)
{
    guint64 number = 0;
    const char *at = *p;

    for (; g_ascii_isdigit(*at); at++) {
        guint64 digit = (guint64)(*at - '0');

        if (__builtin_mul_overflow(number, 10, &number) || __builtin_add_overflow(number, digit, &number)) {
            number = G_MAXUINT64;
            at += strspn(at, "0123456789");
            break;
        }
    }
    if (at == *p)
        return false;
    *p = at;
    *ret_number = number;
    return true;
}

static RangeResult
suffix_range(guint64 length, guint64 size, guint64 *ret_first, guint64 *ret_last)
{
    if (length == 0)
        return RANGE_UNSATISFIABLE;
    /* The last bytes of nothing are satisfiable but have no Content-Range: send it all. */
    if (size == 0)
        return RANGE_NONE;
    *ret_first = size - MIN(length, size);
    *ret_last = size - 1;
    return RANGE_ONE;
}

RangeResult
range_parse(const char *header, guint64 size, guint64 *ret_first, guint64 *ret_last)
{
    guint64 first = 0;
    guint64 last = G_MAXUINT64;

    if (header == NULL || g_ascii_strncasecmp(header, "bytes=", 6) != 0)
        return RANGE_NONE;
    const char *p = skip_blanks(header + 6);
    bool has_first = take_number(&p, &first);
    if (*p++ != '-')
        return RANGE_NONE;
    bool has_last = take_number(&p, &last);
    if (*skip_blanks(p) != '\0' || (!has_first && !has_last))
        return RANGE_NONE;
    if (!has_first)
        return suffix_range(last, size, ret_first, ret_last);
    if (first > last)
        return RANGE_NONE;
    if (first >= size)
        return RANGE_UNSATISFIABLE;
    *ret_first = first;
    *ret_last = MIN(last, size - 1);
    return RANGE_ONE;
}

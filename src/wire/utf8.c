/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/utf8.h"

#include <stdint.h>

/* How many bytes follow a first byte; -1: it is none. */
static int
tail_of(uint8_t first)
{
    if (first < 0x80)
        return 0;
    if (first >= 0xc2 && first <= 0xdf)
        return 1;
    if (first >= 0xe0 && first <= 0xef)
        return 2;
    return first >= 0xf0 && first <= 0xf4 ? 3 : -1;
}

bool
utf8_is_valid(const char *text, size_t n)
{
    const uint8_t *at = (const uint8_t *)text, *end = at + n;

    while (at < end) {
        uint8_t first = *at++;
        int tail = tail_of(first);

        if (tail < 0 || end - at < tail)
            return false;
        /* Overlong forms, surrogates, and what lies beyond the last character. */
        if ((first == 0xe0 && *at < 0xa0) || (first == 0xed && *at > 0x9f) || (first == 0xf0 && *at < 0x90) ||
            (first == 0xf4 && *at > 0x8f))
            return false;
        for (; tail > 0; tail--) {
            if ((*at++ & 0xc0) != 0x80)
                return false;
        }
    }
    return true;
}

size_t
utf8_count(const char *text, size_t n)
{
    size_t count = 0;

    for (size_t i = 0; i < n; i++)
        count += ((uint8_t)text[i] & 0xc0) != 0x80;
    return count;
}

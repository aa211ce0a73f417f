/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <stddef.h>
#include <stdint.h>

enum { DECIMAL_MAX = 21 };

/* The number and its NUL at `out`, which has DECIMAL_MAX bytes; where the NUL stands.  stdio's
 * formatting would be the largest part of pid 1. */
static inline char *
decimal_put(char *out, uint64_t number)
{
    char digits[DECIMAL_MAX];
    size_t n = 0;

    do {
        digits[n++] = (char)('0' + number % 10);
        number /= 10;
    } while (number > 0);
    while (n > 0)
        *out++ = digits[--n];
    *out = '\0';
    return out;
}

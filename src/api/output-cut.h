/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <glib.h>
#include <stdbool.h>

/* How a stream of any bytes is cut into pieces that are text where they can be. */

typedef struct OutputCut {
    size_t n;     /* bytes of the next piece; 0: wait for more of its first character */
    bool is_text; /* whole characters of UTF-8, none of them NUL */
} OutputCut;

/* `n` at least 1.  Without `more_may_come` the result is never 0. */
OutputCut output_cut(const guint8 *bytes, size_t n, size_t max, bool more_may_come);

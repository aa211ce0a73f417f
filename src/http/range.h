/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <glib.h>
#include <stdbool.h>

typedef enum RangeResult {
    RANGE_NONE, /* no header, another unit, several ranges, or malformed: send it all */
    RANGE_ONE,
    RANGE_UNSATISFIABLE, /* 416 */
} RangeResult;

/* `header` may be NULL.  On RANGE_ONE first..last (inclusive) lies within `size`. */
RangeResult range_parse(const char *header, guint64 size, guint64 *ret_first, guint64 *ret_last);

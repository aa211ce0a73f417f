/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <glib.h>
#include <stdbool.h>

/* A token bucket: `per_second` on average, `burst` at once. */
typedef struct RateBucket {
    double tokens;
    gint64 at_us; /* 0: full */
} RateBucket;

typedef struct RateLimit {
    guint per_second;
    guint burst;
} RateLimit;

/* False when it is empty; `*ret_wait_ms` is when the next call will pass. */
bool rate_take(RateBucket *bucket, const RateLimit *limit, gint64 now_us, guint *ret_wait_ms);

/* How full it is at that moment, for those who ask. */
typedef struct RateState {
    guint limit, remaining; /* calls at once */
    gint64 full_s;          /* seconds until `remaining` is `limit` again */
} RateState;
void rate_look(const RateBucket *bucket, const RateLimit *limit, gint64 now_us, RateState *ret_state);

/* The call that was taken last does not count. */
void rate_give_back(RateBucket *bucket, const RateLimit *limit);

/* SPDX-License-Identifier: Apache-2.0 */
#include "base/rate.h"

static double
tokens_at(const RateBucket *bucket, const RateLimit *limit, gint64 now_us)
{
    double gained = (double)(now_us - bucket->at_us) * limit->per_second / G_USEC_PER_SEC;

    return bucket->at_us == 0 ? limit->burst : MIN(bucket->tokens + gained, limit->burst);
}

bool
rate_take(RateBucket *bucket, const RateLimit *limit, gint64 now_us, guint *ret_wait_ms)
{
    bucket->tokens = tokens_at(bucket, limit, now_us);
    bucket->at_us = now_us;
    if (bucket->tokens >= 1) {
        bucket->tokens -= 1;
        return true;
    }
    *ret_wait_ms = (guint)((1 - bucket->tokens) * 1000 / limit->per_second) + 1;
    return false;
}

void
rate_look(const RateBucket *bucket, const RateLimit *limit, gint64 now_us, RateState *ret_state)
{
    double tokens = tokens_at(bucket, limit, now_us);

    ret_state->limit = limit->burst;
    ret_state->remaining = (guint)tokens;
    ret_state->full_s = (gint64)((limit->burst - tokens) / limit->per_second) + 1;
}

void
rate_give_back(RateBucket *bucket, const RateLimit *limit)
{
    bucket->tokens = MIN(bucket->tokens + 1, limit->burst);
}

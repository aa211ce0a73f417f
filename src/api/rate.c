/* SPDX-License-Identifier: Apache-2.0 */
#include "api/rate.h"

bool
rate_take(RateBucket *bucket, const RateLimit *limit, gint64 now_us, guint *ret_wait_ms)
{
    if (bucket->at_us == 0)
        bucket->tokens = limit->burst;
    else
        bucket->tokens += (double)(now_us - bucket->at_us) * limit->per_second / G_USEC_PER_SEC;
    bucket->tokens = MIN(bucket->tokens, limit->burst);
    bucket->at_us = now_us;
    if (bucket->tokens >= 1) {
        bucket->tokens -= 1;
        return true;
    }
    *ret_wait_ms = (guint)((1 - bucket->tokens) * 1000 / limit->per_second) + 1;
    return false;
}

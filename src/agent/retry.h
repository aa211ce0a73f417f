/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <glib.h>
#include <stdbool.h>

#include "http/plain/client.h"

/* How often, and how long, something that is away is asked again. */
typedef struct Retry {
    gint64 give_up_us; /* monotonic */
    guint tries;       /* so far */
    guint tries_max;
} Retry;

enum {
    RETRY_FIRST_MS = 250,
    RETRY_MAX_MS = 30 * 1000,
    RETRY_AFTER_MAX_MS = 120 * 1000, /* the longest Retry-After that is waited for */
    RETRY_TRIES_MAX = 40,
};

void retry_init(Retry *retry, gint64 patience_ms);
/* Before the next try, in ms: doubled each time, with a part left to chance so that many agents do not come
 * back together.  `retry_after`: the header's text, NULL: none.  -1: it is time to give up. */
gint64 retry_next_ms(Retry *retry, const char *retry_after);
/* Waits for it; false: `error`, which says what went wrong before, stays, or is ERR_CANCELLED. */
bool retry_wait(Retry *retry, PlainClient *client, const char *retry_after, GError **error);

/* Asking again may help. */
bool retry_is_status(int status);
bool retry_is_error(const GError *error);

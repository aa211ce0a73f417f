/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/retry.h"

#include "base/clock.h"
#include "base/err.h"
#include "base/id.h"

enum { DOUBLINGS_MAX = 10, SECOND_MS = 1000 };

void
retry_init(Retry *retry, gint64 patience_ms)
{
    *retry = (Retry){.give_up_us = clock_mono_us() + patience_ms * 1000, .tries_max = RETRY_TRIES_MAX};
}

/* The header may also be a date, which nobody who speaks to us sends. */
static gint64
parse_retry_after(const char *text)
{
    guint64 seconds;

    if (text == NULL || !g_ascii_string_to_unsigned(text, 10, 0, G_MAXUINT32, &seconds, NULL))
        return 0;
    return (gint64)MIN(seconds * SECOND_MS, (guint64)RETRY_AFTER_MAX_MS);
}

gint64
retry_next_ms(Retry *retry, const char *retry_after)
{
    guint16 chance;
    gint64 ms = MIN((gint64)RETRY_FIRST_MS << MIN(retry->tries, DOUBLINGS_MAX), RETRY_MAX_MS);

    id_random_bytes(&chance, sizeof chance);
    ms = ms / 2 + ms / 2 * chance / G_MAXUINT16;
    ms = MAX(ms, parse_retry_after(retry_after));
    if (++retry->tries >= retry->tries_max || clock_mono_us() + ms * 1000 > retry->give_up_us)
        return -1;
    return ms;
}

bool
retry_wait(Retry *retry, PlainClient *client, const char *retry_after, GError **error)
{
    gint64 ms = retry_next_ms(retry, retry_after);
    g_autoptr(GError) ended = NULL;

    if (ms < 0)
        return false;
    if (plain_client_pause(client, ms, &ended)) {
        g_clear_error(error);
        return true;
    }
    g_clear_error(error);
    g_propagate_error(error, g_steal_pointer(&ended));
    return false;
}

bool
retry_is_status(int status)
{
    return status == 408 || status == 425 || status == 429 || status >= 500;
}

bool
retry_is_error(const GError *error)
{
    return g_error_matches(error, ERR_DOMAIN, ERR_UNAVAILABLE) ||
           g_error_matches(error, ERR_DOMAIN, ERR_TIMEOUT);
}

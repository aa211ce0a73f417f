/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "brain/budget.h"

enum { DIGEST_LEN = 32 };

typedef struct Seen {
    guint8 digest[DIGEST_LEN];
    guint count; /* within the window; 0: a free place */
    gint64 first_us, last_us;
    gint64 open_until_us; /* 0: not open */
} Seen;

struct Breaker {
    Seen seen[BREAKER_MEMORY];
};

Breaker *
breaker_new(void)
{
    return g_new0(Breaker, 1);
}

void
breaker_free(Breaker *breaker)
{
    g_free(breaker);
}

static Seen *
find(Breaker *breaker, const guint8 digest[32])
{
    for (guint i = 0; i < BREAKER_MEMORY; i++) {
        Seen *s = &breaker->seen[i];

        if (s->count > 0 && memcmp(s->digest, digest, DIGEST_LEN) == 0)
            return s;
    }
    return NULL;
}

/* A free place, or that of the one not seen for longest. */
static Seen *
place(Breaker *breaker, const guint8 digest[32])
{
    Seen *oldest = &breaker->seen[0];

    for (guint i = 0; i < BREAKER_MEMORY && oldest->count > 0; i++) {
        Seen *s = &breaker->seen[i];

        if (s->count == 0 || s->last_us < oldest->last_us)
            oldest = s;
    }
    *oldest = (Seen){0};
    memcpy(oldest->digest, digest, DIGEST_LEN);
    return oldest;
}

bool
breaker_pass(Breaker *breaker, const guint8 digest[32], gint64 now_us, guint *ret_repeats)
{
    Seen *s = find(breaker, digest);

    if (s == NULL)
        s = place(breaker, digest);
    bool was_open = s->open_until_us > 0 && now_us >= s->open_until_us;
    if (s->count == 0 || was_open || now_us - s->first_us > (gint64)BREAKER_WINDOW_S * G_USEC_PER_SEC)
        *s = (Seen){.first_us = now_us};
    memcpy(s->digest, digest, DIGEST_LEN);
    s->last_us = now_us;
    *ret_repeats = ++s->count;
    if (s->count > BREAKER_REPEATS && s->open_until_us == 0)
        s->open_until_us = now_us + (gint64)BREAKER_OPEN_S * G_USEC_PER_SEC;
    return s->open_until_us == 0;
}

void
breaker_forgive(Breaker *breaker, const guint8 digest[32])
{
    Seen *s = find(breaker, digest);

    if (s != NULL && s->open_until_us == 0)
        s->count--;
}

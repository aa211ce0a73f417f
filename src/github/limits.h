/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <glib.h>
#include <stdbool.h>

#include "base/err.h"

/* The other side's limits, as its answers tell of them: arithmetic alone, no clock and no network. */
enum {
    GITHUB_TRIES = 5,
    GITHUB_BACKOFF_MS = 1000, /* before the second try; twice that before the next, and so on */
    GITHUB_BACKOFF_MAX_MS = 60 * 1000,
    GITHUB_WORK_PAUSE_MS = 10 * 1000,
    GITHUB_WORK_PAUSE_MAX_MS = 60 * 60 * 1000,
    GITHUB_SECONDARY_MS = 60 * 1000, /* when a secondary limit does not say how long */
    GITHUB_SECONDARY_MAX_MS = 15 * 60 * 1000,
    GITHUB_WAIT_MAX_S = 2 * 3600, /* whatever a header says */
};

/* Texts of an answer's headers; NULL: absent. */
typedef struct GithubHeaders {
    const char *limit, *remaining, *reset, *resource; /* x-ratelimit-… */
    const char *retry_after, *date;
} GithubHeaders;

typedef struct GithubBudget {
    gint64 limit;         /* -1: not known, as is the next */
    gint64 remaining;     /* of the hour, as last heard */
    gint64 reset_us;      /* when it is full again, by the caller's clock */
    gint64 hold_until_us; /* 0: nobody asked to wait */
} GithubBudget;
#define GITHUB_BUDGET_INIT                                                                                   \
    {                                                                                                        \
        .limit = -1, .remaining = -1                                                                         \
    }

/* `wall_us` is only for an answer without a date. */
void github_budget_note(GithubBudget *budget, const GithubHeaders *headers, gint64 now_us, gint64 wall_us);
/* Somebody asked to wait. */
void github_budget_hold(GithubBudget *budget, gint64 until_us);
/* When the next call may go, with `under_way` that are not answered yet; at most `now_us`: at once. */
gint64 github_budget_due_us(const GithubBudget *budget, guint under_way, gint64 now_us);

/* Half of the pause is fixed, half is chance: those who failed together do not come back together.
 * `tries` that were made, at least one. */
gint64 github_backoff_us(guint tries, guint32 random);
/* The same for what is a row: 10 s, at most an hour. */
gint64 github_work_pause_us(guint tries, guint32 random);

typedef enum GithubVerdict {
    GITHUB_DONE,   /* 2xx, 304 */
    GITHUB_MOVED,  /* a redirect */
    GITHUB_AGAIN,  /* after a pause; whether it was done is not known */
    GITHUB_HELD,   /* not done: a limit; everybody waits */
    GITHUB_FAILED, /* not done, and not the next time either */
} GithubVerdict;

/* `message` of the body may be NULL. */
GithubVerdict github_judge(int status, const GithubHeaders *headers, const char *message, guint tries,
                           guint32 random, gint64 wall_us, gint64 *ret_wait_us);
/* Of an answer that failed. */
ErrKind github_status_kind(int status);

/* "2026-12-31 23:59:59 UTC" or "… -0800", as github-authentication-token-expiration has it; 0: it makes
 * no sense. */
gint64 github_expiry_us(const char *text);

/* The target of rel="next" in a Link header; NULL: none.  At most `max` bytes. */
char *github_link_next(const char *link, size_t max);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <glib.h>
#include <stdbool.h>

#include "brain/usage.h"

/* Budgets of scopes ("box:…", "agent:…", "task:…", "squad:…", "all"), checked before a call and
 * charged after it.  A call under way holds what it may cost at most, so that many at once do
 * not overrun a budget together. */
typedef struct Budgets Budgets;

typedef struct BudgetBounds { /* 0: none */
    guint64 tokens;
    guint64 microusd;
    guint64 calls;
    guint64 microusd_per_hour; /* spend rate */
    guint calls_per_min, tokens_per_min;
} BudgetBounds;

typedef struct BudgetSpent {
    guint64 tokens, microusd, calls;
} BudgetSpent;

enum { BUDGET_SCOPES_MAX = 16384, BUDGET_SCOPE_LEN_MAX = 136, BUDGET_SCOPES_PER_CALL = 5 };

Budgets *budgets_new(void);
void budgets_free(Budgets *budgets);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Budgets, budgets_free)
/* `spent` is what others know of; where more was counted here, that stays.  NULL: nothing. */
void budgets_set(Budgets *budgets, const char *scope, const BudgetBounds *bounds, const BudgetSpent *spent);
void budgets_forget(Budgets *budgets, const char *scope);

typedef struct BudgetHold BudgetHold;
/* What else is to be told; scopes are of those that were handed in. */
typedef struct BudgetNews {
    const char *warned;  /* has passed 80 % for the first time; NULL: none */
    const char *refused; /* NULL: none */
    const char *bound;   /* of the one that refused: a name of BudgetBounds */
    guint64 most;        /* what that bound is */
} BudgetNews;
/* NULL with ERR_LIMIT, or ERR_UNAVAILABLE for a rate, which comes free again: the message names
 * the scope, the bound and the figure. */
BudgetHold *budgets_hold(Budgets *budgets, const char *const *scopes, guint64 tokens, guint64 microusd,
                         BudgetNews *ret_news, GError **error);
/* One of `scopes` whose bounds are in money; NULL: none. */
const char *budgets_in_money(Budgets *budgets, const char *const *scopes);
/* A call that nobody pays for, which counts for the calls a minute alone; ERR_UNAVAILABLE. */
bool budgets_count_call(Budgets *budgets, const char *const *scopes, GError **error);
void budgets_settle(BudgetHold *hold, const Usage *usage, guint64 microusd); /* frees it */
void budgets_release(BudgetHold *hold);                                      /* nothing was charged */

/* The same request again and again: told by a digest of what was asked, per box. */
typedef struct Breaker Breaker;
enum { BREAKER_REPEATS = 5, BREAKER_WINDOW_S = 300, BREAKER_OPEN_S = 60, BREAKER_MEMORY = 64 };
Breaker *breaker_new(void);
void breaker_free(Breaker *breaker);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Breaker, breaker_free)
/* False: this is a loop; `*ret_repeats` how often it came.  `now_us` is monotonic. */
bool breaker_pass(Breaker *breaker, const guint8 digest[32], gint64 now_us, guint *ret_repeats);
/* The provider failed, and asking again is what a good client does: that time does not count. */
void breaker_forgive(Breaker *breaker, const guint8 digest[32]);

/* SPDX-License-Identifier: Apache-2.0 */
#include "brain/budget.h"

#include <string.h>

#include "base/clock.h"
#include "base/err.h"

enum {
    SLOTS = 12, /* a window moves on by a twelfth of its length */
    MINUTE_S = 60,
    HOUR_S = 3600,
    WARN_PERCENT = 80,
};

/* What happened in the last minute or hour. */
typedef struct Window {
    guint64 slots[SLOTS];
    gint64 slot; /* number of the newest since the clock's start */
} Window;

typedef struct Scope {
    BudgetBounds bounds;
    BudgetSpent spent, held;
    Window minute_calls, minute_tokens, hour_microusd;
    bool warned;
} Scope;

struct Budgets {
    GHashTable *scopes; /* name -> Scope */
};

struct BudgetHold {
    Budgets *budgets;
    char *scopes[BUDGET_SCOPES_PER_CALL]; /* names: a scope may go meanwhile */
    guint n_scopes;
    guint64 tokens, microusd;
};

Budgets *
budgets_new(void)
{
    Budgets *budgets = g_new0(Budgets, 1);

    budgets->scopes = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    return budgets;
}

void
budgets_free(Budgets *budgets)
{
    if (budgets == NULL)
        return;
    g_hash_table_unref(budgets->scopes);
    g_free(budgets);
}

void
budgets_set(Budgets *budgets, const char *scope, const BudgetBounds *bounds, const BudgetSpent *spent)
{
    Scope *s = g_hash_table_lookup(budgets->scopes, scope);

    if (s == NULL) {
        if (strlen(scope) > BUDGET_SCOPE_LEN_MAX || g_hash_table_size(budgets->scopes) >= BUDGET_SCOPES_MAX)
            return;
        s = g_new0(Scope, 1);
        g_hash_table_insert(budgets->scopes, g_strdup(scope), s);
    }
    s->bounds = *bounds;
    s->warned = false;
    if (spent != NULL)
        s->spent = (BudgetSpent){.tokens = MAX(s->spent.tokens, spent->tokens),
                                 .microusd = MAX(s->spent.microusd, spent->microusd),
                                 .calls = MAX(s->spent.calls, spent->calls)};
}

void
budgets_forget(Budgets *budgets, const char *scope)
{
    g_hash_table_remove(budgets->scopes, scope);
}

/* ---- windows ---- */

static void
window_move(Window *w, gint64 length_s)
{
    gint64 slot = clock_mono_us() / (length_s * G_USEC_PER_SEC / SLOTS);

    if (slot - w->slot >= SLOTS)
        memset(w->slots, 0, sizeof w->slots);
    else
        for (gint64 i = w->slot + 1; i <= slot; i++)
            w->slots[i % SLOTS] = 0;
    w->slot = slot;
}

static void
window_add(Window *w, gint64 length_s, guint64 n)
{
    window_move(w, length_s);
    w->slots[w->slot % SLOTS] += n;
}

static guint64
window_sum(Window *w, gint64 length_s)
{
    guint64 sum = 0;

    window_move(w, length_s);
    for (guint i = 0; i < SLOTS; i++)
        sum += w->slots[i];
    return sum;
}

/* ---- before the call ---- */

typedef struct Bound {
    guint64 most, used, more;
    const char *unit;
    bool is_rate; /* comes free again by itself */
    const char *name;
} Bound;

static bool
check_bounds(const char *scope, const Bound *bounds, guint n, BudgetNews *ret_news, GError **error)
{
    for (guint i = 0; i < n; i++) {
        const Bound *b = &bounds[i];

        if (b->most == 0 || (b->used <= b->most && b->more <= b->most - b->used))
            continue;
        *ret_news = (BudgetNews){.refused = scope, .bound = b->name, .most = b->most};
        return err_set(error, b->is_rate ? ERR_UNAVAILABLE : ERR_LIMIT,
                       "the budget of %s is %" G_GUINT64_FORMAT " %s, of which %" G_GUINT64_FORMAT
                       " are used or held; this call may take %" G_GUINT64_FORMAT,
                       scope, b->most, b->unit, b->used, b->more);
    }
    return true;
}

static Bound
bound_of_rate(Scope *s)
{
    return (Bound){s->bounds.calls_per_min, window_sum(&s->minute_calls, MINUTE_S), 1, "calls a minute", true,
                   "calls_per_min"};
}

static bool
check_scope(const char *name, Scope *s, guint64 tokens, guint64 microusd, BudgetNews *ret_news,
            GError **error)
{
    const BudgetBounds *b = &s->bounds;
    const Bound bounds[] = {
        {b->calls, s->spent.calls + s->held.calls, 1, "calls", false, "calls"},
        {b->tokens, s->spent.tokens + s->held.tokens, tokens, "tokens", false, "tokens"},
        {b->microusd, s->spent.microusd + s->held.microusd, microusd, "micro-dollars", false, "microusd"},
        bound_of_rate(s),
        {b->tokens_per_min, window_sum(&s->minute_tokens, MINUTE_S) + s->held.tokens, tokens,
         "tokens a minute", true, "tokens_per_min"},
        {b->microusd_per_hour, window_sum(&s->hour_microusd, HOUR_S) + s->held.microusd, microusd,
         "micro-dollars an hour", true, "microusd_per_hour"},
    };

    return check_bounds(name, bounds, G_N_ELEMENTS(bounds), ret_news, error);
}

static bool
is_nearly(guint64 used, guint64 most)
{
    return most > 0 && used >= most / 100 * WARN_PERCENT + most % 100 * WARN_PERCENT / 100;
}

static bool
passes_warning(Scope *s)
{
    const BudgetBounds *b = &s->bounds;

    if (s->warned || !(is_nearly(s->spent.tokens, b->tokens) || is_nearly(s->spent.microusd, b->microusd) ||
                       is_nearly(s->spent.calls + s->held.calls, b->calls)))
        return false;
    s->warned = true;
    return true;
}

BudgetHold *
budgets_hold(Budgets *budgets, const char *const *scopes, guint64 tokens, guint64 microusd,
             BudgetNews *ret_news, GError **error)
{
    BudgetHold *hold;

    *ret_news = (BudgetNews){0};
    for (const char *const *name = scopes; *name != NULL; name++) {
        Scope *s = g_hash_table_lookup(budgets->scopes, *name);

        if (s != NULL && !check_scope(*name, s, tokens, microusd, ret_news, error))
            return NULL;
    }
    hold = g_new0(BudgetHold, 1);
    *hold = (BudgetHold){.budgets = budgets, .tokens = tokens, .microusd = microusd};
    for (const char *const *name = scopes; *name != NULL; name++) {
        Scope *s = g_hash_table_lookup(budgets->scopes, *name);

        if (s == NULL)
            continue;
        g_assert(hold->n_scopes < BUDGET_SCOPES_PER_CALL);
        hold->scopes[hold->n_scopes++] = g_strdup(*name);
        s->held.tokens += tokens;
        s->held.microusd += microusd;
        s->held.calls++;
        window_add(&s->minute_calls, MINUTE_S, 1);
        if (ret_news->warned == NULL && passes_warning(s))
            ret_news->warned = *name;
    }
    return hold;
}

const char *
budgets_in_money(Budgets *budgets, const char *const *scopes)
{
    for (const char *const *name = scopes; *name != NULL; name++) {
        const Scope *s = g_hash_table_lookup(budgets->scopes, *name);

        if (s != NULL && (s->bounds.microusd > 0 || s->bounds.microusd_per_hour > 0))
            return *name;
    }
    return NULL;
}

bool
budgets_count_call(Budgets *budgets, const char *const *scopes, GError **error)
{
    BudgetNews news;

    for (const char *const *name = scopes; *name != NULL; name++) {
        Scope *s = g_hash_table_lookup(budgets->scopes, *name);

        if (s == NULL)
            continue;
        const Bound bound = bound_of_rate(s);
        if (!check_bounds(*name, &bound, 1, &news, error))
            return false;
    }
    for (const char *const *name = scopes; *name != NULL; name++) {
        Scope *s = g_hash_table_lookup(budgets->scopes, *name);

        if (s != NULL)
            window_add(&s->minute_calls, MINUTE_S, 1);
    }
    return true;
}

/* ---- after it ---- */

/* `charge` NULL: nothing came of it. */
static void
end_hold(BudgetHold *hold, const BudgetSpent *charge)
{
    for (guint i = 0; i < hold->n_scopes; i++) {
        Scope *s = g_hash_table_lookup(hold->budgets->scopes, hold->scopes[i]);

        /* A scope that went and came back knows nothing of this call. */
        if (s != NULL && s->held.calls > 0) {
            s->held.tokens -= MIN(s->held.tokens, hold->tokens);
            s->held.microusd -= MIN(s->held.microusd, hold->microusd);
            s->held.calls--;
        }
        if (s != NULL && charge != NULL) {
            s->spent.tokens += charge->tokens;
            s->spent.microusd += charge->microusd;
            s->spent.calls += charge->calls;
            window_add(&s->minute_tokens, MINUTE_S, charge->tokens);
            window_add(&s->hour_microusd, HOUR_S, charge->microusd);
        }
        g_free(hold->scopes[i]);
    }
    g_free(hold);
}

void
budgets_settle(BudgetHold *hold, const Usage *usage, guint64 microusd)
{
    BudgetSpent charge = {
        .tokens = usage->input_tokens + usage->output_tokens + usage->cached_tokens +
                  usage->cache_write_tokens,
        .microusd = microusd,
        .calls = 1,
    };

    end_hold(hold, &charge);
}

void
budgets_release(BudgetHold *hold)
{
    end_hold(hold, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/clock.h"
#include "base/err.h"
#include "brain/budget.h"
#include "brain/circuit.h"
#include "support/fake-clock.h"

static const char *const scopes[] = {"box:a", "task:t", "all", NULL};

static BudgetHold *
hold(Budgets *budgets, guint64 tokens, guint64 microusd, const char **ret_warned, GError **error)
{
    BudgetNews news;
    BudgetHold *held = budgets_hold(budgets, scopes, tokens, microusd, &news, error);

    if (ret_warned != NULL)
        *ret_warned = news.warned;
    return held;
}

static void
spend(Budgets *budgets, guint64 tokens, guint64 microusd)
{
    g_autoptr(GError) error = NULL;
    BudgetHold *h = hold(budgets, tokens, microusd, NULL, &error);

    g_assert_no_error(error);
    budgets_settle(h, &(Usage){.input_tokens = tokens}, microusd);
}

static void
check_refused(Budgets *budgets, guint64 tokens, guint64 microusd, ErrKind kind, const char *const *words)
{
    g_autoptr(GError) error = NULL;

    g_assert_null(hold(budgets, tokens, microusd, NULL, &error));
    g_assert_error(error, ERR_DOMAIN, (int)kind);
    for (; *words != NULL; words++)
        g_assert_nonnull(strstr(error->message, *words));
}

static void
test_totals(void)
{
    g_autoptr(Budgets) b = budgets_new();

    budgets_set(b, "task:t", &(BudgetBounds){.tokens = 1000, .microusd = 5000, .calls = 4}, NULL);
    spend(b, 600, 100);
    check_refused(b, 401, 0, ERR_LIMIT, (const char *[]){"task:t", "1000 tokens", "600", "401", NULL});
    spend(b, 400, 100);
    check_refused(b, 1, 0, ERR_LIMIT, (const char *[]){"1000 tokens", NULL});
    /* What was counted stays when the bound is raised. */
    budgets_set(b, "task:t", &(BudgetBounds){.tokens = 1001, .microusd = 5000, .calls = 4}, NULL);
    check_refused(b, 0, 4801, ERR_LIMIT, (const char *[]){"5000 micro-dollars", "200", NULL});
    spend(b, 1, 4800);
    spend(b, 0, 0);
    check_refused(b, 0, 0, ERR_LIMIT, (const char *[]){"4 calls", NULL});
    /* Others can know of more, but not of less. */
    budgets_set(b, "task:t", &(BudgetBounds){.calls = 4}, &(BudgetSpent){.calls = 3});
    check_refused(b, 0, 0, ERR_LIMIT, (const char *[]){"4 calls", NULL});
    budgets_set(b, "task:t", &(BudgetBounds){.calls = 8}, &(BudgetSpent){.calls = 7});
    spend(b, G_MAXUINT32, G_MAXUINT32);
    check_refused(b, 0, 0, ERR_LIMIT, (const char *[]){"8 calls", NULL});
    budgets_forget(b, "task:t");
    spend(b, 1, 1);
}

/* Many at once do not overrun it together. */
static void
test_held(void)
{
    g_autoptr(Budgets) b = budgets_new();

    budgets_set(b, "all", &(BudgetBounds){.tokens = 1000}, NULL);
    BudgetHold *one = hold(b, 600, 0, NULL, NULL);
    g_assert_nonnull(one);
    g_assert_null(hold(b, 600, 0, NULL, NULL));
    budgets_release(one);
    BudgetHold *two = hold(b, 600, 0, NULL, NULL);
    g_assert_nonnull(two);
    budgets_settle(
        two, &(Usage){.input_tokens = 10, .output_tokens = 20, .cached_tokens = 30, .cache_write_tokens = 40},
        0);
    g_assert_null(hold(b, 901, 0, NULL, NULL));
    BudgetHold *three = hold(b, 900, 0, NULL, NULL);
    g_assert_nonnull(three);
    /* The scope may go meanwhile, and come back. */
    budgets_forget(b, "all");
    budgets_set(b, "all", &(BudgetBounds){.tokens = 1000}, NULL);
    budgets_settle(three, &(Usage){.input_tokens = 100}, 0);
    g_assert_null(hold(b, 901, 0, NULL, NULL));
    budgets_release(hold(b, 900, 0, NULL, NULL));
}

/* Every scope is looked at before any holds. */
static void
test_several(void)
{
    g_autoptr(Budgets) b = budgets_new();
    BudgetNews news;

    budgets_set(b, "box:a", &(BudgetBounds){.calls = 5}, NULL);
    budgets_set(b, "all", &(BudgetBounds){.tokens = 10}, NULL);
    for (guint i = 0; i < 10; i++)
        g_assert_null(hold(b, 11, 0, NULL, NULL));
    for (guint i = 0; i < 5; i++)
        spend(b, 1, 0);
    check_refused(b, 1, 0, ERR_LIMIT, (const char *[]){"box:a", NULL});
    g_assert_null(budgets_hold(b, scopes, 1, 0, &news, NULL));
    g_assert_cmpstr(news.refused, ==, "box:a");
    g_assert_cmpstr(news.bound, ==, "calls");
    g_assert_cmpuint(news.most, ==, 5);
}

static void
test_rates(void)
{
    g_autoptr(Budgets) b = budgets_new();

    budgets_set(b, "box:a", &(BudgetBounds){.calls_per_min = 2}, NULL);
    spend(b, 1, 1);
    spend(b, 1, 1);
    check_refused(b, 1, 1, ERR_UNAVAILABLE, (const char *[]){"2 calls a minute", NULL});
    fake_clock_forward(30);
    g_assert_null(hold(b, 1, 1, NULL, NULL));
    fake_clock_forward(35);
    spend(b, 1, 1);
    budgets_set(b, "box:a", &(BudgetBounds){.tokens_per_min = 100}, NULL);
    fake_clock_forward(120);
    spend(b, 60, 0);
    fake_clock_forward(30);
    spend(b, 40, 0);
    check_refused(b, 1, 0, ERR_UNAVAILABLE, (const char *[]){"100 tokens a minute", NULL});
    fake_clock_forward(35);
    spend(b, 60, 0);
    budgets_set(b, "box:a", &(BudgetBounds){.microusd_per_hour = 1000}, NULL);
    fake_clock_forward(2 * 3600);
    spend(b, 0, 1000);
    fake_clock_forward(50 * 60);
    check_refused(b, 0, 1, ERR_UNAVAILABLE, (const char *[]){"an hour", NULL});
    fake_clock_forward(16 * 60);
    spend(b, 0, 1000);
    /* A jump of the wall clock is none. */
    fake_clock_jump(10 * 3600);
    g_assert_null(hold(b, 0, 1, NULL, NULL));
    fake_clock_forward(100 * 24 * 3600);
    spend(b, 0, 1000);
}

static void
test_warning(void)
{
    g_autoptr(Budgets) b = budgets_new();
    const char *warned;

    budgets_set(b, "task:t", &(BudgetBounds){.tokens = 1000}, NULL);
    spend(b, 799, 0);
    budgets_release(hold(b, 1, 0, &warned, NULL));
    g_assert_null(warned);
    spend(b, 1, 0);
    budgets_release(hold(b, 1, 0, &warned, NULL));
    g_assert_cmpstr(warned, ==, "task:t");
    budgets_release(hold(b, 1, 0, &warned, NULL));
    g_assert_null(warned);
    budgets_set(b, "task:t", &(BudgetBounds){.tokens = 10000}, NULL);
    spend(b, 7200, 0);
    budgets_release(hold(b, 1, 0, &warned, NULL));
    g_assert_cmpstr(warned, ==, "task:t");
}

static void
test_bounded(void)
{
    g_autoptr(Budgets) b = budgets_new();
    g_autofree char *long_name = g_strnfill(BUDGET_SCOPE_LEN_MAX + 1, 'x');
    const char *const one[] = {long_name, NULL};
    BudgetNews news;

    budgets_set(b, long_name, &(BudgetBounds){.calls = 1}, &(BudgetSpent){.calls = 1});
    budgets_release(budgets_hold(b, one, 0, 0, &news, NULL));
    for (guint i = 0; i < BUDGET_SCOPES_MAX; i++) {
        g_autofree char *name = g_strdup_printf("box:%u", i);

        budgets_set(b, name, &(BudgetBounds){.calls = 1}, NULL);
    }
    budgets_set(b, "task:t", &(BudgetBounds){.calls = 1}, &(BudgetSpent){.calls = 1});
    spend(b, 1, 1);
}

/* ---- loops ---- */

static void
digest_of(guint i, guint8 ret[32])
{
    memset(ret, 0, 32);
    memcpy(ret, &i, sizeof i);
}

static bool
pass(Breaker *breaker, guint i, gint64 at_s, guint *ret_repeats)
{
    guint8 digest[32];

    digest_of(i, digest);
    return breaker_pass(breaker, digest, at_s * G_USEC_PER_SEC, ret_repeats);
}

static void
test_breaker(void)
{
    g_autoptr(Breaker) breaker = breaker_new();
    guint repeats;

    for (guint i = 1; i <= BREAKER_REPEATS; i++) {
        g_assert_true(pass(breaker, 1, 1000 + i, &repeats));
        g_assert_cmpuint(repeats, ==, i);
        g_assert_true(pass(breaker, 100 + i, 1000 + i, &repeats));
    }
    g_assert_false(pass(breaker, 1, 1010, &repeats));
    g_assert_cmpuint(repeats, ==, BREAKER_REPEATS + 1);
    g_assert_true(pass(breaker, 2, 1010, &repeats));
    g_assert_false(pass(breaker, 1, 1010 + BREAKER_OPEN_S - 1, &repeats));
    g_assert_true(pass(breaker, 1, 1010 + BREAKER_OPEN_S, &repeats));
    g_assert_cmpuint(repeats, ==, 1);
    /* Seldom is not again and again. */
    for (guint i = 0; i < 20; i++)
        g_assert_true(pass(breaker, 3, 5000 + (gint64)i * (BREAKER_WINDOW_S / 4), &repeats));
}

static void
test_breaker_forgives(void)
{
    g_autoptr(Breaker) breaker = breaker_new();
    guint8 digest[32];
    guint repeats;

    digest_of(1, digest);
    for (guint i = 0; i < 10 * BREAKER_REPEATS; i++) {
        g_assert_true(pass(breaker, 1, 1000, &repeats));
        breaker_forgive(breaker, digest);
    }
    digest_of(2, digest);
    breaker_forgive(breaker, digest);
}

/* More requests than it remembers: the one asked longest ago is forgotten, not a loop. */
static void
test_breaker_memory(void)
{
    g_autoptr(Breaker) breaker = breaker_new();
    guint repeats;

    for (guint round = 0; round < BREAKER_REPEATS; round++)
        g_assert_true(pass(breaker, 1, 1000 + round, &repeats));
    for (guint i = 0; i < BREAKER_MEMORY - 1; i++)
        g_assert_true(pass(breaker, 100 + i, 2000 + i / 10, &repeats));
    g_assert_true(pass(breaker, 999, 2100, &repeats));
    g_assert_true(pass(breaker, 1, 1005, &repeats));
    g_assert_cmpuint(repeats, ==, 1);
}

/* ---- a provider that is down ---- */

static void
test_circuit(void)
{
    g_autoptr(Circuit) circuit = circuit_new();
    gint64 at = 1000 * G_USEC_PER_SEC;
    guint wait_s = 0;

    for (guint i = 0; i < CIRCUIT_FAILURES - 1; i++)
        circuit_failed(circuit, at);
    circuit_answered(circuit);
    for (guint i = 0; i < CIRCUIT_FAILURES; i++) {
        g_assert_true(circuit_pass(circuit, at, &wait_s));
        circuit_failed(circuit, at);
    }
    g_assert_false(circuit_pass(circuit, at, &wait_s));
    g_assert_cmpuint(wait_s, ==, CIRCUIT_OPEN_S + 1);
    at += CIRCUIT_OPEN_S * G_USEC_PER_SEC;
    /* One, and no other before something is known of it. */
    g_assert_true(circuit_pass(circuit, at, &wait_s));
    g_assert_false(circuit_pass(circuit, at, &wait_s));
    circuit_failed(circuit, at);
    g_assert_false(circuit_pass(circuit, at, &wait_s));
    at += CIRCUIT_OPEN_S * G_USEC_PER_SEC;
    g_assert_true(circuit_pass(circuit, at, &wait_s));
    circuit_answered(circuit);
    g_assert_true(circuit_pass(circuit, at, &wait_s));
    g_assert_true(circuit_pass(circuit, at, &wait_s));
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/brain/budget/totals", test_totals);
    g_test_add_func("/brain/budget/held", test_held);
    g_test_add_func("/brain/budget/several", test_several);
    g_test_add_func("/brain/budget/rates", test_rates);
    g_test_add_func("/brain/budget/warning", test_warning);
    g_test_add_func("/brain/budget/bounded", test_bounded);
    g_test_add_func("/brain/breaker/loop", test_breaker);
    g_test_add_func("/brain/breaker/forgives", test_breaker_forgives);
    g_test_add_func("/brain/breaker/memory", test_breaker_memory);
    g_test_add_func("/brain/circuit", test_circuit);
    return g_test_run();
}

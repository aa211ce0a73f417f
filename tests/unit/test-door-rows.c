/* SPDX-License-Identifier: Apache-2.0 */
#include "door/usage-rows.h"
#include "support/store.h"

typedef struct Spending {
    const int *statuses; /* 0 ends it */
    BudgetSpent spent;
} Spending;

static bool
spend(DbTx *tx, void *data, GError **error)
{
    Spending *s = data;

    for (const int *status = s->statuses; *status != 0; status++) {
        g_autoptr(Json)
            fact = json_pack("{s:s, s:s, s:s, s:i, s:i}", "kind", "model.called", "box", "b", "model", "m",
                             "status", *status, "input_tokens", *status < 400 || *status == 499 ? 10 : 0);

        if (!usage_row_add(tx, fact, error))
            return false;
    }
    return usage_rows_spent(tx, "box:b", &s->spent, error);
}

/* As the door counts: what the provider gave nothing for is not spent. */
static void
test_failed_calls(void)
{
    static const struct {
        int statuses[5];
        guint64 calls, tokens;
    } cases[] = {
        {{0}, 0, 0},
        {{200, 200, 0}, 2, 20},
        {{400, 429, 500, 599, 0}, 0, 0},
        {{200, 502, 0}, 1, 10},
        {{499, 503, 0}, 1, 10}, /* the client went: the provider has worked */
    };

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(StoreBench) b = store_bench_new_open();
        Spending s = {.statuses = cases[i].statuses};

        g_assert_true(store_write(b->db, spend, &s, NULL));
        g_assert_cmpuint(s.spent.calls, ==, cases[i].calls);
        g_assert_cmpuint(s.spent.tokens, ==, cases[i].tokens);
    }
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/door/rows/failed-calls", test_failed_calls);
    return g_test_run();
}

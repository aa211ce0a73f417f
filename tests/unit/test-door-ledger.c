/* SPDX-License-Identifier: Apache-2.0 */
#include "door/ledger.h"
#include "support/store.h"

static void
on_stored(guint64 upto, void *ctx)
{
    *(guint64 *)ctx = upto;
}

static void
add(DoorLedger *ledger, int n)
{
    g_autoptr(Json)
        fact = json_pack("{s:i, s:s, s:s, s:s}", "n", n, "kind", "door.denied", "box", "b", "host", "x.org");

    g_assert_true(door_ledger_add(ledger, fact));
}

/* A door comes again while what it told before is being written: what it tells then must not wait
 * for a further fact. */
static void
test_new_visit(void)
{
    g_autoptr(StoreBench) b = store_bench_new_open();
    g_autoptr(Loop) loop = loop_new(NULL);
    StoreGate gate = {0};
    guint64 stored = 0;
    DoorLedger *ledger = door_ledger_new(
        &(DoorLedgerSpec){.loop = loop, .db = b->db, .stored = on_stored, .ctx = &stored});

    db_write(b->db, store_gate_work, NULL, &gate, NULL);
    store_gate_wait(&gate);
    door_ledger_begin(ledger, "first");
    add(ledger, 7);
    door_ledger_begin(ledger, "second");
    add(ledger, 1);
    add(ledger, 2);
    store_gate_open(&gate);
    /* Writes are done in their order: after the first the first batch, after the next the second. */
    for (int i = 0; i < 2; i++)
        g_assert_true(store_write_sql(b->db, "SELECT 1", NULL));
    g_assert_cmpuint(stored, ==, 2);
    g_assert_cmpint(store_read_int(b->db, "SELECT count(*) FROM events WHERE kind = 'door.denied'"), ==, 3);
    door_ledger_free(ledger);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/door/ledger/new-visit", test_new_visit);
    return g_test_run();
}

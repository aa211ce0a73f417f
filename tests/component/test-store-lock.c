/* SPDX-License-Identifier: Apache-2.0 */
#include <sys/wait.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/io.h"
#include "store-child.h"
#include "support/store.h"

#define INSERT "INSERT INTO settings (name, value) VALUES ('a', '')"

static void
hold_lock(StoreChild *child, StoreBench *b)
{
    char byte;

    store_child_start(child, NULL, "lock", b->path, NULL);
    g_assert_cmpint(io_read_full(child->out, &byte, 1), ==, 1);
}

static void
test_held_too_long(void)
{
    enum { BUSY_MS = 60 };
    g_autoptr(StoreBench) b = store_bench_new();
    g_autoptr(GError) error = NULL;
    StoreChild child;
    DbStats stats;

    store_bench_open(b, &(DbSpec){.busy_ms = BUSY_MS});
    hold_lock(&child, b);
    gint64 began_us = clock_mono_us();
    g_assert_false(store_write_sql(b->db, INSERT, &error));
    g_assert_cmpint(clock_mono_us() - began_us, >=, BUSY_MS * 1000 / 2);
    g_test_message("%s", error->message);
    g_assert_cmpint(err_kind(error), ==, ERR_UNAVAILABLE);
    db_stats(b->db, &stats);
    g_assert_true(stats.degraded);
    g_assert_cmpint(store_read_int(b->db, "SELECT count(*) FROM settings"), ==, 0); /* reads go on */

    g_assert_cmpint(store_child_wait(&child), ==, 0);
    g_assert_true(store_write_sql(b->db, INSERT, NULL));
    db_stats(b->db, &stats);
    g_assert_false(stats.degraded);
    g_assert_cmpint(store_read_int(b->db, "SELECT count(*) FROM settings"), ==, 1);
}

static bool
insert(DbTx *tx, void *data, GError **error)
{
    return db_exec(tx, INSERT, DB_NO_ARGS, error);
}

static void
on_written(void *data, const GError *error)
{
    g_assert_no_error(error);
    *(bool *)data = true;
}

static void
test_released_in_time(void)
{
    g_autoptr(StoreBench) b = store_bench_new();
    StoreChild child;
    bool done = false;

    store_bench_open(b, &(DbSpec){.busy_ms = 60 * 1000});
    hold_lock(&child, b);
    db_write(b->db, insert, on_written, &done, NULL);
    g_assert_cmpint(store_read_int(b->db, "SELECT count(*) FROM settings"), ==, 0);
    g_assert_false(done);
    g_assert_cmpint(store_child_wait(&child), ==, 0);
    while (!done)
        g_main_context_iteration(NULL, TRUE);
}

/* The server starts while somebody looks into the file. */
static void
test_open_while_locked(void)
{
    g_autoptr(StoreBench) b = store_bench_new_open();
    StoreChild child;

    store_bench_close(b);
    hold_lock(&child, b);
    store_bench_open(b, &(DbSpec){.busy_ms = 60});
    g_assert_cmpint(store_read_int(b->db, "SELECT count(*) FROM settings"), ==, 0);
    g_assert_false(store_write_sql(b->db, INSERT, NULL));
    g_assert_cmpint(store_child_wait(&child), ==, 0);
    g_assert_true(store_write_sql(b->db, INSERT, NULL));
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/store/lock/too-long", test_held_too_long);
    g_test_add_func("/store/lock/in-time", test_released_in_time);
    g_test_add_func("/store/lock/open", test_open_while_locked);
    return g_test_run();
}

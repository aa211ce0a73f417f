/* SPDX-License-Identifier: Apache-2.0 */
#include <signal.h>
#include <string.h>
#include <sys/wait.h>

#include "base/io.h"
#include "store-child.h"
#include "support/store.h"

/* Kills a writing program at every interesting place and at random moments, opens the file
 * again and asserts: what was acknowledged is there, no half of a pair is, the chain holds.
 * The same file goes through all rounds of a test, so that recovery follows recovery. */

typedef struct Ledger {
    StoreBench *bench;
    GArray *acknowledged; /* gint64 */
} Ledger;

static void
ledger_init(Ledger *l)
{
    l->bench = store_bench_new();
    l->acknowledged = g_array_new(FALSE, FALSE, sizeof(gint64));
}

static void
ledger_clear(Ledger *l)
{
    store_bench_free(l->bench);
    g_array_unref(l->acknowledged);
}

/* Until the child is gone, or has acknowledged `max`. */
static guint
read_acknowledged(Ledger *l, StoreChild *child, guint max)
{
    gint64 seq;
    guint n = 0;

    for (; n < max && io_read_full(child->out, &seq, sizeof seq) == sizeof seq; n++)
        g_array_append_val(l->acknowledged, seq);
    return n;
}

static bool
check_acknowledged(DbTx *tx, void *data, GError **error)
{
    GArray *seqs = data;

    for (guint i = 0; i < seqs->len; i++) {
        gint64 seq = g_array_index(seqs, gint64, i);
        g_autofree char *name = g_strdup_printf("job-%" G_GINT64_FORMAT, seq);
        g_autoptr(DbRows) rows = db_query(
            tx, "SELECT e.task_id = s.value FROM events e, settings s WHERE e.seq = ? AND s.name = ?",
            DB_ARGS(db_int(seq), db_text(name)), error);
        bool row = false;

        g_assert_true(rows != NULL && db_rows_next(rows, &row, error));
        if (!row || db_rows_int(rows, 0) != 1)
            g_error("acknowledged seq %" G_GINT64_FORMAT " is lost", seq);
    }
    return true;
}

static void
ledger_check(Ledger *l)
{
    StoreBench *b = l->bench;
    gint64 events;

    store_bench_open(b, NULL);
    g_assert_true(store_read(b->db, check_acknowledged, l->acknowledged, NULL));
    /* Every row has its event, and there are as many of the one as of the other: no half. */
    gint64 rows = store_read_int(b->db, "SELECT count(*) FROM settings");
    g_assert_cmpint(store_read_int(b->db, "SELECT count(*) FROM events"), ==, rows);
    g_assert_cmpint(store_read_int(b->db, "SELECT count(*) FROM settings s JOIN events e"
                                          " ON s.name = 'job-' || e.seq AND s.value = e.task_id"),
                    ==, rows);
    g_assert_cmpint(rows % 2, ==, 0); /* pairs */
    g_assert_cmpint(rows, >=, l->acknowledged->len);
    g_assert_cmpint(store_verify(b->log, &events), ==, 0);
    g_assert_cmpint(events, ==, rows);
    store_bench_close(b);
}

static bool
was_killed(int status)
{
    return WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
}

#ifdef COOP_FAILPOINTS
static void
crash_at(Ledger *l, const char *name, guint pass)
{
    g_autofree char *fail_at = g_strdup_printf("%s:%u", name, pass);
    StoreChild child;

    store_child_start(&child, fail_at, "write", l->bench->path, "400");
    guint n = read_acknowledged(l, &child, G_MAXUINT);
    if (!was_killed(store_child_wait(&child)))
        g_error("%s was never reached", fail_at);
    g_test_message("%s: %u acknowledged", fail_at, n);
    ledger_check(l);
}

static void
test_failpoints(void)
{
    static const struct {
        const char *name;
        guint passes[8];
    } cases[] = {
        {"store.migrate.middle", {1}},
        {"store.job.begin", {1, 2, 12, 13, 40, 99, 200}},
        {"store.commit.before", {1, 2, 3, 5, 8, 13, 20}},
        {"store.commit.after", {1, 2, 3, 5, 8, 13, 20}},
        {"store.publish.before", {1, 2, 3, 5, 8, 13, 20}},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        Ledger l;

        ledger_init(&l);
        for (const guint *pass = cases[i].passes; *pass != 0; pass++)
            crash_at(&l, cases[i].name, *pass);
        ledger_clear(&l);
    }
}

/* What was committed but not acknowledged may be there; what was not committed is not. */
static void
test_commit_decides(void)
{
    static const struct {
        const char *fail_at;
        bool written;
    } cases[] = {{"store.commit.before:1", false}, {"store.commit.after:1", true}};

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        Ledger l;
        StoreChild child;

        ledger_init(&l);
        store_child_start(&child, cases[i].fail_at, "write", l.bench->path, "400");
        g_assert_cmpuint(read_acknowledged(&l, &child, G_MAXUINT), ==, 0);
        g_assert_true(was_killed(store_child_wait(&child)));
        store_bench_open(l.bench, NULL);
        g_assert_true((event_log_last_seq(l.bench->log) > 0) == cases[i].written);
        ledger_clear(&l);
    }
}

/* The old content or the new, never a mixture; and the next start cleans up. */
static void
test_restore(void)
{
    static const struct {
        const char *fail_at;
        guint rows; /* 2: old; 1: what was saved */
    } cases[] = {
        {"store.restore.middle:1", 2}, /* while the copy beside the database is made */
        {"store.restore.middle:2", 2}, /* while it is taken over */
        {"store.publish.before:9999", 1},
    };
    const EventSpec event = {.kind = "box.created", .actor = "local"};

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(StoreBench) b = store_bench_new_open();
        g_autofree char *copy = store_bench_file(b, "copy.db");
        g_autofree char *staging = store_bench_file(b, "coop.db.restore");
        StoreChild child;
        char byte;

        g_assert_true(store_write_sql(b->db, "INSERT INTO settings (name, value) VALUES ('a', '')", NULL));
        store_append(b->db, &event, 500);
        g_assert_true(store_backup(b->db, copy, NULL));
        g_assert_true(store_write_sql(b->db, "INSERT INTO settings (name, value) VALUES ('b', '')", NULL));
        store_append(b->db, &event, 500);
        store_bench_close(b);

        store_child_start(&child, cases[i].fail_at, "restore", b->path, copy);
        bool done = io_read_full(child.out, &byte, 1) == 1;
        g_assert_true(was_killed(store_child_wait(&child)) == !done);
        g_assert_true(done == (cases[i].rows == 1));

        store_bench_open(b, NULL);
        g_assert_cmpint(store_read_int(b->db, "SELECT count(*) FROM settings"), ==, cases[i].rows);
        g_assert_cmpint(event_log_last_seq(b->log), ==, cases[i].rows * 500);
        g_assert_cmpint(store_verify(b->log, NULL), ==, 0);
        g_assert_false(g_file_test(staging, G_FILE_TEST_EXISTS));
    }
}
#else
static void
test_skipped(void)
{
    g_test_skip("built without failpoints");
}
#define test_failpoints test_skipped
#define test_commit_decides test_skipped
#define test_restore test_skipped
#endif

static void
test_random_moments(void)
{
    enum { ROUNDS = 25 };
    Ledger l;

    ledger_init(&l);
    for (int i = 0; i < ROUNDS; i++) {
        guint after = (guint)g_test_rand_int_range(0, 200);
        StoreChild child;

        store_child_start(&child, NULL, "write", l.bench->path, "1000000");
        read_acknowledged(&l, &child, after);
        g_assert_cmpint(kill(child.pid, SIGKILL), ==, 0);
        read_acknowledged(&l, &child, G_MAXUINT); /* what is still in the pipe counts */
        g_assert_true(was_killed(store_child_wait(&child)));
        ledger_check(&l);
    }
    g_test_message("%u acknowledged in all", l.acknowledged->len);
    g_assert_cmpuint(l.acknowledged->len, >, ROUNDS);
    ledger_clear(&l);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/store/crash/failpoints", test_failpoints);
    g_test_add_func("/store/crash/commit-decides", test_commit_decides);
    g_test_add_func("/store/crash/restore", test_restore);
    g_test_add_func("/store/crash/random", test_random_moments);
    return g_test_run();
}

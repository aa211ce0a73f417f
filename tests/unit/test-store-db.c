/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/err.h"
#include "store/db.h"
#include "support/store.h"

static void
assert_kind(const GError *error, ErrKind kind)
{
    g_assert_nonnull(error);
    g_test_message("%s", error->message);
    g_assert_cmpstr(err_kind_name(err_kind(error)), ==, err_kind_name(kind));
}

static gint64
count_settings(Db *db)
{
    return store_read_int(db, "SELECT count(*) FROM settings");
}

static bool
write_values(DbTx *tx, void *data, GError **error)
{
    return db_exec(tx,
                   "INSERT INTO keys (id, name, hash, prefix, scopes, created_us) VALUES (?, ?, ?, ?, ?, ?)",
                   DB_ARGS(db_text("k1"), db_text("Zo\xc3\xab"), db_blob("a\0b", 3), db_text(""),
                           db_text("x"), db_int(G_MININT64)),
                   error);
}

static bool
check_values(DbTx *tx, void *data, GError **error)
{
    g_autoptr(DbRows)
        rows = db_query(tx, "SELECT name, hash, prefix, created_us, revoked_us FROM keys WHERE id = ?",
                        DB_ARGS(db_text("k1")), error);
    bool row;
    size_t len;

    g_assert_true(rows != NULL && db_rows_next(rows, &row, error) && row);
    g_assert_cmpstr(db_rows_text(rows, 0), ==, "Zo\xc3\xab");
    const void *blob = db_rows_blob(rows, 1, &len);
    g_assert_cmpmem(blob, len, "a\0b", 3);
    g_assert_cmpstr(db_rows_text(rows, 2), ==, "");
    g_assert_cmpint(db_rows_int(rows, 3), ==, G_MININT64);
    g_assert_true(db_rows_is_null(rows, 4));
    g_assert_null(db_rows_text(rows, 4));
    g_assert_true(db_rows_next(rows, &row, error));
    g_assert_false(row);
    g_assert_true(db_rows_next(rows, &row, error)); /* the end stays the end */
    g_assert_false(row);
    return true;
}

static void
test_values(void)
{
    g_autoptr(StoreBench) b = store_bench_new_open();
    g_autoptr(GError) error = NULL;

    g_assert_true(store_write(b->db, write_values, NULL, &error));
    g_assert_true(store_read(b->db, check_values, NULL, &error));
    g_assert_no_error(error);
}

static bool
empty_blob(DbTx *tx, void *data, GError **error)
{
    g_autoptr(DbRows)
        rows = db_query(tx, "SELECT CAST(? AS BLOB) IS NULL, ?", DB_ARGS(db_blob(NULL, 0), db_null()), error);
    bool row;

    g_assert_true(db_rows_next(rows, &row, error) && row);
    g_assert_cmpint(db_rows_int(rows, 0), ==, 0);
    g_assert_true(db_rows_is_null(rows, 1));
    return true;
}

static void
test_empty_blob_is_not_null(void)
{
    g_autoptr(StoreBench) b = store_bench_new_open();
    g_autoptr(GError) error = NULL;

    g_assert_true(store_read(b->db, empty_blob, NULL, &error));
}

static bool
count_changes(DbTx *tx, void *data, GError **error)
{
    g_assert_true(db_exec(tx, "INSERT INTO settings (name, value) VALUES ('a', '1'), ('b', '1'), ('c', '2')",
                          DB_NO_ARGS, error));
    g_assert_cmpint(db_changes(tx), ==, 3);
    g_assert_true(db_exec(tx, "UPDATE settings SET value = ? WHERE value = ?",
                          DB_ARGS(db_text("9"), db_text("1")), error));
    g_assert_cmpint(db_changes(tx), ==, 2);
    return true;
}

static void
test_changes(void)
{
    g_autoptr(StoreBench) b = store_bench_new_open();
    g_autoptr(GError) error = NULL;

    g_assert_true(store_write(b->db, count_changes, NULL, &error));
}

static void
test_error_kinds(void)
{
    static const struct {
        const char *sql;
        ErrKind kind;
    } cases[] = {
        {"INSERT INTO settings (name, value) VALUES ('taken', '2')", ERR_CONFLICT},
        {"INSERT INTO sessions (id, hash, key_id, created_us, expires_us) VALUES ('s', 'h', 'nobody', 1, 2)",
         ERR_CONFLICT},
        {"INSERT INTO settings (name, value) VALUES ('x', NULL)", ERR_INVALID},
        {"INSERT INTO nowhere VALUES (1)", ERR_INTERNAL},
        {"not sql", ERR_INTERNAL},
    };
    g_autoptr(StoreBench) b = store_bench_new_open();

    g_assert_true(store_write_sql(b->db, "INSERT INTO settings (name, value) VALUES ('taken', '1')", NULL));
    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(GError) error = NULL;

        g_test_message("%s", cases[i].sql);
        g_assert_false(store_write_sql(b->db, cases[i].sql, &error));
        assert_kind(error, cases[i].kind);
    }
    g_assert_cmpint(count_settings(b->db), ==, 1);
}

static bool
write_in_read(DbTx *tx, void *data, GError **error)
{
    return db_exec(tx, "INSERT INTO settings (name, value) VALUES ('x', 'y')", DB_NO_ARGS, error);
}

static void
test_reader_cannot_write(void)
{
    g_autoptr(StoreBench) b = store_bench_new_open();
    g_autoptr(GError) error = NULL;

    g_assert_false(store_read(b->db, write_in_read, NULL, &error));
    assert_kind(error, ERR_DENIED);
    g_assert_cmpint(count_settings(b->db), ==, 0);
}

/* ---- group commit ---- */

typedef struct Item {
    guint n;
    bool fails;
    GString *trace; /* borrowed: 'w' for work, 'd' or 'e' for done */
} Item;

static bool
item_work(DbTx *tx, void *data, GError **error)
{
    Item *item = data;
    g_autofree char *name = g_strdup_printf("item-%u", item->n);

    if (!db_exec(tx, "INSERT INTO settings (name, value) VALUES (?, '')", DB_ARGS(db_text(name)), error))
        return false;
    return !item->fails || err_set(error, ERR_DENIED, "not this one");
}

static void
item_done(void *data, const GError *error)
{
    Item *item = data;

    g_string_append_printf(item->trace, "%c%u ", error == NULL ? 'd' : 'e', item->n);
    if (item->fails)
        assert_kind(error, ERR_DENIED);
}

static void
test_group_commit(void)
{
    g_autoptr(StoreBench) b = store_bench_new_open();
    g_autoptr(GString) trace = g_string_new(NULL);
    StoreGate gate = {0};
    DbStats before, after;

    db_write(b->db, store_gate_work, NULL, &gate, NULL);
    store_gate_wait(&gate);
    db_stats(b->db, &before);
    for (guint i = 0; i < 10; i++) {
        Item item = {.n = i, .fails = i % 3 == 1, .trace = trace};

        db_write(b->db, item_work, item_done, g_memdup2(&item, sizeof item), g_free);
    }
    db_stats(b->db, &after);
    g_assert_cmpuint(after.writes_waiting, ==, 10);
    store_gate_open(&gate);
    g_assert_cmpint(count_settings(b->db), <=, 7); /* whatever it sees is a whole commit */
    g_assert_true(store_write_sql(b->db, "SELECT 1", NULL));

    g_assert_cmpstr(trace->str, ==, "d0 e1 d2 d3 e4 d5 d6 e7 d8 d9 ");
    g_assert_cmpint(count_settings(b->db), ==, 7);
    g_assert_cmpint(store_read_int(b->db, "SELECT count(*) FROM settings WHERE name = 'item-4'"), ==, 0);
    db_stats(b->db, &after);
    g_assert_cmpuint(after.writes - before.writes, ==, 9); /* the gate, seven, and the SELECT */
    g_assert_cmpuint(after.commits - before.commits, <=, 3);
    g_assert_cmpuint(after.failures - before.failures, ==, 3);
    g_assert_false(after.degraded);
}

/* A back end that gives up the whole transaction: SQLite does when it has no room. */

static bool
no_more_room(DbTx *tx, void *data, GError **error)
{
    g_autoptr(DbRows) rows = db_query(tx, "PRAGMA max_page_count = 1", DB_NO_ARGS, error);
    bool row;

    return db_rows_next(rows, &row, error);
}

static bool
room_again(DbTx *tx, void *data, GError **error)
{
    g_autoptr(DbRows) rows = db_query(tx, "PRAGMA max_page_count = 1000000", DB_NO_ARGS, error);
    bool row;

    return db_rows_next(rows, &row, error);
}

static bool
fill_up(DbTx *tx, void *data, GError **error)
{
    g_autofree char *big = g_strnfill(100000, 'x');
    g_autoptr(GError) first = NULL, second = NULL;

    g_assert_false(
        db_exec(tx, "INSERT INTO settings (name, value) VALUES ('big', ?)", DB_ARGS(db_text(big)), &first));
    assert_kind(first, ERR_FULL);
    /* Nothing may slip through beside the transaction that is gone. */
    g_assert_false(
        db_exec(tx, "INSERT INTO settings (name, value) VALUES ('small', '')", DB_NO_ARGS, &second));
    assert_kind(second, ERR_FULL);
    return true; /* and a job that looks away fails all the same */
}

static void
on_full(void *data, const GError *error)
{
    assert_kind(error, ERR_FULL);
    ++*(guint *)data;
}

static void
test_lost_transaction(void)
{
    g_autoptr(StoreBench) b = store_bench_new_open();
    g_autoptr(GString) trace = g_string_new(NULL);
    StoreGate gate = {0};
    Item late = {.n = 7, .trace = trace};
    guint full = 0;
    DbStats stats;

    g_assert_true(store_write(b->db, no_more_room, NULL, NULL));
    db_write(b->db, store_gate_work, NULL, &gate, NULL);
    store_gate_wait(&gate);
    db_write(b->db, write_in_read, on_full, &full, NULL); /* would have been fine */
    db_write(b->db, fill_up, on_full, &full, NULL);
    db_write(b->db, item_work, item_done, &late, NULL);
    store_gate_open(&gate);
    while (trace->len == 0)
        g_main_context_iteration(NULL, TRUE);

    g_assert_cmpuint(full, ==, 2);
    g_assert_cmpstr(trace->str, ==, "d7 ");
    g_assert_cmpint(store_read_int(b->db, "SELECT count(*) FROM settings WHERE name = 'item-7'"), ==, 1);
    g_assert_cmpint(count_settings(b->db), ==, 1);

    g_assert_false(store_write(b->db, fill_up, NULL, NULL));
    db_stats(b->db, &stats);
    g_assert_true(stats.degraded);
    g_assert_true(store_write(b->db, room_again, NULL, NULL));
    db_stats(b->db, &stats);
    g_assert_false(stats.degraded);
}

/* ---- queues ---- */

static void
test_queue_full(void)
{
    g_autoptr(StoreBench) b = store_bench_new();
    g_autoptr(GString) trace = g_string_new(NULL);
    StoreGate gate = {0};

    store_bench_open(b, &(DbSpec){.queue_max = 3});
    db_write(b->db, store_gate_work, NULL, &gate, NULL);
    store_gate_wait(&gate);
    for (guint i = 0; i < 5; i++) {
        Item item = {.n = i, .trace = trace};

        db_write(b->db, item_work, item_done, g_memdup2(&item, sizeof item), g_free);
    }
    g_assert_cmpstr(trace->str, ==, ""); /* never from inside db_write() */
    while (g_main_context_iteration(NULL, FALSE))
        continue;
    g_assert_cmpstr(trace->str, ==, "e3 e4 ");
    store_gate_open(&gate);
    store_bench_close(b);
    g_assert_cmpstr(trace->str, ==, "e3 e4 d0 d1 d2 ");
}

static void
on_limit(void *data, const GError *error)
{
    assert_kind(error, ERR_LIMIT);
    ++*(guint *)data;
}

static void
test_read_queue_full(void)
{
    g_autoptr(StoreBench) b = store_bench_new();
    StoreGate gate = {0};
    guint refused = 0;

    store_bench_open(b, &(DbSpec){.queue_max = 1, .readers = 1});
    db_read(b->db, store_gate_work, NULL, &gate, NULL);
    store_gate_wait(&gate);
    db_read(b->db, empty_blob, NULL, NULL, NULL);
    db_read(b->db, empty_blob, on_limit, &refused, NULL);
    while (refused == 0)
        g_main_context_iteration(NULL, TRUE);
    store_gate_open(&gate);
    store_bench_close(b); /* while the gate is still there */
}

typedef struct Again {
    Db *db;
    guint done, cancelled;
} Again;

static void
on_again(void *data, const GError *error)
{
    Again *a = data;

    if (error != NULL) {
        assert_kind(error, ERR_CANCELLED);
        a->cancelled++;
        return;
    }
    a->done++;
    db_write(a->db, empty_blob, on_again, a, NULL);
}

static void
test_close_finishes_what_waits(void)
{
    g_autoptr(StoreBench) b = store_bench_new_open();
    g_autoptr(GString) trace = g_string_new(NULL);
    Item items[20];
    Again again = {.db = b->db};

    for (guint i = 0; i < G_N_ELEMENTS(items); i++) {
        items[i] = (Item){.n = i, .trace = trace};
        db_write(b->db, item_work, item_done, &items[i], NULL);
    }
    db_write(b->db, empty_blob, on_again, &again, NULL);
    store_bench_close(b);
    g_assert_true(g_str_has_suffix(trace->str, "d18 d19 "));
    g_assert_cmpuint(again.done, ==, 1);
    g_assert_cmpuint(again.cancelled, ==, 1);

    store_bench_open(b, NULL);
    g_assert_cmpint(count_settings(b->db), ==, 20);
}

/* ---- snapshots and statements ---- */

typedef struct Snapshot {
    StoreGate gate;
    gint64 first, second;
    bool done;
} Snapshot;

static bool
snapshot_count(DbTx *tx, gint64 *ret, GError **error)
{
    g_autoptr(DbRows) rows = db_query(tx, "SELECT count(*) FROM settings", DB_NO_ARGS, error);
    bool row;

    if (rows == NULL || !db_rows_next(rows, &row, error))
        return false;
    *ret = db_rows_int(rows, 0);
    return true;
}

static bool
snapshot_work(DbTx *tx, void *data, GError **error)
{
    Snapshot *s = data;

    return snapshot_count(tx, &s->first, error) && store_gate_work(tx, &s->gate, error) &&
           snapshot_count(tx, &s->second, error);
}

static void
snapshot_done(void *data, const GError *error)
{
    g_assert_no_error(error);
    ((Snapshot *)data)->done = true;
}

static void
test_read_is_a_snapshot(void)
{
    g_autoptr(StoreBench) b = store_bench_new_open();
    Snapshot s = {0};

    db_read(b->db, snapshot_work, snapshot_done, &s, NULL);
    store_gate_wait(&s.gate);
    g_assert_true(store_write_sql(b->db, "INSERT INTO settings (name, value) VALUES ('x', 'y')", NULL));
    store_gate_open(&s.gate);
    while (!s.done)
        g_main_context_iteration(NULL, TRUE);
    g_assert_cmpint(s.first, ==, 0);
    g_assert_cmpint(s.second, ==, 0);
    g_assert_cmpint(count_settings(b->db), ==, 1);
}

static bool
nested(DbTx *tx, void *data, GError **error)
{
    static const char sql[] = "SELECT name FROM settings ORDER BY name";
    g_autoptr(DbRows) outer = db_query(tx, sql, DB_NO_ARGS, error);
    bool row;

    for (char want = 'a'; want <= 'c'; want++) {
        g_autoptr(DbRows) inner = db_query(tx, sql, DB_NO_ARGS, error);

        g_assert_true(db_rows_next(outer, &row, error) && row);
        g_assert_cmpint(db_rows_text(outer, 0)[0], ==, want);
        g_assert_true(db_rows_next(inner, &row, error) && row);
        g_assert_cmpstr(db_rows_text(inner, 0), ==, "a");
    }
    return true;
}

static bool
many_statements(DbTx *tx, void *data, GError **error)
{
    g_autoptr(DbRows) open = db_query(tx, "SELECT name FROM settings ORDER BY name", DB_NO_ARGS, error);
    bool row;

    g_assert_true(db_rows_next(open, &row, error) && row);
    for (int i = 0; i < 500; i++) {
        g_autofree char *sql = g_strdup_printf("SELECT %d", i);
        g_autoptr(DbRows) rows = db_query(tx, sql, DB_NO_ARGS, error);

        g_assert_true(db_rows_next(rows, &row, error) && row);
        g_assert_cmpint(db_rows_int(rows, 0), ==, i);
    }
    g_assert_true(db_rows_next(open, &row, error) && row);
    g_assert_cmpstr(db_rows_text(open, 0), ==, "b");
    return true;
}

static void
test_statement_cache(void)
{
    g_autoptr(StoreBench) b = store_bench_new_open();
    g_autoptr(GError) error = NULL;

    g_assert_true(store_write(b->db, count_changes, NULL, &error));
    g_assert_true(store_read(b->db, nested, NULL, &error));
    g_assert_true(store_read(b->db, many_statements, NULL, &error));
    g_assert_true(store_read(b->db, nested, NULL, &error));
}

static bool
silent_failure(DbTx *tx, void *data, GError **error)
{
    return false;
}

static void
test_failure_without_error(void)
{
    g_autoptr(StoreBench) b = store_bench_new_open();
    g_autoptr(GError) on_write = NULL, on_read = NULL;

    g_assert_false(store_write(b->db, silent_failure, NULL, &on_write));
    assert_kind(on_write, ERR_INTERNAL);
    g_assert_false(store_read(b->db, silent_failure, NULL, &on_read));
    assert_kind(on_read, ERR_INTERNAL);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/store/values", test_values);
    g_test_add_func("/store/empty-blob", test_empty_blob_is_not_null);
    g_test_add_func("/store/changes", test_changes);
    g_test_add_func("/store/error-kinds", test_error_kinds);
    g_test_add_func("/store/reader-cannot-write", test_reader_cannot_write);
    g_test_add_func("/store/group-commit", test_group_commit);
    g_test_add_func("/store/lost-transaction", test_lost_transaction);
    g_test_add_func("/store/queue-full", test_queue_full);
    g_test_add_func("/store/read-queue-full", test_read_queue_full);
    g_test_add_func("/store/close", test_close_finishes_what_waits);
    g_test_add_func("/store/snapshot", test_read_is_a_snapshot);
    g_test_add_func("/store/statement-cache", test_statement_cache);
    g_test_add_func("/store/silent-failure", test_failure_without_error);
    return g_test_run();
}

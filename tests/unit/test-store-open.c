/* SPDX-License-Identifier: Apache-2.0 */
#include <glib/gstdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/err.h"
#include "store/db-internal.h"
#include "support/store.h"

static void
assert_refused(const char *path, ErrKind kind, const char *words)
{
    const DbSpec spec = {.path = path};
    g_autoptr(GError) error = NULL;

    g_assert_null(db_open(&spec, &error));
    g_assert_nonnull(error);
    g_test_message("%s", error->message);
    g_assert_cmpstr(err_kind_name(err_kind(error)), ==, err_kind_name(kind));
    g_assert_nonnull(strstr(error->message, words));
}

static void
test_fresh(void)
{
    g_autoptr(StoreBench) b = store_bench_new_open();
    struct stat st;
    DbStats stats;

    g_assert_cmpint(store_read_int(b->db, "SELECT count(*) FROM schema"), ==, migrations_builtin.len);
    g_assert_cmpint(store_read_int(b->db, "SELECT max(version) FROM schema"), ==, migrations_builtin.len);
    g_assert_cmpint(store_read_int(b->db, "PRAGMA application_id"), ==, 0x436f6f70);
    db_stats(b->db, &stats);
    g_assert_cmpint(stats.schema, ==, migrations_builtin.len);
    g_assert_cmpint(stat(b->path, &st), ==, 0);
    g_assert_cmpint(st.st_mode & 0777, ==, 0600);

    g_autofree char *wal = store_bench_file(b, "coop.db-wal");
    g_assert_cmpint(stat(wal, &st), ==, 0);
    g_assert_cmpint(st.st_mode & 0777, ==, 0600);
}

static void
test_reopen(void)
{
    g_autoptr(StoreBench) b = store_bench_new_open();

    g_assert_true(store_write_sql(b->db, "INSERT INTO settings (name, value) VALUES ('a', 'b')", NULL));
    store_bench_close(b);
    store_bench_open(b, NULL);
    g_assert_cmpint(store_read_int(b->db, "SELECT count(*) FROM settings"), ==, 1);
    g_assert_cmpint(store_read_int(b->db, "SELECT count(*) FROM schema"), ==, migrations_builtin.len);
}

static void
test_tables(void)
{
    static const char *const queries[] = {
        "SELECT count(version) + count(name) + count(applied_us) * 0 FROM schema WHERE version < 0",
        "SELECT count(seq) + count(at_us) + count(kind) + count(actor) + count(task_id) + count(squad_id)"
        " + count(box_id) + count(execution_id) + count(data) + count(hash) FROM events",
        "SELECT count(id) + count(name) + count(hash) + count(prefix) + count(scopes) + count(created_us)"
        " + count(last_used_us) + count(expires_us) + count(revoked_us) FROM keys",
        "SELECT count(id) + count(hash) + count(key_id) + count(created_us) + count(expires_us) FROM "
        "sessions",
        "SELECT count(name) + count(value) FROM settings",
    };
    g_autoptr(StoreBench) b = store_bench_new_open();

    for (size_t i = 0; i < G_N_ELEMENTS(queries); i++)
        g_assert_cmpint(store_read_int(b->db, queries[i]), ==, 0);
}

/* ---- what is refused ---- */

static void
test_foreign(void)
{
    static const char *const others[] = {
        "CREATE TABLE cookies (id)",
        "PRAGMA application_id = 99",
        "PRAGMA user_version = 3",
        "CREATE TABLE schema (version); PRAGMA user_version = 1",
    };

    for (size_t i = 0; i < G_N_ELEMENTS(others); i++) {
        g_autoptr(StoreBench) b = store_bench_new();

        g_test_message("%s", others[i]);
        store_tamper(b->path, others[i]);
        assert_refused(b->path, ERR_INVALID, "another program");
    }
}

static void
test_newer(void)
{
    g_autoptr(StoreBench) b = store_bench_new_open();

    store_bench_close(b);
    store_tamper(b->path, "PRAGMA user_version = 1000");
    assert_refused(b->path, ERR_INVALID, "newer Coop (schema 1000");
}

static void
test_not_a_database(void)
{
    g_autoptr(StoreBench) b = store_bench_new();
    g_autofree char *text = g_strnfill(8192, 'x');

    g_assert_true(g_file_set_contents(b->path, text, -1, NULL));
    assert_refused(b->path, ERR_INTERNAL, "not a database");
}

static void
make_some(StoreBench *b)
{
    const EventSpec event = {
        .kind = "box.created", .actor = "local", .box_id = "b", .data = "{\"a\":\"aaaa\"}"};

    store_bench_open(b, NULL);
    store_append(b->db, &event, 2000);
    store_bench_close(b);
}

static void
test_truncated(void)
{
    g_autoptr(StoreBench) b = store_bench_new();
    struct stat st;

    make_some(b);
    g_assert_cmpint(stat(b->path, &st), ==, 0);
    g_assert_cmpint(truncate(b->path, st.st_size / 2 / 4096 * 4096), ==, 0);
    assert_refused(b->path, ERR_INTERNAL, "damaged");
}

static void
test_page_overwritten(void)
{
    g_autoptr(StoreBench) b = store_bench_new();
    g_autofree char *content = NULL;
    gsize len;

    make_some(b);
    g_assert_true(g_file_get_contents(b->path, &content, &len, NULL));
    memset(content + 20 * 4096, 0xee, 4096);
    g_assert_true(g_file_set_contents(b->path, content, (gssize)len, NULL));
    assert_refused(b->path, ERR_INTERNAL, "damaged");
}

static void
test_no_folder(void)
{
    assert_refused("/nonexistent/coop.db", ERR_NOT_FOUND, "/nonexistent/coop.db");
}

static void
test_empty_file_is_a_beginning(void)
{
    g_autoptr(StoreBench) b = store_bench_new();

    g_assert_true(g_file_set_contents(b->path, "", 0, NULL));
    store_bench_open(b, NULL);
    g_assert_cmpint(store_read_int(b->db, "SELECT count(*) FROM schema"), ==, migrations_builtin.len);
}

/* ---- steps ---- */

static const char first_step[] = "CREATE TABLE schema (version BIGINT PRIMARY KEY, name TEXT NOT NULL,"
                                 " applied_us BIGINT NOT NULL); CREATE TABLE a (n BIGINT PRIMARY KEY)";

static Db *
open_with(StoreBench *b, const Migration *items, size_t len, GError **error)
{
    const DbSpec spec = {.path = b->path};
    const MigrationList list = {items, len};

    return db_open_with(&spec, &list, error);
}

static void
test_steps(void)
{
    static const Migration items[] = {
        {1, "one", first_step},
        {2, "two", "INSERT INTO a (n) VALUES (7); ALTER TABLE a ADD COLUMN b TEXT"},
        {3, "three", "UPDATE a SET b = 'x'"},
    };
    g_autoptr(StoreBench) b = store_bench_new();

    for (size_t n = 1; n <= G_N_ELEMENTS(items); n++) {
        g_autoptr(Db) db = open_with(b, items, n, NULL);

        g_assert_nonnull(db);
        g_assert_cmpint(store_read_int(db, "SELECT max(version) FROM schema"), ==, n);
    }
    g_autoptr(Db) db = open_with(b, items, 3, NULL);
    g_assert_cmpint(store_read_int(db, "SELECT n FROM a WHERE b = 'x'"), ==, 7);
    g_assert_cmpint(store_read_int(db, "SELECT count(*) FROM a"), ==, 1);
}

static void
test_failing_step_leaves_nothing(void)
{
    static const Migration bad[] = {
        {1, "one", first_step},
        {2, "broken",
         "CREATE TABLE b (n BIGINT); INSERT INTO a (n) VALUES (1); INSERT INTO nowhere VALUES (1)"},
    };
    static const Migration good[] = {{1, "one", first_step}, {2, "mended", "CREATE TABLE b (n BIGINT)"}};
    g_autoptr(StoreBench) b = store_bench_new();
    g_autoptr(GError) error = NULL;

    g_assert_null(open_with(b, bad, 2, &error));
    g_test_message("%s", error->message);
    g_assert_nonnull(strstr(error->message, "migration 2 (broken)"));

    g_autoptr(Db) db = open_with(b, good, 2, NULL);
    g_assert_nonnull(db);
    g_assert_cmpint(store_read_int(db, "SELECT count(*) FROM a"), ==, 0);
    g_assert_cmpint(store_read_int(db, "SELECT max(version) FROM schema"), ==, 2);
}

/* Hooks and what was delivered are still there, and of somebody. */
static void
test_hooks_made_anew(void)
{
    enum { BEFORE = 15 };
    static const char *const rows[] = {
        "INSERT INTO repositories (id, number, owner, name, folded, description, default_branch, insecure, "
        "state, settings, next_number, bytes, actor, created_us, updated_us, pushed_us, fetched_us, "
        "packed_us) VALUES ('r', 1, 'o', "
        "'n', 'o/n', '', 'main', 0, 'ready', '{}', 1, 0, 'local', 1, 1, 1, 0, 0)",
        "INSERT INTO hooks (id, repository_id, url, secret, events, active, since_seq, created_us, "
        "updated_us) VALUES (7, 'r', 'http://x/', x'00ff', '[\"push\"]', 1, 3, 4, 5)",
        "INSERT INTO deliveries (id, hook_id, seq, guid, event, body, state, status, tries, next_us, "
        "created_us, ended_us) VALUES (9, 7, 3, 'g', 'push', '{}', 'waiting', 0, 0, 0, 1, 0)",
    };
    g_autoptr(StoreBench) b = store_bench_new();
    Db *old = open_with(b, migrations_builtin.items, BEFORE, NULL);

    for (size_t i = 0; i < G_N_ELEMENTS(rows); i++)
        g_assert_true(store_write_sql(old, rows[i], NULL));
    db_close(old);
    store_bench_open(b, NULL);
    g_assert_cmpint(store_read_int(b->db,
                                   "SELECT COUNT(*) FROM hooks h JOIN deliveries d ON d.hook_id = h.id "
                                   "WHERE h.id = 7 AND h.repository_id = 'r' AND h.secret = x'00ff' "
                                   "AND h.squad_id IS NULL AND d.id = 9 AND d.guid = 'g'"),
                    ==, 1);
    g_assert_false(store_write_sql(b->db,
                                   "INSERT INTO hooks (id, url, events, active, since_seq, created_us, "
                                   "updated_us) VALUES (8, '', '[]', 1, 0, 0, 0)",
                                   NULL));
    g_assert_true(store_write_sql(b->db, "DELETE FROM repositories", NULL));
    g_assert_cmpint(store_read_int(b->db, "SELECT (SELECT COUNT(*) FROM hooks) + COUNT(*) FROM deliveries"),
                    ==, 0);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/store/open/fresh", test_fresh);
    g_test_add_func("/store/open/again", test_reopen);
    g_test_add_func("/store/open/tables", test_tables);
    g_test_add_func("/store/open/foreign", test_foreign);
    g_test_add_func("/store/open/newer", test_newer);
    g_test_add_func("/store/open/not-a-database", test_not_a_database);
    g_test_add_func("/store/open/truncated", test_truncated);
    g_test_add_func("/store/open/page-overwritten", test_page_overwritten);
    g_test_add_func("/store/open/no-folder", test_no_folder);
    g_test_add_func("/store/open/empty-file", test_empty_file_is_a_beginning);
    g_test_add_func("/store/migrate/steps", test_steps);
    g_test_add_func("/store/migrate/failing", test_failing_step_leaves_nothing);
    g_test_add_func("/store/migrate/hooks", test_hooks_made_anew);
    return g_test_run();
}

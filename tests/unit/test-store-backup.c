/* SPDX-License-Identifier: Apache-2.0 */
#include <glib/gstdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/err.h"
#include "store/db-internal.h"
#include "support/store.h"

static const EventSpec created = {.kind = "box.created", .actor = "coop", .data = "{\"n\":1}"};

static void
assert_kind(const GError *error, ErrKind kind, const char *words)
{
    g_assert_nonnull(error);
    g_test_message("%s", error->message);
    g_assert_cmpstr(err_kind_name(err_kind(error)), ==, err_kind_name(kind));
    g_assert_nonnull(strstr(error->message, words));
}

static void
put(Db *db, const char *name)
{
    g_autofree char *sql = g_strdup_printf("INSERT INTO settings (name, value) VALUES ('%s', '')", name);

    g_assert_true(store_write_sql(db, sql, NULL));
    store_append(db, &created, 1);
}

static gint64
count(Db *db, const char *name)
{
    g_autofree char *sql = g_strdup_printf("SELECT count(*) FROM settings WHERE name = '%s'", name);

    return store_read_int(db, sql);
}

static guint
count_files(const char *dir)
{
    g_autoptr(GDir) d = g_dir_open(dir, 0, NULL);
    guint n = 0;

    while (g_dir_read_name(d) != NULL)
        n++;
    return n;
}

static void
test_backup_is_a_database(void)
{
    g_autoptr(StoreBench) b = store_bench_new_open();
    g_autofree char *copy = store_bench_file(b, "copy.db");
    g_autoptr(GError) error = NULL;
    struct stat st;
    guint files = count_files(b->dir);

    put(b->db, "a");
    g_assert_true(store_backup(b->db, copy, &error));
    put(b->db, "b");
    g_assert_cmpuint(count_files(b->dir), ==, files + 1); /* nothing beside it */
    g_assert_cmpint(stat(copy, &st), ==, 0);
    g_assert_cmpint(st.st_mode & 0777, ==, 0600);

    const DbSpec spec = {.path = copy};
    g_autoptr(Db) db = db_open(&spec, &error);
    g_assert_no_error(error);
    g_autoptr(EventLog) log = event_log_new(db, &error);
    g_assert_cmpint(count(db, "a"), ==, 1);
    g_assert_cmpint(count(db, "b"), ==, 0);
    g_assert_cmpint(event_log_last_seq(log), ==, 1);
    g_assert_cmpint(store_verify(log, NULL), ==, 0);
}

static void
test_backup_refuses(void)
{
    g_autoptr(StoreBench) b = store_bench_new_open();
    g_autofree char *there = store_bench_file(b, "there");
    g_autofree char *nowhere = store_bench_file(b, "no/where");
    g_autofree char *content = NULL;
    g_autoptr(GError) first = NULL, second = NULL;

    g_assert_true(g_file_set_contents(there, "precious", -1, NULL));
    g_assert_false(store_backup(b->db, there, &first));
    assert_kind(first, ERR_CONFLICT, "is there already");
    g_assert_true(g_file_get_contents(there, &content, NULL, NULL));
    g_assert_cmpstr(content, ==, "precious");
    g_assert_false(store_backup(b->db, nowhere, &second));
    assert_kind(second, ERR_NOT_FOUND, "no/where");
}

typedef struct Pump {
    Db *db;
    bool stop, stopped;
    guint written;
} Pump;

static bool
pump_work(DbTx *tx, void *data, GError **error)
{
    Pump *p = data;
    g_autofree char *name = g_strdup_printf("pump-%u", p->written);
    gint64 seq;

    if (!event_append(tx, &created, &seq, error))
        return false;
    g_autofree char *value = g_strdup_printf("%" G_GINT64_FORMAT, seq);
    return db_exec(tx, "INSERT INTO settings (name, value) VALUES (?, ?)",
                   DB_ARGS(db_text(name), db_text(value)), error);
}

static void
pump_done(void *data, const GError *error)
{
    Pump *p = data;

    g_assert_no_error(error);
    p->written++;
    p->stopped = p->stop;
    if (!p->stop)
        db_write(p->db, pump_work, pump_done, p, NULL);
}

/* Each copy taken in the middle of writing holds as many rows as events. */
static void
test_backup_while_writing(void)
{
    g_autoptr(StoreBench) b = store_bench_new_open();
    Pump pump = {.db = b->db};

    store_append(b->db, &created, 5000);
    db_write(b->db, pump_work, pump_done, &pump, NULL);
    for (int i = 0; i < 5; i++) {
        g_autofree char *name = g_strdup_printf("copy-%d", i);
        g_autofree char *copy = store_bench_file(b, name);
        g_autoptr(GError) error = NULL;

        g_assert_true(store_backup(b->db, copy, &error));
        const DbSpec spec = {.path = copy};
        g_autoptr(Db) db = db_open(&spec, &error);
        g_assert_no_error(error);
        g_assert_cmpint(store_read_int(db, "SELECT (SELECT count(*) FROM events) - count(*) FROM settings"),
                        ==, 5000);
    }
    g_assert_cmpuint(pump.written, >, 0);
    pump.stop = true;
    while (!pump.stopped)
        g_main_context_iteration(NULL, TRUE);
}

/* ---- restore ---- */

typedef struct Watcher {
    EventCursor *cursor;
    guint wakes;
} Watcher;

static void
on_wake(void *data)
{
    ((Watcher *)data)->wakes++;
}

static void
test_restore(void)
{
    g_autoptr(StoreBench) b = store_bench_new_open();
    g_autofree char *copy = store_bench_file(b, "copy.db");
    g_autoptr(GError) error = NULL;
    g_autoptr(Event) event = NULL;
    Watcher w = {0};

    put(b->db, "a");
    put(b->db, "b");
    g_assert_true(store_backup(b->db, copy, &error));
    put(b->db, "c");
    store_append(b->db, &created, 100);
    w.cursor = event_cursor_new(b->log, NULL, -1, on_wake, &w);
    g_assert_cmpint(event_cursor_next(w.cursor, &event), ==, EVENT_WAIT);

    g_assert_true(store_restore(b->db, copy, &error));
    g_assert_no_error(error);
    g_assert_cmpint(count(b->db, "b"), ==, 1);
    g_assert_cmpint(count(b->db, "c"), ==, 0);
    g_assert_cmpint(event_log_last_seq(b->log), ==, 2);
    g_assert_cmpuint(w.wakes, ==, 1);
    g_assert_cmpint(event_cursor_next(w.cursor, &event), ==, EVENT_RESYNC);
    g_assert_cmpint(event_cursor_seq(w.cursor), ==, 2);
    g_assert_cmpint(event_cursor_next(w.cursor, &event), ==, EVENT_WAIT);

    put(b->db, "d"); /* numbers and hashes go on from what was restored */
    g_assert_cmpint(event_log_last_seq(b->log), ==, 3);
    g_assert_cmpint(event_cursor_next(w.cursor, &event), ==, EVENT_READY);
    g_assert_cmpint(event->seq, ==, 3);
    g_assert_cmpint(store_verify(b->log, NULL), ==, 0);
    event_cursor_free(w.cursor);

    store_bench_close(b);
    store_bench_open(b, NULL);
    g_assert_cmpint(count(b->db, "d"), ==, 1);
    g_assert_cmpint(store_verify(b->log, NULL), ==, 0);
}

/* A follower that is behind has a read under way when the content changes. */
static void
test_restore_under_a_reader(void)
{
    g_autoptr(StoreBench) b = store_bench_new();
    g_autofree char *copy = store_bench_file(b, "copy.db");
    g_autoptr(GError) error = NULL;
    g_autoptr(Event) event = NULL;
    StoreGate gate = {0};
    Watcher w = {0};

    store_bench_open(b, &(DbSpec){.readers = 1});
    store_append(b->db, &created, 5000);
    g_assert_true(store_backup(b->db, copy, &error));
    store_append(b->db, &created, 5000);
    db_read(b->db, store_gate_work, NULL, &gate, NULL);
    store_gate_wait(&gate);
    w.cursor = event_cursor_new(b->log, NULL, 10, on_wake, &w);
    g_assert_cmpint(event_cursor_next(w.cursor, &event), ==, EVENT_WAIT);
    g_assert_true(store_restore(b->db, copy, &error));
    store_gate_open(&gate);
    while (w.wakes == 0)
        g_main_context_iteration(NULL, TRUE);
    g_assert_cmpint(event_cursor_next(w.cursor, &event), ==, EVENT_RESYNC);
    g_assert_cmpint(event_cursor_seq(w.cursor), ==, 5000);
    event_cursor_free(w.cursor);
}

static void
test_restore_two_at_once(void)
{
    g_autoptr(StoreBench) b = store_bench_new_open();
    g_autofree char *copy = store_bench_file(b, "copy.db");
    StoreGate gate = {0};
    g_autoptr(GError) error = NULL;

    put(b->db, "a");
    g_assert_true(store_backup(b->db, copy, NULL));
    put(b->db, "b");
    db_write(b->db, store_gate_work, NULL, &gate, NULL);
    store_gate_wait(&gate);
    db_restore(b->db, copy, NULL, NULL); /* cannot be taken over yet */
    g_assert_false(store_restore(b->db, copy, &error));
    assert_kind(error, ERR_CONFLICT, "another restore");
    store_gate_open(&gate);
    put(b->db, "c");
    g_assert_cmpint(count(b->db, "a"), ==, 1);
    g_assert_cmpint(count(b->db, "b"), ==, 0);
    g_assert_true(store_restore(b->db, copy, NULL));
    g_assert_cmpint(count(b->db, "c"), ==, 0);
}

/* ---- what is not restored ---- */

static void
make_foreign(const char *path)
{
    store_tamper(path, "CREATE TABLE cookies (id); PRAGMA application_id = 7");
}

static void
make_newer(const char *path)
{
    store_tamper(path, "PRAGMA user_version = 1000");
}

static void
make_truncated(const char *path)
{
    struct stat st;

    g_assert_cmpint(stat(path, &st), ==, 0);
    g_assert_cmpint(truncate(path, st.st_size / 2), ==, 0);
}

static void
make_damaged(const char *path)
{
    g_autofree char *content = NULL;
    gsize len;

    g_assert_true(g_file_get_contents(path, &content, &len, NULL));
    memset(content + 10 * 4096, 0xee, 4096);
    g_assert_true(g_file_set_contents(path, content, (gssize)len, NULL));
}

static void
make_text(const char *path)
{
    g_autofree char *text = g_strnfill(10000, '#');

    g_assert_true(g_file_set_contents(path, text, -1, NULL));
}

static void
make_empty(const char *path)
{
    g_assert_true(g_file_set_contents(path, "", 0, NULL));
}

static void
make_missing(const char *path)
{
    g_assert_cmpint(g_unlink(path), ==, 0);
}

static void
test_restore_refuses(void)
{
    static const struct {
        void (*make)(const char *path);
        ErrKind kind;
        const char *words;
    } cases[] = {
        {make_foreign, ERR_INVALID, "another program"}, {make_newer, ERR_INVALID, "newer Coop"},
        {make_truncated, ERR_INVALID, "damaged"},       {make_damaged, ERR_INVALID, "damaged"},
        {make_text, ERR_INVALID, "not a database"},     {make_empty, ERR_INVALID, "empty"},
        {make_missing, ERR_NOT_FOUND, "copy.db"},
    };
    g_autoptr(StoreBench) b = store_bench_new_open();
    g_autofree char *copy = store_bench_file(b, "copy.db");

    store_append(b->db, &created, 2000);
    put(b->db, "a");
    guint files = count_files(b->dir);
    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(GError) error = NULL;

        (void)g_unlink(copy);
        g_assert_true(store_backup(b->db, copy, NULL));
        cases[i].make(copy);
        g_assert_false(store_restore(b->db, copy, &error));
        assert_kind(error, cases[i].kind, cases[i].words);
        (void)g_unlink(copy);
        g_assert_cmpuint(count_files(b->dir), ==, files);
    }
    g_assert_cmpint(count(b->db, "a"), ==, 1);
    g_assert_cmpint(event_log_last_seq(b->log), ==, 2001);
    put(b->db, "b");
    g_assert_cmpint(store_verify(b->log, NULL), ==, 0);
}

static Db *
open_with(const char *path, size_t len)
{
    static const Migration items[] = {
        {1, "one",
         "CREATE TABLE schema (version BIGINT PRIMARY KEY, name TEXT NOT NULL, applied_us BIGINT NOT NULL);"
         "CREATE TABLE events (seq BIGINT PRIMARY KEY); CREATE TABLE a (n BIGINT)"},
        {2, "two", "CREATE TABLE b (n BIGINT); INSERT INTO b SELECT n + 1 FROM a"},
    };
    const DbSpec spec = {.path = path};
    const MigrationList list = {items, len};
    g_autoptr(GError) error = NULL;
    Db *db = db_open_with(&spec, &list, &error);

    g_assert_no_error(error);
    return db;
}

static void
test_restore_migrates_older(void)
{
    g_autoptr(StoreBench) b = store_bench_new();
    g_autofree char *old_path = store_bench_file(b, "old.db");
    g_autofree char *copy = store_bench_file(b, "copy.db");
    g_autofree char *before = NULL, *after = NULL;
    gsize len_before, len_after;
    g_autoptr(GError) error = NULL;

    g_autoptr(Db) old = open_with(old_path, 1);
    g_assert_true(store_write_sql(old, "INSERT INTO a (n) VALUES (41)", NULL));
    g_assert_true(store_backup(old, copy, &error));
    g_assert_true(g_file_get_contents(copy, &before, &len_before, NULL));

    g_autoptr(Db) db = open_with(b->path, 2);
    g_assert_true(store_restore(db, copy, &error));
    g_assert_no_error(error);
    g_assert_cmpint(store_read_int(db, "SELECT n FROM b"), ==, 42);
    g_assert_cmpint(store_read_int(db, "SELECT max(version) FROM schema"), ==, 2);
    g_assert_true(g_file_get_contents(copy, &after, &len_after, NULL));
    g_assert_cmpmem(before, len_before, after, len_after); /* the file itself stays as it is */
}

static void
test_leftovers_of_a_restore(void)
{
    g_autoptr(StoreBench) b = store_bench_new_open();
    g_autofree char *left = store_bench_file(b, "coop.db.restore");

    store_bench_close(b);
    g_assert_true(g_file_set_contents(left, "half", -1, NULL));
    store_bench_open(b, NULL);
    g_assert_false(g_file_test(left, G_FILE_TEST_EXISTS));
}

typedef struct Chore {
    ErrKind fails; /* ERR_KIND_MAX: it does not */
    bool mute;
    GThread *ran, *told, *freed;
    GError *error;
} Chore;

static bool
chore_work(void *data, GError **error)
{
    Chore *c = data;

    c->ran = g_thread_self();
    if (c->fails == ERR_KIND_MAX)
        return true;
    return c->mute ? false : err_set(error, c->fails, "it did");
}

static void
chore_done(void *data, const GError *error)
{
    Chore *c = data;

    c->told = g_thread_self();
    g_assert_null(c->freed);
    c->error = error != NULL ? g_error_copy(error) : NULL;
}

static void
chore_free(void *data)
{
    ((Chore *)data)->freed = g_thread_self();
}

static void
test_chores(void)
{
    g_autoptr(StoreBench) b = store_bench_new_open();
    Chore good = {.fails = ERR_KIND_MAX}, bad = {.fails = ERR_FULL}, mute = {.mute = true};
    Chore *const all[] = {&good, &bad, &mute};

    for (size_t i = 0; i < G_N_ELEMENTS(all); i++)
        db_chore(b->db, chore_work, chore_done, all[i], chore_free);
    while (mute.freed == NULL)
        g_main_context_iteration(NULL, TRUE);
    for (size_t i = 0; i < G_N_ELEMENTS(all); i++) {
        g_assert_true(all[i]->ran != NULL && all[i]->ran != g_thread_self());
        g_assert_true(all[i]->told == g_thread_self());
        g_assert_true(all[i]->freed == g_thread_self());
    }
    g_assert_no_error(good.error);
    assert_kind(bad.error, ERR_FULL, "it did");
    assert_kind(mute.error, ERR_INTERNAL, "without saying why");
    g_error_free(bad.error);
    g_error_free(mute.error);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/backup/database", test_backup_is_a_database);
    g_test_add_func("/backup/refuses", test_backup_refuses);
    g_test_add_func("/backup/while-writing", test_backup_while_writing);
    g_test_add_func("/restore/content", test_restore);
    g_test_add_func("/restore/reader", test_restore_under_a_reader);
    g_test_add_func("/restore/two", test_restore_two_at_once);
    g_test_add_func("/restore/refuses", test_restore_refuses);
    g_test_add_func("/restore/older", test_restore_migrates_older);
    g_test_add_func("/chores", test_chores);
    g_test_add_func("/restore/leftovers", test_leftovers_of_a_restore);
    return g_test_run();
}

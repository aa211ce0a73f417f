/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <glib/gstdio.h>
#include <sched.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/io.h"
#include "support/store.h"

/* A disk that is full: a small tmpfs in a mount namespace of our own. */

#define SIZE "size=4m"

static const EventSpec event = {.kind = "box.created", .actor = "local", .data = "{\"x\":\"0123456789\"}"};

static bool
write_file(const char *path, const char *text)
{
    autofd fd = open(path, O_WRONLY | O_CLOEXEC);

    return fd >= 0 && io_write_all(fd, text, strlen(text));
}

static bool
become_root_of_a_namespace(void)
{
    g_autofree char *uid = g_strdup_printf("0 %u 1", getuid());
    g_autofree char *gid = g_strdup_printf("0 %u 1", getgid());

    return unshare(CLONE_NEWUSER | CLONE_NEWNS) == 0 && write_file("/proc/self/setgroups", "deny") &&
           write_file("/proc/self/uid_map", uid) && write_file("/proc/self/gid_map", gid);
}

/* Before any thread is started.  NULL, or why there is none. */
static char *
mount_small(const char *dir)
{
    bool own = geteuid() == 0 ? unshare(CLONE_NEWNS) == 0 : become_root_of_a_namespace();

    if (!own)
        return g_strdup_printf("no mount namespace of our own: %s", g_strerror(errno));
    if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
        mount("coop-test", dir, "tmpfs", MS_NOSUID | MS_NODEV, SIZE) < 0)
        return g_strdup_printf("a small tmpfs cannot be mounted: %s", g_strerror(errno));
    return NULL;
}

typedef struct Disk {
    StoreBench *bench;
    char *why_not;
    char *ballast;
} Disk;

static void
fill_disk(const Disk *d, off_t left)
{
    static const char block[4096];
    autofd fd = open(d->ballast, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    struct stat st;

    g_assert_cmpint(fd, >=, 0);
    while (write(fd, block, sizeof block) == sizeof block)
        continue;
    g_assert_cmpint(errno, ==, ENOSPC);
    g_assert_cmpint(fstat(fd, &st), ==, 0);
    g_assert_cmpint(ftruncate(fd, st.st_size - left), ==, 0);
}

static void
free_disk(const Disk *d)
{
    g_assert_cmpint(g_unlink(d->ballast), ==, 0);
}

static bool
append_many(DbTx *tx, void *data, GError **error)
{
    for (int i = 0; i < 20; i++) {
        if (!event_append(tx, &event, data, error))
            return false;
    }
    return true;
}

/* Writes until there is no room; what was acknowledged last. */
static gint64
write_until_full(StoreBench *b, gint64 acknowledged)
{
    for (;;) {
        g_autoptr(GError) error = NULL;
        gint64 seq;

        if (!store_write(b->db, append_many, &seq, &error)) {
            g_test_message("after %" G_GINT64_FORMAT ": %s", acknowledged, error->message);
            g_assert_cmpstr(err_kind_name(err_kind(error)), ==, "full");
            return acknowledged;
        }
        g_assert_cmpint(seq, ==, acknowledged + 20);
        acknowledged = seq;
    }
}

static void
check_content(StoreBench *b, gint64 acknowledged)
{
    gint64 events;

    g_assert_cmpint(event_log_last_seq(b->log), ==, acknowledged);
    g_assert_cmpint(store_read_int(b->db, "SELECT count(*) FROM events"), ==, acknowledged);
    g_assert_cmpint(store_verify(b->log, &events), ==, 0);
    g_assert_cmpint(events, ==, acknowledged);
}

static bool
skip_without_disk(const Disk *d)
{
    if (d->why_not != NULL)
        g_test_skip(d->why_not);
    return d->why_not != NULL;
}

static void
test_write(gconstpointer data)
{
    const Disk *d = data;
    StoreBench *b = d->bench;
    DbStats stats;

    if (skip_without_disk(d))
        return;
    store_bench_open(b, NULL);
    gint64 acknowledged = store_append(b->db, &event, 500);
    for (int round = 0; round < 6; round++) {
        fill_disk(d, round * 50000);
        acknowledged = write_until_full(b, acknowledged);
        g_assert_cmpint(write_until_full(b, acknowledged), ==, acknowledged); /* and again */
        db_stats(b->db, &stats);
        g_assert_true(stats.degraded);
        check_content(b, acknowledged); /* reads go on */

        free_disk(d);
        acknowledged = store_append(b->db, &event, 100);
        db_stats(b->db, &stats);
        g_assert_false(stats.degraded);
        check_content(b, acknowledged);
    }
    store_bench_close(b);
}

static void
test_stop_while_full(gconstpointer data)
{
    const Disk *d = data;
    StoreBench *b = d->bench;

    if (skip_without_disk(d))
        return;
    store_bench_open(b, NULL);
    gint64 acknowledged = store_append(b->db, &event, 100);
    fill_disk(d, 0);
    acknowledged = write_until_full(b, acknowledged);
    store_bench_close(b);
    free_disk(d);
    store_bench_open(b, NULL);
    check_content(b, acknowledged);
    store_append(b->db, &event, 1);
    check_content(b, acknowledged + 1);
    store_bench_close(b);
}

static void
test_start_while_full(gconstpointer data)
{
    const Disk *d = data;
    StoreBench *b = d->bench;
    g_autofree char *fresh = store_bench_file(b, "fresh.db");
    const char *const paths[] = {b->path, fresh};

    if (skip_without_disk(d))
        return;
    store_bench_open(b, NULL);
    store_bench_close(b); /* all in one file */
    fill_disk(d, 0);
    for (size_t i = 0; i < G_N_ELEMENTS(paths); i++) {
        const DbSpec spec = {.path = paths[i]};
        g_autoptr(GError) error = NULL;

        g_assert_null(db_open(&spec, &error));
        g_test_message("%s", error->message);
        g_assert_cmpstr(err_kind_name(err_kind(error)), ==, "full");
    }
    free_disk(d);
    store_bench_open(b, NULL);
    store_bench_close(b);
}

static void
test_backup_and_restore(gconstpointer data)
{
    const Disk *d = data;
    StoreBench *b = d->bench;
    g_autofree char *copy = store_bench_file(b, "copy.db");
    g_autofree char *part = store_bench_file(b, "copy.db.part");
    g_autoptr(GError) on_backup = NULL, on_restore = NULL;

    if (skip_without_disk(d))
        return;
    store_bench_open(b, NULL);
    gint64 acknowledged = store_append(b->db, &event, 100);
    fill_disk(d, 0);
    g_assert_false(store_backup(b->db, copy, &on_backup));
    g_assert_cmpstr(err_kind_name(err_kind(on_backup)), ==, "full");
    g_assert_false(g_file_test(copy, G_FILE_TEST_EXISTS) || g_file_test(part, G_FILE_TEST_EXISTS));

    free_disk(d);
    g_assert_true(store_backup(b->db, copy, NULL));
    acknowledged = store_append(b->db, &event, 10);
    fill_disk(d, 0);
    g_assert_false(store_restore(b->db, copy, &on_restore));
    g_assert_cmpstr(err_kind_name(err_kind(on_restore)), ==, "full");
    check_content(b, acknowledged);
    free_disk(d);
    g_assert_true(store_restore(b->db, copy, NULL));
    check_content(b, acknowledged - 10);
    g_assert_cmpint(store_append(b->db, &event, 1), ==, acknowledged - 9);
    store_bench_close(b);
    g_unlink(copy);
}

int
main(int argc, char **argv)
{
    static const struct {
        const char *name;
        GTestDataFunc run;
    } cases[] = {
        {"/store/full/write", test_write},
        {"/store/full/stop", test_stop_while_full},
        {"/store/full/start", test_start_while_full},
        {"/store/full/backup", test_backup_and_restore},
    };

    g_test_init(&argc, &argv, NULL);
    Disk disk = {.bench = store_bench_new()};
    disk.ballast = store_bench_file(disk.bench, "ballast");
    disk.why_not = mount_small(disk.bench->dir);
    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++)
        g_test_add_data_func(cases[i].name, &disk, cases[i].run);
    int status = g_test_run();
    (void)umount2(disk.bench->dir, MNT_DETACH); /* what was never mounted need not go */
    store_bench_free(disk.bench);
    g_free(disk.ballast);
    g_free(disk.why_not);
    return status;
}

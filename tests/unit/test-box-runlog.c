/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <glib/gstdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "box/runlog.h"

enum { MIB = 1 << 20, BIG = 40 * MIB };

typedef struct Place {
    char *folder;
    int fd;
} Place;

static void
place_init(Place *p)
{
    p->folder = g_dir_make_tmp("runlog-XXXXXX", NULL);
    p->fd = open(p->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    g_assert_cmpint(p->fd, >=, 0);
}

static void
place_clear(Place *p)
{
    (void)unlinkat(p->fd, "1.out", 0);
    close(p->fd);
    g_assert_cmpint(g_rmdir(p->folder), ==, 0);
    g_free(p->folder);
}

static RunLog *
open_log(Place *p)
{
    g_autoptr(GError) error = NULL;
    RunLog *log = run_log_open(p->fd, "1.out", &error);

    g_assert_no_error(error);
    return log;
}

/* The byte that belongs at an offset. */
static guint8
byte_at(guint64 offset)
{
    return (guint8)((offset * 2654435761u) >> 13 ^ offset >> 24);
}

static void
append(RunLog *log, guint64 offset, size_t n)
{
    g_autofree guint8 *bytes = g_malloc(n);
    g_autoptr(GError) error = NULL;

    for (size_t i = 0; i < n; i++)
        bytes[i] = byte_at(offset + i);
    g_assert_true(run_log_append(log, offset, bytes, n, &error));
    g_assert_no_error(error);
}

static void
gap(RunLog *log, guint64 offset, guint64 n)
{
    g_assert_true(run_log_gap(log, offset, n, NULL));
}

typedef struct Seen {
    guint64 data, gaps, first_gap_at, first_gap;
    guint n_gaps;
} Seen;

/* Reads it all in pieces of `size`; every byte has to be the one of its offset. */
static Seen
read_all(RunLog *log, guint64 from, size_t size)
{
    g_autofree guint8 *bytes = g_malloc(size);
    Seen seen = {0};
    guint64 missing;

    for (;;) {
        gssize n = run_log_read(log, from, bytes, size, &missing, NULL);

        g_assert_cmpint(n, >=, 0);
        for (gssize i = 0; i < n; i++) {
            if (bytes[i] != byte_at(from + (guint64)i))
                g_error("wrong byte at %" G_GUINT64_FORMAT, from + (guint64)i);
        }
        if (n == 0 && missing == 0)
            break;
        if (missing > 0 && seen.n_gaps++ == 0) {
            seen.first_gap_at = from;
            seen.first_gap = missing;
        }
        seen.data += (guint64)n;
        seen.gaps += missing;
        from += (guint64)n + missing;
    }
    g_assert_cmpuint(from, ==, run_log_end(log));
    return seen;
}

static void
test_small(void)
{
    Place p;

    place_init(&p);
    g_autoptr(RunLog) log = open_log(&p);
    g_assert_cmpuint(run_log_end(log), ==, 0);
    g_assert_cmpuint(read_all(log, 0, 10).data, ==, 0);
    append(log, 0, 5);
    append(log, 5, 7);
    append(log, 3, 9);  /* what is there already */
    append(log, 10, 4); /* two of four */
    g_assert_cmpuint(run_log_end(log), ==, 14);
    g_assert_cmpuint(read_all(log, 0, 3).data, ==, 14);
    g_assert_cmpuint(read_all(log, 9, 100).data, ==, 5);
    g_autoptr(GError) error = NULL;
    g_assert_false(run_log_append(log, 15, "x", 1, &error));
    g_assert_cmpint(err_kind(error), ==, ERR_INVALID);
    g_assert_false(run_log_gap(log, 15, 1, NULL));
    g_assert_false(run_log_gap(log, 14, G_MAXUINT64, NULL));
    run_log_close(g_steal_pointer(&log));
    log = open_log(&p);
    g_assert_cmpuint(run_log_end(log), ==, 14);
    g_assert_cmpuint(read_all(log, 0, 64).data, ==, 14);
    place_clear(&p);
}

static void
test_ring(void)
{
    static const size_t steps[] = {1, 4095, 64 * 1024, 100000, 3 * MIB + 1};
    struct stat st;

    for (guint i = 0; i < G_N_ELEMENTS(steps); i++) {
        Place p;
        guint64 end = 0;

        place_init(&p);
        g_autoptr(RunLog) log = open_log(&p);
        append(log, 0, RUN_LOG_HEAD - 3);
        for (end = RUN_LOG_HEAD - 3; end < BIG && (steps[i] > 100 || end < RUN_LOG_HEAD + 100);
             end += steps[i])
            append(log, end, steps[i]);
        Seen seen = read_all(log, 0, 30000);
        guint64 kept = end <= RUN_LOG_HEAD + RUN_LOG_TAIL ? end : RUN_LOG_HEAD + RUN_LOG_TAIL;
        g_assert_cmpuint(seen.data, ==, kept);
        g_assert_cmpuint(seen.gaps, ==, end - kept);
        if (seen.n_gaps > 0)
            g_assert_cmpuint(seen.first_gap_at, ==, RUN_LOG_HEAD);
        g_assert_cmpuint(seen.n_gaps, <=, 1);
        g_assert_cmpint(fstatat(p.fd, "1.out", &st, 0), ==, 0);
        g_assert_cmpint(st.st_size, <=, 4096 + RUN_LOG_HEAD + RUN_LOG_TAIL + 64 * 1024);
        place_clear(&p);
    }
}

static void
test_gaps(void)
{
    Place p;

    place_init(&p);
    g_autoptr(RunLog) log = open_log(&p);
    gap(log, 0, 100);
    append(log, 100, 50);
    gap(log, 150, 10);
    gap(log, 155, 15); /* five of them are known */
    append(log, 170, 30);
    Seen seen = read_all(log, 0, 1000);
    g_assert_cmpuint(seen.data, ==, 80);
    g_assert_cmpuint(seen.gaps, ==, 120);
    g_assert_cmpuint(seen.n_gaps, ==, 2);
    g_assert_cmpuint(read_all(log, 50, 1000).first_gap, ==, 50);
    run_log_close(g_steal_pointer(&log));
    log = open_log(&p);
    g_assert_cmpuint(read_all(log, 0, 7).gaps, ==, 120);
    /* A gap over both ends of the ring, as large as a disk. */
    gap(log, 200, (guint64)1 << 50);
    append(log, ((guint64)1 << 50) + 200, 1000);
    seen = read_all(log, 200, 1000);
    g_assert_cmpuint(seen.data, ==, 1000);
    place_clear(&p);
}

static void
test_many_gaps(void)
{
    Place p;
    guint64 end = 0;

    place_init(&p);
    g_autoptr(RunLog) log = open_log(&p);
    for (guint i = 0; i < 3 * RUN_LOG_GAPS_MAX; i++) {
        append(log, end, 10);
        gap(log, end + 10, 10);
        end += 20;
    }
    append(log, end, 7);
    Seen seen = read_all(log, 0, 1000);
    g_assert_cmpuint(seen.n_gaps, ==, RUN_LOG_GAPS_MAX);
    /* From the last gap that fits on everything is given up but what follows the last of all. */
    g_assert_cmpuint(seen.data, ==, 10 * RUN_LOG_GAPS_MAX + 7);
    place_clear(&p);
    /* In the ring the old ones make room. */
    place_init(&p);
    run_log_close(g_steal_pointer(&log));
    log = open_log(&p);
    append(log, 0, RUN_LOG_HEAD);
    end = RUN_LOG_HEAD;
    for (guint i = 0; i < 3 * RUN_LOG_GAPS_MAX; i++) {
        append(log, end, 200 * 1024);
        gap(log, end + 200 * 1024, 10);
        end += 200 * 1024 + 10;
    }
    seen = read_all(log, 0, 1000);
    g_assert_cmpuint(seen.data, >, RUN_LOG_HEAD + RUN_LOG_TAIL - 60 * 10);
    place_clear(&p);
}

#ifdef COOP_FAILPOINTS
/* The program that is killed: the failpoint is read from its environment. */
static int
write_until_killed(const char *folder)
{
    Place p = {.fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
    g_autoptr(RunLog) log = open_log(&p);

    for (guint64 end = 0; end < BIG + 10 * MIB; end += 60000)
        append(log, end, 60000);
    return 2;
}

/* Killed at each of two moments of a write; what is there is right, and goes on. */
static void
test_crash(void)
{
    static const char *const moments[] = {"runlog-written", "runlog-paged"};

    for (guint i = 0; i < 2; i++) {
        for (guint nth = 1; nth < 700; nth += 97) {
            Place p;
            g_autofree char *at = g_strdup_printf("%s:%u", moments[i], nth);
            int status;

            place_init(&p);
            pid_t pid = fork();
            if (pid == 0) {
                g_setenv("COOP_FAIL_AT", at, TRUE);
                execl("/proc/self/exe", "test", "--write", p.folder, NULL);
                _exit(1);
            }
            g_assert_cmpint(waitpid(pid, &status, 0), ==, pid);
            g_assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
            g_autoptr(RunLog) log = open_log(&p);
            guint64 end = run_log_end(log);
            g_assert_cmpuint(end, ==, (guint64)60000 * (i == 0 ? nth - 1 : nth));
            g_assert_cmpuint(read_all(log, 0, 60001).data, ==, MIN(end, RUN_LOG_HEAD + RUN_LOG_TAIL));
            append(log, end > 100 ? end - 100 : 0, 5 * MIB);
            (void)read_all(log, 0, 60001);
            place_clear(&p);
        }
    }
}
#endif

static void
test_foreign(void)
{
    static const char *const texts[] = {"no log at all", "cooplog"};

    for (guint i = 0; i < G_N_ELEMENTS(texts); i++) {
        Place p;
        guint8 page[4096] = {0};
        g_autoptr(GError) error = NULL;

        place_init(&p);
        memcpy(page, texts[i], strlen(texts[i]));
        memset(page + 12, 0xff, 4000);
        int fd = openat(p.fd, "1.out", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
        g_assert_cmpint(write(fd, page, sizeof page), ==, sizeof page);
        close(fd);
        g_assert_null(run_log_open(p.fd, "1.out", &error));
        g_assert_cmpint(err_kind(error), ==, ERR_INTERNAL);
        place_clear(&p);
    }
}

/* A file that was cut under us tells of a gap, not of an end. */
static void
test_cut(void)
{
    Place p;

    place_init(&p);
    g_autoptr(RunLog) log = open_log(&p);
    append(log, 0, 10000);
    g_autofree char *path = g_build_filename(p.folder, "1.out", NULL);
    g_assert_cmpint(truncate(path, 4096 + 5000), ==, 0);
    Seen seen = read_all(log, 0, 1000);
    g_assert_cmpuint(seen.data, ==, 5000);
    g_assert_cmpuint(seen.gaps, ==, 5000);
    place_clear(&p);
}

int
main(int argc, char **argv)
{
#ifdef COOP_FAILPOINTS
    if (argc == 3 && g_str_equal(argv[1], "--write"))
        return write_until_killed(argv[2]);
#endif
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/box/runlog/small", test_small);
    g_test_add_func("/box/runlog/ring", test_ring);
    g_test_add_func("/box/runlog/gaps", test_gaps);
    g_test_add_func("/box/runlog/many-gaps", test_many_gaps);
#ifdef COOP_FAILPOINTS
    g_test_add_func("/box/runlog/crash", test_crash);
#endif
    g_test_add_func("/box/runlog/foreign", test_foreign);
    g_test_add_func("/box/runlog/cut", test_cut);
    return g_test_run();
}

/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <glib.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/exitcode.h"
#include "base/id.h"
#include "base/io.h"
#include "base/version.h"

static void
test_err_kinds(void)
{
    static const struct {
        int e;
        ErrKind kind;
    } cases[] = {
        {ENOENT, ERR_NOT_FOUND},
        {ENOTDIR, ERR_NOT_FOUND},
        {EACCES, ERR_DENIED},
        {EPERM, ERR_DENIED},
        {EROFS, ERR_DENIED},
        {EEXIST, ERR_CONFLICT},
        {EBUSY, ERR_CONFLICT},
        {EADDRINUSE, ERR_CONFLICT},
        {ENOTEMPTY, ERR_CONFLICT},
        {ETXTBSY, ERR_CONFLICT},
        {EMFILE, ERR_LIMIT},
        {ENFILE, ERR_LIMIT},
        {EAGAIN, ERR_LIMIT},
        {EFBIG, ERR_LIMIT},
        {ENOSPC, ERR_FULL},
        {EDQUOT, ERR_FULL},
        {ETIMEDOUT, ERR_TIMEOUT},
        {ENOSYS, ERR_UNAVAILABLE},
        {EOPNOTSUPP, ERR_UNAVAILABLE},
        {ECONNREFUSED, ERR_UNAVAILABLE},
        {ELOOP, ERR_INVALID},
        {ENAMETOOLONG, ERR_INVALID},
        {EISDIR, ERR_INVALID},
        {EINVAL, ERR_INTERNAL},
        {EIO, ERR_INTERNAL},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(GError) error = NULL;
        g_autofree char *want = g_strdup_printf("do 'x': %s", g_strerror(cases[i].e));

        errno = cases[i].e;
        g_assert_false(err_errno(&error, "do '%s'", "x"));
        g_test_message("%s", want);
        g_assert_error(error, ERR_DOMAIN, (int)cases[i].kind);
        g_assert_cmpstr(error->message, ==, want);
        g_assert_cmpint(err_kind(error), ==, cases[i].kind);
    }
}

static void
test_err_domain(void)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(GError) foreign = g_error_new(G_FILE_ERROR, G_FILE_ERROR_NOENT, "x");

    g_assert_false(err_set(NULL, ERR_DENIED, "nobody listens"));
    g_assert_false(err_set(&error, ERR_DENIED, "%d%%", 100));
    g_assert_error(error, ERR_DOMAIN, ERR_DENIED);
    g_assert_cmpstr(error->message, ==, "100%");
    g_assert_cmpstr(g_quark_to_string(ERR_DOMAIN), ==, "coop_error");
    g_assert_cmpint(err_kind(foreign), ==, ERR_INTERNAL);
    for (ErrKind a = 0; a < ERR_KIND_MAX; a++) {
        g_assert_nonnull(err_kind_name(a));
        for (ErrKind b = 0; b < a; b++)
            g_assert_cmpstr(err_kind_name(a), !=, err_kind_name(b));
    }
}

static void
test_exit_codes(void)
{
    for (ErrKind kind = 0; kind < ERR_KIND_MAX; kind++) {
        g_autoptr(GError) error = NULL;

        err_set(&error, kind, "x");
        g_assert_cmpint(exit_code_of(error), !=, EXIT_CODE_OK);
        g_assert_cmpint(exit_code_of(error) == EXIT_CODE_TIMEOUT, ==, kind == ERR_TIMEOUT);
        g_assert_cmpint(exit_code_of(error) == EXIT_CODE_NOT_FOUND, ==, kind == ERR_NOT_FOUND);
    }
}

static void
test_version(void)
{
    g_assert_true(g_ascii_isdigit(version_number()[0]));
    g_assert_true(version_commit() == NULL || version_commit()[0] != '\0');
}

static void
test_clock(void)
{
    static const struct {
        gint64 at;
        const char *text;
    } cases[] = {
        {0, "1970-01-01T00:00:00.000000Z"},
        {1, "1970-01-01T00:00:00.000001Z"},
        {1709164799999999, "2024-02-28T23:59:59.999999Z"},
        {1709164800000000, "2024-02-29T00:00:00.000000Z"},
        {-1, "1969-12-31T23:59:59.999999Z"},
        {-1000000, "1969-12-31T23:59:59.000000Z"},
        {-2208988800000000, "1900-01-01T00:00:00.000000Z"},
        {253402300799999999, "9999-12-31T23:59:59.999999Z"},
        /* Beyond what the form can hold: the last and the first it can. */
        {253402300800000000, "9999-12-31T23:59:59.999999Z"},
        {G_MAXINT64, "9999-12-31T23:59:59.999999Z"},
        {G_MININT64, "0001-01-01T00:00:00.000000Z"},
    };
    char text[CLOCK_ISO_LEN + 1];

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        clock_format_iso(cases[i].at, text);
        g_assert_cmpstr(text, ==, cases[i].text);
        g_assert_cmpuint(strlen(text), ==, CLOCK_ISO_LEN);
    }
    gint64 mono = clock_mono_us();
    g_assert_cmpint(ABS(clock_mono_us() - g_get_monotonic_time()), <, 60 * G_USEC_PER_SEC);
    g_assert_cmpint(ABS(clock_wall_us() - g_get_real_time()), <, 60 * G_USEC_PER_SEC);
    g_assert_cmpint(clock_mono_us(), >=, mono);
}

static void
test_id_shapes(void)
{
    static const struct {
        const char *text;
        bool is_uuid, is_box;
    } cases[] = {
        {"", false, false},
        {"01234567-89ab-4cde-8f01-23456789abcd", true, false},
        {"01234567-89ab-4cde-8f01-23456789abc", false, false},
        {"01234567-89ab-4cde-8f01-23456789abcde", false, false},
        {"01234567-89AB-4cde-8f01-23456789abcd", false, false},
        {"0123456789ab-4cde-8f01-23456789abcd-", false, false},
        {"01234567-89ab-4cde-8f01-23456789abcg", false, false},
        {"abcdefghij0123456789", false, true},
        {"abcdefghij012345678", false, false},
        {"abcdefghij01234567890", false, false},
        {"abcdefghij012345678Z", false, false},
        {"abcdefghij01234567/9", false, false},
    };
    char hex[2 * 40 + 2] = "";
    char uuid[ID_UUID_LEN + 1];

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_test_message("'%s'", cases[i].text);
        g_assert_true(id_is_uuid(cases[i].text) == cases[i].is_uuid);
        g_assert_true(id_is_box(cases[i].text) == cases[i].is_box);
    }
    hex[2 * 40 + 1] = '!';
    id_random_hex(hex, 40);
    g_assert_cmpuint(strspn(hex, "0123456789abcdef"), ==, 80);
    g_assert_cmpint(hex[80], ==, '\0');
    g_assert_cmpint(hex[81], ==, '!');
    id_random_hex(hex, 0);
    g_assert_cmpstr(hex, ==, "");
    for (guint i = 0; i < 100; i++) {
        id_new_uuid(uuid);
        g_assert_true(id_is_uuid(uuid));
        g_assert_cmpint(uuid[14], ==, '4');
        g_assert_nonnull(strchr("89ab", uuid[19]));
    }
}

/* 100,000 letters in 36 bins: a plain modulo would give about 230, chance hardly ever 105. */
static void
test_id_spread(void)
{
    enum { IDS = 5000, LETTERS = 36 };
    g_autoptr(GHashTable) seen = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz0123456789";
    double counts[LETTERS] = {0}, want = (double)IDS * ID_BOX_LEN / LETTERS, chi2 = 0;

    for (guint i = 0; i < IDS; i++) {
        char id[ID_BOX_LEN + 1];

        id_new_box(id);
        g_assert_true(id_is_box(id));
        g_assert_true(g_hash_table_add(seen, g_strdup(id)));
        for (const char *p = id; *p != '\0'; p++)
            counts[strchr(letters, *p) - letters]++;
    }
    for (guint i = 0; i < LETTERS; i++)
        chi2 += (counts[i] - want) * (counts[i] - want) / want;
    g_test_message("chi-square %.1f", chi2);
    g_assert_cmpfloat(chi2, <, 105);
}

typedef struct Mover {
    int fd;
    char *bytes;
    size_t n;
    bool writes;
    gint tid;
    bool ok;
} Mover;

static gpointer
run_mover(gpointer data)
{
    Mover *m = data;

    g_atomic_int_set(&m->tid, gettid());
    m->ok = m->writes ? io_write_all(m->fd, m->bytes, m->n)
                      : io_read_full(m->fd, m->bytes, m->n) == (ssize_t)m->n;
    return NULL;
}

static gint n_signals;

static void
on_signal(int sig)
{
    g_atomic_int_inc(&n_signals);
}

static bool
is_asleep(gint tid)
{
    g_autofree char *path = g_strdup_printf("/proc/self/task/%d/stat", tid);
    g_autofree char *text = NULL;

    g_assert_true(g_file_get_contents(path, &text, NULL, NULL));
    return strncmp(strrchr(text, ')'), ") S", 3) == 0;
}

/* Interrupts the thread while it sleeps in the kernel. */
static void
interrupt(Mover *m)
{
    gint before = g_atomic_int_get(&n_signals);

    while (g_atomic_int_get(&m->tid) == 0 || !is_asleep(g_atomic_int_get(&m->tid)))
        g_thread_yield();
    g_assert_no_errno(tgkill(getpid(), m->tid, SIGUSR1));
    while (g_atomic_int_get(&n_signals) == before)
        g_thread_yield();
}

static void
check_io(bool thread_writes)
{
    enum { LENGTH = 1 << 20 };
    g_autofree char *sent = g_malloc(LENGTH);
    g_autofree char *got = g_malloc0(LENGTH);
    int fds[2];

    for (size_t i = 0; i < LENGTH; i++)
        sent[i] = (char)(i % 251);
    g_assert_no_errno(pipe(fds));
    Mover m = {.fd = fds[thread_writes ? 1 : 0],
               .bytes = thread_writes ? sent : got,
               .n = LENGTH,
               .writes = thread_writes};
    GThread *thread = g_thread_new("mover", run_mover, &m);
    interrupt(&m);
    interrupt(&m);
    if (thread_writes)
        g_assert_cmpint(io_read_full(fds[0], got, LENGTH), ==, LENGTH);
    else
        g_assert_true(io_write_all(fds[1], sent, LENGTH));
    g_thread_join(thread);
    g_assert_true(m.ok);
    g_assert_cmpmem(got, LENGTH, sent, LENGTH);
    close(fds[0]);
    close(fds[1]);
}

static void
test_io(void)
{
    struct sigaction act = {.sa_handler = on_signal}; /* no SA_RESTART */

    g_assert_no_errno(sigaction(SIGUSR1, &act, NULL));
    check_io(true);
    check_io(false);
}

static void
test_io_ends(void)
{
    char got[8];
    int fds[2];

    g_assert_no_errno(pipe(fds));
    g_assert_true(io_write_all(fds[1], "abc", 3));
    g_assert_true(io_write_all(fds[1], NULL, 0));
    close(fds[1]);
    g_assert_cmpint(io_read_full(fds[0], got, sizeof got), ==, 3);
    g_assert_cmpint(io_read_full(fds[0], got, sizeof got), ==, 0);
    g_assert_false(io_write_all(fds[0], "x", 1));
    g_assert_cmpint(errno, ==, EBADF);
    close(fds[0]);
    g_assert_cmpint(io_read_full(fds[0], got, sizeof got), ==, -1);
    g_assert_cmpint(errno, ==, EBADF);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/err/kinds", test_err_kinds);
    g_test_add_func("/err/domain", test_err_domain);
    g_test_add_func("/exit-codes", test_exit_codes);
    g_test_add_func("/version", test_version);
    g_test_add_func("/clock", test_clock);
    g_test_add_func("/id/shapes", test_id_shapes);
    g_test_add_func("/id/spread", test_id_spread);
    g_test_add_func("/io/interrupted", test_io);
    g_test_add_func("/io/ends", test_io_ends);
    return g_test_run();
}

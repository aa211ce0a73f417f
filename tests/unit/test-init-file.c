/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <glib.h>
#include <glib/gstdio.h>
#include <unistd.h>

#include "init/builtin.h"
#include "init/init.h"

static void
test_numbers(void)
{
    static const struct {
        const char *text;
        unsigned base;
        uint64_t max;
        bool good;
        uint64_t number;
    } cases[] = {
        {"0", 10, 9, true, 0},
        {"9", 10, 9, true, 9},
        {"10", 10, 9, false, 0},
        {"", 10, 9, false, 0},
        {"-1", 10, 9, false, 0},
        {"+1", 10, 9, false, 0},
        {" 1", 10, 9, false, 0},
        {"1 ", 10, 9, false, 0},
        {"8", 8, 07777, false, 0},
        {"7777", 8, 07777, true, 4095},
        {"10000", 8, 07777, false, 0},
        {"18446744073709551615", 10, UINT64_MAX, true, UINT64_MAX},
        {"18446744073709551616", 10, UINT64_MAX, false, 0},
        {"99999999999999999999999", 10, UINT64_MAX, false, 0},
        {"5", 10, 3, false, 0},
    };

    for (guint i = 0; i < G_N_ELEMENTS(cases); i++) {
        uint64_t number = 0;

        g_test_message("'%s'", cases[i].text);
        g_assert_cmpint(number_parse(cases[i].text, cases[i].base, cases[i].max, &number), ==, cases[i].good);
        g_assert_cmpuint(number, ==, cases[i].number);
    }
}

/* What a folder may have become by the time it is opened. */
static void
test_open_below(void)
{
    g_autofree char *folder = g_dir_make_tmp("coop-init-XXXXXX", NULL);
    int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    g_assert_cmpint(mkdirat(fd, "dir", 0755), ==, 0);
    g_assert_cmpint(symlinkat("dir", fd, "link"), ==, 0);
    g_assert_cmpint(symlinkat("/", fd, "root"), ==, 0);
    g_assert_cmpint(mkfifoat(fd, "fifo", 0600), ==, 0);
    static const char *const refused[] = {"link", "root", "fifo", "..", "/", "no", "link/dir"};
    for (guint i = 0; i < G_N_ELEMENTS(refused); i++)
        g_assert_cmpint(folder_open_below(fd, refused[i]), ==, -1);
    int below = folder_open_below(fd, "dir");
    g_assert_cmpint(below, >=, 0);
    close(below);
    g_assert_cmpint(unlinkat(fd, "dir", AT_REMOVEDIR), ==, 0);
    for (guint i = 0; i < 3; i++)
        g_assert_cmpint(unlinkat(fd, refused[i], 0), ==, 0);
    close(fd);
    g_assert_cmpint(g_rmdir(folder), ==, 0);
}

static void
test_only_pid_1(void)
{
    g_assert_cmpint(init_run(false), ==, 1);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/init/file/numbers", test_numbers);
    g_test_add_func("/init/file/open-below", test_open_below);
    g_test_add_func("/init/only-pid-1", test_only_pid_1);
    return g_test_run();
}

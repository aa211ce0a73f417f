/* SPDX-License-Identifier: Apache-2.0 */
/* What the machine of this suite must offer, or the tests that rely on it show nothing. */
#include <glib.h>
#include <linux/magic.h>
#include <stdbool.h>
#include <sys/utsname.h>
#include <sys/vfs.h>
#include <unistd.h>

static void
test_kernel_release(gconstpointer series)
{
    g_autofree char *prefix = g_strconcat(series, ".", NULL);
    struct utsname u;

    g_assert_no_errno(uname(&u));
    g_test_message("kernel %s", u.release);
    g_assert_true(g_str_has_prefix(u.release, prefix));
}

static void
test_cgroup2_with_controllers(void)
{
    static const char *const wanted[] = {"cpu", "memory", "pids"};
    g_autofree char *text = NULL;
    struct statfs s;

    g_assert_no_errno(statfs("/sys/fs/cgroup", &s));
    g_assert_cmphex((guint64)s.f_type, ==, CGROUP2_SUPER_MAGIC);
    g_assert_true(g_file_get_contents("/sys/fs/cgroup/cgroup.controllers", &text, NULL, NULL));
    g_auto(GStrv) have = g_strsplit(g_strstrip(text), " ", -1);
    for (size_t i = 0; i < G_N_ELEMENTS(wanted); i++)
        g_assert_true(g_strv_contains((const char *const *)have, wanted[i]));
}

static void
test_module_is_loaded(void)
{
    g_autofree char *text = NULL;

    g_assert_true(g_file_get_contents("/proc/filesystems", &text, NULL, NULL));
    g_assert_nonnull(g_strstr_len(text, -1, "\toverlay\n"));
}

static void
test_runs_as_root(void)
{
    g_assert_cmpuint(geteuid(), ==, 0);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_assert_cmpint(argc, ==, 2);
    g_test_add_data_func("/vm/kernel-release", argv[1], test_kernel_release);
    g_test_add_func("/vm/cgroup2", test_cgroup2_with_controllers);
    g_test_add_func("/vm/module", test_module_is_loaded);
    g_test_add_func("/vm/root", test_runs_as_root);
    return g_test_run();
}

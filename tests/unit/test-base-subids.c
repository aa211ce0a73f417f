/* SPDX-License-Identifier: Apache-2.0 */
#include <glib.h>

#include "base/subids.h"

enum { WANT = 65536 };

static void
test_find(void)
{
    static const struct {
        const char *text;
        guint32 first; /* 0: none */
    } cases[] = {
        {"", 0},
        {"ada:100000:65536\n", 100000},
        {"1234:100000:65536", 100000},
        {"ada:100000:65535\n", 0},
        {"ada:100000:1\nada:300000:70000\n", 300000},
        {"bob:100000:65536\n", 0},
        {"ada:0:65536\n", 0},
        {"ada:x:65536\nada:100000\n", 0},
        {"ada:100000:65536:1\n", 0},
        {"bob:1:65536\nada:100000:65536\n", 100000},
        {"adam:100000:65536\n", 0},
        {"ada:-5:65536\n", 0},
        {"ada:x:y\nada\n\n", 0},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        guint32 first = 0;

        g_test_message("%s", cases[i].text);
        g_assert_true(subids_find(cases[i].text, "ada", 1234, WANT, &first) == (cases[i].first != 0));
        g_assert_cmpuint(first, ==, cases[i].first);
    }
}

static void
test_free(void)
{
    static const struct {
        const char *users, *groups;
        guint32 first; /* 0: none */
    } cases[] = {
        {"", "", 100000},
        {"ada:100000:65536\n", "", 165536},
        {"", "ada:100000:65536\n", 165536},
        {"ada:100000:65536\n", "bob:165536:65536\n", 231072},
        {"ada:165535:10\n", "", 165545},
        {"ada:165536:65536\n", "", 100000},
        {"ada:99999:1\n", "", 100000},
        {"ada:99999:2\n", "", 100001},
        {"ada:200000:10\nbob:100000:300000\n", "", 400000},
        {"bob:165536:1\nada:100000:65536\n", "", 165537},
        {"ada:100000:1\nbob:120000:1\n", "cy:140000:1\n", 140001},
        {"ada:100000:junk\n# a remark\n", "", 100000},
        /* The end of the last one is the first of the keeper's. */
        {"ada:100000:1878882656\n", "", 1878982656},
        {"ada:100000:1878882657\n", "", 0},
        {"ada:0:4294967295\n", "", 0},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        const char *const texts[] = {cases[i].users, cases[i].groups};
        guint32 first = 0;

        g_test_message("%s %s", cases[i].users, cases[i].groups);
        g_assert_true(subids_find_free(texts, 2, WANT, &first) == (cases[i].first != 0));
        if (cases[i].first != 0)
            g_assert_cmpuint(first, ==, cases[i].first);
    }
}

static void
test_mapped(void)
{
    static const struct {
        const char *map;
        guint32 first; /* 0: none */
    } cases[] = {
        {"", 0},
        {"0 1000 1\n", 0},
        {"0 1000 1\n1 100000 65536\n", 0},
        {"0 100000 131071\n", 0},
        {"         0     100000     131072\n", 65536},
        {"0 1000 1\n1 100000 131071\n", 65536},
        {"0 1000 1\n1 100000 65536\n200000 300000 65536\n", 200000},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        guint32 first = 0;

        g_test_message("%s", cases[i].map);
        g_assert_true(subids_find_mapped(cases[i].map, WANT, &first) == (cases[i].first != 0));
        g_assert_cmpuint(first, ==, cases[i].first);
        g_assert_false(subids_map_is_host(cases[i].map));
    }
    g_assert_true(subids_map_is_host("         0          0 4294967295\n"));
}

static void
test_fix(void)
{
    g_autofree char *some = subids_dup_fix("ada:100000:65536\n", NULL, "coop");
    g_autofree char *none = subids_dup_fix("ada:0:4294967295\n", "", "coop");

    g_assert_cmpstr(some, ==, "usermod --add-subuids 165536-231071 --add-subgids 165536-231071 coop");
    g_assert_true(g_str_has_prefix(none, "take 65536 ids below"));
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/subids/find", test_find);
    g_test_add_func("/subids/free", test_free);
    g_test_add_func("/subids/mapped", test_mapped);
    g_test_add_func("/subids/fix", test_fix);
    return g_test_run();
}

/* SPDX-License-Identifier: Apache-2.0 */
#include <glib.h>
#include <string.h>

#include "init/passwd.h"

static void
test_parse(void)
{
    static const struct {
        const char *text;
        bool good;
        uid_t uid;
        gid_t gid;
        bool has_uid, has_gid;
    } cases[] = {
        {"", true, 1000, 0, true, false},
        {"0", true, 0, 0, true, false},
        {"65535", true, 65535, 0, true, false},
        {"65536", false},
        {"4294967296", false},
        {"12:34", true, 12, 34, true, true},
        {"12:", false},
        {":12", false},
        {"12:x", false},
        {"12:-1", false},
        {"1x", false},
        {"-1", false},
        {"-user", false},
        {"user", true, 0, 0, false, false},
        {"user:1", false},
        {"a123456789012345678901234567890123", false},
    };

    for (guint i = 0; i < G_N_ELEMENTS(cases); i++) {
        User user;
        bool good = user_parse(cases[i].text, &user);

        g_test_message("'%s'", cases[i].text);
        g_assert_cmpint(good, ==, cases[i].good);
        if (!good)
            continue;
        g_assert_cmpint(user.has_uid, ==, cases[i].has_uid);
        g_assert_cmpint(user.has_gid, ==, cases[i].has_gid);
        g_assert_cmpuint(user.uid, ==, cases[i].uid);
        g_assert_cmpuint(user.gid, ==, cases[i].gid);
    }
}

static bool
take(const char *who, const char *line, User *ret_user)
{
    g_assert_true(user_parse(who, ret_user));
    return passwd_take_line(line, strlen(line), ret_user);
}

static void
test_passwd(void)
{
    static const char *const bad[] = {
        "",
        "user",
        "user:x:1000:1000::/home",
        "user:x:1000:1000::/home:/bin/sh:more",
        "user:x:-1:1000::/home:/bin/sh",
        "user:x:65536:1000::/home:/bin/sh",
        "user:x::1000::/home:/bin/sh",
        "user:x:1000:99999999999::/home:/bin/sh",
        "User:x:1000:1000::/home:/bin/sh",
        "users:x:1000:1000::/home:/bin/sh",
        "use:x:1000:1000::/home:/bin/sh",
    };
    User user;

    for (guint i = 0; i < G_N_ELEMENTS(bad); i++)
        g_assert_false(take("user", bad[i], &user));
    g_assert_true(take("user", "user:x:1001:1002:A B,,:/home/user:/bin/bash", &user));
    g_assert_cmpuint(user.uid, ==, 1001);
    g_assert_cmpuint(user.gid, ==, 1002);
    g_assert_cmpstr(user.home, ==, "/home/user");
    g_assert_cmpstr(user.shell, ==, "/bin/bash");
    g_assert_true(take("1001:7", "user:x:1001:1002:::", &user));
    g_assert_cmpstr(user.name, ==, "user");
    g_assert_cmpuint(user.gid, ==, 7);
    g_assert_false(take("7", "7:x:8:8:::", &user));
    g_autofree char *home = g_strnfill(PASSWD_PATH_MAX + 1, 'h');
    g_autofree char *line = g_strdup_printf("user:x:1:1::%s:", home);
    g_assert_false(take("user", line, &user));
}

static void
test_group(void)
{
    static const char *const lines[] = {
        "one:x:1:user", "two:x:2:other,user,third", "three:x:3:users", "four:x:4:", "five:x:5:,,user",
        "six:x:x:user", "seven:x:7:user:more",      "eight:x:8:us,er",
    };
    User user;

    g_assert_true(user_parse("user", &user));
    for (guint i = 0; i < G_N_ELEMENTS(lines); i++)
        group_take_line(lines[i], strlen(lines[i]), &user);
    g_assert_cmpuint(user.n_groups, ==, 3);
    g_assert_cmpuint(user.groups[0], ==, 1);
    g_assert_cmpuint(user.groups[1], ==, 2);
    g_assert_cmpuint(user.groups[2], ==, 5);
    for (guint i = 0; i < 2 * PASSWD_GROUPS_MAX; i++)
        group_take_line(lines[0], strlen(lines[0]), &user);
    g_assert_cmpuint(user.n_groups, ==, PASSWD_GROUPS_MAX);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/init/passwd/parse", test_parse);
    g_test_add_func("/init/passwd/line", test_passwd);
    g_test_add_func("/init/passwd/group", test_group);
    return g_test_run();
}

/* SPDX-License-Identifier: Apache-2.0 */
/* What is remembered of a user, with the files of this machine: nobody changes them now. */
#include <glib.h>
#include <string.h>

#include "init/user.h"

static UserMemory
learnt(void)
{
    UserMemory m;

    /* Whether it could look is the machine's affair; what it has looked at is ours. */
    (void)user_learn("1234", false, &m);
    m.user = (User){.uid = 1234, .gid = 4321};
    return m;
}

static void
test_recall(void)
{
    UserMemory m = learnt();
    User user;

    g_assert_true(m.known);
    g_assert_cmpstr(m.wanted, ==, "1234");
    g_assert_true(user_recall(&m, "1234", &user));
    g_assert_cmpuint(user.gid, ==, 4321);
    g_assert_false(user_recall(&m, "123", &user));
    g_assert_false(user_recall(&m, "", &user));
    m.known = false;
    g_assert_false(user_recall(&m, "1234", &user));
}

static void
test_changed_files(void)
{
    static const size_t fields[] = {offsetof(UserFile, device), offsetof(UserFile, inode),
                                    offsetof(UserFile, size), offsetof(UserFile, changed_s),
                                    offsetof(UserFile, changed_ns)};

    for (int file = 0; file < USER_FILES; file++) {
        for (size_t i = 0; i < G_N_ELEMENTS(fields); i++) {
            UserMemory m = learnt();
            User user;

            ((char *)&m.files[file])[fields[i]] ^= 1;
            g_assert_false(user_recall(&m, "1234", &user));
        }
    }
}

static void
test_not_kept(void)
{
    g_autofree char *longest = g_strnfill(USER_WANTED_MAX, 'x');
    g_autofree char *longer = g_strnfill(USER_WANTED_MAX + 1, 'x');
    UserMemory m;

    g_assert_false(user_learn(longest, false, &m));
    g_assert_true(m.known);
    g_assert_false(user_learn(longer, false, &m));
    g_assert_false(m.known);
}

static void
test_tame(void)
{
    User user;

    memset(&user, 'x', sizeof user);
    user_tame(&user);
    g_assert_cmpuint(user.n_groups, ==, 0);
    g_assert_cmpuint(strlen(user.name), ==, PASSWD_NAME_MAX);
    g_assert_cmpuint(strlen(user.home), ==, PASSWD_PATH_MAX);
    g_assert_cmpuint(strlen(user.shell), ==, PASSWD_PATH_MAX);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/init/user/recall", test_recall);
    g_test_add_func("/init/user/changed-files", test_changed_files);
    g_test_add_func("/init/user/not-kept", test_not_kept);
    g_test_add_func("/init/user/tame", test_tame);
    return g_test_run();
}

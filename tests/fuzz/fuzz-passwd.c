/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "fuzz.h"
#include "init/passwd.h"

/* The input is a line of passwd, a line of group and a user's name in turn. */

static void
check_user(const User *user)
{
    g_assert(user->uid <= PASSWD_ID_MAX && user->gid <= PASSWD_ID_MAX);
    g_assert(user->n_groups <= PASSWD_GROUPS_MAX);
    g_assert(memchr(user->name, '\0', sizeof user->name) != NULL);
    g_assert(memchr(user->home, '\0', sizeof user->home) != NULL);
    g_assert(memchr(user->shell, '\0', sizeof user->shell) != NULL);
}

void
fuzz_input(const guint8 *data, size_t n, size_t cut)
{
    static const char *const names[] = {"user", "1000", "", "7:8"};
    size_t whole = cut == FUZZ_EACH_BYTE ? n : MIN(cut, n);
    g_autofree char *line = g_memdup2(data, MAX(whole, 1));
    g_autofree char *name = fuzz_string(data, whole);
    User user;

    for (guint i = 0; i < G_N_ELEMENTS(names); i++) {
        g_assert(user_parse(names[i], &user));
        User before = user;

        if (!passwd_take_line(line, whole, &user))
            g_assert(memcmp(&before, &user, sizeof user) == 0);
        else
            g_assert(user.has_uid && user.has_gid && user.name[0] != '\0');
        group_take_line(line, whole, &user);
        check_user(&user);
    }
    if (user_parse(name, &user))
        check_user(&user);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "base/subids.h"

#include <pwd.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"

enum { FIELDS = 3 };

bool
subids_find(const char *text, const char *user, uid_t uid, guint32 want, guint32 *ret_first)
{
    g_auto(GStrv) lines = g_strsplit(text, "\n", -1);
    g_autofree char *number = g_strdup_printf("%u", (unsigned)uid);

    for (guint i = 0; lines[i] != NULL; i++) {
        g_auto(GStrv) parts = g_strsplit(lines[i], ":", FIELDS);
        guint64 first;
        guint64 n;

        if (g_strv_length(parts) != FIELDS ||
            (strcmp(parts[0], user) != 0 && strcmp(parts[0], number) != 0) ||
            !g_ascii_string_to_unsigned(parts[1], 10, 1, G_MAXUINT32, &first, NULL) ||
            !g_ascii_string_to_unsigned(g_strchomp(parts[2]), 10, want, G_MAXUINT32, &n, NULL))
            continue;
        *ret_first = (guint32)first;
        return true;
    }
    return false;
}

static bool
find_in(const char *file, const char *user, uid_t uid, guint32 want, guint32 *ret_first)
{
    g_autofree char *text = NULL;

    return g_file_get_contents(file, &text, NULL, NULL) && subids_find(text, user, uid, want, ret_first);
}

bool
subids_find_user(const char *user, uid_t uid, guint32 want, guint32 *ret_first, GError **error)
{
    guint32 users = 0;
    guint32 groups = 0;

    if (!find_in("/etc/subuid", user, uid, want, &users) || !find_in("/etc/subgid", user, uid, want, &groups))
        return err_set(error, ERR_UNAVAILABLE,
                       "/etc/subuid and /etc/subgid lend user %s no %u ids: usermod --add-subuids "
                       "FIRST-LAST --add-subgids FIRST-LAST %s",
                       user, want, user);
    if (users != groups)
        return err_set(error, ERR_UNAVAILABLE,
                       "/etc/subuid and /etc/subgid lend user %s different ids (%u and %u)", user, users,
                       groups);
    *ret_first = users;
    return true;
}

bool
subids_find_own(guint32 want, guint32 *ret_first, GError **error)
{
    const struct passwd *user = getpwuid(geteuid());
    g_autofree char *name = user != NULL ? g_strdup(user->pw_name) : g_strdup_printf("%u", geteuid());

    return subids_find_user(name, geteuid(), want, ret_first, error);
}

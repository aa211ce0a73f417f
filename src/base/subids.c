/* SPDX-License-Identifier: Apache-2.0 */
#include "base/subids.h"

#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"

enum {
    FIELDS = 3,
    FREE_FIRST = 100000,   /* below are the machine's own users */
    FREE_END = 0x70000000, /* from there on the keeper gives ids to boxes */
    BOX_IDS = 65536,
};

typedef struct Range {
    guint64 first, end;
} Range;

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

/* ---- user namespaces ---- */

typedef struct MapRow {
    guint inside, outside, n;
} MapRow;

static bool
parse_map_row(const char *line, MapRow *ret_row)
{
    return sscanf(line, "%u %u %u", &ret_row->inside, &ret_row->outside, &ret_row->n) == FIELDS;
}

bool
subids_map_is_host(const char *map)
{
    MapRow row;

    return parse_map_row(map, &row) && row.inside == 0 && row.outside == 0 && row.n == G_MAXUINT32;
}

bool
subids_find_mapped(const char *map, guint32 want, guint32 *ret_first)
{
    g_auto(GStrv) lines = g_strsplit(map, "\n", -1);

    for (guint i = 0; lines[i] != NULL; i++) {
        MapRow row;

        if (!parse_map_row(lines[i], &row))
            continue;
        guint64 first = MAX(row.inside, want);

        if (first + want > (guint64)row.inside + row.n)
            continue;
        *ret_first = (guint32)first;
        return true;
    }
    return false;
}

/* ---- what nobody has ---- */

static void
add_ranges(GArray *ranges, const char *text)
{
    g_auto(GStrv) lines = g_strsplit(text, "\n", -1);

    for (guint i = 0; lines[i] != NULL; i++) {
        g_auto(GStrv) parts = g_strsplit(lines[i], ":", FIELDS);
        guint64 first;
        guint64 n;

        if (g_strv_length(parts) != FIELDS ||
            !g_ascii_string_to_unsigned(parts[1], 10, 0, G_MAXUINT32, &first, NULL) ||
            !g_ascii_string_to_unsigned(g_strchomp(parts[2]), 10, 1, G_MAXUINT32, &n, NULL))
            continue;
        g_array_append_val(ranges, ((Range){first, first + n}));
    }
}

static int
compare_ranges(const void *a, const void *b)
{
    const Range *x = a, *y = b;

    return x->first < y->first ? -1 : x->first > y->first;
}

bool
subids_find_free(const char *const *texts, guint n, guint32 want, guint32 *ret_first)
{
    g_autoptr(GArray) ranges = g_array_new(FALSE, FALSE, sizeof(Range));
    guint64 first = FREE_FIRST;

    for (guint i = 0; i < n; i++)
        add_ranges(ranges, texts[i]);
    g_array_sort(ranges, compare_ranges);
    for (guint i = 0; i < ranges->len; i++) {
        const Range *r = &g_array_index(ranges, Range, i);

        if (r->first < first + want && r->end > first)
            first = r->end;
    }
    *ret_first = (guint32)first;
    return first + want <= FREE_END;
}

char *
subids_dup_fix(const char *users_text, const char *groups_text, const char *user)
{
    const char *const texts[] = {users_text != NULL ? users_text : "",
                                 groups_text != NULL ? groups_text : ""};
    guint32 first;

    if (!subids_find_free(texts, G_N_ELEMENTS(texts), BOX_IDS, &first))
        return g_strdup_printf("take %d ids below %d back from somebody in /etc/subuid and /etc/subgid",
                               BOX_IDS, FREE_END);
    guint32 last = first + BOX_IDS - 1;

    return g_strdup_printf("usermod --add-subuids %u-%u --add-subgids %u-%u %s", first, last, first, last,
                           user);
}

/* ---- this machine ---- */

static char *
read_text(const char *file)
{
    char *text = NULL;

    return g_file_get_contents(file, &text, NULL, NULL) ? text : g_strdup("");
}

bool
subids_find_user(const char *user, uid_t uid, guint32 want, guint32 *ret_first, GError **error)
{
    g_autofree char *users_text = read_text("/etc/subuid");
    g_autofree char *groups_text = read_text("/etc/subgid");
    guint32 users = 0;
    guint32 groups = 0;

    if (!subids_find(users_text, user, uid, want, &users) ||
        !subids_find(groups_text, user, uid, want, &groups)) {
        g_autofree char *fix = subids_dup_fix(users_text, groups_text, user);

        return err_set(error, ERR_UNAVAILABLE, "/etc/subuid and /etc/subgid lend user %s no %u ids\nFIX: %s",
                       user, want, fix);
    }
    if (users != groups)
        return err_set(error, ERR_UNAVAILABLE,
                       "/etc/subuid and /etc/subgid lend user %s different ids (%u and %u)\n"
                       "FIX: make both files say the same of this user",
                       user, users, groups);
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

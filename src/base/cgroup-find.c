/* SPDX-License-Identifier: Apache-2.0 */
#include "base/cgroup-find.h"

#include <string.h>

static const char *const kind_names[CGROUP_KINDS] = {"unified", "memory",  "cpu",    "cpuacct",
                                                     "pids",    "devices", "freezer"};

/* Fields of a mountinfo line before its " - ", and after. */
enum { FIELD_ROOT = 3, FIELD_POINT = 4, FIELDS_MIN = 6, TAIL_TYPE = 0, TAIL_OPTIONS = 2, TAIL_FIELDS = 3 };

const char *
cgroup_kind_name(CgroupKind kind)
{
    return kind_names[kind];
}

static bool
list_has(const char *list, const char *word)
{
    g_auto(GStrv) words = g_strsplit(list, ",", -1);

    return g_strv_contains((const char *const *)words, word);
}

/* The path of a line "9:cpu,cpuacct:/path" of /proc/self/cgroup for this kind. */
static char *
own_path(const char *cgroup_text, CgroupKind kind)
{
    g_auto(GStrv) lines = g_strsplit(cgroup_text, "\n", -1);

    for (guint i = 0; lines[i] != NULL; i++) {
        g_auto(GStrv) parts = g_strsplit(lines[i], ":", 3);

        if (g_strv_length(parts) != 3 || parts[2][0] != '/')
            continue;
        if (kind == CGROUP_UNIFIED ? strcmp(parts[0], "0") == 0 && parts[1][0] == '\0'
                                   : list_has(parts[1], kind_names[kind]))
            return g_strdup(parts[2]);
    }
    return NULL;
}

/* What mountinfo writes as a backslash and three octal digits. */
static char *
unescape(const char *text)
{
    return g_strcompress(text);
}

static bool
is_mount_of(char **tail, CgroupKind kind)
{
    if (kind == CGROUP_UNIFIED)
        return strcmp(tail[TAIL_TYPE], "cgroup2") == 0;
    return strcmp(tail[TAIL_TYPE], "cgroup") == 0 && list_has(tail[TAIL_OPTIONS], kind_names[kind]);
}

/* The folder of `path` below a mount that shows the hierarchy from `root` on. */
static char *
join(const char *point, const char *root, const char *path)
{
    size_t n = strcmp(root, "/") == 0 ? 0 : strlen(root);

    /* Outside of what our cgroup namespace or this mount shows. */
    if (g_str_has_prefix(path, "/..") || strncmp(path, root, n) != 0 || (path[n] != '/' && path[n] != '\0'))
        return NULL;
    const char *rest = path + n;

    return strcmp(rest, "/") == 0 ? g_strdup(point) : g_strconcat(point, rest, NULL);
}

static char *
find_dir(const char *mountinfo_text, CgroupKind kind, const char *path)
{
    g_auto(GStrv) lines = g_strsplit(mountinfo_text, "\n", -1);

    for (guint i = 0; lines[i] != NULL; i++) {
        g_auto(GStrv) halves = g_strsplit(lines[i], " - ", 2);

        if (g_strv_length(halves) != 2)
            continue;
        g_auto(GStrv) head = g_strsplit(halves[0], " ", -1);
        g_auto(GStrv) tail = g_strsplit(halves[1], " ", TAIL_FIELDS);

        if (g_strv_length(head) < FIELDS_MIN || g_strv_length(tail) != TAIL_FIELDS ||
            !is_mount_of(tail, kind))
            continue;
        g_autofree char *point = unescape(head[FIELD_POINT]);
        g_autofree char *root = unescape(head[FIELD_ROOT]);
        char *dir = join(point, root, path);

        if (dir != NULL)
            return dir;
    }
    return NULL;
}

void
cgroup_find(const char *cgroup_text, const char *mountinfo_text, CgroupPlace *ret_place)
{
    for (CgroupKind kind = 0; kind < CGROUP_KINDS; kind++) {
        g_autofree char *path = own_path(cgroup_text, kind);

        ret_place->dir[kind] = path != NULL ? find_dir(mountinfo_text, kind, path) : NULL;
    }
}

void
cgroup_place_clear(CgroupPlace *place)
{
    for (CgroupKind kind = 0; kind < CGROUP_KINDS; kind++)
        g_clear_pointer(&place->dir[kind], g_free);
}

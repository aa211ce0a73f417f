/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/leaf.h"

#include <errno.h>
#include <fcntl.h>
#include <glib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cgroup-find.h"
#include "base/cleanup.h"
#include "base/log.h"

static char *
read_text(const char *folder, const char *file)
{
    g_autofree char *path = g_build_filename(folder, file, NULL);
    char *text = NULL;

    return g_file_get_contents(path, &text, NULL, NULL) ? g_strstrip(text) : NULL;
}

/* Not the root of the hierarchy, which needs no leaf (and has no such file), and one that has
 * limits to hand on: on hybrid hosts those are elsewhere. */
static bool
needs_leaf(const char *folder)
{
    g_autofree char *type = read_text(folder, "cgroup.type");
    g_autofree char *controllers = read_text(folder, "cgroup.controllers");

    if (type == NULL || controllers == NULL)
        return false;
    g_auto(GStrv) names = g_strsplit(controllers, " ", -1);

    return g_strv_contains((const char *const *)names, "memory");
}

static bool
move_into(const char *folder)
{
    g_autofree char *leaf = g_build_filename(folder, "coop-main", NULL);
    g_autofree char *procs = g_build_filename(leaf, "cgroup.procs", NULL);

    if (mkdir(leaf, 0755) < 0 && errno != EEXIST)
        return false;
    autofd fd = open(procs, O_WRONLY | O_CLOEXEC);

    return fd >= 0 && write(fd, "0", 1) == 1;
}

bool
leaf_enter_at(const char *folder, int pid)
{
    g_autofree char *own = g_strdup_printf("%d", pid);

    if (!needs_leaf(folder))
        return false;
    g_autofree char *procs = read_text(folder, "cgroup.procs");

    if (procs == NULL || strcmp(procs, own) != 0) {
        log_info("leaf", "others are in our cgroup: boxes may be without limits", log_str("group", folder));
        return false;
    }
    if (move_into(folder))
        return true;
    log_info("leaf", "our cgroup is not ours to divide: boxes may be without limits",
             log_str("group", folder), log_str("error", g_strerror(errno)));
    return false;
}

bool
leaf_enter(void)
{
    g_autofree char *groups = NULL;
    g_autofree char *mounts = NULL;
    g_auto(CgroupPlace) place = {0};

    if (!g_file_get_contents("/proc/self/cgroup", &groups, NULL, NULL) ||
        !g_file_get_contents("/proc/self/mountinfo", &mounts, NULL, NULL))
        return false;
    cgroup_find(groups, mounts, &place);
    return place.dir[CGROUP_UNIFIED] != NULL && leaf_enter_at(place.dir[CGROUP_UNIFIED], (int)getpid());
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Which controllers can be used for limits, and whether we may make groups.
 *
 * Our own group is where new ones go (never the root of a hierarchy: somebody else may have
 * put us below a limit).  /proc/self/cgroup names it relative to the hierarchy, mountinfo
 * says where the hierarchy is seen and from which group on. */
#include <string.h>
#include <unistd.h>

#include "daemon/probe-private.h"

static const char *const limits[] = {"memory", "cpu", "pids"};

typedef struct Hierarchy {
    char *mount_root; /* the group that is seen at mount_point */
    char *mount_point;
    char *options; /* v1: its controllers, between commas */
} Hierarchy;

static void
hierarchy_free(void *data)
{
    Hierarchy *h = data;

    g_free(h->mount_root);
    g_free(h->mount_point);
    g_free(h->options);
    g_free(h);
}

/* "36 35 98:0 ROOT POINT rw,noatime master:1 - TYPE SOURCE OPTIONS" */
static GPtrArray *
find_hierarchies(const char *mountinfo, const char *type)
{
    GPtrArray *found = g_ptr_array_new_with_free_func(hierarchy_free);
    g_auto(GStrv) lines = g_strsplit(mountinfo, "\n", -1);

    for (char **line = lines; *line != NULL; line++) {
        g_auto(GStrv) halves = g_strsplit(*line, " - ", 2);
        g_auto(GStrv) mount = g_strsplit(halves[0] != NULL ? halves[0] : "", " ", -1);
        g_auto(GStrv) fs = g_strsplit(halves[0] != NULL && halves[1] != NULL ? halves[1] : "", " ", -1);

        if (g_strv_length(mount) < 5 || g_strv_length(fs) < 3 || strcmp(fs[0], type) != 0)
            continue;
        Hierarchy *h = g_new0(Hierarchy, 1);
        *h = (Hierarchy){g_strdup(mount[3]), g_strdup(mount[4]), g_strconcat(",", fs[2], ",", NULL)};
        g_ptr_array_add(found, h);
    }
    return found;
}

/* The path in the line "N:CONTROLLERS:PATH" whose controllers hold `controller`; for cgroup
 * v2 that is "". */
static char *
own_group(const char *self_cgroup, const char *controller)
{
    g_auto(GStrv) lines = g_strsplit(self_cgroup, "\n", -1);

    for (char **line = lines; *line != NULL; line++) {
        g_auto(GStrv) parts = g_strsplit(*line, ":", 3);

        if (g_strv_length(parts) != 3)
            continue;
        g_auto(GStrv) names = g_strsplit(parts[1], ",", -1);
        bool v2 = controller[0] == '\0';
        if (v2 ? strcmp(parts[0], "0") == 0 && parts[1][0] == '\0'
               : g_strv_contains((const char *const *)names, controller))
            return g_strdup(parts[2]);
    }
    return NULL;
}

static char *
group_folder(const Hierarchy *h, const char *group)
{
    const char *below = group;

    if (strcmp(h->mount_root, "/") != 0 && g_str_has_prefix(group, h->mount_root))
        below += strlen(h->mount_root);
    return g_build_filename(h->mount_point, below, NULL);
}

static bool
may_write(const ProbeContext *ctx, const char *folder, const char *file)
{
    g_autofree char *path = g_strconcat(ctx->root, folder, file, NULL);

    return access(path, W_OK) == 0;
}

/* Adds to `lacking` what has no controller, or one we may not use. */
static void
check_v2(const ProbeContext *ctx, const Hierarchy *h, const char *self_cgroup, GPtrArray *lacking)
{
    g_autofree char *group = own_group(self_cgroup, "");
    g_autofree char *folder = group_folder(h, group != NULL ? group : "/");
    g_autofree char *file = g_strconcat(folder, "/cgroup.controllers", NULL);
    g_autofree char *text = probe_read(ctx, file);
    g_auto(GStrv) controllers = g_strsplit(text != NULL ? text : "", " ", -1);
    bool writable = may_write(ctx, folder, "") && may_write(ctx, folder, "/cgroup.procs");

    for (size_t i = 0; i < G_N_ELEMENTS(limits); i++) {
        if (!writable || !g_strv_contains((const char *const *)controllers, limits[i]))
            g_ptr_array_add(lacking, (gpointer)(guintptr)limits[i]);
    }
}

static bool
has_v1(const ProbeContext *ctx, const GPtrArray *hierarchies, const char *self_cgroup, const char *controller)
{
    g_autofree char *group = own_group(self_cgroup, controller);
    g_autofree char *option = g_strdup_printf(",%s,", controller);

    for (guint i = 0; group != NULL && i < hierarchies->len; i++) {
        const Hierarchy *h = hierarchies->pdata[i];

        if (strstr(h->options, option) == NULL)
            continue;
        g_autofree char *folder = group_folder(h, group);
        return may_write(ctx, folder, "") && may_write(ctx, folder, "/cgroup.procs");
    }
    return false;
}

static void
fix(const ProbeContext *ctx, bool v2, ProbeResult *r)
{
    if (v2 && ctx->uid != 0)
        probe_fix(ctx, r,
                  "sh -c 'mkdir -p /etc/systemd/system/user@.service.d && printf "
                  "\"[Service]\\nDelegate=cpu cpuset io memory pids\\n\" "
                  ">/etc/systemd/system/user@.service.d/coop.conf && systemctl daemon-reload', then log in "
                  "again");
    else if (ctx->uid != 0)
        probe_fix_text(r,
                       "start coop as root, or boot with systemd.unified_cgroup_hierarchy=1 for cgroup v2, "
                       "which root can delegate");
    else
        probe_fix_text(r, "give coop a group of its own that it may write: a systemd service with "
                          "Delegate=yes, or a container with a writable /sys/fs/cgroup");
}

/* What has no limit here; `ret_kind` NULL: no cgroups at all. */
static GPtrArray *
find_lacking(const ProbeContext *ctx, const char **ret_kind, bool *ret_v2)
{
    g_autofree char *self_cgroup = probe_read(ctx, "/proc/self/cgroup");
    g_autofree char *mountinfo = probe_read(ctx, "/proc/self/mountinfo");
    g_autoptr(GPtrArray) v2 = find_hierarchies(mountinfo != NULL ? mountinfo : "", "cgroup2");
    g_autoptr(GPtrArray) v1 = find_hierarchies(mountinfo != NULL ? mountinfo : "", "cgroup");
    GPtrArray *lacking = g_ptr_array_new();
    bool any = self_cgroup != NULL && v1->len + v2->len > 0;

    *ret_kind = !any ? NULL : v1->len == 0 ? "v2" : v2->len == 0 ? "v1" : "v1 and v2 (hybrid)";
    *ret_v2 = v1->len == 0;
    if (any && *ret_v2)
        check_v2(ctx, v2->pdata[0], self_cgroup, lacking);
    for (size_t i = 0; (!any || !*ret_v2) && i < G_N_ELEMENTS(limits); i++) {
        if (!any || !has_v1(ctx, v1, self_cgroup, limits[i]))
            g_ptr_array_add(lacking, (gpointer)(guintptr)limits[i]);
    }
    return lacking;
}

static char *
join(GPtrArray *names)
{
    g_ptr_array_add(names, NULL);
    return g_strjoinv(", ", (char **)names->pdata);
}

void
probe_cgroup(const ProbeContext *ctx, const Probe *probe, ProbeResult *r)
{
    const char *kind;
    bool v2;
    g_autoptr(GPtrArray) lacking = find_lacking(ctx, &kind, &v2);

    if (kind == NULL) {
        probe_set(r, PROBE_DEGRADED, "no cgroups are mounted: boxes have no limits");
        probe_fix(ctx, r, "mount -t cgroup2 none /sys/fs/cgroup");
        return;
    }
    if (lacking->len == 0) {
        probe_set(r, PROBE_OK, "%s with memory, cpu and pids", kind);
        return;
    }
    g_autofree char *names = join(lacking);
    probe_set(r, PROBE_DEGRADED, "%s, but no limits of %s for user %s", kind, names, ctx->user);
    fix(ctx, v2, r);
}

/* The same words as "degraded" of a box. */
void
probe_boxes(const ProbeContext *ctx, const Probe *probe, ProbeResult *r)
{
    static const char *const of_root[] = {"ids", "devices", "disk"};
    const char *kind;
    bool v2;
    g_autoptr(GPtrArray) lacking = find_lacking(ctx, &kind, &v2);

    for (size_t i = 0; !ctx->real_root && i < G_N_ELEMENTS(of_root); i++)
        g_ptr_array_add(lacking, (gpointer)(guintptr)of_root[i]);
    if (lacking->len == 0) {
        probe_set(r, PROBE_OK, "each has ids, a disk and limits of its own");
        return;
    }
    g_autofree char *names = join(lacking);
    probe_set(r, PROBE_DEGRADED, "not enforced for boxes of user %s: %s", ctx->user, names);
    if (ctx->real_root)
        fix(ctx, v2, r);
    else
        probe_fix_text(r, "start coop as root: script/start");
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "keeper/reconcile.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/loop.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/pidfd.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/io.h"
#include "base/log.h"
#include "base/path.h"
#include "keeper/keeper.h"
#include "keeper/records.h"

enum {
    END_WAIT_MS = 5000, /* for a process that was killed */
    REMOVE_TRIES = 200, /* a group is busy for a moment after its last process */
    REMOVE_WAIT_MS = 10,
};

typedef void (*EntryFunc)(void *ctx, int dir_fd, const char *name);

static void
each_entry(int parent_fd, const char *path, EntryFunc func, void *ctx)
{
    int fd = openat(parent_fd, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;

    if (dir == NULL) {
        if (fd >= 0)
            close(fd);
        return;
    }
    for (struct dirent *entry; (entry = readdir(dir)) != NULL;) {
        if (entry->d_name[0] != '.')
            func(ctx, fd, entry->d_name);
    }
    closedir(dir);
}

/* By pidfd, and only once the number is seen in the group again: it may have gone to another
 * process in between. */
static void
kill_process(int group_fd, pid_t pid)
{
    autofd fd = pidfd_open(pid, 0);
    g_autofree char *text = NULL;
    g_autofree char *line = g_strdup_printf("%d", (int)pid);
    g_autofree char *path = g_strdup_printf("/proc/self/fd/%d/cgroup.procs", group_fd);

    if (fd < 0 || !g_file_get_contents(path, &text, NULL, NULL))
        return;
    g_auto(GStrv) lines = g_strsplit(text, "\n", -1);

    if (!g_strv_contains((const char *const *)lines, line))
        return;
    (void)pidfd_send_signal(fd, SIGKILL, NULL, 0);
    (void)poll(&(struct pollfd){.fd = fd, .events = POLLIN}, 1, END_WAIT_MS);
}

static void
end_group(void *ctx, int parent_fd, const char *name)
{
    autofd fd = openat(parent_fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    g_autofree char *path = g_strdup_printf("/proc/self/fd/%d/cgroup.procs", fd);
    g_autofree char *text = NULL;

    if (fd < 0)
        return;
    (void)cgroup_write(fd, ".", "freezer.state", "THAWED");
    (void)cgroup_write(fd, ".", "cgroup.kill", "1");
    if (g_file_get_contents(path, &text, NULL, NULL)) {
        g_auto(GStrv) lines = g_strsplit(text, "\n", -1);

        for (guint i = 0; lines[i] != NULL; i++) {
            pid_t pid = (pid_t)strtol(lines[i], NULL, 10);

            if (pid > 0)
                kill_process(fd, pid);
        }
    }
    for (int i = 0; i < REMOVE_TRIES; i++) {
        if (unlinkat(parent_fd, name, AT_REMOVEDIR) == 0 || errno != EBUSY)
            return;
        (void)poll(NULL, 0, REMOVE_WAIT_MS);
    }
    log_warn("keeper", "a cgroup cannot be removed", log_str("group", name));
}

/* A group that an earlier keeper wrote down before it made it; its name has our instance. */
static void
end_old_groups(const Keeper *keeper, const char *path)
{
    g_autofree char *name = g_path_get_basename(path);
    g_autofree char *ours = g_strconcat("coop-", keeper->instance, NULL);

    if (strcmp(name, ours) != 0)
        return;
    each_entry(AT_FDCWD, path, end_group, NULL);
    (void)rmdir(path);
}

static bool
write_groups(Keeper *keeper, const CgroupPlace *place, GError **error)
{
    g_autofree char *file = g_strconcat(keeper->config.state_dir, "/groups", NULL);
    g_autofree char *old = NULL;
    g_autoptr(GString) text = g_string_new(NULL);

    if (g_file_get_contents(file, &old, NULL, NULL)) {
        g_auto(GStrv) lines = g_strsplit(old, "\n", -1);

        for (guint i = 0; lines[i] != NULL; i++) {
            if (lines[i][0] == '/')
                end_old_groups(keeper, lines[i]);
            /* One that could not be removed is not forgotten. */
            if (lines[i][0] == '/' && access(lines[i], F_OK) == 0)
                g_string_append_printf(text, "%s\n", lines[i]);
        }
    }
    for (CgroupKind kind = 0; kind < CGROUP_KINDS; kind++) {
        if (place->dir[kind] != NULL)
            g_string_append_printf(text, "%s/coop-%s\n", place->dir[kind], keeper->instance);
    }
    /* A full disk is no reason not to start. */
    if (g_strcmp0(old, text->str) == 0)
        return true;
    return path_write_atomic(file, text->str, text->len, 0600, error);
}

static void
free_loop(void *ctx, int dir_fd, const char *name)
{
    const Keeper *keeper = ctx;
    g_autofree char *file = g_strdup_printf("/sys/block/%s/loop/backing_file", name);
    g_autofree char *device = g_strconcat("/dev/", name, NULL);
    g_autofree char *prefix = g_strconcat(keeper->config.state_dir, "/", NULL);
    g_autofree char *image = NULL;

    if (!g_str_has_prefix(name, "loop") || !g_file_get_contents(file, &image, NULL, NULL) ||
        !g_str_has_prefix(image, prefix))
        return;
    autofd fd = open(device, O_RDWR | O_CLOEXEC);

    /* One that is still mounted goes with its mount. */
    if (fd >= 0)
        (void)ioctl(fd, LOOP_CLR_FD);
}

static void
remove_file(void *ctx, int dir_fd, const char *name)
{
    (void)unlinkat(dir_fd, name, 0);
}

/* Their processes died with the keeper that held them, their cgroups are found by name. */
static void
forget_boxes(const Keeper *keeper)
{
    BoxRecord record;
    int lost = 0;

    for (int slot = 0; slot < (int)keeper->config.id_ranges; slot++) {
        if (records_get(keeper->records_fd, slot, &record) && records_wipe(keeper->records_fd, slot))
            lost++;
    }
    if (lost > 0)
        log_warn("keeper", "boxes were lost with the keeper before this one", log_int("boxes", lost));
}

bool
reconcile_start(Keeper *keeper, const CgroupPlace *place, GError **error)
{
    if (!write_groups(keeper, place, error))
        return false;
    if (keeper->privileged)
        each_entry(AT_FDCWD, "/sys/block", free_loop, keeper);
    each_entry(keeper->state_fd, "pool", remove_file, NULL);
    forget_boxes(keeper);
    return true;
}

static void
remove_stray_group(void *ctx, int dir_fd, const char *name)
{
    Keeper *keeper = ctx;

    bool is_hold = g_str_has_prefix(name, "hold-");

    if (is_hold ? holds_has_group(keeper->holds, name)
                : !g_str_has_prefix(name, "box-") || pool_has_group(keeper->pool, name))
        return;
    for (const Box *box = keeper->boxes; box != NULL; box = box->next) {
        if ((box->holds & HOLDS_GROUP) != 0 && strcmp(box->group, name) == 0)
            return;
    }
    (void)cgroup_kill(&keeper->groups, name);
    (void)unlinkat(dir_fd, name, AT_REMOVEDIR);
}

void
reconcile_again(Keeper *keeper)
{
    for (CgroupKind kind = 0; kind < CGROUP_KINDS; kind++) {
        if (keeper->groups.fd[kind] >= 0)
            each_entry(keeper->groups.fd[kind], ".", remove_stray_group, keeper);
    }
    if (!disks_busy(keeper->disks))
        each_entry(keeper->state_fd, "pool", remove_file, NULL);
}

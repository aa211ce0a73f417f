/* SPDX-License-Identifier: Apache-2.0 */
#include "keeper/cgroup.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"

enum { FILE_PATH_MAX = 128, NUMBER_TEXT_MAX = 32, READ_MAX = 4096, GROUP_MODE = 0755 };

bool
cgroup_write(int dir_fd, const char *group, const char *file, const char *text)
{
    char path[FILE_PATH_MAX];

    if (snprintf(path, sizeof path, "%s/%s", group, file) >= (int)sizeof path) {
        errno = ENAMETOOLONG;
        return false;
    }
    autofd fd = openat(dir_fd, path, O_WRONLY | O_CLOEXEC | O_NOFOLLOW);

    return fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);
}

bool
cgroup_write_number(int dir_fd, const char *group, const char *file, uint64_t number)
{
    char text[NUMBER_TEXT_MAX];

    snprintf(text, sizeof text, "%" G_GUINT64_FORMAT, number);
    return cgroup_write(dir_fd, group, file, text);
}

static const char *
find_line(const char *text, const char *key)
{
    size_t n = strlen(key);

    while (text != NULL && (strncmp(text, key, n) != 0 || text[n] != ' ')) {
        text = strchr(text, '\n');
        text = text != NULL ? text + 1 : NULL;
    }
    return text != NULL ? text + n + 1 : NULL;
}

uint64_t
cgroup_read_number(int dir_fd, const char *group, const char *file, const char *key)
{
    char path[FILE_PATH_MAX];
    char text[READ_MAX + 1];

    if (dir_fd < 0 || snprintf(path, sizeof path, "%s/%s", group, file) >= (int)sizeof path)
        return 0;
    autofd fd = openat(dir_fd, path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    ssize_t n = fd >= 0 ? read(fd, text, READ_MAX) : -1;

    if (n <= 0)
        return 0;
    text[n] = '\0';
    const char *at = key != NULL ? find_line(text, key) : text;

    return at != NULL ? strtoull(at, NULL, 10) : 0;
}

/* Controllers that are mounted together have one folder; the first of them stands for it. */
static bool
is_double(const Cgroups *groups, CgroupKind kind)
{
    for (CgroupKind other = 0; other < kind; other++) {
        if (groups->path[other] != NULL && strcmp(groups->path[other], groups->path[kind]) == 0)
            return true;
    }
    return false;
}

static bool
make_ours(Cgroups *groups, CgroupKind kind, const char *parent, const char *name)
{
    g_autofree char *path = g_strconcat(parent, "/", name, NULL);

    if (mkdir(path, GROUP_MODE) < 0 && errno != EEXIST)
        return false;
    groups->fd[kind] = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    if (groups->fd[kind] < 0)
        return false;
    groups->path[kind] = g_steal_pointer(&path);
    return true;
}

bool
cgroups_open(Cgroups *groups, const CgroupPlace *place, const char *name, GError **error)
{
    *groups = (Cgroups){0};
    for (CgroupKind kind = 0; kind < CGROUP_KINDS; kind++)
        groups->fd[kind] = -1;
    for (CgroupKind kind = 0; kind < CGROUP_KINDS; kind++) {
        if (place->dir[kind] == NULL)
            continue;
        /* Not ours to write: an ordinary user's. */
        if (!make_ours(groups, kind, place->dir[kind], name) && errno != EACCES && errno != EPERM &&
            errno != EROFS)
            return err_errno(error, "make cgroup '%s/%s'", place->dir[kind], name);
    }
    if (groups->fd[CGROUP_UNIFIED] >= 0 && !cgroup_v2_open(groups, place->dir[CGROUP_UNIFIED]))
        return err_errno(error, "set up cgroup '%s'", groups->path[CGROUP_UNIFIED]);
    if (!cgroup_v1_open(groups))
        return err_errno(error, "set up cgroup '%s'", groups->path[CGROUP_DEVICES]);
    return true;
}

void
cgroups_close(Cgroups *groups)
{
    for (CgroupKind kind = 0; kind < CGROUP_KINDS; kind++) {
        if (groups->fd[kind] >= 0) {
            close(groups->fd[kind]);
            /* What is still in use stays and is found at the next start. */
            (void)rmdir(groups->path[kind]);
        }
        groups->fd[kind] = -1;
        g_clear_pointer(&groups->path[kind], g_free);
    }
}

void
cgroups_cap(const Cgroups *groups, const Ceiling *ceiling)
{
    cgroup_v1_cap(groups, ceiling);
    if (groups->fd[CGROUP_UNIFIED] >= 0)
        cgroup_v2_cap(groups, ceiling);
}

unsigned
cgroups_missing(const Cgroups *groups)
{
    static const struct {
        CgroupKind kind;
        unsigned bit;
    } needs[] = {{CGROUP_MEMORY, DEGRADED_MEMORY}, {CGROUP_CPU, DEGRADED_CPU}, {CGROUP_PIDS, DEGRADED_PIDS}};
    unsigned missing = 0;

    for (size_t i = 0; i < G_N_ELEMENTS(needs); i++) {
        if ((groups->unified & (1u << needs[i].kind)) == 0 && groups->fd[needs[i].kind] < 0)
            missing |= needs[i].bit;
    }
    if (groups->fd[CGROUP_UNIFIED] < 0 && groups->fd[CGROUP_FREEZER] < 0)
        missing |= DEGRADED_FREEZE;
    return groups->devices_closed ? missing : missing | DEGRADED_DEVICES;
}

void
cgroup_name(int slot, char ret_name[CGROUP_NAME_MAX + 1])
{
    snprintf(ret_name, CGROUP_NAME_MAX + 1, "box-%d", slot);
}

bool
cgroup_make(const Cgroups *groups, const char *name, const KeeperLimits *limits)
{
    for (CgroupKind kind = 0; kind < CGROUP_KINDS; kind++) {
        /* One that is there already is left from a box whose end was cut short: its counters
         * and its memory are not this box's. */
        if (groups->fd[kind] >= 0 && !is_double(groups, kind) &&
            mkdirat(groups->fd[kind], name, GROUP_MODE) < 0)
            return false;
    }
    return cgroup_v1_limit(groups, name, limits) && cgroup_v2_limit(groups, name, limits);
}

bool
cgroup_enter_prepare(const Cgroups *groups, const char *name, CgroupEntry *ret_entry)
{
    char path[FILE_PATH_MAX];

    *ret_entry = (CgroupEntry){.unified_fd = -1};
    if (groups->fd[CGROUP_UNIFIED] >= 0) {
        ret_entry->unified_fd = openat(groups->fd[CGROUP_UNIFIED], name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (ret_entry->unified_fd < 0)
            return false;
    }
    snprintf(path, sizeof path, "%s/tasks", name);
    for (CgroupKind kind = CGROUP_UNIFIED + 1; kind < CGROUP_KINDS; kind++) {
        if (groups->fd[kind] < 0 || is_double(groups, kind))
            continue;
        int fd = openat(groups->fd[kind], path, O_WRONLY | O_CLOEXEC);

        if (fd < 0) {
            cgroup_entry_clear(ret_entry);
            return false;
        }
        ret_entry->tasks[ret_entry->n_tasks++] = fd;
    }
    return true;
}

void
cgroup_entry_clear(CgroupEntry *entry)
{
    int saved = errno;

    if (entry->unified_fd >= 0)
        close(entry->unified_fd);
    for (int i = 0; i < entry->n_tasks; i++)
        close(entry->tasks[i]);
    *entry = (CgroupEntry){.unified_fd = -1};
    errno = saved;
}

bool
cgroup_freeze(const Cgroups *groups, const char *name, bool frozen)
{
    if (groups->fd[CGROUP_UNIFIED] >= 0)
        return cgroup_write(groups->fd[CGROUP_UNIFIED], name, "cgroup.freeze", frozen ? "1" : "0");
    if (groups->fd[CGROUP_FREEZER] >= 0)
        return cgroup_write(groups->fd[CGROUP_FREEZER], name, "freezer.state", frozen ? "FROZEN" : "THAWED");
    errno = EOPNOTSUPP;
    return false;
}

bool
cgroup_kill(const Cgroups *groups, const char *name)
{
    /* Version 1 keeps even SIGKILL from a frozen process. */
    if (groups->fd[CGROUP_FREEZER] >= 0)
        (void)cgroup_write(groups->fd[CGROUP_FREEZER], name, "freezer.state", "THAWED");
    return groups->fd[CGROUP_UNIFIED] >= 0 &&
           cgroup_write(groups->fd[CGROUP_UNIFIED], name, "cgroup.kill", "1");
}

void
cgroup_use(const Cgroups *groups, const char *name, CgroupUse *ret_use)
{
    *ret_use = (CgroupUse){0};
    cgroup_v2_use(groups, name, ret_use);
    cgroup_v1_use(groups, name, ret_use);
    ret_use->oom_kills = cgroup_oom_kills(groups, name);
}

uint32_t
cgroup_oom_kills(const Cgroups *groups, const char *name)
{
    int v1 = groups->fd[CGROUP_MEMORY];

    if (v1 >= 0)
        return (uint32_t)cgroup_read_number(v1, name, "memory.oom_control", "oom_kill");
    return (groups->unified & 1u << CGROUP_MEMORY) == 0
               ? 0
               : (uint32_t)cgroup_read_number(groups->fd[CGROUP_UNIFIED], name, "memory.events", "oom_kill");
}

bool
cgroup_remove(const Cgroups *groups, const char *name)
{
    bool gone = true;

    for (CgroupKind kind = 0; kind < CGROUP_KINDS; kind++) {
        if (groups->fd[kind] >= 0 && !is_double(groups, kind) &&
            unlinkat(groups->fd[kind], name, AT_REMOVEDIR) < 0 && errno != ENOENT)
            gone = false;
    }
    return gone;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "keeper/userns.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/subids.h"
#include "keeper/ids.h"

enum { FIELDS = 3 };

typedef struct MapRow {
    uint64_t inside, outside, n;
} MapRow;

static bool
parse_row(const char *line, MapRow *ret_row)
{
    return sscanf(line, "%" G_GUINT64_FORMAT " %" G_GUINT64_FORMAT " %" G_GUINT64_FORMAT, &ret_row->inside,
                  &ret_row->outside, &ret_row->n) == FIELDS;
}

bool
userns_is_host(void)
{
    g_autofree char *text = NULL;
    MapRow row;

    return g_file_get_contents("/proc/self/uid_map", &text, NULL, NULL) && parse_row(text, &row) &&
           row.inside == 0 && row.outside == 0 && row.n == UINT32_MAX;
}

bool
userns_has_ids(const char *map_text, uint32_t first, uint32_t n)
{
    g_auto(GStrv) lines = g_strsplit(map_text, "\n", -1);

    for (guint i = 0; lines[i] != NULL; i++) {
        MapRow row;

        if (parse_row(lines[i], &row) && first >= row.inside && (uint64_t)first + n <= row.inside + row.n)
            return true;
    }
    return false;
}

bool
userns_inside_of(const char *map_text, uint32_t outside, uint32_t *ret_inside)
{
    g_auto(GStrv) lines = g_strsplit(map_text, "\n", -1);

    for (guint i = 0; lines[i] != NULL; i++) {
        MapRow row;

        if (parse_row(lines[i], &row) && outside >= row.outside && outside < row.outside + row.n) {
            *ret_inside = (uint32_t)(row.inside + (outside - row.outside));
            return true;
        }
    }
    return false;
}

static bool
find_range(const char *file, uint32_t *ret_first, GError **error)
{
    const struct passwd *user = getpwuid(geteuid());
    g_autofree char *text = NULL;

    if (!g_file_get_contents(file, &text, NULL, NULL))
        return err_set(error, ERR_UNAVAILABLE, "cannot read '%s', which lends ids to users", file);
    if (!subids_find(text, user != NULL ? user->pw_name : "", geteuid(), ID_RANGE, ret_first))
        return err_set(error, ERR_UNAVAILABLE, "'%s' lends user %s no %d ids: usermod --add-subuids", file,
                       user != NULL ? user->pw_name : "?", ID_RANGE);
    return true;
}

/* newuidmap PID 0 OWN 1 1 FIRST COUNT */
static int
run_mapper(const char *program, pid_t pid, uint32_t own, uint32_t first)
{
    g_autofree char *pid_text = g_strdup_printf("%d", (int)pid);
    g_autofree char *own_text = g_strdup_printf("%u", own);
    g_autofree char *first_text = g_strdup_printf("%u", first);
    g_autofree char *count_text = g_strdup_printf("%d", ID_RANGE);
    const char *argv[] = {program, pid_text, "0", own_text, "1", "1", first_text, count_text, NULL};
    pid_t child = fork();
    int status;

    if (child == 0) {
        (void)execvp(program, (char *const *)(uintptr_t)argv);
        _exit(errno == ENOENT ? 127 : 126);
    }
    if (child < 0 || waitpid(child, &status, 0) < 0)
        return -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* The maps are written by two small setuid programs, from outside of the namespace: a child
 * waits there until we are in. */
static pid_t
start_mapper(int wait_fd, uint32_t first_uid, uint32_t first_gid)
{
    pid_t parent = getpid();
    uid_t uid = geteuid();
    gid_t gid = getegid();
    pid_t pid = fork();
    char byte;

    if (pid != 0)
        return pid;
    if (read(wait_fd, &byte, 1) != 1)
        _exit(1);
    int code = run_mapper("newuidmap", parent, uid, first_uid);

    _exit(code != 0 ? code : run_mapper("newgidmap", parent, gid, first_gid));
}

static bool
enter(uint32_t first_uid, uint32_t first_gid, GError **error)
{
    int pipe_fds[2];
    int status;

    if (pipe2(pipe_fds, O_CLOEXEC) < 0)
        return err_errno(error, "make a pipe");
    autofd reader = pipe_fds[0];
    autofd writer = pipe_fds[1];
    pid_t mapper = start_mapper(reader, first_uid, first_gid);

    if (mapper < 0)
        return err_errno(error, "start newuidmap");
    bool made = unshare(CLONE_NEWUSER) == 0;
    int saved = errno;

    if (made && write(writer, "x", 1) != 1)
        return err_errno(error, "wake the helper that maps ids");
    close(g_steal_fd(&writer));
    if (waitpid(mapper, &status, 0) < 0)
        return err_errno(error, "wait for newuidmap");
    errno = saved;
    if (!made)
        return err_errno(error, "make a user namespace (boxes cannot be made without)");
    if (WIFEXITED(status) && WEXITSTATUS(status) == 127)
        return err_set(error, ERR_UNAVAILABLE, "newuidmap and newgidmap are missing: install uidmap");
    if (status != 0)
        return err_set(error, ERR_UNAVAILABLE, "newuidmap or newgidmap refused");
    return true;
}

bool
userns_enter(GError **error)
{
    uint32_t first_uid;
    uint32_t first_gid;

    if (!find_range("/etc/subuid", &first_uid, error) || !find_range("/etc/subgid", &first_gid, error) ||
        !enter(first_uid, first_gid, error))
        return false;
    if (setgroups(0, NULL) < 0 || setresgid(0, 0, 0) < 0 || setresuid(0, 0, 0) < 0)
        return err_errno(error, "become root of the user namespace");
    return true;
}

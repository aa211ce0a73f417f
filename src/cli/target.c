/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/target.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"

static bool
open_stdout(Target *t, GError **error)
{
    if (isatty(STDOUT_FILENO) == 1)
        return err_set(error, ERR_INVALID, "this is not for a terminal: name a file, or send it on");
    t->fd = STDOUT_FILENO;
    return true;
}

/* What is replaced must be a file: "/dev/null" is none. */
static bool
check_old(const char *path, GError **error)
{
    struct stat st;

    if (lstat(path, &st) < 0)
        return errno == ENOENT || err_errno(error, "look at '%s'", path);
    return S_ISREG(st.st_mode) ||
           err_set(error, ERR_INVALID, "'%s' is there already and is not a file", path);
}

bool
target_open(const char *path, Target *ret, GError **error)
{
    if (strcmp(path, "-") == 0)
        return open_stdout(ret, error);
    if (!check_old(path, error))
        return false;
    g_autofree char *part = g_strconcat(path, ".part-XXXXXX", NULL);
    ret->fd = mkostemp(part, O_CLOEXEC);
    if (ret->fd < 0)
        return err_errno(error, "create '%s'", path);
    ret->path = g_strdup(path);
    ret->part = g_steal_pointer(&part);
    return true;
}

static bool
sync_folder(const char *path, GError **error)
{
    g_autofree char *folder = g_path_get_dirname(path);
    autofd fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    return (fd >= 0 && fsync(fd) == 0) || err_errno(error, "sync folder '%s'", folder);
}

bool
target_finish(Target *t, GError **error)
{
    if (t->path == NULL)
        return true;
    if (fsync(t->fd) < 0 || rename(t->part, t->path) < 0)
        return err_errno(error, "write '%s'", t->path);
    g_clear_pointer(&t->part, g_free);
    return sync_folder(t->path, error);
}

void
target_clear(Target *t)
{
    if (t->part != NULL)
        (void)unlink(t->part); /* nothing more can be done about it */
    if (t->path != NULL && t->fd >= 0)
        close(t->fd);
    g_free(t->path);
    g_free(t->part);
    *t = (Target)TARGET_INIT;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/home.h"

#include <errno.h>
#include <fcntl.h>
#include <glib/gstdio.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "api/keyring.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/io.h"
#include "base/path.h"

bool
home_make_folder(const char *path, uid_t uid, gid_t gid, GError **error)
{
    struct stat st;

    if (!path_make_private_dir(path, 0700, error))
        return false;
    if (geteuid() != 0 || (lstat(path, &st) == 0 && st.st_uid == uid))
        return true;
    return lchown(path, uid, gid) == 0 || err_errno(error, "give folder '%s' to its user", path);
}

static void
empty_folder(const char *path)
{
    g_autoptr(GDir) dir = g_dir_open(path, 0, NULL);
    const char *name;

    while (dir != NULL && (name = g_dir_read_name(dir)) != NULL) {
        g_autofree char *file = g_build_filename(path, name, NULL);

        (void)g_unlink(file); /* what cannot go now goes at the next start */
    }
}

bool
home_prepare(const char *home, uid_t uid, gid_t gid, GError **error)
{
    g_autofree char *run = g_build_filename(home, "run", NULL);
    g_autofree char *tmp = g_build_filename(home, "tmp", NULL);

    return home_make_folder(home, uid, gid, error) && home_make_folder(run, uid, gid, error) &&
           home_make_folder(tmp, uid, gid, error);
}

static void
write_holder(int fd)
{
    char text[32];
    int n = g_snprintf(text, sizeof text, "%d\n", getpid());

    if (ftruncate(fd, 0) == 0)
        (void)io_write_all(fd, text, (size_t)n); /* only a hint for the next message */
}

static bool
refuse_locked(int fd, const char *home, GError **error)
{
    char text[32] = "";
    ssize_t n = io_read_full(fd, text, sizeof text - 1);

    g_strchomp(text);
    return err_set(error, ERR_CONFLICT,
                   "another server%s%s uses the folder '%s'\nFIX: stop it, or choose "
                   "another folder with --home",
                   n > 0 ? ", process " : "", text, home);
}

int
home_lock(const char *home, uid_t uid, gid_t gid, GError **error)
{
    g_autofree char *path = g_build_filename(home, "lock", NULL);
    g_autofree char *tmp = g_build_filename(home, "tmp", NULL);
    autofd fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);

    if (fd < 0) {
        err_errno(error, "open '%s'", path);
        return -1;
    }
    if (flock(fd, LOCK_EX | LOCK_NB) < 0) {
        if (errno == EWOULDBLOCK)
            refuse_locked(fd, home, error);
        else
            err_errno(error, "lock '%s'", path);
        return -1;
    }
    if (geteuid() == 0 && fchown(fd, uid, gid) < 0) {
        err_errno(error, "give '%s' to its user", path);
        return -1;
    }
    write_holder(fd);
    empty_folder(tmp);
    return g_steal_fd(&fd);
}

bool
home_is_locked(const char *home)
{
    g_autofree char *path = g_build_filename(home, "lock", NULL);
    autofd fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);

    return fd >= 0 && flock(fd, LOCK_SH | LOCK_NB) < 0 && errno == EWOULDBLOCK;
}

char *
home_control_socket(const char *home)
{
    return g_build_filename(home, "run", "control.sock", NULL);
}

char *
home_key_file(const char *home)
{
    return g_build_filename(home, "key", NULL);
}

char *
home_read_key(const char *home, GError **error)
{
    g_autofree char *path = home_key_file(home);
    char text[KEY_SECRET_LEN + 2] = "";
    /* The folder may belong to a less trusted user than the one who reads. */
    autofd fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);

    if (fd < 0 || io_read_full(fd, text, sizeof text - 1) < 0) {
        err_errno(error, "read '%s'", path);
        return NULL;
    }
    g_strchomp(text);
    if (!key_secret_is_well_formed(text)) {
        err_set(error, ERR_INVALID, "the file '%s' does not hold a key", path);
        return NULL;
    }
    return g_strdup(text);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "base/secret-file.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/io.h"
#include "base/path.h"

static bool
read_secret(int fd, const char *path, guint8 *ret_secret, size_t len, GError **error)
{
    struct stat st;

    if (fstat(fd, &st) < 0)
        return err_errno(error, "look at '%s'", path);
    if (st.st_uid != geteuid() || (st.st_mode & 077) != 0)
        return err_set(error, ERR_DENIED, "'%s' is not ours alone", path);
    if (st.st_size != (off_t)len || io_read_full(fd, ret_secret, len) != (ssize_t)len)
        return err_set(error, ERR_INTERNAL,
                       "'%s' is damaged: move it away, and give what was sealed with it again", path);
    return true;
}

bool
secret_file_open(const char *path, void (*make)(guint8 *ret_secret), guint8 *ret_secret, size_t len,
                 GError **error)
{
    autofd fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);

    if (fd >= 0)
        return read_secret(fd, path, ret_secret, len, error);
    if (errno != ENOENT)
        return err_errno(error, "open '%s'", path);
    make(ret_secret);
    return path_write_atomic(path, ret_secret, len, 0600, error);
}

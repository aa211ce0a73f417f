/* SPDX-License-Identifier: Apache-2.0 */
#include "keeper/records.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"

static bool
write_at(int fd, int slot, const BoxRecord *record)
{
    ssize_t n = pwrite(fd, record, sizeof *record, (off_t)slot * (off_t)sizeof *record);

    if (n == sizeof *record)
        return true;
    if (n >= 0)
        errno = EIO;
    return false;
}

int
records_open(int state_fd, uint32_t n, GError **error)
{
    static const BoxRecord none;
    struct stat st;
    autofd fd = openat(state_fd, "records", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);

    if (fd < 0 || fstat(fd, &st) < 0) {
        err_errno(error, "open the records of boxes");
        return -1;
    }
    for (int slot = (int)(st.st_size / (off_t)sizeof none); slot < (int)n; slot++) {
        if (!write_at(fd, slot, &none)) {
            err_errno(error, "make room for the records of boxes");
            return -1;
        }
    }
    return g_steal_fd(&fd);
}

bool
records_set(int fd, int slot, const BoxRecord *record)
{
    return write_at(fd, slot, record);
}

bool
records_wipe(int fd, int slot)
{
    static const BoxRecord none;

    return write_at(fd, slot, &none);
}

bool
records_get(int fd, int slot, BoxRecord *ret_record)
{
    ssize_t n = pread(fd, ret_record, sizeof *ret_record, (off_t)slot * (off_t)sizeof *ret_record);

    if (n == sizeof *ret_record && ret_record->version == BOX_RECORD_VERSION)
        return true;
    errno = n < 0 ? errno : ENOENT;
    return false;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "keeper/record-dir.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"

static const char record_name[] = "record";

bool
record_make(int boxes_fd, const char *box, const BoxRecord *record)
{
    if (mkdirat(boxes_fd, box, 0700) < 0)
        return false;
    autofd dir = openat(boxes_fd, box, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    autofd fd = dir >= 0 ? openat(dir, record_name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600) : -1;

    return fd >= 0 && io_write_all(fd, record, sizeof *record);
}

bool
record_read(int boxes_fd, const char *box, BoxRecord *ret_record)
{
    autofd dir = openat(boxes_fd, box, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    autofd fd = dir >= 0 ? openat(dir, record_name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW) : -1;

    if (fd < 0)
        return false;
    if (io_read_full(fd, ret_record, sizeof *ret_record) != sizeof *ret_record ||
        ret_record->version != BOX_RECORD_VERSION) {
        errno = EBADMSG;
        return false;
    }
    return true;
}

bool
record_remove(int boxes_fd, const char *box)
{
    int fd = openat(boxes_fd, box, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);

    if (fd < 0)
        return errno == ENOENT;
    DIR *dir = fdopendir(fd);

    if (dir == NULL) {
        close(fd);
        return false;
    }
    for (struct dirent *entry; (entry = readdir(dir)) != NULL;) {
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            (void)unlinkat(dirfd(dir), entry->d_name, 0);
    }
    closedir(dir);
    return unlinkat(boxes_fd, box, AT_REMOVEDIR) == 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "box/host-admit.h"

#include <fcntl.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/io.h"

enum {
    MEMINFO_BYTES = 1024, /* the line is among the first */
    INODES_FLOOR = 1024,
    MIB_SHIFT = 20,
};

guint64
admit_parse_meminfo(const char *text)
{
    const char *line = strstr(text, "MemAvailable:");

    return line != NULL ? g_ascii_strtoull(line + strlen("MemAvailable:"), NULL, 10) * 1024 : G_MAXUINT64;
}

static guint64
read_memory(void)
{
    char text[MEMINFO_BYTES + 1];
    autofd fd = open("/proc/meminfo", O_RDONLY | O_CLOEXEC);
    ssize_t n = fd >= 0 ? io_read_full(fd, text, MEMINFO_BYTES) : -1;

    if (n < 0)
        return G_MAXUINT64;
    text[n] = '\0';
    return admit_parse_meminfo(text);
}

void
admit_read(const char *folder, AdmitFree *ret_free)
{
    struct statvfs disk;

    *ret_free = (AdmitFree){.memory_bytes = read_memory(), .disk_bytes = G_MAXUINT64, .inodes = G_MAXUINT64};
    if (statvfs(folder, &disk) < 0)
        return;
    ret_free->disk_bytes = (guint64)disk.f_bavail * disk.f_frsize;
    /* File systems without a table of inodes say 0 of 0. */
    if (disk.f_files > 0)
        ret_free->inodes = disk.f_favail;
}

bool
admit_check(const AdmitFree *now, const BoxHostSpec *floors, GError **error)
{
    if (now->memory_bytes < floors->memory_floor_bytes)
        return err_set(error, ERR_UNAVAILABLE,
                       "the machine has %" G_GUINT64_FORMAT
                       " MiB of memory left, less than the %" G_GUINT64_FORMAT
                       " MiB that new boxes leave alone",
                       now->memory_bytes >> MIB_SHIFT, floors->memory_floor_bytes >> MIB_SHIFT);
    if (now->disk_bytes < floors->disk_floor_bytes)
        return err_set(error, ERR_FULL,
                       "the disk has %" G_GUINT64_FORMAT " MiB left, less than the %" G_GUINT64_FORMAT
                       " MiB that new boxes leave alone",
                       now->disk_bytes >> MIB_SHIFT, floors->disk_floor_bytes >> MIB_SHIFT);
    if (floors->disk_floor_bytes > 0 && now->inodes < INODES_FLOOR)
        return err_set(error, ERR_FULL, "the disk has room for %" G_GUINT64_FORMAT " further files only",
                       now->inodes);
    return true;
}

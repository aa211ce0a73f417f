/* SPDX-License-Identifier: Apache-2.0 */
/* The few files of a box that are not its image's. */
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "keeper/child.h"

enum { FILE_MAX = 256, MACHINE_ID_BYTES = 16, PERMISSIONS = 07777 };

int
child_open_dir(int root_fd, const char *name)
{
    struct open_how how = {.flags = O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC,
                           .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS};

    return (int)syscall(SYS_openat2, root_fd, name, &how, sizeof how);
}

int
child_make_dir(int root_fd, const char *name)
{
    if (mkdirat(root_fd, name, 0755) < 0 && errno != EEXIST)
        return -1;
    return child_open_dir(root_fd, name);
}

bool
child_write_file(int dir_fd, const char *name, const char *text)
{
    int fd = openat(dir_fd, name, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK, 0644);

    /* A link, or something stranger: it gives way. */
    if (fd < 0 && unlinkat(dir_fd, name, 0) == 0)
        fd = openat(dir_fd, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
    if (fd < 0)
        return false;
    bool ok = write(fd, text, strlen(text)) == (ssize_t)strlen(text);

    close(fd);
    return ok;
}

static bool
write_machine_id(int etc_fd)
{
    unsigned char bytes[MACHINE_ID_BYTES];
    char text[2 * MACHINE_ID_BYTES + 2];

    if (getrandom(bytes, sizeof bytes, 0) != sizeof bytes)
        return false;
    for (size_t i = 0; i < sizeof bytes; i++)
        snprintf(text + 2 * i, 3, "%02x", bytes[i]);
    text[2 * MACHINE_ID_BYTES] = '\n';
    text[2 * MACHINE_ID_BYTES + 1] = '\0';
    return child_write_file(etc_fd, "machine-id", text);
}

static bool
write_etc(const ChildSpec *spec, int etc_fd)
{
    char hosts[FILE_MAX];
    char hostname[FILE_MAX];

    snprintf(hostname, sizeof hostname, "%s\n", spec->request->hostname);
    snprintf(hosts, sizeof hosts,
             "127.0.0.1 localhost\n::1 localhost ip6-localhost ip6-loopback\n127.0.1.1 %s\n",
             spec->request->hostname);
    /* Nobody answers there: a lookup fails at once and not after a wait. */
    return etc_fd >= 0 && child_write_file(etc_fd, "hostname", hostname) &&
           child_write_file(etc_fd, "hosts", hosts) &&
           child_write_file(etc_fd, "resolv.conf", "nameserver 127.0.0.1\noptions timeout:1 attempts:1\n") &&
           write_machine_id(etc_fd);
}

void
child_layer_name(uint32_t layer, char name[static sizeof CHILD_LAYER])
{
    name[1] = (char)('0' + layer / 10);
    name[2] = (char)('0' + layer % 10);
}

/* As the topmost layer with that name has it; false: that is no folder. */
static bool
find_etc(const ChildSpec *spec, struct stat *ret_st)
{
    for (uint32_t i = 0; i < spec->request->n_layers; i++) {
        char path[] = CHILD_LAYER "/etc";

        child_layer_name(i, path);
        if (lstat(path, ret_st) == 0)
            return S_ISDIR(ret_st->st_mode);
    }
    return false;
}

static bool
dress_etc(int upper_fd, const struct stat *st)
{
    bool is_roots = st->st_uid == 0 && st->st_gid == 0;

    return (is_roots || fchownat(upper_fd, "etc", st->st_uid, st->st_gid, AT_SYMLINK_NOFOLLOW) == 0) &&
           fchmodat(upper_fd, "etc", st->st_mode & PERMISSIONS, 0) == 0;
}

bool
child_write_below(const ChildSpec *spec, bool *ret_written)
{
    int upper_fd = child_open_dir(AT_FDCWD, "disk/upper");
    struct stat st;

    /* One that is there already is of a disk that was kept. */
    *ret_written = upper_fd >= 0 && find_etc(spec, &st) && mkdirat(upper_fd, "etc", 0700) == 0;
    return !*ret_written || (dress_etc(upper_fd, &st) && write_etc(spec, child_open_dir(upper_fd, "etc")));
}

bool
child_write_files(const ChildSpec *spec, int root_fd)
{
    return write_etc(spec, child_make_dir(root_fd, "etc"));
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/cp-tree.h"

#include <archive.h>
#include <archive_entry.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"

enum { BLOCK = 64 * 1024 };

typedef struct archive Archive;
typedef struct archive_entry Entry;
static void
free_reader(Archive *a)
{
    archive_read_free(a);
}
static void
free_writer(Archive *a)
{
    archive_write_free(a);
}

static bool
fail(Archive *a, const char *what, GError **error)
{
    const char *why = archive_error_string(a);

    return err_set(error, ERR_INVALID, "%s: %s", what, why != NULL ? why : "failed");
}

static bool
copy_file(Archive *out, Entry *entry, GError **error)
{
    const char *path = archive_entry_sourcepath(entry);
    g_autofree guint8 *block = g_malloc(BLOCK);
    autofd fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    ssize_t n;

    if (fd < 0)
        return err_errno(error, "open '%s'", path);
    while ((n = read(fd, block, BLOCK)) > 0) {
        if (archive_write_data(out, block, (size_t)n) < 0)
            return fail(out, path, error);
    }
    return n == 0 || err_errno(error, "read '%s'", path);
}

/* Names in the archive begin below the folder. */
static bool
pack_entry(Archive *disk, Archive *out, Entry *entry, size_t skip, GError **error)
{
    const char *path = archive_entry_pathname(entry);
    mode_t type = archive_entry_filetype(entry);

    archive_read_disk_descend(disk);
    if (strlen(path) <= skip || (type != AE_IFREG && type != AE_IFDIR && type != AE_IFLNK))
        return true;
    g_autofree char *name = g_strdup(path + skip + 1);
    archive_entry_set_pathname(entry, name);
    archive_entry_unset_size(entry);
    if (type == AE_IFREG) {
        struct stat st;

        if (lstat(archive_entry_sourcepath(entry), &st) < 0)
            return err_errno(error, "look at '%s'", name);
        archive_entry_set_size(entry, st.st_size);
    }
    if (archive_write_header(out, entry) < ARCHIVE_OK)
        return fail(out, name, error);
    return type != AE_IFREG || copy_file(out, entry, error);
}

bool
cp_tree_pack(const char *folder, int fd, GError **error)
{
    Archive *disk = archive_read_disk_new();
    Archive *out = archive_write_new();
    Entry *entry = archive_entry_new();
    g_autofree char *root = g_canonicalize_filename(folder, NULL);
    bool ok = true;
    int r;

    archive_read_disk_set_symlink_physical(disk);
    archive_write_set_format_pax_restricted(out);
    if (archive_write_open_fd(out, fd) != ARCHIVE_OK)
        ok = fail(out, "write the archive", error);
    else if (archive_read_disk_open(disk, root) != ARCHIVE_OK)
        ok = fail(disk, root, error);
    while (ok && (r = archive_read_next_header2(disk, entry)) != ARCHIVE_EOF)
        ok = r >= ARCHIVE_WARN ? pack_entry(disk, out, entry, strlen(root), error) : fail(disk, root, error);
    if (ok && archive_write_close(out) != ARCHIVE_OK)
        ok = fail(out, "write the archive", error);
    archive_entry_free(entry);
    free_reader(disk);
    free_writer(out);
    return ok;
}

static bool
copy_data(Archive *in, Archive *disk, GError **error)
{
    const void *block;
    size_t n;
    la_int64_t offset;
    int r;

    while ((r = archive_read_data_block(in, &block, &n, &offset)) == ARCHIVE_OK) {
        if (archive_write_data_block(disk, block, n, offset) < ARCHIVE_OK)
            return fail(disk, "unpack", error);
    }
    return r == ARCHIVE_EOF || fail(in, "read the archive", error);
}

static bool
unpack_entry(Archive *in, Archive *disk, Entry *entry, const char *folder, GError **error)
{
    mode_t type = archive_entry_filetype(entry);
    const char *hard = archive_entry_hardlink(entry);
    g_autofree char *path = g_build_filename(folder, archive_entry_pathname(entry), NULL);

    if ((type != AE_IFREG && type != AE_IFDIR && type != AE_IFLNK) && hard == NULL)
        return true;
    if (hard != NULL) {
        g_autofree char *target = g_build_filename(folder, hard, NULL);

        archive_entry_set_hardlink(entry, target);
    }
    archive_entry_set_perm(entry, archive_entry_perm(entry) & 0777);
    archive_entry_set_pathname(entry, path);
    if (archive_write_header(disk, entry) < ARCHIVE_OK)
        return fail(disk, path, error);
    return copy_data(in, disk, error) &&
           (archive_write_finish_entry(disk) >= ARCHIVE_WARN || fail(disk, path, error));
}

/* A name that climbs out would be refused by libarchive only after our folder was put before
 * it, so it is looked at first. */
static bool
is_below(const char *name)
{
    g_auto(GStrv) parts = g_strsplit(name, "/", -1);

    return name[0] != '/' && !g_strv_contains((const char *const *)parts, "..");
}

bool
cp_tree_unpack(int fd, const char *folder, GError **error)
{
    Archive *in = archive_read_new();
    Archive *disk = archive_write_disk_new();
    g_autofree char *root = g_canonicalize_filename(folder, NULL);
    Entry *entry;
    bool ok = true;
    int r;

    archive_read_support_format_tar(in);
    archive_write_disk_set_options(disk, ARCHIVE_EXTRACT_TIME | ARCHIVE_EXTRACT_PERM |
                                             ARCHIVE_EXTRACT_SECURE_SYMLINKS |
                                             ARCHIVE_EXTRACT_SECURE_NODOTDOT);
    if (g_mkdir_with_parents(root, 0755) < 0)
        ok = err_errno(error, "make '%s'", root);
    else if (lseek(fd, 0, SEEK_SET) < 0 || archive_read_open_fd(in, fd, BLOCK) != ARCHIVE_OK)
        ok = fail(in, "read the archive", error);
    while (ok && (r = archive_read_next_header(in, &entry)) != ARCHIVE_EOF) {
        const char *name = archive_entry_pathname(entry), *hard = archive_entry_hardlink(entry);

        if (r < ARCHIVE_WARN)
            ok = fail(in, "read the archive", error);
        else if (name == NULL || !is_below(name) || (hard != NULL && !is_below(hard)))
            ok = err_set(error, ERR_INVALID, "the archive has a name that leads out of the folder");
        else
            ok = unpack_entry(in, disk, entry, root, error);
    }
    free_reader(in);
    free_writer(disk);
    return ok;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "store/archive.h"

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/io.h"
#include "base/version.h"
#include "store/archive-manifest.h"

enum { PIECE = 64 * 1024 };

typedef struct archive Writer;
typedef struct archive Reader;
typedef struct archive_entry Entry;
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Writer, archive_write_free)
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Reader, archive_read_free)
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Entry, archive_entry_free)

/* ---- packing ---- */

static bool
is_cancelled(const ArchiveSpec *spec, GError **error)
{
    if (spec->cancelled == NULL || g_atomic_int_get(spec->cancelled) == 0)
        return false;
    err_set(error, ERR_CANCELLED, "the backup was given up");
    return true;
}

/* The manifest stands first, so the file is read twice. */
static bool
hash_file(const ArchiveSpec *spec, int fd, Manifest *m, GError **error)
{
    g_autofree guint8 *piece = g_malloc(PIECE);
    crypto_generichash_state state;
    ssize_t n;

    crypto_generichash_init(&state, NULL, 0, ARCHIVE_HASH_LEN);
    while ((n = io_read_full(fd, piece, PIECE)) > 0) {
        if (is_cancelled(spec, error))
            return false;
        crypto_generichash_update(&state, piece, (size_t)n);
        m->info.bytes += (guint64)n;
    }
    if (n < 0 || lseek(fd, 0, SEEK_SET) < 0)
        return err_errno(error, "read '%s'", spec->db_path);
    crypto_generichash_final(&state, m->hash, ARCHIVE_HASH_LEN);
    return true;
}

static bool
fail_write(Writer *a, GError **error)
{
    int code = archive_errno(a);

    return err_set(error, code == ENOSPC || code == EDQUOT ? ERR_FULL : ERR_INTERNAL, "write the backup: %s",
                   archive_error_string(a));
}

static bool
write_bytes(Writer *a, const void *bytes, size_t n, GError **error)
{
    return archive_write_data(a, bytes, n) == (la_ssize_t)n || fail_write(a, error);
}

static bool
write_head(Writer *a, const char *name, guint64 size, GError **error)
{
    g_autoptr(Entry) entry = archive_entry_new();

    archive_entry_set_pathname(entry, name);
    archive_entry_set_filetype(entry, AE_IFREG);
    archive_entry_set_perm(entry, 0600);
    archive_entry_set_size(entry, (la_int64_t)size);
    archive_entry_set_mtime(entry, clock_wall_us() / G_USEC_PER_SEC, 0);
    return archive_write_header(a, entry) == ARCHIVE_OK || fail_write(a, error);
}

static bool
write_file(const ArchiveSpec *spec, Writer *a, int fd, guint64 size, GError **error)
{
    g_autofree guint8 *piece = g_malloc(PIECE);
    ssize_t n;

    if (!write_head(a, ARCHIVE_DB_NAME, size, error))
        return false;
    for (; size > 0; size -= (guint64)n) {
        if (is_cancelled(spec, error))
            return false;
        n = io_read_full(fd, piece, (size_t)MIN(size, (guint64)PIECE));
        if (n < 0)
            return err_errno(error, "read '%s'", spec->db_path);
        if (n == 0)
            return err_set(error, ERR_INTERNAL, "'%s' became shorter while it was packed", spec->db_path);
        if (!write_bytes(a, piece, (size_t)n, error))
            return false;
    }
    return true;
}

static bool
write_all(const ArchiveSpec *spec, Writer *a, int fd, const Manifest *m, GError **error)
{
    g_autofree char *text = manifest_format(m);

    return write_head(a, ARCHIVE_MANIFEST_NAME, strlen(text), error) &&
           write_bytes(a, text, strlen(text), error) && write_file(spec, a, fd, m->info.bytes, error) &&
           (archive_write_close(a) == ARCHIVE_OK || fail_write(a, error));
}

static Writer *
writer_new(int fd, GError **error)
{
    g_autoptr(Writer) a = archive_write_new();

    /* Databases shrink to a half with the least effort, and to little less with the most. */
    g_assert(archive_write_add_filter_gzip(a) == ARCHIVE_OK &&
             archive_write_set_filter_option(a, "gzip", "compression-level", "2") == ARCHIVE_OK &&
             archive_write_set_format_pax_restricted(a) == ARCHIVE_OK &&
             archive_write_set_bytes_in_last_block(a, 1) == ARCHIVE_OK);
    if (archive_write_open_fd(a, fd) != ARCHIVE_OK) {
        fail_write(a, error);
        return NULL;
    }
    return g_steal_pointer(&a);
}

bool
archive_pack(const ArchiveSpec *spec, int fd, ArchiveInfo *ret_info, GError **error)
{
    Manifest m = {.info = {.schema = spec->schema}};
    autofd db = open(spec->db_path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);

    if (db < 0)
        return err_errno(error, "open '%s'", spec->db_path);
    g_strlcpy(m.info.version, version_number(), sizeof m.info.version);
    clock_format_iso(clock_wall_us(), m.info.created_at);
    if (!hash_file(spec, db, &m, error))
        return false;
    g_autoptr(Writer) a = writer_new(fd, error);
    if (a == NULL)
        return false;
    if (write_all(spec, a, db, &m, error)) {
        *ret_info = m.info;
        return true;
    }
    /* Without the first the member would be filled up with zeros; without the second
     * libarchive keeps what the compression has allocated. */
    (void)archive_write_fail(a);
    (void)archive_write_close(a);
    return false;
}

/* ---- unpacking ---- */

static bool
fail_read(Reader *a, GError **error)
{
    const char *why = archive_error_string(a);

    return err_set(error, ERR_INVALID, "this is no backup of Coop, or it is damaged: %s",
                   why != NULL ? why : "it ends too early");
}

/* libarchive looks through any number of layers of gzip, none included; a backup has one. */
static bool
check_layers(Reader *a, GError **error)
{
    return archive_filter_count(a) == 2 ||
           err_set(error, ERR_INVALID, "this is no backup of Coop: it is not a gzip'd tar file");
}

static bool
read_head(Reader *a, const char *name, guint64 *ret_size, GError **error)
{
    Entry *entry;
    int rc = archive_read_next_header(a, &entry);

    if (rc == ARCHIVE_EOF)
        return err_set(error, ERR_INVALID, "the backup has no member %s", name);
    if (rc != ARCHIVE_OK)
        return fail_read(a, error);
    const char *found = archive_entry_pathname(entry);
    if (g_strcmp0(found, name) != 0 || archive_entry_filetype(entry) != AE_IFREG ||
        archive_entry_hardlink(entry) != NULL || !archive_entry_size_is_set(entry) ||
        archive_entry_size(entry) < 0 || archive_entry_sparse_count(entry) > 0)
        return err_set(error, ERR_INVALID,
                       "this is no backup of Coop: it has '%.64s' where the file %s belongs",
                       found != NULL ? found : "?", name);
    *ret_size = (guint64)archive_entry_size(entry);
    return true;
}

static bool
read_manifest(Reader *a, Manifest *ret, GError **error)
{
    guint64 size;

    if (!read_head(a, ARCHIVE_MANIFEST_NAME, &size, error) || !check_layers(a, error))
        return false;
    if (size > ARCHIVE_MANIFEST_MAX)
        return err_set(error, ERR_INVALID, "this is no backup of Coop: its manifest is too long");
    g_autofree char *text = g_malloc(size + 1);
    if (archive_read_data(a, text, size) != (la_ssize_t)size)
        return fail_read(a, error);
    if (manifest_parse(text, size, ret, error))
        return true;
    g_prefix_error(error, "this is no backup of Coop: ");
    return false;
}

static bool
check_room(int fd, guint64 size, GError **error)
{
    struct statvfs fs;

    if (fstatvfs(fd, &fs) < 0)
        return err_errno(error, "ask how much room there is");
    guint64 free_bytes = (guint64)fs.f_bavail * fs.f_frsize;
    return size <= free_bytes ||
           err_set(error, ERR_FULL,
                   "the backup needs %" G_GUINT64_FORMAT " bytes, and %" G_GUINT64_FORMAT " are free", size,
                   free_bytes);
}

/* `fd` -1: nowhere. */
static bool
copy_db(Reader *a, int fd, const Manifest *m, GError **error)
{
    g_autofree guint8 *piece = g_malloc(PIECE);
    guint8 hash[ARCHIVE_HASH_LEN];
    crypto_generichash_state state;
    guint64 left = m->info.bytes;

    crypto_generichash_init(&state, NULL, 0, ARCHIVE_HASH_LEN);
    while (left > 0) {
        la_ssize_t n = archive_read_data(a, piece, (size_t)MIN(left, (guint64)PIECE));

        if (n <= 0)
            return fail_read(a, error);
        crypto_generichash_update(&state, piece, (size_t)n);
        if (fd >= 0 && !io_write_all(fd, piece, (size_t)n))
            return err_errno(error, "write what is unpacked");
        left -= (guint64)n;
    }
    crypto_generichash_final(&state, hash, ARCHIVE_HASH_LEN);
    return memcmp(hash, m->hash, ARCHIVE_HASH_LEN) == 0 ||
           err_set(error, ERR_INVALID, "the backup is damaged: its database is not the one that was packed");
}

/* To the last byte: an end that was cut off shows too. */
static bool
read_end(Reader *a, GError **error)
{
    Entry *entry;
    int rc = archive_read_next_header(a, &entry);

    if (rc == ARCHIVE_OK)
        return err_set(error, ERR_INVALID, "this is no backup of Coop: it has a member too many");
    return rc == ARCHIVE_EOF || fail_read(a, error);
}

static bool
unpack_to(Reader *a, int fd, const Manifest *m, GError **error)
{
    return check_room(fd, m->info.bytes, error) && copy_db(a, fd, m, error) && read_end(a, error);
}

static bool
unpack_db(Reader *a, const char *path, const Manifest *m, GError **error)
{
    autofd fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);

    if (fd < 0)
        return err_errno(error, "create '%s'", path);
    if (unpack_to(a, fd, m, error))
        return true;
    (void)unlink(path); /* the error to report is the first one */
    return false;
}

/* Up to the first byte of the database. */
static bool
read_heads(Reader *a, guint64 max, Manifest *ret, GError **error)
{
    guint64 size;

    if (!read_manifest(a, ret, error))
        return false;
    if (ret->info.bytes > max)
        return err_set(error, ERR_LIMIT,
                       "the database in the backup has %" G_GUINT64_FORMAT
                       " bytes, more than the %" G_GUINT64_FORMAT " allowed",
                       ret->info.bytes, max);
    if (!read_head(a, ARCHIVE_DB_NAME, &size, error))
        return false;
    return size == ret->info.bytes ||
           err_set(error, ERR_INVALID, "the backup is damaged: its database has not the size it should have");
}

static Reader *
reader_new(int fd)
{
    Reader *a = archive_read_new();

    g_assert(archive_read_support_filter_gzip(a) == ARCHIVE_OK &&
             archive_read_support_format_tar(a) == ARCHIVE_OK);
    (void)archive_read_open_fd(a, fd, PIECE); /* a failure shows at the first header */
    return a;
}

bool
archive_unpack(int fd, const char *db_path, guint64 max, ArchiveInfo *ret_info, GError **error)
{
    g_autoptr(Reader) a = reader_new(fd);
    Manifest m;

    if (!read_heads(a, max, &m, error) || !unpack_db(a, db_path, &m, error))
        return false;
    *ret_info = m.info;
    return true;
}

bool
archive_check(int fd, GError **error)
{
    g_autoptr(Reader) a = reader_new(fd);
    Manifest m;

    return read_heads(a, G_MAXUINT64, &m, error) && copy_db(a, -1, &m, error) && read_end(a, error);
}

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <glib.h>
#include <stdbool.h>

#include "base/clock.h"

/* A backup as it travels: a gzip'd tar of two members, in this order,
 *
 *     manifest.json   what the other is: size, hash, and which Coop wrote it
 *     coop.db         the database, one self-contained file
 *
 * Whoever restores may have got the file from a stranger, so the reader takes these two and
 * nothing else: plain files of exactly these names, of the sizes and with the hash that the
 * manifest promises, and never more than the caller allows.  What is inside the database is
 * checked by db_restore().
 *
 * Everything here blocks: for threads and programs that may wait. */

enum { ARCHIVE_FORMAT = 1, ARCHIVE_VERSION_MAX = 64 };

typedef struct ArchiveInfo {
    char version[ARCHIVE_VERSION_MAX + 1]; /* of the Coop that wrote it */
    gint64 schema;
    char created_at[CLOCK_ISO_LEN + 1];
    guint64 bytes; /* of the database */
} ArchiveInfo;

typedef struct ArchiveSpec {
    const char *db_path; /* nobody may write to it meanwhile */
    gint64 schema;
    gint *cancelled; /* atomic; not 0: give up with ERR_CANCELLED; may be NULL */
} ArchiveSpec;

/* Writes to where `fd` stands; it may be a pipe. */
bool archive_pack(const ArchiveSpec *spec, int fd, ArchiveInfo *ret_info, GError **error);

/* Makes `db_path`, which must not be there, out of what `fd` holds; on failure there is no
 * such file.  ERR_INVALID: it is no backup or a damaged one; ERR_LIMIT: the database is
 * larger than `max`; ERR_FULL: there is no room for it. */
bool archive_unpack(int fd, const char *db_path, guint64 max, ArchiveInfo *ret_info, GError **error);
/* Only whether it could be unpacked; from where `fd` stands. */
bool archive_check(int fd, GError **error);

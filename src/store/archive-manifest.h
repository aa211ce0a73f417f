/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <sodium.h>

#include "store/archive.h"

#define ARCHIVE_MANIFEST_NAME "manifest.json"
#define ARCHIVE_DB_NAME "coop.db"

enum { ARCHIVE_HASH_LEN = 32, ARCHIVE_MANIFEST_MAX = 64 * 1024 };
G_STATIC_ASSERT(ARCHIVE_HASH_LEN == crypto_generichash_BYTES);

typedef struct Manifest {
    ArchiveInfo info;
    guint8 hash[ARCHIVE_HASH_LEN]; /* of coop.db */
} Manifest;

char *manifest_format(const Manifest *manifest);
bool manifest_parse(const char *text, size_t len, Manifest *ret_manifest, GError **error);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include "daemon/config.h"
#include "store/archive.h"

/* Backup and restore of a data folder that no server uses.  Both take its lock: ERR_CONFLICT
 * when a server has it. */

/* `cancelled` as in ArchiveSpec.  ERR_NOT_FOUND: there is no database. */
bool offline_backup(const Config *config, int fd, gint *cancelled, ArchiveInfo *ret_info, GError **error);

typedef struct OfflineResult {
    ArchiveInfo info;
    bool key_file_valid; /* the key in the folder is an admin's, or the next start makes one */
    char *set_aside;     /* a database that could not be opened was kept here; NULL: none */
} OfflineResult;
void offline_result_clear(OfflineResult *result);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(OfflineResult, offline_result_clear)

bool offline_restore(const Config *config, int fd, OfflineResult *ret_result, GError **error);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include "box/host.h"

/* Limits of boxes are ceilings, not reservations: what decides is what is free at the moment. */
typedef struct AdmitFree {
    guint64 memory_bytes, disk_bytes, inodes;
} AdmitFree;

/* What could not be read is unlimited: a machine without the file is not full. */
void admit_read(const char *folder, AdmitFree *ret_free);
guint64 admit_parse_meminfo(const char *text);
/* ERR_UNAVAILABLE: memory; ERR_FULL: disk or inodes. */
bool admit_check(const AdmitFree *now, const BoxHostSpec *floors, GError **error);

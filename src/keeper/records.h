/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

#include "wire/record.h"

/* What is meant to be, one file with a place for every slot.  A box's record is written before
 * any kernel object of it is made and wiped after the last is gone; cgroups and id ranges follow
 * from the slot.  It has to outlive the keeper, not a power cut, after which no kernel object is
 * left: nothing is synced.  The places exist from the start, so that writing one neither makes a
 * file nor needs room on a full disk. */
enum { BOX_RECORD_VERSION = 2 };

typedef struct BoxRecord {
    uint32_t version; /* 0: nothing */
    uint32_t id_base;
    uint32_t flags; /* KeeperFlags */
    char id[KEEPER_ID_LEN];
    int64_t born_us;
    uint8_t reserved[24];
} BoxRecord;
_Static_assert(sizeof(BoxRecord) == 64, "records fill their places");

/* An fd of the file, with a place for each of `n` slots; -1. */
int records_open(int state_fd, uint32_t n, GError **error);
/* These set errno. */
bool records_set(int fd, int slot, const BoxRecord *record);
bool records_wipe(int fd, int slot);
bool records_get(int fd, int slot, BoxRecord *ret_record);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "wire/record.h"

/* A box's folder is the record that it is meant to be: made before any kernel object, removed
 * after the last.  It need not survive a power cut, after which no kernel object is left, so
 * nothing is synced. */
enum { BOX_RECORD_VERSION = 1 };

typedef struct BoxRecord {
    uint32_t version;
    int32_t slot;
    uint32_t id_base;
    uint32_t flags; /* KeeperFlags */
    int64_t born_us;
} BoxRecord;

/* `boxes_fd`: the folder of the boxes' folders.  All set errno. */
bool record_make(int boxes_fd, const char *box, const BoxRecord *record);
bool record_read(int boxes_fd, const char *box, BoxRecord *ret_record);
/* With whatever is in the folder. */
bool record_remove(int boxes_fd, const char *box);

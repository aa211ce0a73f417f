/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

/* Which box has which range of host ids.  A slot is a number from 0; a box's range, its cgroup
 * and its record carry it.  A range that was given back is the last to be given out again.
 *
 * An ordinary user has one range: every slot is that one. */
enum { ID_RANGE = 65536 };

typedef struct IdTable {
    uint32_t base;
    uint32_t n;
    uint32_t next;
    uint32_t n_used;
    bool shared;
    uint8_t *used;
} IdTable;

/* False when a range would hold the host's root, or the invalid id 2^32 - 1. */
bool ids_init(IdTable *ids, uint32_t base, uint32_t n, bool shared, GError **error);
void ids_clear(IdTable *ids);
/* A free slot, or -1. */
int ids_take(IdTable *ids);
void ids_give_back(IdTable *ids, int slot);
/* The host id of root inside. */
uint32_t ids_base_of(const IdTable *ids, int slot);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

#include "wire/record.h"

typedef struct Box Box;
typedef struct Keeper Keeper;

/* What a box of certain limits needs and can be made before anybody asks for it: an id range, its
 * cgroups with the limits set, a mounted disk with the range's ids.  No process and no namespace
 * of a box is among it, and nothing that a box has had comes back here. */
typedef struct Pool Pool;

Pool *pool_new(Keeper *keeper);
void pool_free(Pool *pool);

/* Have this many ready; those with other limits are dropped. */
void pool_prepare(Pool *pool, const KeeperLimits *limits, uint32_t count);
/* Gives the box one that fits its request.  False: there is none. */
bool pool_take(Pool *pool, Box *box);
/* Gives up one, for its id range.  False: there is none. */
bool pool_shrink(Pool *pool);
bool pool_has_group(const Pool *pool, const char *group);

/* Missing ones are made a moment after the last was taken, so that this work does not compete
 * with the box that took it: when pool_due_us() (CLOCK_MONOTONIC) has come, or INT64_MAX. */
int64_t pool_due_us(const Pool *pool);
/* A step: at most one is made. */
void pool_refill(Pool *pool);

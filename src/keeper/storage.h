/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct Box Box;
typedef struct Keeper Keeper;

/* Watches over the file system under the disks of boxes, whose sizes may add up to more than it
 * has.  Below a floor of free space or inodes no box is made, and the box that wrote most since
 * the last look is frozen; one whose disk has failed is frozen too.  The server is told. */
typedef struct Storage Storage;

Storage *storage_new(Keeper *keeper);
void storage_free(Storage *storage);

/* False: below the floor. */
bool storage_has_room(Storage *storage);
/* A box that runs, on a disk of its own: what goes wrong with it is seen from now on. */
void storage_add(Storage *storage, Box *box);
/* Freezes it, where that can be done, and tells the server. */
void storage_stop_box(Box *box, int error);
/* To be called when storage_due_us() (CLOCK_MONOTONIC) has come. */
int64_t storage_due_us(const Storage *storage);
void storage_look(Storage *storage);

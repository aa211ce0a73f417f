/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "wire/record.h"

typedef struct Keeper Keeper;

/* Processes of the server's user that the server wants in a group of their own, with limits: each with
 * what it starts later.  The group, and whatever is in it, ends with the process. */
typedef struct Holds Holds;

Holds *holds_new(Keeper *keeper);
void holds_free(Holds *holds);

/* Takes the pidfd (-1: none came), also where it fails; answers the request. */
void holds_take(Holds *holds, const KeeperRequest *request, int pidfd);
/* When something is to be tried again; CLOCK_MONOTONIC. */
int64_t holds_due_us(const Holds *holds);
void holds_look(Holds *holds);
bool holds_has_group(const Holds *holds, const char *name);

/* Ends everything in all groups; false once nothing is left. */
void holds_end(Holds *holds);
bool holds_busy(const Holds *holds);

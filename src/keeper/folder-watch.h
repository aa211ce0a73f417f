/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <stdint.h>

#include "keeper/box.h"

/* Measures the disks that are folders, one at a time by a helper, the longest unseen first, and
 * stops a box whose disk holds more than it may. */
typedef struct FolderWatch FolderWatch;

FolderWatch *folder_watch_new(Keeper *keeper);
void folder_watch_free(FolderWatch *watch);

/* When the next one is to be measured; INT64_MAX: not before something else happens. */
int64_t folder_watch_due_us(const FolderWatch *watch);
void folder_watch_look(FolderWatch *watch);

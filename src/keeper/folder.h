/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "keeper/disk-image.h"
#include "wire/record.h"

/* The disk of a box as a folder below "folders" in the state folder, for a keeper that may not
 * mount images and a disk too large for memory.  A file's size has a bound (RLIMIT_FSIZE); that
 * of all files together is measured now and then, so it may be exceeded for a moment.
 *
 * Its name is the box's id, so whatever a killed keeper leaves is found by the next. */
enum { FOLDER_NAME_MAX = sizeof "folders/" + KEEPER_ID_LEN };

void folder_name(const char *box, char ret_name[static FOLDER_NAME_MAX]);

/* 0, or an errno.  The mount is detached; the folder stays after its end. */
int folder_make(int state_fd, const char *box, uint32_t owner, int *ret_mount_fd);
bool folder_is_there(int state_fd, const char *box);

/* For helpers: both take as long as there are files. */
int folder_remove(int state_fd, const char *name);
/* What is in it, or a little more than `most`. */
DiskShape folder_measure(int state_fd, const char *name, DiskShape most);

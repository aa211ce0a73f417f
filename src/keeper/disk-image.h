/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <stdbool.h>
#include <stdint.h>

typedef struct DiskShape {
    uint64_t bytes;
    uint32_t inodes;
} DiskShape;

enum { DISK_NAME_MAX = 79 };

/* Files that hold an ext4 file system; for helpers, which may wait.  0, or an errno. */

/* An empty one, in a new file without a name or, with `name`, in one that gets this name when it
 * is whole.  `golden`: copied from the shape's golden image, which is made if it is missing. */
int
image_make(int state_fd, const DiskShape *shape, uint32_t owner, bool golden, const char *name, int *ret_fd);
/* One that was kept, mended. */
int image_open(int state_fd, const char *name, int *ret_fd);

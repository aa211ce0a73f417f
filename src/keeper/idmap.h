/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Which ids on disk show as which on the host: a user namespace with nobody in it, whose map a
 * mount takes on. */

/* "INSIDE OUTSIDE 65536" as the map of the process; sets errno. */
bool idmap_write(pid_t pid, uint32_t inside, uint32_t outside);
/* An fd of a namespace in which ids from `inside` on are those of the host from `outside` on; -1
 * with errno. */
int idmap_make(uint32_t inside, uint32_t outside);
/* As the mount's map, once and for all. */
bool idmap_apply(int mount_fd, int userns_fd);

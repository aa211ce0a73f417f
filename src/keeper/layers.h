/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "wire/record.h"

/* A folder of the store as a detached mount: read-only, without set-id bits and devices, with `attrs`
 * (MOUNT_ATTR_*) on top, and nothing that is mounted below it later.  -1 with errno. */
int layer_open(int store_fd, const char *name, uint64_t attrs, int userns_fd);

/* The layers of a template as detached mounts, top first.  With a user namespace
 * (`userns_fd` >= 0) they are id-mapped, so that root's files in the store are root's files in
 * the box.  Sets errno; nothing is left open on failure. */
bool layers_open(int store_fd, const KeeperRequest *request, int userns_fd, int *ret_fds);

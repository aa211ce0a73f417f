/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <stdbool.h>

#include "wire/record.h"

/* The layers of a template as detached mounts, read-only, top first.  With a user namespace
 * (`userns_fd` >= 0) they are id-mapped, so that root's files in the store are root's files in
 * the box.  Sets errno; nothing is left open on failure. */
bool layers_open(int store_fd, const KeeperRequest *request, int userns_fd, int *ret_fds);

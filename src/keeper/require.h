/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <glib.h>
#include <stdbool.h>

#include "keeper/child.h"

/* A keeper that cannot confine does not start; the message says what is missing. */
bool require_kernel(uint64_t *ret_namespaces, GError **error);
/* Which of the names that boxes must not see this kernel has. */
int find_masks(ChildMask ret_masks[CHILD_MASKS_MAX]);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <glib.h>
#include <stdbool.h>

/* Fills the folder `dir` with what child.h says.  In the keeper's own mount namespace: nothing of
 * it is seen on the host, and it goes with the keeper. */
bool stage_make(const char *dir, GError **error);

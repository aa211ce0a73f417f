/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <glib.h>
#include <stdbool.h>
#include <sys/types.h>

/* The ids of templates and the namespaces in which they are made.
 *
 * In the *space* root and 65,535 further ids are those that /etc/subuid lends to the user, and
 * the user's own id is SPACE_OWN, so that the store, which belongs to the user, can be reached.
 * Only our own code runs there.  What comes out of packages runs in a *cell* (cell.h), where
 * the user's id does not exist. */

enum { SPACE_IDS = 65536, SPACE_OWN = SPACE_IDS };

/* Runs `work` in a child that is pid 1 of the space and gives its exit code; -1 with an error
 * when the space could not be made.  `ret_pid` (may be NULL) is set before it runs. */
int space_run(int (*work)(void *data), void *data, volatile pid_t *ret_pid, GError **error);

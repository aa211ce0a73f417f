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

/* The user namespace of the space: newuidmap, which may do this, is a set-id program, and a
 * server that has given up new privileges can start none, so it has this made before.  The
 * namespace lives as long as the fd; -1 with an error. */
int space_open(GError **error);

/* Runs `work` as pid 1 of the space and gives its exit code; -1 with an error when it could not
 * be entered.  Killing the process that is told through `ret_pid` (may be NULL) ends all of it. */
int space_run(int userns_fd, int (*work)(void *data), void *data, volatile pid_t *ret_pid, GError **error);

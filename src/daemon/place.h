/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <glib.h>
#include <stdbool.h>
#include <sys/types.h>

#include "daemon/config.h"

/* The folders of the programs beside the server.
 *
 * As root such a folder stands beside the data folder, not in it: the server's user owns the
 * data folder and could put links and folders of its own in the other program's way.  The socket
 * at which a program listens is in its folder for the same reason. */

/* `beside`: HOME-NAME, else HOME/NAME. */
char *place_folder(const Config *config, const char *name, bool beside);

/* The socket at which a server of this data folder looks for the program; the one of a program
 * that root started comes first when both are there. */
char *place_socket(const Config *config, const char *name);

/* Makes the folder for the user who shall have it, open for others to pass through. */
bool place_make(const char *folder, uid_t uid, gid_t gid, GError **error);

/* A program of ours: beside `self`, or in the libexec folder of the same prefix.  NULL with
 * ERR_UNAVAILABLE: not installed. */
char *program_find(const char *self, const char *name, GError **error);

/* Both are taken; for command lines. */
void place_add_option(GPtrArray *argv, const char *name, char *value);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <glib.h>
#include <stdbool.h>

#include "base/privilege.h"
#include "daemon/config.h"

/* Where the door has its things, and how it is started. */

char *door_socket(const Config *config);

/* As root the user `coop-door`, or, where that does not exist, the server's; otherwise whoever
 * we are. */
void door_find_user(const RunAs *server, RunAs *ret_as);

/* Makes its folder. */
bool door_prepare(const Config *config, const RunAs *as, GError **error);

/* The command line, NULL-terminated.  NULL with ERR_UNAVAILABLE: not installed. */
GPtrArray *
door_argv(const Config *config, const RunAs *server, const RunAs *as, const char *self, GError **error);

/* The door's environment, with the providers' keys of ours; from ours they are wiped, so that
 * the other programs do not get them and /proc does not show them. */
char **door_take_environment(void);

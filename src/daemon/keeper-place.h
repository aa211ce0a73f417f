/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <glib.h>
#include <stdbool.h>

#include "base/privilege.h"
#include "daemon/config.h"

/* Where the keeper has its things, and how it is started. */

/* Lent to the server's user by /etc/subuid and /etc/subgid: those of one box. */
enum { KEEPER_SUB_IDS = 65536 };

char *keeper_socket(const Config *config);

/* Makes the folders that a keeper needs before it can start. */
bool keeper_prepare(const Config *config, const RunAs *server, GError **error);

/* The first of the ids that files of templates have: lent to the server's user, or, for root of
 * a user namespace, a part of what that has.  ERR_UNAVAILABLE says what to do. */
bool keeper_find_ids(const RunAs *server, guint32 *ret_first, GError **error);

/* The command line, NULL-terminated. `self` is the path of this program: the others lie beside
 * it, or in the libexec folder of the same prefix; `in_leaf` is what leaf_enter() said.  NULL with
 * ERR_UNAVAILABLE: not installed. */
GPtrArray *
keeper_argv(const Config *config, const RunAs *server, const char *self, bool in_leaf, GError **error);

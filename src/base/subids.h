/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <glib.h>
#include <stdbool.h>
#include <sys/types.h>

/* Ids that the machine lends to an ordinary user: lines "user:first:count" in /etc/subuid and
 * /etc/subgid, the user by name or by number. */

/* The first range of at least `want` ids that a text in that form gives to this user. */
bool subids_find(const char *text, const char *user, uid_t uid, guint32 want, guint32 *ret_first);

/* Of a user namespace whose map (/proc/self/uid_map) this is: the first of `want` ids that are
 * not its first `want`, which are those of its users. */
bool subids_find_mapped(const char *map, guint32 want, guint32 *ret_first);
/* Whether the map is that of the host. */
bool subids_map_is_host(const char *map);

/* The first of `want` ids that none of these texts in the same form lends to anybody, and that
 * the keeper does not give to boxes either. */
bool subids_find_free(const char *const *texts, guint n, guint32 want, guint32 *ret_first);
/* The command, for root, that lends the user ids which are free on this machine. */
char *subids_dup_fix(const char *users_text, const char *groups_text, const char *user);

/* Of the user who runs this, or of another by name: the same numbers for users and for groups,
 * because a layer of a template has one base for both.  ERR_UNAVAILABLE says what to do. */
bool subids_find_own(guint32 want, guint32 *ret_first, GError **error);
bool subids_find_user(const char *user, uid_t uid, guint32 want, guint32 *ret_first, GError **error);

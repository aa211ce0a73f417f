/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <glib.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Whether all ids of the host are ours: we are not in a user namespace. */
bool userns_is_host(void);

/* Makes an ordinary user root of a user namespace: 0 is the user, 1 and up are the ids that
 * /etc/subuid and /etc/subgid give. */
bool userns_enter(GError **error);

/* Whether the ids from `first` on are mapped in our user namespace. */
bool userns_has_ids(const char *map_text, uint32_t first, uint32_t n);
/* What the id `outside` of our namespace is inside; false when it is not there. */
bool userns_inside_of(const char *map_text, uint32_t outside, uint32_t *ret_inside);

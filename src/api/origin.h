/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <glib.h>
#include <stdbool.h>

#include "base/id.h"

/* Which names we answer to, and which pages may talk to us.
 *
 * A page of another site can make a browser send us requests, and with DNS rebinding even
 * read the answers, because then the browser thinks we are that site.  So the Host header
 * must be a name we know, port included, and an Origin header must be one of ours or one
 * that was configured; both exactly, never by prefix, suffix or pattern. */
typedef struct OriginRules OriginRules;

/* `hosts`: "name:port" or "name" (any of our ports); `origins`: "https://name:port".  Both
 * NULL-terminated, may be NULL. */
OriginRules *origin_rules_new(const char *const *hosts, const char *const *origins);
void origin_rules_free(OriginRules *rules);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(OriginRules, origin_rules_free)

/* `port` is where the request came in; 0 for the control socket, where the name alone
 * counts. */
bool origin_host_allowed(const OriginRules *rules, const char *host, guint16 port);

/* "{port}-{id}.{name}[:p]", where {name}[:p] would be allowed and is no address: the host of a
 * box's port, which is an origin of its own. */
bool origin_is_preview(const OriginRules *rules, const char *host, guint16 port, guint16 *ret_port,
                       char ret_id[ID_BOX_LEN + 1]);

typedef enum OriginKind {
    ORIGIN_NONE, /* no Origin header: not a page, or a plain navigation */
    ORIGIN_SELF, /* a page of ours: http:// or https:// + the Host header */
    ORIGIN_LISTED,
    ORIGIN_FOREIGN,
} OriginKind;
/* `origin` may be NULL.  `host` has passed the check above. */
OriginKind origin_kind(const OriginRules *rules, const char *origin, const char *host);
bool origin_has_listed(const OriginRules *rules);

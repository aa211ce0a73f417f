/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <glib.h>
#include <stdbool.h>

#include "door/name.h"
#include "json/json.h"

/* Which destinations a box may reach: an ordered list of rules, the first that matches decides,
 * and what none matches is denied.  Immutable and shared: a thousand boxes with the same rules
 * have one. */
typedef struct Policy Policy;

enum {
    POLICY_RULES_MAX = 512,
    POLICY_PORTS_MAX = 8,
};

typedef enum PolicyMode {
    POLICY_ENFORCE,
    POLICY_OBSERVE, /* what would be denied is let through and told; addresses are still judged */
    POLICY_DENY,    /* everything */
} PolicyMode;

/* {"mode": "enforce", "rules": [{"allow" | "deny": "*.example.org", "ports": [443],
 *   "inside": false, "upgrade": false, "plain": false, "source": "template base"}, …]}
 * A pattern is a name, "*.name" (at least one label more), or "*" with `"all": true`; or an
 * address, which neither wildcard matches.  Without `ports`: 80 and 443; a `deny` without: every
 * port.  `plain`: what goes through a tunnel to 443 or 80 need not be TLS. */
Policy *policy_new(Json *object, GError **error);
Policy *policy_ref(Policy *policy);
void policy_unref(Policy *policy);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Policy, policy_unref)

typedef struct PolicyVerdict {
    bool allowed;
    bool observed;      /* allowed only because the mode is OBSERVE */
    bool inside;        /* may be at an ADDRESS_INSIDE */
    bool upgrade;       /* WebSocket through the plain proxy */
    bool plain;         /* what goes to 443 or 80 need not be TLS */
    bool port_only;     /* denied, and the same name on another port would not be */
    const char *rule;   /* the pattern that decided; NULL: none did */
    const char *source; /* where that rule comes from */
} PolicyVerdict;

PolicyMode policy_mode(const Policy *policy);

/* Constant time in the number of names: exact ones and suffixes are looked up, not tried. */
void policy_decide(const Policy *policy, const DoorName *name, PolicyVerdict *ret);

/* Warnings for a person who writes rules: a wildcard over a public suffix or a shared CDN.
 * NULL: none.  A static text. */
const char *policy_pattern_warning(const char *pattern);
bool policy_pattern_check(const char *pattern, GError **error);

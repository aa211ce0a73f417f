/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <glib.h>
#include <stdbool.h>

#include "base/id.h"
#include "door/door.h"
#include "store/db.h"
#include "json/json.h"

/* The rules that people and templates made, kept in the store, and what they come to for a box.
 *
 * Those of the box come first, then its squad's, its template's and the server's, then what the
 * host's package clients use and what is built in; within a scope the newest first.  The first
 * that matches decides.  The mode is that of the nearest scope that has one. */
typedef struct DoorRules DoorRules;

typedef enum RuleScope { RULE_BOX, RULE_SQUAD, RULE_TEMPLATE, RULE_SERVER, RULE_SCOPE_MAX } RuleScope;

enum {
    RULES_PER_SCOPE = 100, /* all scopes of a box, and what is built in, fit into a policy */
    RULES_MAX = 10000,
    RULE_SCOPE_ID_MAX = 128,
    RULE_PORTS_TEXT_MAX = 64,
};

typedef struct DoorRule {
    char id[ID_UUID_LEN + 1]; /* "": given by door_rules_put() */
    RuleScope scope;
    const char *scope_id; /* "" for the server */
    const char *pattern;
    Json *ports; /* array; empty: the usual ones */
    bool allow, inside, upgrade, plain;
    const char *actor;
    gint64 created_us;
} DoorRule;

const char *rule_scope_name(RuleScope scope);
bool rule_scope_from_name(const char *name, RuleScope *ret);
/* Everything but the server has a name or id. */
bool rule_scope_check(RuleScope scope, const char *scope_id, GError **error);

/* `changed` from the loop, when what boxes may has changed. */
DoorRules *door_rules_new(Db *db, void (*changed)(void *ctx), void *ctx);
void door_rules_free(DoorRules *rules);
/* Reads the rows; also again, after a restore. */
void door_rules_load(DoorRules *rules, DbDone done, void *data);

/* Each writes first and then changes what is in force; `done` may be NULL. */

/* Takes the place of the rule with the same scope and pattern.  ERR_INVALID, ERR_LIMIT through
 * `done`. */
void door_rules_put(DoorRules *rules, const DoorRule *rule, DbDone done, void *data);
/* ERR_NOT_FOUND through `done`. */
void door_rules_remove(DoorRules *rules, const char *id, DbDone done, void *data);
/* `mode` "enforce", "observe" or "deny"; NULL: that of the wider scope. */
void door_rules_set_mode(DoorRules *rules, RuleScope scope, const char *scope_id, const char *mode,
                         DbDone done, void *data);

/* How much boxes may, where no scope says otherwise, and at most; of `max` 0 is no maximum. */
void door_rules_bound(DoorRules *rules, const DoorLimits *usual, const DoorLimits *max);
/* Members of `change` (those of DoorLimits) take the place of what that scope says; null takes one back.
 * ERR_INVALID, ERR_LIMIT through `done`. */
void door_rules_set_limits(DoorRules *rules, RuleScope scope, const char *scope_id, Json *change, DbDone done,
                           void *data);
/* Each bound is that of the nearest scope that has it. */
void door_rules_limits(const DoorRules *rules, const char *box, const char *squad, const char *template,
                       DoorLimits *ret);
/* {"usual": {…}, "max": {…}, "scopes": [{"scope", "scope_id", "limits": {…}}, …]}; the caller owns it. */
Json *door_rules_show_limits(const DoorRules *rules);
/* The box has ended, and its rules and limits with it. */
void door_rules_forget_box(DoorRules *rules, const char *id);

/* Takes `list`: rules of policy.h that come after all scopes. */
void door_rules_set_clients(DoorRules *rules, Json *list);

/* A policy of policy.h; the caller owns it.  NULL in an argument: it has none. */
Json *door_rules_compose(const DoorRules *rules, const char *box, const char *squad, const char *template);
/* Whether the box has rules or a mode of its own; otherwise all of its squad and template are alike. */
bool door_rules_has_own(const DoorRules *rules, const char *box);
/* What stands for it: hex. */
char *door_policy_name(const Json *policy);

/* {"mode": "enforce", "modes": [{"scope", "scope_id", "mode"}, …], "rules": [{"id", "scope", "scope_id",
 * "action", "pattern", "ports", "inside", "upgrade", "plain", "actor", "created_at", "warning"?}, …],
 * "defaults": […]}; the caller owns it. */
Json *door_rules_show(const DoorRules *rules);

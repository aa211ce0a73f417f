/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include "door/change.h"
#include "door/rules-rows.h"

/* What rules*.c share. */
struct DoorRules {
    Db *db;
    void (*changed)(void *ctx);
    void *ctx;
    guint refs; /* the owner, and jobs under way */
    bool freed;
    GPtrArray *rules;   /* StoredRule*, newest first */
    GHashTable *modes;  /* "scope scope_id" -> mode */
    GHashTable *limits; /* the same -> Json*: those that are said there */
    DoorLimits usual, max;
    Json *clients;
};

extern const char *const rule_mode_names[]; /* as PolicyMode counts; ends with NULL */

void rules_unref(void *rules);
/* Of a change; `refused` and `what` are taken. */
ChangeSpec rules_change(DoorRules *rules, void *what, GError *refused, DbDone done, void *data);
void rules_tell_changed(const DoorRules *rules);

char *rules_mode_key(RuleScope scope, const char *scope_id);
bool rules_is_of_box(const StoredRule *rule, const void *id);
/* One of policy.h; the caller owns it. */
Json *rules_policy_rule(const DoorRule *rule, const char *source);

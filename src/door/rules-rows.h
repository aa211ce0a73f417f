/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include "door/rules.h"

/* Rules as rows; functions that take a DbTx run in the store's threads. */
typedef struct StoredRule {
    char id[ID_UUID_LEN + 1];
    RuleScope scope;
    char *scope_id, *pattern, *actor;
    Json *ports; /* array */
    bool allow, inside, upgrade, plain;
    gint64 created_us;
} StoredRule;

StoredRule *stored_rule_new(const DoorRule *rule); /* with an id and a time of its own */
void stored_rule_free(StoredRule *rule);

bool rule_rows_load(DbTx *tx, GPtrArray *ret_rules, GError **error); /* newest first */
bool rule_row_put(DbTx *tx, const StoredRule *rule, GError **error);
bool rule_row_remove(DbTx *tx, const char *id, GError **error); /* ERR_NOT_FOUND */
bool rule_rows_forget(DbTx *tx, const char *scope, const char *scope_id, GError **error);
/* "scope scope_id" -> mode */
bool mode_rows_load(DbTx *tx, GHashTable *ret_modes, GError **error);
/* "scope scope_id" -> Json* */
bool limit_rows_load(DbTx *tx, GHashTable *ret_limits, GError **error);
/* Members of `change` take the place of those that the row has; null takes one back.  `*ret` is what it
 * comes to; the caller owns it. */
bool
limit_row_change(DbTx *tx, const char *scope, const char *scope_id, Json *change, Json **ret, GError **error);
bool mode_row_set(DbTx *tx, const char *scope, const char *scope_id, const char *mode, GError **error);

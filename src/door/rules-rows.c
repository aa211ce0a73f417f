/* SPDX-License-Identifier: Apache-2.0 */
#include "door/rules-rows.h"

#include <string.h>

#include "base/clock.h"
#include "base/err.h"

StoredRule *
stored_rule_new(const DoorRule *rule)
{
    StoredRule *s = g_new0(StoredRule, 1);

    *s = (StoredRule){.scope = rule->scope,
                      .scope_id = g_strdup(rule->scope_id),
                      .pattern = g_ascii_strdown(rule->pattern, -1),
                      .actor = g_strdup(rule->actor),
                      .ports = rule->ports != NULL ? json_deep_copy(rule->ports) : json_array(),
                      .allow = rule->allow,
                      .inside = rule->inside,
                      .upgrade = rule->upgrade,
                      .plain = rule->plain,
                      .created_us = clock_wall_us()};
    id_new_uuid(s->id);
    return s;
}

void
stored_rule_free(StoredRule *rule)
{
    if (rule == NULL)
        return;
    g_free(rule->scope_id);
    g_free(rule->pattern);
    g_free(rule->actor);
    json_decref(rule->ports);
    g_free(rule);
}

/* NULL: the row makes no sense. */
static StoredRule *
rule_of_row(DbRows *rows)
{
    const char *ports = db_rows_text(rows, 5);
    g_autoptr(Json) list = json_decode(ports, strlen(ports), NULL);
    DoorRule rule = {.scope_id = db_rows_text(rows, 2),
                     .pattern = db_rows_text(rows, 4),
                     .allow = strcmp(db_rows_text(rows, 3), "allow") == 0,
                     .inside = db_rows_int(rows, 6) != 0,
                     .upgrade = db_rows_int(rows, 7) != 0,
                     .plain = db_rows_int(rows, 8) != 0,
                     .actor = db_rows_text(rows, 9),
                     .ports = json_is_array(list) ? list : NULL};

    if (!rule_scope_from_name(db_rows_text(rows, 1), &rule.scope))
        return NULL;
    StoredRule *s = stored_rule_new(&rule);

    g_strlcpy(s->id, db_rows_text(rows, 0), sizeof s->id);
    s->created_us = db_rows_int(rows, 10);
    return s;
}

static bool
each_row(DbTx *tx, const char *sql, void (*func)(DbRows *rows, void *data), void *data, GError **error)
{
    g_autoptr(DbRows) rows = db_query(tx, sql, DB_NO_ARGS, error);
    bool row;

    if (rows == NULL)
        return false;
    while (db_rows_next(rows, &row, error)) {
        if (!row)
            return true;
        func(rows, data);
    }
    return false;
}

static void
add_rule(DbRows *rows, void *data)
{
    StoredRule *s = rule_of_row(rows);

    if (s != NULL)
        g_ptr_array_add(data, s);
}

bool
rule_rows_load(DbTx *tx, GPtrArray *ret_rules, GError **error)
{
    return each_row(
        tx,
        "SELECT id, scope, scope_id, action, pattern, ports, inside, upgrade, plain, actor, created_us "
        "FROM door_rules ORDER BY created_us DESC, id",
        add_rule, ret_rules, error);
}

bool
rule_row_put(DbTx *tx, const StoredRule *s, GError **error)
{
    g_autofree char *ports = json_encode(s->ports);

    return db_exec(tx, "DELETE FROM door_rules WHERE scope = ? AND scope_id = ? AND pattern = ?",
                   DB_ARGS(db_text(rule_scope_name(s->scope)), db_text(s->scope_id), db_text(s->pattern)),
                   error) &&
           db_exec(tx,
                   "INSERT INTO door_rules (id, scope, scope_id, action, pattern, ports, inside, upgrade, "
                   "plain, actor, created_us) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                   DB_ARGS(db_text(s->id), db_text(rule_scope_name(s->scope)), db_text(s->scope_id),
                           db_text(s->allow ? "allow" : "deny"), db_text(s->pattern), db_text(ports),
                           db_int(s->inside), db_int(s->upgrade), db_int(s->plain), db_text(s->actor),
                           db_int(s->created_us)),
                   error);
}

bool
rule_row_remove(DbTx *tx, const char *id, GError **error)
{
    if (!db_exec(tx, "DELETE FROM door_rules WHERE id = ?", DB_ARGS(db_text(id)), error))
        return false;
    return db_changes(tx) > 0 || err_set(error, ERR_NOT_FOUND, "there is no rule '%s'", id);
}

bool
rule_rows_forget(DbTx *tx, const char *scope, const char *scope_id, GError **error)
{
    return db_exec(tx, "DELETE FROM door_rules WHERE scope = ? AND scope_id = ?",
                   DB_ARGS(db_text(scope), db_text(scope_id)), error) &&
           mode_row_set(tx, scope, scope_id, NULL, error) &&
           db_exec(tx, "DELETE FROM door_limits WHERE scope = ? AND scope_id = ?",
                   DB_ARGS(db_text(scope), db_text(scope_id)), error);
}

/* NULL: it is none. */
static Json *
decode_object(const char *text)
{
    g_autoptr(Json) value = json_decode(text, strlen(text), NULL);

    return json_is_object(value) ? g_steal_pointer(&value) : NULL;
}

/* "scope scope_id": what both tables are looked up by. */
static char *
key_of_row(DbRows *rows)
{
    return g_strdup_printf("%s %s", db_rows_text(rows, 0), db_rows_text(rows, 1));
}

static void
add_mode(DbRows *rows, void *data)
{
    g_hash_table_insert(data, key_of_row(rows), g_strdup(db_rows_text(rows, 2)));
}

bool
mode_rows_load(DbTx *tx, GHashTable *ret_modes, GError **error)
{
    return each_row(tx, "SELECT scope, scope_id, mode FROM door_modes", add_mode, ret_modes, error);
}

bool
mode_row_set(DbTx *tx, const char *scope, const char *scope_id, const char *mode, GError **error)
{
    if (mode == NULL)
        return db_exec(tx, "DELETE FROM door_modes WHERE scope = ? AND scope_id = ?",
                       DB_ARGS(db_text(scope), db_text(scope_id)), error);
    return db_exec(tx,
                   "INSERT INTO door_modes (scope, scope_id, mode) VALUES (?, ?, ?) "
                   "ON CONFLICT (scope, scope_id) DO UPDATE SET mode = excluded.mode",
                   DB_ARGS(db_text(scope), db_text(scope_id), db_text(mode)), error);
}

static void
add_limits(DbRows *rows, void *data)
{
    Json *limits = decode_object(db_rows_text(rows, 2));

    if (limits != NULL)
        g_hash_table_insert(data, key_of_row(rows), limits);
}

bool
limit_rows_load(DbTx *tx, GHashTable *ret_limits, GError **error)
{
    return each_row(tx, "SELECT scope, scope_id, limits FROM door_limits", add_limits, ret_limits, error);
}

/* An empty object where there is no row. */
static bool
read_limits(DbTx *tx, const char *scope, const char *scope_id, Json **ret, GError **error)
{
    g_autoptr(DbRows) rows = db_query(tx, "SELECT limits FROM door_limits WHERE scope = ? AND scope_id = ?",
                                      DB_ARGS(db_text(scope), db_text(scope_id)), error);
    bool row;

    if (rows == NULL || !db_rows_next(rows, &row, error))
        return false;
    Json *limits = row ? decode_object(db_rows_text(rows, 0)) : NULL;

    *ret = limits != NULL ? limits : json_object();
    return true;
}

bool
limit_row_change(DbTx *tx, const char *scope, const char *scope_id, Json *change, Json **ret, GError **error)
{
    g_autoptr(Json) limits = NULL;
    const char *name;
    Json *value;

    if (!read_limits(tx, scope, scope_id, &limits, error))
        return false;
    json_object_foreach(change, name, value)
    {
        if (json_is_null(value))
            json_object_del(limits, name);
        else
            json_object_set(limits, name, value);
    }
    g_autofree char *text = json_encode(limits);
    bool ok = json_object_size(limits) > 0
                  ? db_exec(tx,
                            "INSERT INTO door_limits (scope, scope_id, limits) VALUES (?, ?, ?) "
                            "ON CONFLICT (scope, scope_id) DO UPDATE SET limits = excluded.limits",
                            DB_ARGS(db_text(scope), db_text(scope_id), db_text(text)), error)
                  : db_exec(tx, "DELETE FROM door_limits WHERE scope = ? AND scope_id = ?",
                            DB_ARGS(db_text(scope), db_text(scope_id)), error);

    if (ok)
        *ret = g_steal_pointer(&limits);
    return ok;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* How much boxes may send, fetch and ask for. */
#include <string.h>

#include "base/err.h"
#include "door/labels.h"
#include "door/rules-private.h"

void
door_rules_bound(DoorRules *r, const DoorLimits *usual, const DoorLimits *max)
{
    r->usual = *usual;
    r->max = *max;
}

/* ---- a change ---- */

typedef struct LimitsChange {
    RuleScope scope;
    char *scope_id;
    Json *change, *whole; /* whole: what it comes to, after it was written */
} LimitsChange;

static void
limits_free(void *what)
{
    LimitsChange *l = what;

    g_free(l->scope_id);
    json_decref(l->change);
    json_decref(l->whole);
    g_free(l);
}

static bool
limits_work(DbTx *tx, void *what, GError **error)
{
    LimitsChange *l = what;

    g_clear_pointer(&l->whole, json_decref);
    return limit_row_change(tx, rule_scope_name(l->scope), l->scope_id, l->change, &l->whole, error);
}

static void
limits_apply(void *owner, void **what)
{
    DoorRules *r = owner;
    LimitsChange *l = *what;
    g_autofree char *key = rules_mode_key(l->scope, l->scope_id);

    if (json_object_size(l->whole) > 0)
        g_hash_table_insert(r->limits, g_steal_pointer(&key), g_steal_pointer(&l->whole));
    else
        g_hash_table_remove(r->limits, key);
    rules_tell_changed(r);
}

static const ChangeKind limits_setting = {
    .work = limits_work, .apply = limits_apply, .free = limits_free, .unref = rules_unref};

/* What is taken back is checked by its name alone. */
static bool
check_change(const DoorRules *r, Json *change, GError **error)
{
    g_autoptr(Json) tried = json_copy(change);
    DoorLimits limits = r->usual;
    const char *name;
    Json *value;
    void *next;

    json_object_foreach_safe(tried, next, name, value)
    {
        if (json_is_null(value))
            json_object_set_new(tried, name, json_integer(1));
    }
    door_limits_clamp(&limits, &r->max);
    if (json_object_size(change) == 0)
        return err_set(error, ERR_INVALID, "at least one limit is needed");
    return door_limits_read(tried, &limits, error) && door_limits_check(&limits, &r->max, error);
}

void
door_rules_set_limits(DoorRules *r, RuleScope scope, const char *scope_id, Json *change, DbDone done,
                      void *data)
{
    GError *refused = NULL;
    LimitsChange *l = g_new0(LimitsChange, 1);

    *l = (LimitsChange){.scope = scope, .scope_id = g_strdup(scope_id), .change = json_deep_copy(change)};
    if (rule_scope_check(scope, scope_id, &refused))
        (void)check_change(r, change, &refused); /* the error is all we need */
    ChangeSpec spec = rules_change(r, l, refused, done, data);

    door_change(&limits_setting, &spec);
}

/* ---- what they come to ---- */

void
door_rules_limits(const DoorRules *r, const char *box, const char *squad, const char *template,
                  DoorLimits *ret)
{
    const char *const ids[RULE_SCOPE_MAX] = {
        [RULE_BOX] = box, [RULE_SQUAD] = squad, [RULE_TEMPLATE] = template, [RULE_SERVER] = ""};

    *ret = r->usual;
    for (int i = RULE_SCOPE_MAX - 1; i >= 0; i--) {
        g_autofree char *key = ids[i] != NULL ? rules_mode_key((RuleScope)i, ids[i]) : NULL;
        Json *said = key != NULL ? g_hash_table_lookup(r->limits, key) : NULL;

        /* It was checked when it was said. */
        if (said != NULL)
            (void)door_limits_read(said, ret, NULL);
    }
    door_limits_clamp(ret, &r->max);
}

Json *
door_rules_show_limits(const DoorRules *r)
{
    Json *list = json_array();
    GHashTableIter iter;
    gpointer key, said;

    g_hash_table_iter_init(&iter, r->limits);
    while (g_hash_table_iter_next(&iter, &key, &said)) {
        g_auto(GStrv) words = g_strsplit(key, " ", 2);

        json_array_append_new(
            list, json_pack("{s:s, s:s, s:O}", "scope", words[0], "scope_id", words[1], "limits", said));
    }
    return json_pack("{s:o, s:o, s:o}", "usual", door_limits_json(&r->usual), "max",
                     door_limits_json(&r->max), "scopes", list);
}

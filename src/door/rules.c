/* SPDX-License-Identifier: Apache-2.0 */
#include "door/rules.h"

#include <string.h>

#include "base/err.h"
#include "door/change.h"
#include "door/policy.h"
#include "door/rules-private.h"

const char *const rule_mode_names[] = {"enforce", "observe", "deny", NULL};
static const char *const scope_names[RULE_SCOPE_MAX] = {
    [RULE_BOX] = "box", [RULE_SQUAD] = "squad", [RULE_TEMPLATE] = "template", [RULE_SERVER] = "server"};

const char *
rule_scope_name(RuleScope scope)
{
    return scope_names[scope];
}

bool
rule_scope_from_name(const char *name, RuleScope *ret)
{
    for (RuleScope i = 0; i < RULE_SCOPE_MAX; i++) {
        if (strcmp(name, scope_names[i]) == 0) {
            *ret = i;
            return true;
        }
    }
    return false;
}

bool
rule_scope_check(RuleScope scope, const char *scope_id, GError **error)
{
    return ((scope == RULE_SERVER) == (*scope_id == '\0') && strlen(scope_id) <= RULE_SCOPE_ID_MAX) ||
           err_set(error, ERR_INVALID, "'scope_id' is the name or id of a %s", scope_names[scope]);
}

void
rules_unref(void *rules)
{
    DoorRules *r = rules;

    if (--r->refs > 0)
        return;
    g_ptr_array_unref(r->rules);
    g_hash_table_unref(r->modes);
    g_hash_table_unref(r->limits);
    json_decref(r->clients);
    g_free(r);
}

static GPtrArray *
rules_list_new(void)
{
    return g_ptr_array_new_with_free_func((GDestroyNotify)stored_rule_free);
}

static GHashTable *
modes_new(void)
{
    return g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
}

static GHashTable *
limits_new(void)
{
    return g_hash_table_new_full(g_str_hash, g_str_equal, g_free, (GDestroyNotify)json_decref);
}

DoorRules *
door_rules_new(Db *db, void (*changed)(void *ctx), void *ctx)
{
    DoorRules *r = g_new0(DoorRules, 1);

    *r = (DoorRules){.db = db, .changed = changed, .ctx = ctx, .refs = 1, .usual = DOOR_LIMITS_INIT};
    r->rules = rules_list_new();
    r->modes = modes_new();
    r->limits = limits_new();
    r->clients = json_array();
    return r;
}

void
door_rules_free(DoorRules *r)
{
    if (r == NULL)
        return;
    r->freed = true;
    rules_unref(r);
}

/* ---- changes ---- */

ChangeSpec
rules_change(DoorRules *r, void *what, GError *refused, DbDone done, void *data)
{
    r->refs++;
    return (ChangeSpec){
        .db = r->db, .owner = r, .what = what, .refused = refused, .done = done, .data = data};
}

void
rules_tell_changed(const DoorRules *r)
{
    if (!r->freed)
        r->changed(r->ctx);
}

static void
drop(DoorRules *r, bool (*is_it)(const StoredRule *rule, const void *what), const void *what)
{
    for (guint i = r->rules->len; i > 0; i--) {
        if (is_it(r->rules->pdata[i - 1], what))
            g_ptr_array_remove_index(r->rules, i - 1);
    }
}

static bool
has_id(const StoredRule *rule, const void *id)
{
    return strcmp(rule->id, id) == 0;
}

static bool
has_place(const StoredRule *rule, const void *other)
{
    const StoredRule *o = other;

    return rule->scope == o->scope && strcmp(rule->scope_id, o->scope_id) == 0 &&
           strcmp(rule->pattern, o->pattern) == 0;
}

typedef struct Loaded {
    GPtrArray *rules;
    GHashTable *modes, *limits;
} Loaded;

static void
loaded_free(void *what)
{
    Loaded *l = what;

    g_clear_pointer(&l->rules, g_ptr_array_unref);
    g_clear_pointer(&l->modes, g_hash_table_unref);
    g_clear_pointer(&l->limits, g_hash_table_unref);
    g_free(l);
}

static bool
load_work(DbTx *tx, void *what, GError **error)
{
    Loaded *l = what;

    return rule_rows_load(tx, l->rules, error) && mode_rows_load(tx, l->modes, error) &&
           limit_rows_load(tx, l->limits, error);
}

static void
load_apply(void *owner, void **what)
{
    DoorRules *r = owner;
    Loaded *l = *what;

    g_ptr_array_unref(r->rules);
    r->rules = g_steal_pointer(&l->rules);
    g_hash_table_unref(r->modes);
    r->modes = g_steal_pointer(&l->modes);
    g_hash_table_unref(r->limits);
    r->limits = g_steal_pointer(&l->limits);
    rules_tell_changed(r);
}

static const ChangeKind loading = {
    .reads = true, .work = load_work, .apply = load_apply, .free = loaded_free, .unref = rules_unref};

void
door_rules_load(DoorRules *r, DbDone done, void *data)
{
    Loaded *l = g_new(Loaded, 1);

    *l = (Loaded){rules_list_new(), modes_new(), limits_new()};
    ChangeSpec spec = rules_change(r, l, NULL, done, data);

    door_change(&loading, &spec);
}

static void
free_rule(void *what)
{
    stored_rule_free(what);
}

static bool
put_work(DbTx *tx, void *what, GError **error)
{
    return rule_row_put(tx, what, error);
}

static void
put_apply(void *owner, void **what)
{
    DoorRules *r = owner;

    drop(r, has_place, *what);
    g_ptr_array_insert(r->rules, 0, g_steal_pointer(what));
    rules_tell_changed(r);
}

static const ChangeKind putting = {
    .work = put_work, .apply = put_apply, .free = free_rule, .unref = rules_unref};

static bool
remove_work(DbTx *tx, void *what, GError **error)
{
    return rule_row_remove(tx, what, error);
}

static void
remove_apply(void *owner, void **what)
{
    drop(owner, has_id, *what);
    rules_tell_changed(owner);
}

static const ChangeKind removing = {
    .work = remove_work, .apply = remove_apply, .free = g_free, .unref = rules_unref};

typedef struct ModeChange {
    RuleScope scope;
    char *scope_id, *mode; /* mode NULL: none */
} ModeChange;

static void
mode_free(void *what)
{
    ModeChange *m = what;

    g_free(m->scope_id);
    g_free(m->mode);
    g_free(m);
}

static bool
mode_work(DbTx *tx, void *what, GError **error)
{
    const ModeChange *m = what;

    return mode_row_set(tx, scope_names[m->scope], m->scope_id, m->mode, error);
}

static void
mode_apply(void *owner, void **what)
{
    DoorRules *r = owner;
    ModeChange *m = *what;
    g_autofree char *key = rules_mode_key(m->scope, m->scope_id);

    if (m->mode != NULL)
        g_hash_table_insert(r->modes, g_steal_pointer(&key), g_steal_pointer(&m->mode));
    else
        g_hash_table_remove(r->modes, key);
    rules_tell_changed(r);
}

static const ChangeKind mode_setting = {
    .work = mode_work, .apply = mode_apply, .free = mode_free, .unref = rules_unref};

static bool
forget_work(DbTx *tx, void *what, GError **error)
{
    return rule_rows_forget(tx, scope_names[RULE_BOX], what, error);
}

/* In memory it is done when it is asked for. */
static const ChangeKind forgetting = {.work = forget_work, .free = g_free, .unref = rules_unref};

/* ---- checks ---- */

/* What the door would refuse is refused here, with its words. */
static bool
check_rule(const DoorRules *r, const DoorRule *rule, GError **error)
{
    guint of_scope = 0;

    if (!rule_scope_check(rule->scope, rule->scope_id, error))
        return false;
    if (strcmp(rule->pattern, "*") != 0 && !policy_pattern_check(rule->pattern, error))
        return false;
    g_autoptr(Json) whole = json_pack("{s:s, s:[o]}", "mode", rule_mode_names[POLICY_ENFORCE], "rules",
                                      rules_policy_rule(rule, "this server"));
    g_autoptr(Policy) tried = policy_new(whole, error);

    if (tried == NULL)
        return false;
    for (guint i = 0; i < r->rules->len; i++) {
        const StoredRule *s = r->rules->pdata[i];

        of_scope += s->scope == rule->scope && strcmp(s->scope_id, rule->scope_id) == 0;
    }
    if (of_scope >= RULES_PER_SCOPE || r->rules->len >= RULES_MAX)
        return err_set(error, ERR_LIMIT, "there are %d rules here: remove one first", RULES_PER_SCOPE);
    return true;
}

void
door_rules_put(DoorRules *r, const DoorRule *rule, DbDone done, void *data)
{
    GError *refused = NULL;
    StoredRule *s = check_rule(r, rule, &refused) ? stored_rule_new(rule) : NULL;
    ChangeSpec spec = rules_change(r, s, refused, done, data);

    door_change(&putting, &spec);
}

void
door_rules_remove(DoorRules *r, const char *id, DbDone done, void *data)
{
    ChangeSpec spec = rules_change(r, g_strdup(id), NULL, done, data);

    door_change(&removing, &spec);
}

void
door_rules_set_mode(DoorRules *r, RuleScope scope, const char *scope_id, const char *mode, DbDone done,
                    void *data)
{
    GError *refused = NULL;
    ModeChange *m = g_new(ModeChange, 1);

    *m = (ModeChange){scope, g_strdup(scope_id), g_strdup(mode)};
    if (mode != NULL && !g_strv_contains(rule_mode_names, mode))
        err_set(&refused, ERR_INVALID, "'mode' is one of enforce, observe and deny");
    else
        (void)rule_scope_check(scope, scope_id, &refused); /* the error is all we need */
    ChangeSpec spec = rules_change(r, m, refused, done, data);

    door_change(&mode_setting, &spec);
}

void
door_rules_forget_box(DoorRules *r, const char *id)
{
    guint before = r->rules->len;
    g_autofree char *key = rules_mode_key(RULE_BOX, id);
    bool mode = g_hash_table_remove(r->modes, key);
    bool limits = g_hash_table_remove(r->limits, key);

    drop(r, rules_is_of_box, id);
    if (r->rules->len == before && !mode && !limits)
        return;
    ChangeSpec spec = rules_change(r, g_strdup(id), NULL, NULL, NULL);

    door_change(&forgetting, &spec);
}

void
door_rules_set_clients(DoorRules *r, Json *list)
{
    json_decref(r->clients);
    r->clients = list;
    r->changed(r->ctx);
}

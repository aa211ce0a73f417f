/* SPDX-License-Identifier: Apache-2.0 */
#include "door/rules.h"

#include <string.h>

#include "base/clock.h"
#include "base/err.h"
#include "door/policy.h"
#include "door/rules-rows.h"

static const char *const scope_names[RULE_SCOPE_MAX] = {
    [RULE_BOX] = "box", [RULE_SQUAD] = "squad", [RULE_TEMPLATE] = "template", [RULE_SERVER] = "server"};
static const char *const mode_names[] = {"enforce", "observe", "deny", NULL};
/* What every agent needs, and where much is cloned and fetched from. */
static const char *const built_in[] = {"github.com", "*.github.com", "*.githubusercontent.com"};

struct DoorRules {
    Db *db;
    void (*changed)(void *ctx);
    void *ctx;
    guint refs; /* the owner, and jobs under way */
    bool freed;
    GPtrArray *rules;  /* StoredRule*, newest first */
    GHashTable *modes; /* "scope scope_id" -> mode */
    Json *clients;
};

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

static void
rules_unref(DoorRules *r)
{
    if (--r->refs > 0)
        return;
    g_ptr_array_unref(r->rules);
    g_hash_table_unref(r->modes);
    json_decref(r->clients);
    g_free(r);
}

DoorRules *
door_rules_new(Db *db, void (*changed)(void *ctx), void *ctx)
{
    DoorRules *r = g_new0(DoorRules, 1);

    *r = (DoorRules){.db = db, .changed = changed, .ctx = ctx, .refs = 1};
    r->rules = g_ptr_array_new_with_free_func((GDestroyNotify)stored_rule_free);
    r->modes = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
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

static char *
mode_key(RuleScope scope, const char *scope_id)
{
    return g_strdup_printf("%s %s", scope_names[scope], scope_id);
}

/* ---- one change ---- */

typedef enum ChangeKind { CHANGE_LOAD, CHANGE_PUT, CHANGE_REMOVE, CHANGE_MODE, CHANGE_FORGET } ChangeKind;

typedef struct Change {
    DoorRules *rules; /* a reference */
    ChangeKind kind;
    StoredRule *rule;      /* PUT */
    char *id;              /* REMOVE; FORGET: the box */
    RuleScope scope;       /* MODE */
    char *scope_id, *mode; /* MODE; mode NULL: none */
    GPtrArray *loaded;     /* LOAD: StoredRule* */
    GHashTable *loaded_modes;
    GError *refused; /* before anything was written */
    DbDone done;
    void *data;
} Change;

static Change *
change_new(DoorRules *r, ChangeKind kind, DbDone done, void *data)
{
    Change *c = g_new0(Change, 1);

    r->refs++;
    *c = (Change){.rules = r, .kind = kind, .done = done, .data = data};
    return c;
}

static void
change_free(gpointer data)
{
    Change *c = data;

    rules_unref(c->rules);
    stored_rule_free(c->rule);
    g_free(c->id);
    g_free(c->scope_id);
    g_free(c->mode);
    if (c->loaded != NULL)
        g_ptr_array_unref(c->loaded);
    if (c->loaded_modes != NULL)
        g_hash_table_unref(c->loaded_modes);
    g_clear_error(&c->refused);
    g_free(c);
}

static bool
change_work(DbTx *tx, void *data, GError **error)
{
    Change *c = data;

    if (c->refused != NULL) {
        g_propagate_error(error, g_error_copy(c->refused));
        return false;
    }
    switch (c->kind) {
    case CHANGE_LOAD:
        return rule_rows_load(tx, c->loaded, error) && mode_rows_load(tx, c->loaded_modes, error);
    case CHANGE_PUT:
        return rule_row_put(tx, c->rule, error);
    case CHANGE_REMOVE:
        return rule_row_remove(tx, c->id, error);
    case CHANGE_MODE:
        return mode_row_set(tx, scope_names[c->scope], c->scope_id, c->mode, error);
    case CHANGE_FORGET:
        return rule_rows_forget(tx, scope_names[RULE_BOX], c->id, error);
    }
    return err_set(error, ERR_INTERNAL, "an unknown change of rules");
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

static bool
is_of_box(const StoredRule *rule, const void *id)
{
    return rule->scope == RULE_BOX && strcmp(rule->scope_id, id) == 0;
}

static void
apply(Change *c)
{
    DoorRules *r = c->rules;

    switch (c->kind) {
    case CHANGE_LOAD:
        g_ptr_array_unref(r->rules);
        r->rules = g_steal_pointer(&c->loaded);
        g_hash_table_unref(r->modes);
        r->modes = g_steal_pointer(&c->loaded_modes);
        break;
    case CHANGE_PUT:
        drop(r, has_place, c->rule);
        g_ptr_array_insert(r->rules, 0, g_steal_pointer(&c->rule));
        break;
    case CHANGE_REMOVE:
        drop(r, has_id, c->id);
        break;
    case CHANGE_MODE:
        if (c->mode != NULL)
            g_hash_table_insert(r->modes, mode_key(c->scope, c->scope_id), g_steal_pointer(&c->mode));
        else {
            g_autofree char *key = mode_key(c->scope, c->scope_id);

            g_hash_table_remove(r->modes, key);
        }
        break;
    case CHANGE_FORGET:
        break; /* at once, when it was asked for */
    }
}

static void
change_done(void *data, const GError *error)
{
    Change *c = data;

    if (error == NULL)
        apply(c);
    if (error == NULL && !c->rules->freed && c->kind != CHANGE_FORGET)
        c->rules->changed(c->rules->ctx);
    if (c->done != NULL)
        c->done(c->data, error);
}

static void
submit(Change *c)
{
    (c->kind == CHANGE_LOAD ? db_read : db_write)(c->rules->db, change_work, change_done, c, change_free);
}

void
door_rules_load(DoorRules *r, DbDone done, void *data)
{
    Change *c = change_new(r, CHANGE_LOAD, done, data);

    c->loaded = g_ptr_array_new_with_free_func((GDestroyNotify)stored_rule_free);
    c->loaded_modes = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    submit(c);
}

/* ---- checks ---- */

static Json *
policy_rule(const char *pattern, Json *ports, bool allow, bool inside, bool upgrade, const char *source)
{
    Json *rule = json_pack("{s:s, s:s}", allow ? "allow" : "deny", pattern, "source", source);

    if (json_array_size(ports) > 0)
        json_object_set(rule, "ports", ports);
    if (allow && inside)
        json_object_set_new(rule, "inside", json_true());
    if (allow && upgrade)
        json_object_set_new(rule, "upgrade", json_true());
    if (strcmp(pattern, "*") == 0)
        json_object_set_new(rule, "all", json_true());
    return rule;
}

/* What the door would refuse is refused here, with its words. */
static bool
check_rule(const DoorRules *r, const DoorRule *rule, GError **error)
{
    guint of_scope = 0;

    if ((rule->scope == RULE_SERVER) != (*rule->scope_id == '\0') ||
        strlen(rule->scope_id) > RULE_SCOPE_ID_MAX)
        return err_set(error, ERR_INVALID, "'scope_id' is the name or id of a %s", scope_names[rule->scope]);
    if (strcmp(rule->pattern, "*") != 0 && !policy_pattern_check(rule->pattern, error))
        return false;
    g_autoptr(Json) whole = json_pack(
        "{s:s, s:[o]}", "mode", mode_names[POLICY_ENFORCE], "rules",
        policy_rule(rule->pattern, rule->ports, rule->allow, rule->inside, rule->upgrade, "this server"));
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
    Change *c = change_new(r, CHANGE_PUT, done, data);

    if (check_rule(r, rule, &c->refused))
        c->rule = stored_rule_new(rule);
    submit(c);
}

void
door_rules_remove(DoorRules *r, const char *id, DbDone done, void *data)
{
    Change *c = change_new(r, CHANGE_REMOVE, done, data);

    c->id = g_strdup(id);
    submit(c);
}

void
door_rules_set_mode(DoorRules *r, RuleScope scope, const char *scope_id, const char *mode, DbDone done,
                    void *data)
{
    Change *c = change_new(r, CHANGE_MODE, done, data);

    c->scope = scope;
    c->scope_id = g_strdup(scope_id);
    c->mode = g_strdup(mode);
    if (mode != NULL && !g_strv_contains(mode_names, mode))
        err_set(&c->refused, ERR_INVALID, "'mode' is one of enforce, observe and deny");
    else if ((scope == RULE_SERVER) != (*scope_id == '\0') || strlen(scope_id) > RULE_SCOPE_ID_MAX)
        err_set(&c->refused, ERR_INVALID, "'scope_id' is the name or id of a %s", scope_names[scope]);
    submit(c);
}

void
door_rules_forget_box(DoorRules *r, const char *id)
{
    guint before = r->rules->len;
    g_autofree char *key = mode_key(RULE_BOX, id);
    bool mode = g_hash_table_remove(r->modes, key);

    drop(r, is_of_box, id);
    if (r->rules->len == before && !mode)
        return;
    Change *c = change_new(r, CHANGE_FORGET, NULL, NULL);

    c->id = g_strdup(id);
    submit(c);
}

void
door_rules_set_clients(DoorRules *r, Json *list)
{
    json_decref(r->clients);
    r->clients = list;
    r->changed(r->ctx);
}

/* ---- what they come to ---- */

bool
door_rules_has_own(const DoorRules *r, const char *box)
{
    g_autofree char *key = mode_key(RULE_BOX, box);

    if (g_hash_table_contains(r->modes, key))
        return true;
    for (guint i = 0; i < r->rules->len; i++) {
        if (is_of_box(r->rules->pdata[i], box))
            return true;
    }
    return false;
}

static void
add_scope(const DoorRules *r, RuleScope scope, const char *scope_id, Json *list)
{
    g_autofree char *source = *scope_id != '\0' ? g_strdup_printf("%s %s", scope_names[scope], scope_id)
                                                : g_strdup("this server");

    for (guint i = 0; i < r->rules->len; i++) {
        const StoredRule *s = r->rules->pdata[i];

        if (s->scope == scope && strcmp(s->scope_id, scope_id) == 0)
            json_array_append_new(list,
                                  policy_rule(s->pattern, s->ports, s->allow, s->inside, s->upgrade, source));
    }
}

static Json *
defaults(const DoorRules *r)
{
    Json *list = json_array(), *none = json_array();

    json_array_extend(list, r->clients);
    for (size_t i = 0; i < G_N_ELEMENTS(built_in); i++)
        json_array_append_new(list, policy_rule(built_in[i], none, true, false, false, "built in"));
    json_decref(none);
    return list;
}

Json *
door_rules_compose(const DoorRules *r, const char *box, const char *squad, const char *template)
{
    const char *const ids[RULE_SCOPE_MAX] = {
        [RULE_BOX] = box, [RULE_SQUAD] = squad, [RULE_TEMPLATE] = template, [RULE_SERVER] = ""};
    const char *mode = NULL;
    Json *list = json_array();

    for (RuleScope i = 0; i < RULE_SCOPE_MAX; i++) {
        if (ids[i] == NULL)
            continue;
        g_autofree char *key = mode_key(i, ids[i]);

        if (mode == NULL)
            mode = g_hash_table_lookup(r->modes, key);
        add_scope(r, i, ids[i], list);
    }
    g_autoptr(Json) rest = defaults(r);

    json_array_extend(list, rest);
    return json_pack("{s:s, s:o}", "mode", mode != NULL ? mode : mode_names[POLICY_ENFORCE], "rules", list);
}

char *
door_policy_name(const Json *policy)
{
    g_autofree char *text = json_encode(policy);

    return g_compute_checksum_for_string(G_CHECKSUM_SHA256, text, -1);
}

static Json *
show_rule(const StoredRule *s)
{
    char at[CLOCK_ISO_LEN + 1];
    const char *warning = s->allow ? policy_pattern_warning(s->pattern) : NULL;

    clock_format_iso(s->created_us, at);
    return json_pack("{s:s, s:s, s:s, s:s, s:s, s:O, s:b, s:b, s:s, s:s, s:s*}", "id", s->id, "scope",
                     scope_names[s->scope], "scope_id", s->scope_id, "action", s->allow ? "allow" : "deny",
                     "pattern", s->pattern, "ports", s->ports, "inside", s->inside, "upgrade", s->upgrade,
                     "actor", s->actor, "created_at", at, "warning", warning);
}

Json *
door_rules_show(const DoorRules *r)
{
    Json *list = json_array(), *modes = json_array();
    GHashTableIter iter;
    gpointer key, mode;
    const char *of_server = g_hash_table_lookup(r->modes, "server ");

    for (guint i = 0; i < r->rules->len; i++)
        json_array_append_new(list, show_rule(r->rules->pdata[i]));
    g_hash_table_iter_init(&iter, r->modes);
    while (g_hash_table_iter_next(&iter, &key, &mode)) {
        g_auto(GStrv) words = g_strsplit(key, " ", 2);

        json_array_append_new(
            modes, json_pack("{s:s, s:s, s:s}", "scope", words[0], "scope_id", words[1], "mode", mode));
    }
    return json_pack("{s:s, s:o, s:o, s:o}", "mode",
                     of_server != NULL ? of_server : mode_names[POLICY_ENFORCE], "modes", modes, "rules",
                     list, "defaults", defaults(r));
}

/* SPDX-License-Identifier: Apache-2.0 */
/* What the rules come to for a box, and how they are shown. */
#include <string.h>

#include "base/clock.h"
#include "door/policy.h"
#include "door/rules-private.h"

/* What every agent needs, and where much is cloned and fetched from. */
static const char *const built_in[] = {"github.com", "*.github.com", "*.githubusercontent.com"};

char *
rules_mode_key(RuleScope scope, const char *scope_id)
{
    return g_strdup_printf("%s %s", rule_scope_name(scope), scope_id);
}

bool
rules_is_of_box(const StoredRule *rule, const void *id)
{
    return rule->scope == RULE_BOX && strcmp(rule->scope_id, id) == 0;
}

Json *
rules_policy_rule(const DoorRule *rule, const char *source)
{
    const struct {
        const char *name;
        bool on;
    } options[] = {
        {"inside", rule->allow && rule->inside},
        {"upgrade", rule->allow && rule->upgrade},
        {"plain", rule->allow && rule->plain},
        {"all", strcmp(rule->pattern, "*") == 0},
    };
    Json *said = json_pack("{s:s, s:s}", rule->allow ? "allow" : "deny", rule->pattern, "source", source);

    if (json_array_size(rule->ports) > 0)
        json_object_set(said, "ports", rule->ports);
    for (size_t i = 0; i < G_N_ELEMENTS(options); i++) {
        if (options[i].on)
            json_object_set_new(said, options[i].name, json_true());
    }
    return said;
}

bool
door_rules_has_own(const DoorRules *r, const char *box)
{
    g_autofree char *key = rules_mode_key(RULE_BOX, box);

    if (g_hash_table_contains(r->modes, key))
        return true;
    for (guint i = 0; i < r->rules->len; i++) {
        if (rules_is_of_box(r->rules->pdata[i], box))
            return true;
    }
    return false;
}

static void
add_scope(const DoorRules *r, RuleScope scope, const char *scope_id, Json *list)
{
    g_autofree char *source = *scope_id != '\0' ? g_strdup_printf("%s %s", rule_scope_name(scope), scope_id)
                                                : g_strdup("this server");

    for (guint i = 0; i < r->rules->len; i++) {
        const StoredRule *s = r->rules->pdata[i];

        DoorRule rule = {.pattern = s->pattern,
                         .ports = s->ports,
                         .allow = s->allow,
                         .inside = s->inside,
                         .upgrade = s->upgrade,
                         .plain = s->plain};

        if (s->scope == scope && strcmp(s->scope_id, scope_id) == 0)
            json_array_append_new(list, rules_policy_rule(&rule, source));
    }
}

static Json *
defaults(const DoorRules *r)
{
    Json *list = json_array();

    json_array_extend(list, r->clients);
    for (size_t i = 0; i < G_N_ELEMENTS(built_in); i++)
        json_array_append_new(
            list, rules_policy_rule(&(DoorRule){.pattern = built_in[i], .allow = true}, "built in"));
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
        g_autofree char *key = rules_mode_key(i, ids[i]);

        if (mode == NULL)
            mode = g_hash_table_lookup(r->modes, key);
        add_scope(r, i, ids[i], list);
    }
    g_autoptr(Json) rest = defaults(r);

    json_array_extend(list, rest);
    return json_pack("{s:s, s:o}", "mode", mode != NULL ? mode : rule_mode_names[POLICY_ENFORCE], "rules",
                     list);
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
    return json_pack("{s:s, s:s, s:s, s:s, s:s, s:O, s:b, s:b, s:b, s:s, s:s, s:s*}", "id", s->id, "scope",
                     rule_scope_name(s->scope), "scope_id", s->scope_id, "action",
                     s->allow ? "allow" : "deny", "pattern", s->pattern, "ports", s->ports, "inside",
                     s->inside, "upgrade", s->upgrade, "plain", s->plain, "actor", s->actor, "created_at", at,
                     "warning", warning);
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
                     of_server != NULL ? of_server : rule_mode_names[POLICY_ENFORCE], "modes", modes, "rules",
                     list, "defaults", defaults(r));
}

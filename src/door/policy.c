/* SPDX-License-Identifier: Apache-2.0 */
/* Rules are kept in their order, and found by what they name: `exact` maps a host and `below` a
 * suffix to the first rule that names it, each rule to the next one with the same key.  So a
 * decision looks up the host and its suffixes, takes the earliest rule of those that have the
 * port, and never walks the list. */
#include "door/policy.h"

#include <string.h>

#include "base/err.h"
#include "door/pattern.h"

typedef struct Rule {
    const char *key; /* into `pattern`, or the address's plain form; NULL: every name */
    char *pattern, *source;
    guint16 ports[POLICY_PORTS_MAX];
    guint n_ports; /* 0: every port */
    bool allow, inside, upgrade, plain;
    struct Rule *next; /* the next one with the same key */
} Rule;

struct Policy {
    gint refs;
    PolicyMode mode;
    guint n_rules;
    Rule *rules;
    GHashTable *exact, *below; /* key -> its first Rule; both borrowed from `rules` */
    Rule *all;
    guint labels_max; /* of the keys in `below` */
};

static const char *const mode_names[] = {
    [POLICY_ENFORCE] = "enforce", [POLICY_OBSERVE] = "observe", [POLICY_DENY] = "deny"};

static guint
count_labels(const char *name)
{
    guint n = 1;

    for (; *name != '\0'; name++)
        n += *name == '.';
    return n;
}

/* ---- reading ---- */

static bool
read_mode(const char *name, PolicyMode *ret, GError **error)
{
    for (guint i = 0; i < G_N_ELEMENTS(mode_names); i++) {
        if (strcmp(name, mode_names[i]) == 0) {
            *ret = (PolicyMode)i;
            return true;
        }
    }
    return err_set(error, ERR_INVALID, "no mode '%s': it is enforce, observe or deny", name);
}

static bool
read_ports(Rule *rule, Json *ports, GError **error)
{
    size_t i;
    Json *port;

    if (ports == NULL) {
        if (rule->allow) {
            rule->ports[0] = 80;
            rule->ports[1] = 443;
            rule->n_ports = 2;
        }
        return true;
    }
    if (json_array_size(ports) == 0)
        return err_set(error, ERR_INVALID, "'ports' of '%s' is empty", rule->pattern);
    json_array_foreach(ports, i, port)
    {
        json_int_t n = json_is_integer(port) ? json_integer_value(port) : 0;

        if (n < 1 || n > G_MAXUINT16)
            return err_set(error, ERR_INVALID, "a port of '%s' is not in 1..65535", rule->pattern);
        rule->ports[rule->n_ports++] = (guint16)n;
    }
    return true;
}

static bool
read_pattern(Rule *rule, const char *pattern, bool all, GError **error)
{
    bool is_all = strcmp(pattern, "*") == 0;

    if (is_all && rule->allow && !all)
        return err_set(error, ERR_INVALID, "a rule for '*' needs \"all\": true");
    if (!policy_pattern_check(pattern, error))
        return false;
    rule->pattern = is_all ? g_strdup("*") : pattern_canonical(pattern);
    rule->key = is_all ? NULL : g_str_has_prefix(rule->pattern, "*.") ? rule->pattern + 2 : rule->pattern;
    return true;
}

static bool
read_rule(Rule *rule, Json *object, GError **error)
{
    const char *allow = NULL, *deny = NULL, *source = "";
    Json *ports = NULL;
    bool all = false;
    const JsonField fields[] = {
        {"allow", JSON_KIND_STRING, &allow, false, 1, PATTERN_MAX},
        {"deny", JSON_KIND_STRING, &deny, false, 1, PATTERN_MAX},
        {"ports", JSON_KIND_ARRAY, &ports, false, 0, POLICY_PORTS_MAX},
        {"inside", JSON_KIND_BOOL, &rule->inside, false, 0, 0},
        {"upgrade", JSON_KIND_BOOL, &rule->upgrade, false, 0, 0},
        {"plain", JSON_KIND_BOOL, &rule->plain, false, 0, 0},
        {"all", JSON_KIND_BOOL, &all, false, 0, 0},
        {"source", JSON_KIND_STRING, &source, false, 0, POLICY_SOURCE_MAX},
        {NULL},
    };

    if (!json_read(object, fields, error))
        return false;
    if ((allow == NULL) == (deny == NULL))
        return err_set(error, ERR_INVALID, "a rule has either 'allow' or 'deny'");
    rule->allow = allow != NULL;
    if (!read_pattern(rule, allow != NULL ? allow : deny, all, error) || !read_ports(rule, ports, error))
        return false;
    rule->source = g_strdup(source);
    return true;
}

/* From the last rule to the first, so that each list is in order. */
static void
index_rules(Policy *p)
{
    for (guint i = p->n_rules; i-- > 0;) {
        Rule *r = &p->rules[i];
        bool wild = r->key == r->pattern + 2;

        if (r->key == NULL) {
            r->next = p->all;
            p->all = r;
            continue;
        }
        GHashTable *table = wild ? p->below : p->exact;

        r->next = g_hash_table_lookup(table, r->key);
        g_hash_table_insert(table, (char *)(guintptr)r->key, r);
        if (wild)
            p->labels_max = MAX(p->labels_max, count_labels(r->key));
    }
}

Policy *
policy_new(Json *object, GError **error)
{
    const char *mode = mode_names[POLICY_ENFORCE];
    Json *rules = NULL, *rule;
    size_t i;
    const JsonField fields[] = {
        {"mode", JSON_KIND_STRING, &mode, false, 1, 16},
        {"rules", JSON_KIND_ARRAY, &rules, false, 0, POLICY_RULES_MAX},
        {NULL},
    };
    PolicyMode mode_read = POLICY_ENFORCE;

    if (!json_read(object, fields, error) || !read_mode(mode, &mode_read, error))
        return NULL;
    g_autoptr(Policy) p = g_new0(Policy, 1);
    p->refs = 1;
    p->mode = mode_read;
    p->exact = g_hash_table_new(g_str_hash, g_str_equal);
    p->below = g_hash_table_new(g_str_hash, g_str_equal);
    p->rules = g_new0(Rule, rules != NULL ? json_array_size(rules) : 0);
    json_array_foreach(rules, i, rule)
    {
        p->n_rules++;
        if (!read_rule(&p->rules[i], rule, error))
            return NULL;
    }
    index_rules(p);
    return g_steal_pointer(&p);
}

Policy *
policy_ref(Policy *policy)
{
    policy->refs++;
    return policy;
}

void
policy_unref(Policy *policy)
{
    if (policy == NULL || --policy->refs > 0)
        return;
    g_hash_table_unref(policy->exact);
    g_hash_table_unref(policy->below);
    for (guint i = 0; i < policy->n_rules; i++) {
        g_free(policy->rules[i].pattern);
        g_free(policy->rules[i].source);
    }
    g_free(policy->rules);
    g_free(policy);
}

PolicyMode
policy_mode(const Policy *policy)
{
    return policy->mode;
}

/* ---- deciding ---- */

/* The earliest rule for the port so far, and whether another port would have been allowed. */
typedef struct Search {
    guint16 port;
    const Rule *best;
    const Rule *other_port;
} Search;

static bool
has_port(const Rule *rule, guint16 port)
{
    for (guint i = 0; i < rule->n_ports; i++) {
        if (rule->ports[i] == port)
            return true;
    }
    return rule->n_ports == 0;
}

static void
look_at(Search *search, const Rule *first)
{
    for (const Rule *r = first; r != NULL; r = r->next) {
        if (has_port(r, search->port)) {
            if (search->best == NULL || r < search->best)
                search->best = r;
            return;
        }
        if (r->allow && (search->other_port == NULL || r < search->other_port))
            search->other_port = r;
    }
}

static void
look_below(const Policy *p, Search *search, const char *host)
{
    guint labels = count_labels(host);

    for (const char *dot = strchr(host, '.'); dot != NULL; dot = strchr(dot + 1, '.')) {
        if (--labels <= p->labels_max)
            look_at(search, g_hash_table_lookup(p->below, dot + 1));
    }
}

void
policy_decide(const Policy *policy, const DoorName *name, PolicyVerdict *ret)
{
    Search search = {.port = name->port};

    *ret = (PolicyVerdict){0};
    if (policy->mode == POLICY_DENY)
        return;
    look_at(&search, g_hash_table_lookup(policy->exact, name->host));
    if (!name->is_address) {
        look_below(policy, &search, name->host);
        look_at(&search, policy->all);
    }
    const Rule *best = search.best;
    if (best != NULL) {
        ret->allowed = best->allow;
        ret->rule = best->pattern;
        ret->source = best->source;
    }
    if (ret->allowed) {
        ret->inside = best->inside;
        ret->upgrade = best->upgrade;
        ret->plain = best->plain;
        return;
    }
    ret->port_only = best == NULL && search.other_port != NULL;
    if (policy->mode == POLICY_OBSERVE)
        ret->allowed = ret->observed = true;
}

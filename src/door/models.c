/* SPDX-License-Identifier: Apache-2.0 */
#include "door/models.h"

#include <string.h>

#include "base/clock.h"
#include "base/err.h"
#include "brain/provider.h"
#include "door/models-rows.h"
#include "door/usage-rows.h"
#include "wire/door.h"

enum { STATUS_FAILED = 400 };

struct DoorModels {
    guint refs; /* the owner, and each change under way */
    Db *db;
    DoorLink *link;       /* borrowed; NULL: none */
    GPtrArray *providers; /* StoredProvider* */
    GPtrArray *budgets;   /* StoredBudget* */
    DoorModelCounts counts;
};

static const char *const bound_names[] = {"tokens",        "microusd",       "calls", "microusd_per_hour",
                                          "calls_per_min", "tokens_per_min", NULL};

static void
models_unref(DoorModels *m)
{
    if (--m->refs > 0)
        return;
    g_ptr_array_unref(m->providers);
    g_ptr_array_unref(m->budgets);
    g_free(m);
}

static GPtrArray *
providers_new(void)
{
    return g_ptr_array_new_with_free_func((GDestroyNotify)stored_provider_free);
}

static GPtrArray *
budgets_list_new(void)
{
    return g_ptr_array_new_with_free_func((GDestroyNotify)stored_budget_free);
}

DoorModels *
door_models_new(Db *db)
{
    DoorModels *m = g_new0(DoorModels, 1);

    *m = (DoorModels){.refs = 1, .db = db, .providers = providers_new(), .budgets = budgets_list_new()};
    return m;
}

void
door_models_free(DoorModels *m)
{
    if (m == NULL)
        return;
    m->link = NULL;
    models_unref(m);
}

/* ---- to the door ---- */

static Json *
spent_json(const BudgetSpent *s)
{
    return json_pack("{s:I, s:I, s:I}", "tokens", (json_int_t)s->tokens, "microusd", (json_int_t)s->microusd,
                     "calls", (json_int_t)s->calls);
}

static void
tell_provider(DoorModels *m, const StoredProvider *p)
{
    if (m->link != NULL)
        door_link_set_provider(m->link, p->provider, *p->sealed != '\0' ? p->sealed : NULL,
                               *p->script != '\0' ? p->script : NULL);
}

static void
tell_budget(DoorModels *m, const StoredBudget *b)
{
    g_autoptr(Json) spent = spent_json(&b->spent);

    if (m->link != NULL)
        door_link_set_budget(m->link, b->scope, b->bounds, spent);
}

void
door_models_attach(DoorModels *m, DoorLink *link)
{
    m->link = link;
    for (guint i = 0; i < m->providers->len; i++)
        tell_provider(m, m->providers->pdata[i]);
    for (guint i = 0; i < m->budgets->len; i++)
        tell_budget(m, m->budgets->pdata[i]);
}

/* ---- what is spent ---- */

static guint
find_budget(const DoorModels *m, const char *scope)
{
    guint i = 0;

    while (i < m->budgets->len && strcmp(((StoredBudget *)m->budgets->pdata[i])->scope, scope) != 0)
        i++;
    return i;
}

static guint64
number_of(const Json *fact, const char *name)
{
    return (guint64)MAX(json_integer_value(json_object_get(fact, name)), 0);
}

static void
note_scope(DoorModels *m, const char *scope, const Json *fact)
{
    guint i = find_budget(m, scope);

    if (i == m->budgets->len)
        return;
    StoredBudget *b = m->budgets->pdata[i];

    b->spent.calls += usage_call_failed(fact) ? 0 : 1;
    b->spent.microusd += number_of(fact, "microusd");
    b->spent.tokens += number_of(fact, "input_tokens") + number_of(fact, "output_tokens") +
                       number_of(fact, "cached_tokens") + number_of(fact, "cache_write_tokens");
    g_autoptr(Json) spent = spent_json(&b->spent);

    if (m->link != NULL)
        door_link_note_spent(m->link, scope, spent);
}

static void
count_call(DoorModelCounts *c, const Json *fact)
{
    c->calls++;
    c->failed += number_of(fact, "status") >= STATUS_FAILED;
    c->input_tokens += number_of(fact, "input_tokens") + number_of(fact, "cache_write_tokens");
    c->output_tokens += number_of(fact, "output_tokens");
    c->cached_tokens += number_of(fact, "cached_tokens");
    c->microusd += number_of(fact, "microusd");
    c->latency_ms += number_of(fact, "latency_ms");
}

const DoorModelCounts *
door_models_counts(const DoorModels *m)
{
    return &m->counts;
}

void
door_models_note(DoorModels *m, Json *fact)
{
    static const char *const scopes[] = {"box", "agent", "task", "squad"};
    const char *kind = json_string_value(json_object_get(fact, "kind"));

    m->counts.budgets_exceeded += g_strcmp0(kind, "budget.exceeded") == 0;
    m->counts.loops_broken += g_strcmp0(kind, "loop.broken") == 0;
    if (g_strcmp0(kind, "model.called") != 0)
        return;
    count_call(&m->counts, fact);
    note_scope(m, "all", fact);
    for (size_t i = 0; i < G_N_ELEMENTS(scopes); i++) {
        const char *id = json_string_value(json_object_get(fact, scopes[i]));
        g_autofree char *scope = g_strdup_printf("%s:%s", scopes[i], id != NULL ? id : "");

        if (id != NULL)
            note_scope(m, scope, fact);
    }
}

/* ---- one change ---- */

typedef enum ChangeKind {
    CHANGE_LOAD,
    CHANGE_PROVIDER,
    CHANGE_NO_PROVIDER,
    CHANGE_BUDGET,
    CHANGE_NO_BUDGET,
} ChangeKind;

typedef struct Change {
    DoorModels *models; /* a reference */
    ChangeKind kind;
    StoredProvider *provider;
    StoredBudget *budget;
    char *name;                     /* NO_PROVIDER; NO_BUDGET: the scope */
    GPtrArray *providers, *budgets; /* LOAD */
    GError *refused;                /* before anything was written */
    DbDone done;
    void *data;
} Change;

static Change *
change_new(DoorModels *m, ChangeKind kind, DbDone done, void *data)
{
    Change *c = g_new0(Change, 1);

    m->refs++;
    *c = (Change){.models = m, .kind = kind, .done = done, .data = data};
    return c;
}

static void
change_free(gpointer data)
{
    Change *c = data;

    models_unref(c->models);
    stored_provider_free(c->provider);
    stored_budget_free(c->budget);
    g_free(c->name);
    g_clear_pointer(&c->providers, g_ptr_array_unref);
    g_clear_pointer(&c->budgets, g_ptr_array_unref);
    g_clear_error(&c->refused);
    g_free(c);
}

static bool
change_work(DbTx *tx, void *data, GError **error)
{
    Change *c = data;

    if (c->refused != NULL) {
        g_propagate_error(error, g_steal_pointer(&c->refused));
        return false;
    }
    switch (c->kind) {
    case CHANGE_LOAD:
        return provider_rows_load(tx, c->providers, error) && budget_rows_load(tx, c->budgets, error);
    case CHANGE_PROVIDER:
        return provider_row_put(tx, c->provider, error);
    case CHANGE_NO_PROVIDER:
        return provider_row_remove(tx, c->name, error);
    case CHANGE_BUDGET:
        return budget_row_put(tx, c->budget, error);
    case CHANGE_NO_BUDGET:
        return budget_row_remove(tx, c->name, error);
    }
    return err_set(error, ERR_INTERNAL, "an unknown change of models");
}

static guint
find_provider(const DoorModels *m, const char *name)
{
    guint i = 0;

    while (i < m->providers->len && strcmp(((StoredProvider *)m->providers->pdata[i])->name, name) != 0)
        i++;
    return i;
}

static void
replace(GPtrArray *list, guint at, gpointer row)
{
    if (at < list->len)
        g_ptr_array_remove_index(list, at);
    g_ptr_array_insert(list, (gint)at, row);
}

static void
remove_provider(DoorModels *m, const char *name)
{
    guint at = find_provider(m, name);

    if (at < m->providers->len)
        g_ptr_array_remove_index(m->providers, at);
    if (m->link != NULL)
        door_link_remove_provider(m->link, name);
}

static void
remove_budget(DoorModels *m, const char *scope)
{
    guint at = find_budget(m, scope);

    if (at < m->budgets->len)
        g_ptr_array_remove_index(m->budgets, at);
    if (m->link != NULL)
        door_link_remove_budget(m->link, scope);
}

/* After a restore there may be fewer than the door was told of. */
static void
forget_all(DoorModels *m)
{
    for (guint i = 0; i < m->providers->len; i++)
        door_link_remove_provider(m->link, ((StoredProvider *)m->providers->pdata[i])->name);
    for (guint i = 0; i < m->budgets->len; i++)
        door_link_remove_budget(m->link, ((StoredBudget *)m->budgets->pdata[i])->scope);
}

static void
load(Change *c)
{
    DoorModels *m = c->models;

    if (m->link != NULL)
        forget_all(m);
    g_ptr_array_unref(m->providers);
    g_ptr_array_unref(m->budgets);
    m->providers = g_steal_pointer(&c->providers);
    m->budgets = g_steal_pointer(&c->budgets);
    if (m->link != NULL)
        door_models_attach(m, m->link);
}

static void
apply(Change *c)
{
    DoorModels *m = c->models;

    switch (c->kind) {
    case CHANGE_LOAD:
        load(c);
        break;
    case CHANGE_PROVIDER:
        tell_provider(m, c->provider);
        replace(m->providers, find_provider(m, c->provider->name), c->provider);
        c->provider = NULL;
        break;
    case CHANGE_NO_PROVIDER:
        remove_provider(m, c->name);
        break;
    case CHANGE_BUDGET:
        tell_budget(m, c->budget);
        replace(m->budgets, find_budget(m, c->budget->scope), c->budget);
        c->budget = NULL;
        break;
    case CHANGE_NO_BUDGET:
        remove_budget(m, c->name);
        break;
    }
}

static void
change_done(void *data, const GError *error)
{
    Change *c = data;

    if (error == NULL)
        apply(c);
    if (c->done != NULL)
        c->done(c->data, error);
}

static void
submit(Change *c)
{
    (c->kind == CHANGE_LOAD ? db_read : db_write)(c->models->db, change_work, change_done, c, change_free);
}

void
door_models_load(DoorModels *m, DbDone done, void *data)
{
    Change *c = change_new(m, CHANGE_LOAD, done, data);

    c->providers = providers_new();
    c->budgets = budgets_list_new();
    submit(c);
}

/* ---- providers ---- */

static bool
is_hex(const char *text)
{
    size_t n = strspn(text, "0123456789abcdef");

    return text[n] == '\0' && n % 2 == 0;
}

/* What the door would refuse is refused here, with its words. */
static bool
check_provider(const DoorModels *m, const DoorProviderSpec *spec, GError **error)
{
    g_autoptr(Provider) tried = provider_new(spec->provider, error);

    if (tried == NULL)
        return false;
    bool scripted = provider_kind(tried) == PROVIDER_SCRIPT;

    if (scripted != (*spec->script != '\0'))
        return err_set(error, ERR_INVALID,
                       scripted ? "a scripted provider needs its 'script'"
                                : "only a scripted provider has a 'script'");
    if (strlen(spec->script) > DOOR_SCRIPT_MAX)
        return err_set(error, ERR_INVALID, "a script has at most %d bytes", DOOR_SCRIPT_MAX);
    if (strlen(spec->sealed) > MODELS_SEALED_MAX || !is_hex(spec->sealed))
        return err_set(error, ERR_INVALID, "'sealed_key' must be the hex digits of a sealed box");
    if (m->providers->len >= MODELS_PROVIDERS_MAX && !door_models_has_provider(m, provider_name(tried)))
        return err_set(error, ERR_LIMIT, "there are %d providers: remove one first", MODELS_PROVIDERS_MAX);
    return true;
}

void
door_models_put_provider(DoorModels *m, const DoorProviderSpec *spec, DbDone done, void *data)
{
    Change *c = change_new(m, CHANGE_PROVIDER, done, data);

    if (check_provider(m, spec, &c->refused)) {
        c->provider = g_new(StoredProvider, 1);
        *c->provider = (StoredProvider){
            .provider = json_deep_copy(spec->provider),
            .name = g_strdup(json_string_value(json_object_get(spec->provider, "name"))),
            .sealed = g_strdup(spec->sealed),
            .script = g_strdup(spec->script),
            .actor = g_strdup(spec->actor),
            .created_us = clock_wall_us()};
    }
    submit(c);
}

void
door_models_remove_provider(DoorModels *m, const char *name, DbDone done, void *data)
{
    Change *c = change_new(m, CHANGE_NO_PROVIDER, done, data);

    c->name = g_strdup(name);
    submit(c);
}

bool
door_models_has_provider(const DoorModels *m, const char *name)
{
    return find_provider(m, name) < m->providers->len;
}

Json *
door_models_providers(const DoorModels *m)
{
    Json *list = json_array();

    for (guint i = 0; i < m->providers->len; i++) {
        const StoredProvider *p = m->providers->pdata[i];
        Json *o = json_deep_copy(p->provider);
        char at[CLOCK_ISO_LEN + 1];

        clock_format_iso(p->created_us, at);
        json_object_set_new(o, "key", json_boolean(*p->sealed != '\0'));
        json_object_set_new(o, "actor", json_string(p->actor));
        json_object_set_new(o, "created_at", json_string(at));
        json_array_append_new(list, o);
    }
    return list;
}

/* ---- budgets ---- */

static bool
check_scope(const char *scope, GError **error)
{
    const char *colon = strchr(scope, ':');
    g_autofree char *name = colon != NULL ? g_strndup(scope, (size_t)(colon - scope)) : NULL;
    UsageBy by;

    if (strcmp(scope, "all") == 0)
        return true;
    if (name != NULL && colon[1] != '\0' && strlen(scope) <= BUDGET_SCOPE_LEN_MAX &&
        usage_by_from_name(name, &by) && by <= USAGE_BY_SQUAD)
        return true;
    return err_set(error, ERR_INVALID, "'scope' is all, box:ID, agent:ID, task:ID or squad:ID, not '%s'",
                   scope);
}

static bool
check_bounds(Json *bounds, GError **error)
{
    const char *name;
    Json *value;

    json_object_foreach(bounds, name, value)
    {
        if (!g_strv_contains(bound_names, name))
            return err_set(error, ERR_INVALID, "a budget has no '%s'", name);
        if (!json_is_integer(value) || json_integer_value(value) < 0)
            return err_set(error, ERR_INVALID, "'%s' must be a whole number, 0 or more", name);
    }
    return json_object_size(bounds) > 0 || err_set(error, ERR_INVALID, "a budget needs at least one bound");
}

void
door_models_put_budget(DoorModels *m, const char *scope, Json *bounds, const char *actor, DbDone done,
                       void *data)
{
    Change *c = change_new(m, CHANGE_BUDGET, done, data);

    if (check_scope(scope, &c->refused) && check_bounds(bounds, &c->refused)) {
        c->budget = g_new0(StoredBudget, 1);
        *c->budget = (StoredBudget){.scope = g_strdup(scope),
                                    .actor = g_strdup(actor),
                                    .bounds = json_deep_copy(bounds),
                                    .created_us = clock_wall_us()};
        if (m->budgets->len >= MODELS_BUDGETS_MAX && find_budget(m, scope) == m->budgets->len)
            err_set(&c->refused, ERR_LIMIT, "there are %d budgets: remove one first", MODELS_BUDGETS_MAX);
    }
    submit(c);
}

void
door_models_remove_budget(DoorModels *m, const char *scope, DbDone done, void *data)
{
    Change *c = change_new(m, CHANGE_NO_BUDGET, done, data);

    c->name = g_strdup(scope);
    submit(c);
}

Json *
door_models_budgets(const DoorModels *m)
{
    Json *list = json_array();

    for (guint i = 0; i < m->budgets->len; i++) {
        const StoredBudget *b = m->budgets->pdata[i];
        char at[CLOCK_ISO_LEN + 1];

        clock_format_iso(b->created_us, at);
        json_array_append_new(list,
                              json_pack("{s:s, s:O, s:o, s:s, s:s}", "scope", b->scope, "bounds", b->bounds,
                                        "spent", spent_json(&b->spent), "actor", b->actor, "created_at", at));
    }
    return list;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Budgets, and what calls count against them. */
#include <string.h>

#include "base/clock.h"
#include "base/err.h"
#include "door/models-private.h"
#include "door/usage-rows.h"

enum { STATUS_FAILED = 400 };

static const char *const bound_names[] = {"tokens",        "microusd",       "calls", "microusd_per_hour",
                                          "calls_per_min", "tokens_per_min", NULL};

static Json *
spent_json(const BudgetSpent *s)
{
    return json_pack("{s:I, s:I, s:I}", "tokens", (json_int_t)s->tokens, "microusd", (json_int_t)s->microusd,
                     "calls", (json_int_t)s->calls);
}

void
models_tell_budget(DoorModels *m, const StoredBudget *b)
{
    g_autoptr(Json) spent = spent_json(&b->spent);

    if (m->link != NULL)
        door_link_set_budget(m->link, b->scope, b->bounds, spent);
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

/* ---- changes ---- */

static void
free_budget(void *what)
{
    stored_budget_free(what);
}

static bool
put_work(DbTx *tx, void *what, GError **error)
{
    return budget_row_put(tx, what, error);
}

static void
put_apply(void *owner, void **what)
{
    DoorModels *m = owner;
    StoredBudget *b = g_steal_pointer(what);

    models_tell_budget(m, b);
    models_replace(m->budgets, find_budget(m, b->scope), b);
}

static const ChangeKind putting = {
    .work = put_work, .apply = put_apply, .free = free_budget, .unref = models_unref};

static bool
remove_work(DbTx *tx, void *what, GError **error)
{
    return budget_row_remove(tx, what, error);
}

static void
remove_apply(void *owner, void **what)
{
    DoorModels *m = owner;
    guint at = find_budget(m, *what);

    if (at < m->budgets->len)
        g_ptr_array_remove_index(m->budgets, at);
    if (m->link != NULL)
        door_link_remove_budget(m->link, *what);
}

static const ChangeKind removing = {
    .work = remove_work, .apply = remove_apply, .free = g_free, .unref = models_unref};

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

static bool
check_room(const DoorModels *m, const char *scope, GError **error)
{
    return m->budgets->len < MODELS_BUDGETS_MAX || find_budget(m, scope) < m->budgets->len ||
           err_set(error, ERR_LIMIT, "there are %d budgets: remove one first", MODELS_BUDGETS_MAX);
}

void
door_models_put_budget(DoorModels *m, const char *scope, Json *bounds, const char *actor, DbDone done,
                       void *data)
{
    GError *refused = NULL;
    StoredBudget *b = NULL;

    if (check_scope(scope, &refused) && check_bounds(bounds, &refused) && check_room(m, scope, &refused)) {
        b = g_new0(StoredBudget, 1);
        *b = (StoredBudget){.scope = g_strdup(scope),
                            .actor = g_strdup(actor),
                            .bounds = json_deep_copy(bounds),
                            .created_us = clock_wall_us()};
    }
    ChangeSpec change = models_change(m, b, refused, done, data);

    door_change(&putting, &change);
}

void
door_models_remove_budget(DoorModels *m, const char *scope, DbDone done, void *data)
{
    ChangeSpec change = models_change(m, g_strdup(scope), NULL, done, data);

    door_change(&removing, &change);
}

const char *
door_models_budget_actor(const DoorModels *m, const char *scope)
{
    guint i = find_budget(m, scope);

    return i < m->budgets->len ? ((const StoredBudget *)m->budgets->pdata[i])->actor : NULL;
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

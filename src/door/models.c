/* SPDX-License-Identifier: Apache-2.0 */
#include "door/models-private.h"

void
models_unref(void *models)
{
    DoorModels *m = models;

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

void
door_models_attach(DoorModels *m, DoorLink *link)
{
    m->link = link;
    for (guint i = 0; i < m->providers->len; i++)
        models_tell_provider(m, m->providers->pdata[i]);
    for (guint i = 0; i < m->budgets->len; i++)
        models_tell_budget(m, m->budgets->pdata[i]);
}

/* ---- changes ---- */

ChangeSpec
models_change(DoorModels *m, void *what, GError *refused, DbDone done, void *data)
{
    m->refs++;
    return (ChangeSpec){
        .db = m->db, .owner = m, .what = what, .refused = refused, .done = done, .data = data};
}

void
models_replace(GPtrArray *list, guint at, gpointer row)
{
    if (at < list->len)
        g_ptr_array_remove_index(list, at);
    g_ptr_array_insert(list, (gint)at, row);
}

/* ---- reading everything ---- */

typedef struct Loaded {
    GPtrArray *providers, *budgets;
} Loaded;

static void
loaded_free(void *what)
{
    Loaded *l = what;

    g_clear_pointer(&l->providers, g_ptr_array_unref);
    g_clear_pointer(&l->budgets, g_ptr_array_unref);
    g_free(l);
}

static bool
load_work(DbTx *tx, void *what, GError **error)
{
    Loaded *l = what;

    return provider_rows_load(tx, l->providers, error) && budget_rows_load(tx, l->budgets, error);
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
load_apply(void *owner, void **what)
{
    DoorModels *m = owner;
    Loaded *l = *what;

    if (m->link != NULL)
        forget_all(m);
    g_ptr_array_unref(m->providers);
    g_ptr_array_unref(m->budgets);
    m->providers = g_steal_pointer(&l->providers);
    m->budgets = g_steal_pointer(&l->budgets);
    if (m->link != NULL)
        door_models_attach(m, m->link);
}

static const ChangeKind loading = {
    .reads = true, .work = load_work, .apply = load_apply, .free = loaded_free, .unref = models_unref};

void
door_models_load(DoorModels *m, DbDone done, void *data)
{
    Loaded *l = g_new(Loaded, 1);

    *l = (Loaded){providers_new(), budgets_list_new()};
    ChangeSpec spec = models_change(m, l, NULL, done, data);

    door_change(&loading, &spec);
}

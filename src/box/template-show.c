/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/clock.h"
#include "base/err.h"
#include "box/template-store.h"

/* Templates as the API shows them. */

static const char *
state_of(TemplateStore *s, const char *name, const TemplateFull *full, const Recipe *recipe)
{
    if (store_find_build(s, name) != NULL)
        return "building";
    if (full != NULL)
        return "built";
    if (recipe == NULL)
        return "invalid";
    return g_hash_table_contains(s->failed, name) ? "failed" : "available";
}

static void
set_text(Json *object, const char *name, const char *text)
{
    json_object_set_new(object, name, text != NULL ? json_string(text) : json_null());
}

static void
add_built(Json *object, const TemplateFull *full)
{
    static const char *const shown[] = {"user", "workdir", "sudo", "low_ports", "versions", "layers"};
    char time[CLOCK_ISO_LEN + 1];

    clock_format_iso(full->t.built_us, time);
    set_text(object, "hash", full->t.hash);
    set_text(object, "built_at", time);
    json_object_set_new(object, "age", json_integer((clock_wall_us() - full->t.built_us) / G_USEC_PER_SEC));
    json_object_set_new(object, "size", json_integer((json_int_t)full->t.size_bytes));
    for (size_t i = 0; i < G_N_ELEMENTS(shown); i++)
        json_object_set(object, shown[i], json_object_get(full->record, shown[i]));
}

static void
add_progress(Json *object, const TemplateProgress *progress)
{
    json_object_set_new(object, "progress",
                        json_pack("{s:s, s:i, s:s?}", "step", progress->step, "percent",
                                  (int)progress->percent, "line", progress->line));
}

static Json *
show(TemplateStore *s, const char *name)
{
    const TemplateFull *full = g_hash_table_lookup(s->built, name);
    const TemplateBuild *build = store_find_build(s, name);
    g_autoptr(GError) problem = NULL;
    const Recipe *recipe = catalogue_find(s->catalogue, name, &problem);
    const char *failed = g_hash_table_lookup(s->failed, name);
    Json *object = json_object();

    set_text(object, "name", name);
    set_text(object, "state", state_of(s, name, full, recipe));
    set_text(object, "description", recipe != NULL ? recipe->description : NULL);
    set_text(object, "from", recipe != NULL ? (recipe->from != NULL ? recipe->from : recipe->root) : NULL);
    set_text(object, "test", full != NULL ? full->t.test_command : (recipe != NULL ? recipe->test : NULL));
    if (full != NULL)
        add_built(object, full);
    if (build != NULL)
        add_progress(object, template_build_progress(build));
    if (failed != NULL || (recipe == NULL && full == NULL))
        set_text(object, "error", failed != NULL ? failed : problem->message);
    return object;
}

/* Of the catalogue and of what was built from a recipe that is gone. */
static GList *
all_names(TemplateStore *s)
{
    GList *names = catalogue_names(s->catalogue);
    GHashTableIter iter;
    gpointer name;

    g_hash_table_iter_init(&iter, s->built);
    while (g_hash_table_iter_next(&iter, &name, NULL)) {
        if (g_list_find_custom(names, name, (GCompareFunc)strcmp) == NULL)
            names = g_list_insert_sorted(names, name, (GCompareFunc)strcmp);
    }
    return names;
}

Json *
template_store_list(TemplateStore *s)
{
    Json *list = json_array();

    store_read_catalogue(s);
    g_autoptr(GList) names = all_names(s);
    for (GList *l = names; l != NULL; l = l->next)
        json_array_append_new(list, show(s, l->data));
    return list;
}

Json *
template_store_show(TemplateStore *s, const char *name, GError **error)
{
    g_autoptr(GError) problem = NULL;

    store_read_catalogue(s);
    if (catalogue_find(s->catalogue, name, &problem) == NULL && err_kind(problem) == ERR_NOT_FOUND &&
        !g_hash_table_contains(s->built, name)) {
        g_propagate_error(error, g_steal_pointer(&problem));
        return NULL;
    }
    return show(s, name);
}

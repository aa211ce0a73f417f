/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/templates.h"

#include <string.h>

#include "base/err.h"
#include "base/log.h"
#include "daemon/place.h"
#include "store/events.h"

enum { TOLD_EVERY = 10 }; /* percent */

/* What was told of a build. */
typedef struct Told {
    char *state;
    guint percent;
} Told;

struct ServeTemplates {
    const Config *config;
    Db *db;
    Api *api; /* NULL: not serving yet */
    TemplateStore *store;
    GHashTable *told; /* name -> Told */
};

static void
told_free(Told *told)
{
    g_free(told->state);
    g_free(told);
}

/* ---- events ---- */

typedef struct Event1 {
    const char *kind;
    char *data;
} Event1;

static bool
write_event(DbTx *tx, void *data, GError **error)
{
    const Event1 *e = data;
    EventSpec event = {.kind = e->kind, .actor = "coop", .data = e->data, .owner = EVENT_FOR_ALL};

    return event_append(tx, &event, NULL, error);
}

static void
on_event_written(void *data, const GError *error)
{
    Event1 *e = data;

    if (error != NULL)
        log_error("templates", "an event was not written", log_gerror(error));
    g_free(e->data);
    g_free(e);
}

static void
tell(ServeTemplates *s, const char *kind, const Json *shown)
{
    static const char *const members[] = {"name", "hash", "size", "progress", "error"};
    g_autoptr(Json) object = json_object();
    Event1 *e = g_new0(Event1, 1);

    for (size_t i = 0; i < G_N_ELEMENTS(members); i++) {
        Json *value = json_object_get(shown, members[i]);

        if (value != NULL)
            json_object_set(object, members[i], value);
    }
    *e = (Event1){kind, json_encode(object)};
    db_write(s->db, write_event, on_event_written, e, NULL);
}

/* ---- what changed ---- */

static void
tell_default(ServeTemplates *s, const char *name, const char *state, const Json *shown)
{
    const char *error = json_string_value(json_object_get(shown, "error"));
    g_autofree char *reason = NULL;

    if (s->api == NULL || strcmp(name, s->config->template_default) != 0)
        return;
    if (strcmp(state, "building") == 0)
        reason = g_strdup_printf("the default template '%s' is being built", name);
    else if (strcmp(state, "built") != 0)
        reason = g_strdup_printf("the default template '%s' is not built%s%s", name,
                                 error != NULL ? ": " : "", error != NULL ? error : "");
    api_set_degraded(s->api, "templates", reason);
}

static void
tell_progress(ServeTemplates *s, Told *told, const char *name, const Json *shown)
{
    const Json *progress = json_object_get(shown, "progress");
    guint percent = (guint)json_integer_value(json_object_get(progress, "percent"));

    if (percent < told->percent + TOLD_EVERY)
        return;
    told->percent = percent - percent % TOLD_EVERY;
    log_info("templates", "building", log_str("name", name), log_int("percent", percent),
             log_str("step", json_string_value(json_object_get(progress, "step"))));
    tell(s, "template.progressed", shown);
}

static void
tell_state(ServeTemplates *s, const char *name, const char *state, const Json *shown)
{
    const char *error = json_string_value(json_object_get(shown, "error"));

    if (strcmp(state, "building") == 0) {
        log_info("templates", "build begins", log_str("name", name));
        tell(s, "template.started", shown);
    } else if (error != NULL) {
        log_warn("templates", "build failed", log_str("name", name), log_str("error", error));
        tell(s, "template.failed", shown);
    } else if (strcmp(state, "built") == 0) {
        log_info("templates", "built", log_str("name", name));
        tell(s, "template.built", shown);
    } else {
        tell(s, "template.removed", shown);
    }
}

static void
on_changed(const char *name, void *ctx)
{
    ServeTemplates *s = ctx;
    g_autoptr(Json) shown = template_store_show(s->store, name, NULL);
    const char *state = json_string_value(json_object_get(shown, "state"));
    Told *told = g_hash_table_lookup(s->told, name);

    if (state == NULL)
        return;
    if (told == NULL) {
        told = g_new0(Told, 1);
        g_hash_table_insert(s->told, g_strdup(name), told);
    }
    if (g_strcmp0(told->state, state) != 0) {
        g_free(told->state);
        *told = (Told){.state = g_strdup(state)};
        tell_state(s, name, state, shown);
        tell_default(s, name, state, shown);
    } else if (strcmp(state, "building") == 0) {
        tell_progress(s, told, name, shown);
    }
}

/* ---- life ---- */

ServeTemplates *
serve_templates_new(const Config *config, Loop *loop, Db *db, int space_fd)
{
    g_autoptr(ServeTemplates) s = g_new0(ServeTemplates, 1);
    g_autoptr(GError) error = NULL;
    g_autofree char *self = g_file_read_link("/proc/self/exe", NULL);
    g_autofree char *builder = program_find(self != NULL ? self : "coop", "coop-builder", &error);
    g_autofree char *own = g_build_filename(config->home, "templates.d", NULL);
    const char *const catalogues[] = {own, NULL};

    s->config = config;
    s->db = db;
    s->told = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, (GDestroyNotify)told_free);
    if (builder != NULL)
        s->store = template_store_new(&(TemplateStoreSpec){.loop = loop,
                                                           .folder = config->templates_dir,
                                                           .catalogues = catalogues,
                                                           .builder = builder,
                                                           .space_fd = space_fd,
                                                           .changed = on_changed,
                                                           .ctx = s},
                                      &error);
    if (s->store == NULL) {
        log_warn("templates", "there are no templates", log_gerror(error));
        return NULL;
    }
    return g_steal_pointer(&s);
}

void
serve_templates_free(ServeTemplates *s)
{
    if (s == NULL)
        return;
    template_store_free(s->store);
    g_hash_table_unref(s->told);
    g_free(s);
}

TemplateStore *
serve_templates_store(ServeTemplates *s)
{
    return s != NULL ? s->store : NULL;
}

void
serve_templates_begin(ServeTemplates *s, Api *api, bool has_boxes)
{
    if (s == NULL)
        return;
    const char *name = s->config->template_default;
    g_autoptr(Json) shown = template_store_show(s->store, name, NULL);
    const char *state = json_string_value(json_object_get(shown, "state"));

    s->api = api;
    if (!has_boxes)
        template_store_collect(s->store);
    if (!s->config->templates_build)
        return;
    if (state == NULL)
        log_warn("templates", "the default template is not in the catalogue", log_str("name", name));
    /* Also one that is there: its recipe, or a program of ours in it, may be another than then. */
    template_store_build(s->store, name, false, NULL, NULL, NULL);
}

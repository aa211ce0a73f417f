/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/err.h"
#include "box/template-store.h"

/* Builds wait for each other: they share the package cache, and each uses the machine well
 * enough alone. */

enum { BUILDS_MAX = 64, WAITERS_MAX = 1000 };

typedef struct Waiter {
    TemplateProgressFunc progress;
    TemplateDoneFunc done;
    void *data;
} Waiter;

typedef struct StoreBuild {
    TemplateStore *store;
    char *name;
    TemplateBuild *build;
    GArray *waiters;
} StoreBuild;

typedef struct Answer {
    TemplateDoneFunc done;
    void *data;
    Template *t;
    GError *error;
} Answer;

static gboolean
on_answer(gpointer data)
{
    Answer *a = data;

    a->done(a->t, a->error, a->data);
    template_unref(a->t);
    g_clear_error(&a->error);
    g_free(a);
    return G_SOURCE_REMOVE;
}

/* Callbacks never run inside of the call. */
static void
answer_later(TemplateDoneFunc done, void *data, Template *t, GError *error)
{
    Answer *a = g_new0(Answer, 1);

    *a = (Answer){done, data, t, error};
    g_idle_add(on_answer, a);
}

static void
build_free(StoreBuild *b)
{
    template_build_free(b->build);
    g_array_unref(b->waiters);
    g_free(b->name);
    g_free(b);
}

const TemplateBuild *
store_find_build(TemplateStore *s, const char *name)
{
    for (GList *l = s->builds.head; l != NULL; l = l->next) {
        const StoreBuild *b = l->data;

        if (strcmp(b->name, name) == 0)
            return b->build;
    }
    return NULL;
}

static void
tell_changed(TemplateStore *s, const char *name)
{
    if (s->changed != NULL)
        s->changed(name, s->ctx);
}

static void
start_next(TemplateStore *s)
{
    StoreBuild *b = g_queue_peek_head(&s->builds);

    if (b != NULL) {
        template_build_start(b->build);
        return;
    }
    close(s->lock_fd);
    s->lock_fd = -1;
    store_sweep(s);
}

static void
on_progress(TemplateBuild *build, void *data)
{
    StoreBuild *b = data;

    for (guint i = 0; i < b->waiters->len; i++) {
        const Waiter *w = &g_array_index(b->waiters, Waiter, i);

        if (w->progress != NULL)
            w->progress(template_build_progress(build), w->data);
    }
    tell_changed(b->store, b->name);
}

static void
on_made(TemplateBuild *build, Json *record, void *data)
{
    StoreBuild *b = data;
    g_autofree char *name = g_strdup(json_string_value(json_object_get(record, "name")));

    store_put(b->store, record);
    g_hash_table_remove(b->store->failed, name);
    tell_changed(b->store, name);
}

static void
on_done(TemplateBuild *build, Json *record, const GError *error, void *data)
{
    StoreBuild *b = data;
    TemplateStore *s = b->store;
    Template *t = NULL;

    g_queue_remove(&s->builds, b);
    if (record != NULL) {
        store_put(s, record);
        g_hash_table_remove(s->failed, b->name);
        t = &((TemplateFull *)g_hash_table_lookup(s->built, b->name))->t;
        template_ref(t);
    } else {
        g_hash_table_replace(s->failed, g_strdup(b->name), g_strdup(error->message));
    }
    for (guint i = 0; i < b->waiters->len; i++) {
        const Waiter *w = &g_array_index(b->waiters, Waiter, i);

        if (w->done != NULL)
            w->done(t, error, w->data);
    }
    tell_changed(s, b->name);
    template_unref(t);
    build_free(b);
    start_next(s);
}

static bool
take_lock(TemplateStore *s, GError **error)
{
    if (s->lock_fd >= 0)
        return true;
    s->lock_fd = open(s->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (s->lock_fd >= 0 && flock(s->lock_fd, LOCK_SH | LOCK_NB) == 0)
        return true;
    err_errno(error, "hold the folder '%s'", s->folder);
    if (s->lock_fd >= 0)
        close(s->lock_fd);
    s->lock_fd = -1;
    return false;
}

/* What is built is what the catalogue says. */
static bool
is_current(TemplateStore *s, GPtrArray *chain, const TemplateFull *full)
{
    g_autoptr(GPtrArray) layers = g_ptr_array_new_with_free_func((GDestroyNotify)template_layer_free);
    g_autofree char *key = NULL;

    for (guint i = 0; i < chain->len; i++) {
        g_autofree const char **lowers = g_new0(const char *, layers->len + 1);

        for (guint k = 0; k < layers->len; k++)
            lowers[k] = ((const TemplateLayer *)layers->pdata[k])->hash;
        g_free(key);
        key = template_key(chain->pdata[i], lowers, s->sudo_hash);
        TemplateLayer *layer = template_layer_find(s->folder, key);
        if (layer == NULL)
            return false;
        g_ptr_array_insert(layers, 0, layer);
    }
    g_autoptr(Json) record = template_record_new(chain, key, layers);
    return g_strcmp0(json_string_value(json_object_get(record, "hash")), full->t.hash) == 0;
}

static StoreBuild *
join(TemplateStore *s, const char *name)
{
    for (GList *l = s->builds.head; l != NULL; l = l->next) {
        StoreBuild *b = l->data;

        if (strcmp(b->name, name) == 0)
            return b;
    }
    return NULL;
}

static StoreBuild *
enqueue(TemplateStore *s, const char *name, bool again, GPtrArray *chain, GError **error)
{
    if (g_queue_get_length(&s->builds) >= BUILDS_MAX) {
        err_set(error, ERR_LIMIT, "%d builds are waiting already", BUILDS_MAX);
        return NULL;
    }
    if (!take_lock(s, error))
        return NULL;
    StoreBuild *b = g_new0(StoreBuild, 1);
    const TemplateBuildSpec spec = {.store = s,
                                    .loop = s->loop,
                                    .folder = s->folder,
                                    .builder = &s->builder,
                                    .sudo = s->sudo,
                                    .sudo_hash = s->sudo_hash,
                                    .catalogue = s->catalogue,
                                    .name = name,
                                    .again = again,
                                    .progress = on_progress,
                                    .made = on_made,
                                    .done = on_done,
                                    .data = b};

    *b = (StoreBuild){
        .store = s, .name = g_strdup(name), .waiters = g_array_new(FALSE, FALSE, sizeof(Waiter))};
    b->build = template_build_new(&spec, chain);
    g_queue_push_tail(&s->builds, b);
    if (g_queue_peek_head(&s->builds) == b)
        template_build_start(b->build);
    return b;
}

void
template_store_build(TemplateStore *s, const char *name, bool again, TemplateProgressFunc progress,
                     TemplateDoneFunc done, void *data)
{
    GError *error = NULL;
    StoreBuild *b = join(s, name);

    if (b == NULL) {
        store_read_catalogue(s);
        g_autoptr(GPtrArray) chain = catalogue_chain(s->catalogue, name, &error);
        TemplateFull *full = g_hash_table_lookup(s->built, name);

        if (chain != NULL && !again && full != NULL && is_current(s, chain, full)) {
            if (done != NULL)
                answer_later(done, data, template_ref(&full->t), NULL);
            return;
        }
        b = chain != NULL ? enqueue(s, name, again, chain, &error) : NULL;
        if (b != NULL)
            tell_changed(s, name);
    }
    if (b != NULL && b->waiters->len >= WAITERS_MAX) {
        err_set(&error, ERR_LIMIT, "too many wait for the build of '%s'", name);
        b = NULL;
    }
    if (b == NULL) {
        if (done != NULL)
            answer_later(done, data, NULL, g_steal_pointer(&error));
        g_clear_error(&error);
        return;
    }
    g_array_append_val(b->waiters, ((Waiter){progress, done, data}));
}

void
store_cancel_builds(TemplateStore *s)
{
    g_autoptr(GError) error = NULL;
    StoreBuild *b;

    err_set(&error, ERR_CANCELLED, "the server is stopping");
    while ((b = g_queue_pop_head(&s->builds)) != NULL) {
        for (guint i = 0; i < b->waiters->len; i++) {
            const Waiter *w = &g_array_index(b->waiters, Waiter, i);

            if (w->done != NULL)
                w->done(NULL, error, w->data);
        }
        build_free(b);
    }
}

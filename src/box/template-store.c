/* SPDX-License-Identifier: Apache-2.0 */
#include "box/template-store.h"

#include <fcntl.h>
#include <glib/gstdio.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/path.h"

/* ---- templates that are there ---- */

static void
adopt(TemplateStore *s, TemplateFull *full)
{
    g_hash_table_add(s->all, full);
}

static void
read_records(TemplateStore *s)
{
    g_autoptr(GDir) dir = g_dir_open(s->folder, 0, NULL);
    const char *file;

    while (dir != NULL && (file = g_dir_read_name(dir)) != NULL) {
        bool old = g_str_has_suffix(file, ".old");
        TemplateFull *full = old || g_str_has_suffix(file, ".json") ? template_full_read(s, s->folder, file)
                                                                    : NULL;

        if (full == NULL)
            continue;
        adopt(s, full);
        full->retired = old;
        if (old)
            g_ptr_array_add(s->retired, full);
        else
            g_hash_table_replace(s->built, g_strdup(full->t.name), full);
    }
}

static char *
old_path(TemplateStore *s, const TemplateFull *full)
{
    g_autofree char *file = g_strconcat(full->t.hash, ".old", NULL);

    return g_build_filename(s->folder, file, NULL);
}

/* Boxes may use it: it stays on the disk until none does, also over a restart. */
static void
retire(TemplateStore *s, TemplateFull *full)
{
    g_autofree char *path = old_path(s, full);
    g_autofree char *text = json_encode(full->record);

    full->retired = true;
    (void)g_file_set_contents(path, text, -1, NULL); /* without it a restart would lose the layers */
    g_ptr_array_add(s->retired, full);
}

void
template_store_forget(TemplateStore *s, TemplateFull *full)
{
    g_hash_table_remove(s->all, full);
    if (!full->retired)
        return;
    g_autofree char *path = old_path(s, full);

    (void)g_unlink(path);
    store_sweep(s);
}

static void
add_layers(TemplateStore *s, GHashTable *used)
{
    GHashTableIter iter;
    gpointer item;

    g_hash_table_iter_init(&iter, s->all);
    while (g_hash_table_iter_next(&iter, &item, NULL)) {
        const TemplateFull *full = item;

        for (guint i = 0; i < full->t.n_layers; i++)
            g_hash_table_add(used, g_strdup(full->t.layers[i]));
    }
}

void
store_sweep(TemplateStore *s)
{
    if (!s->may_collect || !g_queue_is_empty(&s->builds))
        return;
    g_autoptr(GHashTable) used = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    add_layers(s, used);
    template_sweep_layers(s->loop, s->folder, &s->builder, used);
}

void
template_store_collect(TemplateStore *s)
{
    GPtrArray *retired = s->retired;

    s->may_collect = true;
    s->retired = g_ptr_array_new();
    for (guint i = 0; i < retired->len; i++)
        template_unref(retired->pdata[i]);
    g_ptr_array_unref(retired);
    store_sweep(s);
}

/* The one of a name that stands in the store from now on; takes the record. */
void
store_put(TemplateStore *s, Json *record)
{
    TemplateFull *full = template_full_new(s, record);
    TemplateFull *before;

    g_assert(full != NULL);
    before = g_hash_table_lookup(s->built, full->t.name);
    if (before != NULL && strcmp(before->t.hash, full->t.hash) == 0) {
        template_unref(&full->t);
        return;
    }
    adopt(s, full);
    g_hash_table_replace(s->built, g_strdup(full->t.name), full);
    store_drop(s, before);
}

void
store_drop(TemplateStore *s, TemplateFull *full)
{
    if (full == NULL)
        return;
    retire(s, full);
    if (s->may_collect)
        template_store_collect(s);
}

/* ---- life ---- */

/* Of what the program is; "": there is none, and templates have none then. */
static char *
hash_program(const char *path)
{
    g_autofree char *bytes = NULL;
    gsize n = 0;

    if (!g_file_get_contents(path, &bytes, &n, NULL))
        return g_strdup("");
    return g_compute_checksum_for_data(G_CHECKSUM_SHA256, (const guchar *)bytes, n);
}

TemplateStore *
template_store_new(const TemplateStoreSpec *spec, GError **error)
{
    TemplateStore *s = g_new0(TemplateStore, 1);

    if (g_mkdir_with_parents(spec->folder, 0700) < 0) {
        err_errno(error, "make '%s'", spec->folder);
        g_free(s);
        return NULL;
    }
    g_autofree char *beside = g_path_get_dirname(spec->builder);
    s->loop = spec->loop;
    s->folder = g_strdup(spec->folder);
    s->catalogues = g_strdupv((char **)(guintptr)spec->catalogues);
    s->builder = (TemplateBuilder){g_strdup(spec->builder), spec->space_fd};
    s->sudo = g_build_filename(beside, "coop-sudo", NULL);
    s->sudo_hash = hash_program(s->sudo);
    s->changed = spec->changed;
    s->ctx = spec->ctx;
    s->built = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    s->all = g_hash_table_new(NULL, NULL);
    s->failed = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    s->retired = g_ptr_array_new();
    s->lock_fd = -1;
    s->catalogue = catalogue_read((const char *const *)s->catalogues);
    read_records(s);
    template_sweep_stale(s->loop, s->folder, &s->builder);
    return s;
}

static void
let_go(TemplateStore *s)
{
    GHashTableIter iter;
    gpointer item;

    g_hash_table_iter_init(&iter, s->all);
    while (g_hash_table_iter_next(&iter, &item, NULL))
        ((TemplateFull *)item)->store = NULL;
    g_hash_table_iter_init(&iter, s->built);
    while (g_hash_table_iter_next(&iter, NULL, &item))
        template_unref(item);
    for (guint i = 0; i < s->retired->len; i++)
        template_unref(s->retired->pdata[i]);
}

void
template_store_free(TemplateStore *s)
{
    if (s == NULL)
        return;
    store_cancel_builds(s);
    let_go(s);
    g_hash_table_unref(s->built);
    g_hash_table_unref(s->all);
    g_hash_table_unref(s->failed);
    g_ptr_array_unref(s->retired);
    catalogue_unref(s->catalogue);
    g_strfreev(s->catalogues);
    if (s->lock_fd >= 0)
        close(s->lock_fd);
    g_free(s->folder);
    g_free(s->builder.path);
    g_free(s->sudo);
    g_free(s->sudo_hash);
    g_free(s);
}

/* Recipes may have been written since; they are few and small. */
void
store_read_catalogue(TemplateStore *s)
{
    if (catalogue_is_current(s->catalogue, (const char *const *)s->catalogues))
        return;
    catalogue_unref(s->catalogue);
    s->catalogue = catalogue_read((const char *const *)s->catalogues);
}

/* ---- asking ---- */

static bool
say_not_built(TemplateStore *s, const char *name, GError **error)
{
    const TemplateBuild *build = store_find_build(s, name);
    const char *failed = g_hash_table_lookup(s->failed, name);

    if (build != NULL)
        return err_set(error, ERR_UNAVAILABLE, "template '%s' is being built: %u %% done (%s)", name,
                       template_build_progress(build)->percent, template_build_progress(build)->step);
    if (failed != NULL)
        return err_set(error, ERR_UNAVAILABLE, "template '%s' could not be built: %s", name, failed);
    return err_set(error, ERR_UNAVAILABLE, "template '%s' is not built: run \"coop template build %s\"", name,
                   name);
}

Template *
template_store_get(TemplateStore *s, const char *name, GError **error)
{
    TemplateFull *full = g_hash_table_lookup(s->built, name);

    if (full != NULL)
        return template_ref(&full->t);
    if (catalogue_find(s->catalogue, name, NULL) == NULL) {
        store_read_catalogue(s);
        if (catalogue_find(s->catalogue, name, error) == NULL)
            return NULL;
    }
    (void)say_not_built(s, name, error);
    return NULL;
}

Template *
template_store_find(TemplateStore *s, const char *hash)
{
    GHashTableIter iter;
    gpointer item;

    g_hash_table_iter_init(&iter, s->all);
    while (g_hash_table_iter_next(&iter, &item, NULL)) {
        TemplateFull *full = item;

        if (strcmp(full->t.hash, hash) == 0)
            return template_ref(&full->t);
    }
    return NULL;
}

/* ---- removing ---- */

static bool
check_unused(TemplateStore *s, TemplateFull *full, GError **error)
{
    GHashTableIter iter;
    gpointer item;

    if (!g_atomic_ref_count_compare(&full->refs, 1))
        return err_set(error, ERR_CONFLICT, "template '%s' is in use by boxes", full->t.name);
    g_hash_table_iter_init(&iter, s->built);
    while (g_hash_table_iter_next(&iter, NULL, &item)) {
        const TemplateFull *other = item;

        if (other != full && g_strv_contains((const char *const *)other->t.layers, full->t.layers[0]))
            return err_set(error, ERR_CONFLICT, "template '%s' stands on '%s'", other->t.name, full->t.name);
    }
    return true;
}

bool
template_store_remove(TemplateStore *s, const char *name, GError **error)
{
    TemplateFull *full = g_hash_table_lookup(s->built, name);
    g_autofree char *file = g_strconcat(name, ".json", NULL);
    g_autofree char *path = g_build_filename(s->folder, file, NULL);

    if (store_find_build(s, name) != NULL)
        return err_set(error, ERR_CONFLICT, "template '%s' is being built", name);
    if (full == NULL) {
        if (catalogue_find(s->catalogue, name, error) != NULL)
            return err_set(error, ERR_NOT_FOUND, "template '%s' is not built", name);
        return false;
    }
    if (!check_unused(s, full, error))
        return false;
    if (g_unlink(path) < 0)
        return err_errno(error, "remove '%s'", path);
    g_hash_table_remove(s->built, name);
    store_drop(s, full);
    if (s->changed != NULL)
        s->changed(name, s->ctx);
    return true;
}

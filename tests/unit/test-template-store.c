/* SPDX-License-Identifier: Apache-2.0 */
#include <glib/gstdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/err.h"
#include "box/template.h"

/* The store with a builder that is a few lines of shell: a layer is a folder with a file, and
 * its name the hash of a counter, so that building again gives another one. */

static const char builder_text[] =
    "#!/bin/sh\n"
    "plan=$(cat)\n"
    "get() { printf '%s' \"$plan\" | sed -n \"s/.*\\\"$1\\\":\\\"\\([^\\\"]*\\)\\\".*/\\1/p\"; }\n"
    "cd \"$(get store)\" || exit 1\n"
    "if [ \"$(get action)\" = remove ]; then\n"
    "    printf '%s' \"$plan\" | tr '\",[]' '\\n\\n\\n\\n' | grep '\\.tmp-' | while read -r n; do rm -rf "
    "\"$n\"; done\n"
    "    exit 0\n"
    "fi\n"
    "[ ! -e fail ] || { echo '{\"error\":\"no luck\",\"kind\":\"unavailable\"}'; exit 1; }\n"
    "echo '{\"step\":\"work\",\"percent\":50,\"line\":\"half\"}'\n"
    "n=$(cat count 2>/dev/null || echo 0); n=$((n + 1)); echo $n > count\n"
    "hash=$(echo $n | sha1sum | cut -c 1-40)\n"
    "mkdir $hash; echo $n > $hash/file\n"
    "printf '{\"layer\":\"%s\",\"size\":10,\"versions\":{},\"built_us\":%d}' $hash $n > $(get key).layer\n";

typedef struct Fixture {
    char *folder, *store_folder, *recipes, *builder;
    Loop *loop;
    TemplateStore *store;
    guint changes;
    guint percent; /* the highest seen */
    bool done;
    Template *built;
    GError *error;
} Fixture;

static void
on_changed(const char *name, void *ctx)
{
    ((Fixture *)ctx)->changes++;
}

static void
open_store(Fixture *f)
{
    const char *const catalogues[] = {f->recipes, NULL};
    const TemplateStoreSpec spec = {.loop = f->loop,
                                    .folder = f->store_folder,
                                    .catalogues = catalogues,
                                    .builder = f->builder,
                                    .changed = on_changed,
                                    .ctx = f};
    g_autoptr(GError) error = NULL;

    f->store = template_store_new(&spec, &error);
    g_assert_no_error(error);
}

static void
put(const char *folder, const char *name, const char *text)
{
    g_autofree char *path = g_build_filename(folder, name, NULL);

    g_assert_true(g_file_set_contents(path, text, -1, NULL));
}

static void
set_up(Fixture *f, gconstpointer unused)
{
    f->folder = g_dir_make_tmp("coop-store-XXXXXX", NULL);
    f->store_folder = g_build_filename(f->folder, "store", NULL);
    f->recipes = g_build_filename(f->folder, "recipes", NULL);
    f->builder = g_build_filename(f->folder, "builder", NULL);
    g_assert_true(g_mkdir(f->recipes, 0700) == 0 && g_mkdir(f->store_folder, 0700) == 0);
    put(f->folder, "builder", builder_text);
    g_assert_true(chmod(f->builder, 0755) == 0);
    put(f->recipes, "low.yaml", "root: folder\nfolder: /none\n");
    put(f->recipes, "top.yaml", "from: low\ncommands: [x]\n");
    f->loop = loop_new(NULL);
    open_store(f);
}

static void
tear_down(Fixture *f, gconstpointer unused)
{
    const char *argv[] = {"rm", "-rf", f->folder, NULL};

    template_store_free(f->store);
    loop_free(f->loop);
    template_unref(f->built);
    g_clear_error(&f->error);
    g_assert_true(g_spawn_sync(NULL, (char **)(guintptr)argv, NULL, G_SPAWN_SEARCH_PATH, NULL, NULL, NULL,
                               NULL, NULL, NULL));
    g_free(f->folder);
    g_free(f->store_folder);
    g_free(f->recipes);
    g_free(f->builder);
}

static void
on_progress(const TemplateProgress *p, void *data)
{
    Fixture *f = data;

    g_assert_cmpuint(p->percent, >=, f->percent);
    f->percent = p->percent;
}

static void
on_done(Template *t, const GError *error, void *data)
{
    Fixture *f = data;

    template_unref(f->built);
    g_clear_error(&f->error);
    f->built = t != NULL ? template_ref(t) : NULL;
    f->error = error != NULL ? g_error_copy(error) : NULL;
    f->done = true;
}

static void
build(Fixture *f, const char *name, bool again)
{
    f->done = false;
    f->percent = 0;
    template_store_build(f->store, name, again, on_progress, on_done, f);
    g_assert_false(f->done);
    while (!f->done)
        g_main_context_iteration(NULL, TRUE);
}

static bool
exists(Fixture *f, const char *name)
{
    g_autofree char *path = g_build_filename(f->store_folder, name, NULL);

    return g_file_test(path, G_FILE_TEST_EXISTS);
}

/* Removal is a process of its own. */
static void
wait_gone(Fixture *f, const char *name)
{
    while (exists(f, name)) {
        if (!g_main_context_iteration(NULL, FALSE))
            g_thread_yield();
    }
}

static void
test_build(Fixture *f, gconstpointer unused)
{
    g_autoptr(GError) error = NULL;

    g_assert_null(template_store_get(f->store, "none", &error));
    g_assert_error(error, ERR_DOMAIN, ERR_NOT_FOUND);
    g_clear_error(&error);
    g_assert_null(template_store_get(f->store, "top", &error));
    g_assert_error(error, ERR_DOMAIN, ERR_UNAVAILABLE);
    g_assert_nonnull(strstr(error->message, "coop template build top"));
    g_clear_error(&error);
    build(f, "top", false);
    g_assert_no_error(f->error);
    g_assert_cmpuint(f->built->n_layers, ==, 2);
    g_assert_cmpuint(f->percent, >=, 50);
    g_assert_true(exists(f, "low.json") && exists(f, "top.json"));
    g_autoptr(Template) low = template_store_get(f->store, "low", &error);
    g_assert_no_error(error);
    g_assert_cmpstr(low->layers[0], ==, f->built->layers[1]);
    g_autofree char *hash = g_strdup(f->built->hash);
    guint changes = f->changes;
    build(f, "top", false);
    g_assert_cmpstr(f->built->hash, ==, hash);
    g_assert_cmpuint(f->changes, ==, changes);
}

static void
test_failure(Fixture *f, gconstpointer unused)
{
    g_autoptr(GError) error = NULL;

    put(f->store_folder, "fail", "");
    build(f, "low", false);
    g_assert_error(f->error, ERR_DOMAIN, ERR_UNAVAILABLE);
    g_assert_nonnull(strstr(f->error->message, "no luck"));
    g_assert_null(template_store_get(f->store, "low", &error));
    g_assert_nonnull(strstr(error->message, "no luck"));
    g_autoptr(Json) shown = template_store_show(f->store, "low", NULL);
    g_assert_cmpstr(json_string_value(json_object_get(shown, "state")), ==, "failed");
    build(f, "nobody", false);
    g_assert_error(f->error, ERR_DOMAIN, ERR_NOT_FOUND);
}

/* A box holds the template it was made from through update, removal and restart. */
static void
test_update(Fixture *f, gconstpointer unused)
{
    build(f, "low", false);
    Template *held = template_ref(f->built);
    g_autofree char *hash = g_strdup(held->hash);
    g_autofree char *layer = g_strdup(held->layers[0]);

    build(f, "low", true);
    g_assert_cmpstr(f->built->hash, !=, hash);
    g_autofree char *second = g_strdup(f->built->layers[0]);
    template_unref(held);
    g_assert_true(exists(f, layer)); /* boxes may not have said yet that they use it */
    template_store_free(f->store);
    open_store(f);
    held = template_store_find(f->store, hash);
    g_assert_nonnull(held);
    template_store_collect(f->store);
    g_assert_true(exists(f, layer) && exists(f, second));
    template_unref(held);
    wait_gone(f, layer);
    g_assert_null(template_store_find(f->store, hash));
    g_assert_true(exists(f, second));
}

static void
test_remove(Fixture *f, gconstpointer unused)
{
    g_autoptr(GError) error = NULL;

    template_store_collect(f->store);
    build(f, "top", false);
    g_autofree char *layer = g_strdup(f->built->layers[0]);
    g_assert_false(template_store_remove(f->store, "low", &error));
    g_assert_error(error, ERR_DOMAIN, ERR_CONFLICT);
    g_assert_nonnull(strstr(error->message, "'top' stands on 'low'"));
    g_clear_error(&error);
    g_assert_false(template_store_remove(f->store, "top", &error)); /* we hold it */
    g_assert_error(error, ERR_DOMAIN, ERR_CONFLICT);
    g_clear_error(&error);
    g_clear_pointer(&f->built, template_unref);
    g_assert_true(template_store_remove(f->store, "top", &error));
    g_assert_false(exists(f, "top.json"));
    wait_gone(f, layer);
    g_assert_false(template_store_remove(f->store, "top", &error));
    g_assert_error(error, ERR_DOMAIN, ERR_NOT_FOUND);
    g_clear_error(&error);
    g_assert_true(template_store_remove(f->store, "low", &error));
    /* Nothing was lost for the next build. */
    build(f, "top", false);
    g_assert_no_error(f->error);
}

static void
test_left_overs(Fixture *f, gconstpointer unused)
{
    static const char orphan[] = "00000000000000000000000000000000000000aa";
    g_autofree char *work = g_build_filename(f->store_folder, "abc.tmp-12", NULL);
    g_autofree char *layer = g_build_filename(f->store_folder, orphan, NULL);

    build(f, "low", false);
    template_store_free(f->store);
    g_assert_true(g_mkdir(work, 0700) == 0 && g_mkdir(layer, 0700) == 0);
    open_store(f);
    wait_gone(f, "abc.tmp-12");
    build(f, "top", true);
    g_assert_true(exists(f, orphan)); /* a box may stand on it */
    template_store_collect(f->store);
    wait_gone(f, orphan);
    g_assert_true(exists(f, f->built->layers[0]));
}

/* What another server on the same folder has built is not ours to remove. */
static void
test_two_servers(Fixture *f, gconstpointer unused)
{
    TemplateStore *other = f->store;

    open_store(f);
    build(f, "top", false);
    template_store_collect(other);
    g_assert_true(exists(f, f->built->layers[0]) && exists(f, f->built->layers[1]));
    template_store_free(other);
}

static void
test_stopped(Fixture *f, gconstpointer unused)
{
    f->done = false;
    template_store_build(f->store, "low", false, on_progress, on_done, f);
    template_store_free(f->store);
    f->store = NULL;
    g_assert_true(f->done);
    g_assert_error(f->error, ERR_DOMAIN, ERR_CANCELLED);
}

#define ADD(name, func) g_test_add("/template-store/" name, Fixture, NULL, set_up, func, tear_down)

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    ADD("build", test_build);
    ADD("failure", test_failure);
    ADD("update", test_update);
    ADD("remove", test_remove);
    ADD("left-overs", test_left_overs);
    ADD("two-servers", test_two_servers);
    ADD("stopped", test_stopped);
    return g_test_run();
}

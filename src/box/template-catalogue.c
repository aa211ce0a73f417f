/* SPDX-License-Identifier: Apache-2.0 */
#include "box/template-catalogue.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/io.h"

typedef struct Entry {
    Recipe *recipe; /* NULL: it has a mistake */
    char *problem;
} Entry;

struct Catalogue {
    gatomicrefcount refs;
    char *signature;     /* of the files it was read from */
    GHashTable *entries; /* name -> Entry */
};

static void
entry_free(Entry *entry)
{
    recipe_free(entry->recipe);
    g_free(entry->problem);
    g_free(entry);
}

static void
add(Catalogue *c, const char *name, Recipe *recipe, const char *problem)
{
    Entry *entry = g_new0(Entry, 1);

    *entry = (Entry){recipe, g_strdup(problem)};
    if (g_hash_table_contains(c->entries, name))
        entry_free(entry);
    else
        g_hash_table_insert(c->entries, g_strdup(name), entry);
}

static void
on_recipe(Recipe *recipe, void *data)
{
    add(data, recipe->name, recipe, NULL);
}

static void
on_problem(const char *name, const char *message, void *data)
{
    add(data, name, NULL, message);
}

static void
read_file(Catalogue *c, const char *path)
{
    const RecipeSink sink = {on_recipe, on_problem, c};
    g_autofree char *text = g_malloc(RECIPE_FILE_MAX + 1);
    autofd fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    g_autofree char *name = g_path_get_basename(path);
    struct stat st;

    *strrchr(name, '.') = '\0';
    if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode)) {
        g_autofree char *message = g_strdup_printf("%s: it cannot be read", path);

        on_problem(name, message, c);
        return;
    }
    ssize_t n = io_read_full(fd, text, RECIPE_FILE_MAX + 1);
    if (n < 0 || n > RECIPE_FILE_MAX) {
        g_autofree char *message = g_strdup_printf("%s: it is larger than %d bytes", path, RECIPE_FILE_MAX);

        on_problem(name, message, c);
        return;
    }
    recipe_read(text, (size_t)n, path, &sink);
}

/* In the order of names, so that the same files give the same catalogue. */
static void
read_folder(Catalogue *c, const char *folder)
{
    g_autoptr(GDir) dir = g_dir_open(folder, 0, NULL);
    GList *names = NULL;
    const char *name;
    guint n = 0;

    while (dir != NULL && n < CATALOGUE_FILES_MAX && (name = g_dir_read_name(dir)) != NULL) {
        if (!g_str_has_suffix(name, ".yaml"))
            continue;
        names = g_list_prepend(names, g_strdup(name));
        n++;
    }
    names = g_list_sort(names, (GCompareFunc)strcmp);
    for (GList *l = names; l != NULL; l = l->next) {
        g_autofree char *path = g_build_filename(folder, l->data, NULL);

        read_file(c, path);
    }
    g_list_free_full(names, g_free);
}

/* Names, sizes and times of all files. */
static char *
signature_of(const char *const *folders)
{
    GString *text = g_string_new(NULL);

    for (guint i = 0; folders != NULL && folders[i] != NULL; i++) {
        g_autoptr(GDir) dir = g_dir_open(folders[i], 0, NULL);
        const char *name;

        while (dir != NULL && (name = g_dir_read_name(dir)) != NULL) {
            g_autofree char *path = g_build_filename(folders[i], name, NULL);
            struct stat st;

            if (g_str_has_suffix(name, ".yaml") && stat(path, &st) == 0)
                g_string_append_printf(text, "%s %ld %ld.%ld\n", path, (long)st.st_size,
                                       (long)st.st_mtim.tv_sec, st.st_mtim.tv_nsec);
        }
    }
    return g_string_free(text, FALSE);
}

bool
catalogue_is_current(const Catalogue *c, const char *const *folders)
{
    g_autofree char *signature = signature_of(folders);

    return strcmp(c->signature, signature) == 0;
}

Catalogue *
catalogue_read(const char *const *folders)
{
    Catalogue *c = g_new0(Catalogue, 1);
    const RecipeSink sink = {on_recipe, on_problem, c};

    g_atomic_ref_count_init(&c->refs);
    c->signature = signature_of(folders);
    c->entries = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, (GDestroyNotify)entry_free);
    for (guint i = 0; folders != NULL && folders[i] != NULL; i++)
        read_folder(c, folders[i]);
    for (guint i = 0; catalogue_builtins[i].file != NULL; i++)
        recipe_read(catalogue_builtins[i].text, strlen(catalogue_builtins[i].text),
                    catalogue_builtins[i].file, &sink);
    return c;
}

Catalogue *
catalogue_ref(Catalogue *c)
{
    g_atomic_ref_count_inc(&c->refs);
    return c;
}

void
catalogue_unref(Catalogue *c)
{
    if (c == NULL || !g_atomic_ref_count_dec(&c->refs))
        return;
    g_hash_table_unref(c->entries);
    g_free(c->signature);
    g_free(c);
}

GList *
catalogue_names(const Catalogue *c)
{
    return g_list_sort(g_hash_table_get_keys(c->entries), (GCompareFunc)strcmp);
}

static char *
join_names(const Catalogue *c)
{
    GString *text = g_string_new(NULL);
    g_autoptr(GList) names = catalogue_names(c);

    for (GList *l = names; l != NULL; l = l->next)
        g_string_append_printf(text, "%s%s", l == names ? "" : ", ", (const char *)l->data);
    return g_string_free(text, FALSE);
}

const Recipe *
catalogue_find(const Catalogue *c, const char *name, GError **error)
{
    const Entry *entry = g_hash_table_lookup(c->entries, name);

    if (entry == NULL) {
        g_autofree char *names = join_names(c);

        err_set(error, ERR_NOT_FOUND, "there is no template '%s'; there are %s", name, names);
        return NULL;
    }
    if (entry->recipe == NULL)
        err_set(error, ERR_INVALID, "template '%s' has a mistake: %s", name, entry->problem);
    return entry->recipe;
}

GPtrArray *
catalogue_chain(const Catalogue *c, const char *name, GError **error)
{
    g_autoptr(GPtrArray) chain = g_ptr_array_new();

    for (const char *next = name; next != NULL;) {
        const Recipe *recipe = catalogue_find(c, next, error);

        if (recipe == NULL) {
            if (strcmp(next, name) != 0)
                g_prefix_error(error, "template '%s' is made from '%s': ", name, next);
            return NULL;
        }
        g_ptr_array_insert(chain, 0, (gpointer)(guintptr)recipe);
        if (chain->len > CATALOGUE_CHAIN_MAX) {
            err_set(error, ERR_INVALID, "template '%s' is made from itself, or from too many others", name);
            return NULL;
        }
        next = recipe->from;
    }
    return g_steal_pointer(&chain);
}

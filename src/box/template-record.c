/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/err.h"
#include "box/template-private.h"

enum { RECORD_MAX = 1 << 20, RECORD_VERSION = 1 };

void
template_layer_free(TemplateLayer *layer)
{
    if (layer == NULL)
        return;
    g_free(layer->hash);
    json_decref(layer->versions);
    g_free(layer);
}

static Json *
read_json(const char *folder, const char *file)
{
    g_autofree char *path = g_build_filename(folder, file, NULL);
    g_autofree char *text = NULL;
    gsize n;
    struct stat st;

    if (lstat(path, &st) < 0 || !S_ISREG(st.st_mode) || st.st_size > RECORD_MAX ||
        !g_file_get_contents(path, &text, &n, NULL))
        return NULL;
    return json_decode(text, n, NULL);
}

static bool
is_hash(const char *text)
{
    return text != NULL && strlen(text) == TEMPLATE_HASH_LEN &&
           strspn(text, "0123456789abcdef") == TEMPLATE_HASH_LEN;
}

static bool
layer_is_there(const char *folder, const char *hash)
{
    g_autofree char *path = g_build_filename(folder, hash, NULL);

    return g_file_test(path, G_FILE_TEST_IS_DIR);
}

TemplateLayer *
template_layer_find(const char *folder, const char *key)
{
    g_autofree char *file = g_strconcat(key, ".layer", NULL);
    g_autoptr(Json) json = read_json(folder, file);
    const char *hash = json_string_value(json_object_get(json, "layer"));
    Json *versions = json_object_get(json, "versions");

    if (!is_hash(hash) || !layer_is_there(folder, hash))
        return NULL;
    TemplateLayer *layer = g_new0(TemplateLayer, 1);
    *layer = (TemplateLayer){.hash = g_strdup(hash),
                             .size = (guint64)json_integer_value(json_object_get(json, "size")),
                             .versions = json_is_object(versions) ? json_incref(versions) : json_object(),
                             .built_us = json_integer_value(json_object_get(json, "built_us"))};
    return layer;
}

/* ---- writing ---- */

typedef struct Settled {
    char **env;
    const char *user, *workdir, *test;
    KeeperLimits limits;
    bool sudo, low_ports;
} Settled;

/* What each recipe says goes over what those below it say. */
static void
settle(Settled *s, const Recipe *r)
{
    s->user = r->user != NULL ? r->user : s->user;
    s->workdir = r->workdir != NULL ? r->workdir : s->workdir;
    s->test = r->test != NULL ? r->test : s->test;
    s->sudo = r->sudo != RECIPE_UNSET ? r->sudo == RECIPE_ON : s->sudo;
    s->low_ports = r->low_ports != RECIPE_UNSET ? r->low_ports == RECIPE_ON : s->low_ports;
    s->limits.memory_bytes = r->limits.memory_bytes != 0 ? r->limits.memory_bytes : s->limits.memory_bytes;
    s->limits.disk_bytes = r->limits.disk_bytes != 0 ? r->limits.disk_bytes : s->limits.disk_bytes;
    s->limits.inodes = r->limits.inodes != 0 ? r->limits.inodes : s->limits.inodes;
    s->limits.pids = r->limits.pids != 0 ? r->limits.pids : s->limits.pids;
    s->limits.cpu_milli = r->limits.cpu_milli != 0 ? r->limits.cpu_milli : s->limits.cpu_milli;
    for (guint i = 0; r->env[i] != NULL; i++) {
        g_auto(GStrv) parts = g_strsplit(r->env[i], "=", 2);

        s->env = g_environ_setenv(s->env, parts[0], parts[1], TRUE);
    }
}

static Json *
settled_json(GPtrArray *chain)
{
    Settled s = {.env = g_new0(char *, 1), .user = "root", .workdir = "/"};
    Json *env = json_array();

    for (guint i = 0; i < chain->len; i++)
        settle(&s, chain->pdata[i]);
    s.env = g_environ_setenv(s.env, "PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
                             FALSE);
    s.env = g_environ_setenv(s.env, "HOME", strcmp(s.user, "root") == 0 ? "/root" : s.workdir, FALSE);
    for (guint i = 0; s.env[i] != NULL; i++)
        json_array_append_new(env, json_string(s.env[i]));
    g_strfreev(s.env);
    return json_pack("{s:o, s:s, s:s, s:s?, s:b, s:b, s:{s:I, s:I, s:I, s:I, s:I}}", "env", env, "user",
                     s.user, "workdir", s.workdir, "test", s.test, "sudo", s.sudo, "low_ports", s.low_ports,
                     "limits", "memory_bytes", (json_int_t)s.limits.memory_bytes, "disk_bytes",
                     (json_int_t)s.limits.disk_bytes, "inodes", (json_int_t)s.limits.inodes, "pids",
                     (json_int_t)s.limits.pids, "cpu_milli", (json_int_t)s.limits.cpu_milli);
}

Json *
template_record_new(GPtrArray *chain, const char *key, GPtrArray *layers)
{
    const Recipe *recipe = chain->pdata[chain->len - 1];
    const TemplateLayer *top = layers->pdata[0];
    Json *record = settled_json(chain);
    Json *list = json_array();
    guint64 size = 0;
    g_autoptr(Json) versions = json_object();

    for (guint i = layers->len; i > 0; i--) {
        const TemplateLayer *layer = layers->pdata[i - 1];

        json_array_insert_new(list, 0, json_string(layer->hash));
        json_object_update(versions, layer->versions);
        size += layer->size;
    }
    json_object_set_new(record, "version", json_integer(RECORD_VERSION));
    json_object_set_new(record, "name", json_string(recipe->name));
    json_object_set_new(record, "key", json_string(key));
    json_object_set_new(record, "layers", list);
    json_object_set_new(record, "size", json_integer((json_int_t)size));
    json_object_set(record, "versions", versions);
    json_object_set_new(record, "built_us", json_integer(top->built_us));
    g_autofree char *text = json_dumps(record, JSON_COMPACT | JSON_SORT_KEYS);
    g_autofree char *hash = g_compute_checksum_for_string(G_CHECKSUM_SHA256, text, -1);
    hash[TEMPLATE_HASH_LEN] = '\0';
    json_object_set_new(record, "hash", json_string(hash));
    return record;
}

/* ---- reading ---- */

/* Borrowed from the array. */
static const char **
texts_of(Json *array)
{
    size_t n = json_array_size(array);
    const char **texts = g_new0(const char *, n + 1);

    for (size_t i = 0; i < n; i++) {
        texts[i] = json_string_value(json_array_get(array, i));
        if (texts[i] == NULL)
            texts[i] = "";
    }
    return texts;
}

static bool
layers_are_hashes(const Template *t)
{
    for (guint i = 0; i < t->n_layers; i++) {
        if (!is_hash(t->layers[i]))
            return false;
    }
    return t->n_layers > 0 && t->n_layers <= KEEPER_LAYERS_MAX;
}

static KeeperLimits
limits_of(Json *json)
{
    return (KeeperLimits){
        .memory_bytes = (uint64_t)json_integer_value(json_object_get(json, "memory_bytes")),
        .disk_bytes = (uint64_t)json_integer_value(json_object_get(json, "disk_bytes")),
        .inodes = (uint32_t)json_integer_value(json_object_get(json, "inodes")),
        .pids = (uint32_t)json_integer_value(json_object_get(json, "pids")),
        .cpu_milli = (uint32_t)json_integer_value(json_object_get(json, "cpu_milli")),
    };
}

static bool
fill(TemplateFull *full)
{
    Json *r = full->record;
    Template *t = &full->t;

    t->name = json_string_value(json_object_get(r, "name"));
    t->hash = json_string_value(json_object_get(r, "hash"));
    t->user = json_string_value(json_object_get(r, "user"));
    t->workdir = json_string_value(json_object_get(r, "workdir"));
    t->test_command = json_string_value(json_object_get(r, "test"));
    t->layers = texts_of(json_object_get(r, "layers"));
    t->n_layers = (guint)json_array_size(json_object_get(r, "layers"));
    t->env = texts_of(json_object_get(r, "env"));
    t->limits = limits_of(json_object_get(r, "limits"));
    t->sudo = json_is_true(json_object_get(r, "sudo"));
    t->low_ports = json_is_true(json_object_get(r, "low_ports"));
    t->built_us = json_integer_value(json_object_get(r, "built_us"));
    t->size_bytes = (guint64)json_integer_value(json_object_get(r, "size"));
    full->key = g_strdup(json_string_value(json_object_get(r, "key")));
    return json_integer_value(json_object_get(r, "version")) == RECORD_VERSION && t->name != NULL &&
           recipe_name_is_valid(t->name) && is_hash(t->hash) && t->user != NULL && t->workdir != NULL &&
           full->key != NULL && layers_are_hashes(t);
}

static void
full_free(TemplateFull *full)
{
    g_free((gpointer)(guintptr)full->t.layers);
    g_free((gpointer)(guintptr)full->t.env);
    g_free(full->key);
    json_decref(full->record);
    g_free(full);
}

TemplateFull *
template_full_new(TemplateStore *store, Json *record)
{
    TemplateFull *full = g_new0(TemplateFull, 1);

    g_atomic_ref_count_init(&full->refs);
    full->store = store;
    full->record = record;
    if (fill(full))
        return full;
    full_free(full);
    return NULL;
}

TemplateFull *
template_full_read(TemplateStore *store, const char *folder, const char *file)
{
    Json *record = read_json(folder, file);
    TemplateFull *full = record != NULL ? template_full_new(store, record) : NULL;

    for (guint i = 0; full != NULL && i < full->t.n_layers; i++) {
        if (!layer_is_there(folder, full->t.layers[i])) {
            full_free(full);
            return NULL;
        }
    }
    return full;
}

Template *
template_ref(Template *t)
{
    TemplateFull *full = (TemplateFull *)t;

    g_atomic_ref_count_inc(&full->refs);
    return t;
}

void
template_unref(Template *t)
{
    TemplateFull *full = (TemplateFull *)t;

    if (full == NULL || !g_atomic_ref_count_dec(&full->refs))
        return;
    if (full->store != NULL)
        template_store_forget(full->store, full);
    full_free(full);
}

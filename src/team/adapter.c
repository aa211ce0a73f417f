/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/err.h"
#include "base/log.h"
#include "http/assets.h"
#include "team/adapter-private.h"
#include "json/yaml.h"

enum { NAME_MAX_CHARS = 60, TEXT_MAX = 16 * 1024, VALUES_MAX = 500, DEPTH_MAX = 6, FOLDER_MAX = 100 };

static const char suffix[] = ".yaml";

typedef struct AdapterFile {
    char *path, *content;
} AdapterFile;

typedef struct Reader {
    const char *name;
    Adapter *adapter;
    GError **error;
} Reader;

static bool
fail(const Reader *r, const YamlNode *node, const char *what)
{
    return err_set(r->error, ERR_INVALID, "agents/%s.yaml:%u: %s", r->name, node->place.line, what);
}

static bool
fail_key(const Reader *r, const YamlNode *key)
{
    g_autofree char *what = g_strdup_printf("'%s' is not known here", key->text);

    return fail(r, key, what);
}

static bool
read_text(const Reader *r, const YamlNode *node, char **ret)
{
    if (node->kind != YAML_TEXT || node->text[0] == '\0')
        return fail(r, node, "a text is wanted");
    g_free(*ret);
    *ret = g_strdup(node->text);
    return true;
}

static bool
read_words(const Reader *r, const YamlNode *node, char ***ret)
{
    g_autoptr(GPtrArray) words = g_ptr_array_new_with_free_func(g_free);

    if (node->kind != YAML_LIST || node->items->len == 0 || node->items->len > ADAPTER_WORDS_MAX)
        return fail(r, node, "a list of words is wanted");
    for (guint i = 0; i < node->items->len; i++) {
        const YamlNode *word = node->items->pdata[i];

        if (word->kind != YAML_TEXT)
            return fail(r, word, "a text is wanted");
        g_ptr_array_add(words, g_strdup(word->text));
    }
    g_ptr_array_add(words, NULL);
    *ret = (char **)g_ptr_array_free(g_steal_pointer(&words), FALSE);
    return true;
}

static bool
read_env(const Reader *r, const YamlNode *node)
{
    g_autoptr(GPtrArray) env = g_ptr_array_new_with_free_func(g_free);

    if (node->kind != YAML_MAP || node->items->len > ADAPTER_WORDS_MAX)
        return fail(r, node, "names with their values are wanted");
    for (guint i = 0; i < node->items->len; i++) {
        const YamlNode *key = node->keys->pdata[i], *value = node->items->pdata[i];

        if (!g_regex_match_simple("^[A-Za-z_][A-Za-z0-9_]*$", key->text, G_REGEX_DOLLAR_ENDONLY, 0))
            return fail(r, key, "that is no name of a variable");
        if (value->kind != YAML_TEXT)
            return fail(r, value, "a text is wanted");
        g_ptr_array_add(env, g_strdup_printf("%s=%s", key->text, value->text));
    }
    g_ptr_array_add(env, NULL);
    r->adapter->env = (char **)g_ptr_array_free(g_steal_pointer(&env), FALSE);
    return true;
}

/* ---- files ---- */

static void
file_free(void *data)
{
    AdapterFile *file = data;

    g_free(file->path);
    g_free(file->content);
    g_free(file);
}

static bool
read_file(const Reader *r, const YamlNode *node)
{
    const YamlNode *path = yaml_member(node, "path"), *content = yaml_member(node, "content");
    AdapterFile *file;

    if (node->kind != YAML_MAP || node->items->len != 2 || path == NULL || content == NULL ||
        path->kind != YAML_TEXT || content->kind != YAML_TEXT)
        return fail(r, node, "a file has a path and a content");
    if (!g_regex_match_simple("^[A-Za-z0-9_][A-Za-z0-9._-]*$", path->text, G_REGEX_DOLLAR_ENDONLY, 0))
        return fail(r, path, "a path is one plain name");
    file = g_new0(AdapterFile, 1);
    *file = (AdapterFile){g_strdup(path->text), g_strdup(content->text)};
    g_ptr_array_add(r->adapter->files, file);
    return true;
}

static bool
read_files(const Reader *r, const YamlNode *node)
{
    if (node->kind != YAML_LIST || node->items->len > ADAPTER_FILES_MAX)
        return fail(r, node, "a list of files is wanted");
    for (guint i = 0; i < node->items->len; i++) {
        if (!read_file(r, node->items->pdata[i]))
            return false;
    }
    return true;
}

/* ---- rules ---- */

void
adapter_rule_free(void *data)
{
    AdapterRule *rule = data;

    g_strfreev(rule->where);
    g_strfreev(rule->of);
    g_strfreev(rule->members);
    g_free(rule->each);
    g_free(rule->kind);
    g_free(rule);
}

/* Names and values in turn. */
static bool
read_pairs(const Reader *r, const YamlNode *node, char ***ret)
{
    g_autoptr(GPtrArray) pairs = g_ptr_array_new_with_free_func(g_free);

    if (node->kind != YAML_MAP || node->items->len > ADAPTER_CONDITIONS_MAX)
        return fail(r, node, "names with their values are wanted");
    for (guint i = 0; i < node->items->len; i++) {
        const YamlNode *key = node->keys->pdata[i], *value = node->items->pdata[i];

        if (value->kind != YAML_TEXT)
            return fail(r, value, "a text is wanted");
        g_ptr_array_add(pairs, g_strdup(key->text));
        g_ptr_array_add(pairs, g_strdup(value->text));
    }
    g_ptr_array_add(pairs, NULL);
    *ret = (char **)g_ptr_array_free(g_steal_pointer(&pairs), FALSE);
    return true;
}

static bool
read_member(const Reader *r, AdapterRule *rule, GPtrArray *members, const YamlNode *key,
            const YamlNode *value)
{
    static const char *const kinds[] = {"thought", "said", "tool", "usage", "summary", NULL};
    static const char *const names[] = {"text",          "name",         "arguments",   "output",
                                        "exit_code",     "input_tokens", "duration_ms", "path",
                                        "output_tokens", "model",        NULL};

    if (strcmp(key->text, "where") == 0)
        return read_pairs(r, value, &rule->where);
    if (strcmp(key->text, "of") == 0)
        return read_pairs(r, value, &rule->of);
    if (strcmp(key->text, "each") == 0)
        return read_text(r, value, &rule->each);
    if (strcmp(key->text, "kind") == 0)
        return read_text(r, value, &rule->kind) &&
               (g_strv_contains(kinds, rule->kind) ||
                fail(r, value, "a kind is thought, said, tool, usage or summary"));
    if (!g_strv_contains(names, key->text))
        return fail_key(r, key);
    if (value->kind != YAML_TEXT)
        return fail(r, value, "a path is wanted");
    g_ptr_array_add(members, g_strdup(key->text));
    g_ptr_array_add(members, g_strdup(value->text));
    return true;
}

static bool
read_rule(const Reader *r, const YamlNode *node)
{
    AdapterRule *rule = g_new0(AdapterRule, 1);
    g_autoptr(GPtrArray) members = g_ptr_array_new_with_free_func(g_free);

    g_ptr_array_add(r->adapter->rules, rule);
    if (node->kind != YAML_MAP)
        return fail(r, node, "a rule is wanted");
    for (guint i = 0; i < node->items->len; i++) {
        if (!read_member(r, rule, members, node->keys->pdata[i], node->items->pdata[i]))
            return false;
    }
    g_ptr_array_add(members, NULL);
    rule->members = (char **)g_ptr_array_free(g_steal_pointer(&members), FALSE);
    return rule->kind != NULL || fail(r, node, "a rule has a kind");
}

static bool
read_rules(const Reader *r, const YamlNode *node)
{
    if (node->kind != YAML_LIST || node->items->len > ADAPTER_RULES_MAX)
        return fail(r, node, "a list of rules is wanted");
    for (guint i = 0; i < node->items->len; i++) {
        if (!read_rule(r, node->items->pdata[i]))
            return false;
    }
    return true;
}

/* ---- the whole ---- */

static bool
read_choice(const Reader *r, const YamlNode *node, const char *const *choices, char **ret)
{
    return read_text(r, node, ret) &&
           (g_strv_contains(choices, *ret) || fail(r, node, "that is none of those there are"));
}

static bool
read_top(const Reader *r, const YamlNode *key, const YamlNode *value)
{
    static const char *const dialects[] = {"openai", "anthropic", NULL};
    static const char *const outputs[] = {"json", "text", NULL};
    Adapter *a = r->adapter;

    if (strcmp(key->text, "description") == 0)
        return read_text(r, value, &a->description);
    if (strcmp(key->text, "dialect") == 0)
        return read_choice(r, value, dialects, &a->dialect);
    if (strcmp(key->text, "ready") == 0)
        return read_text(r, value, &a->ready);
    if (strcmp(key->text, "setup") == 0)
        return read_text(r, value, &a->setup);
    if (strcmp(key->text, "command") == 0)
        return read_words(r, value, &a->command);
    if (strcmp(key->text, "env") == 0)
        return read_env(r, value);
    if (strcmp(key->text, "files") == 0)
        return read_files(r, value);
    if (strcmp(key->text, "output") == 0)
        return read_choice(r, value, outputs, &a->output);
    if (strcmp(key->text, "events") == 0)
        return read_rules(r, value);
    return fail_key(r, key);
}

void
adapter_free(Adapter *a)
{
    if (a == NULL)
        return;
    g_free(a->name);
    g_free(a->description);
    g_free(a->dialect);
    g_free(a->ready);
    g_free(a->setup);
    g_free(a->output);
    g_strfreev(a->command);
    g_strfreev(a->env);
    g_ptr_array_unref(a->files);
    g_ptr_array_unref(a->rules);
    g_free(a);
}

static bool
read_all(const Reader *r, const YamlNode *top)
{
    if (top == NULL || top->kind != YAML_MAP)
        return err_set(r->error, ERR_INVALID, "agents/%s.yaml: it is empty", r->name);
    for (guint i = 0; i < top->items->len; i++) {
        if (!read_top(r, top->keys->pdata[i], top->items->pdata[i]))
            return false;
    }
    return r->adapter->command != NULL || fail(r, top, "there is no command");
}

Adapter *
adapter_parse(const char *name, const char *text, size_t len, GError **error)
{
    static const YamlLimits limits = {.depth = DEPTH_MAX, .values = VALUES_MAX, .text_max = TEXT_MAX};
    g_auto(YamlProblem) problem = {0};
    g_autoptr(YamlNode) top = yaml_read(text, len, &limits, "an adapter is a map", &problem);
    g_autoptr(Adapter) a = g_new0(Adapter, 1);
    const Reader reader = {name, a, error};

    *a = (Adapter){.name = g_strdup(name),
                   .dialect = g_strdup("openai"),
                   .output = g_strdup("text"),
                   .files = g_ptr_array_new_with_free_func(file_free),
                   .rules = g_ptr_array_new_with_free_func(adapter_rule_free)};
    if (problem.message != NULL) {
        err_set(error, ERR_INVALID, "agents/%s.yaml:%u: %s", name, problem.place.line, problem.message);
        return NULL;
    }
    return read_all(&reader, top) ? g_steal_pointer(&a) : NULL;
}

/* ---- a folder of them ---- */

extern const HttpAsset adapter_assets[]; /* templates/agents, by tools/embed */

static bool
add_one(GHashTable *all, const char *file, const char *text, size_t len, GError **error)
{
    g_autofree char *name = g_strndup(file, strlen(file) - strlen(suffix));

    if (strlen(name) > NAME_MAX_CHARS || g_hash_table_size(all) == FOLDER_MAX)
        return err_set(error, ERR_INVALID, "'%s': there are too many adapters, or its name is too long",
                       file);
    Adapter *adapter = adapter_parse(name, text, len, error);

    if (adapter == NULL)
        return false;
    g_hash_table_replace(all, adapter->name, adapter);
    return true;
}

static bool
load_one(GHashTable *all, const char *folder, const char *file, GError **error)
{
    g_autofree char *path = g_build_filename(folder, file, NULL);
    g_autofree char *text = NULL;
    gsize len;

    if (!g_file_get_contents(path, &text, &len, NULL) || len > ADAPTER_FILE_MAX)
        return err_set(error, ERR_INVALID, "'%s' cannot be read, or is too large", path);
    return add_one(all, file, text, len, error);
}

static void
tell_left_out(const GError *error)
{
    log_error("crew", "an adapter is left out", log_gerror(error));
}

GHashTable *
adapters_load(const char *folder)
{
    g_autoptr(GHashTable)
        all = g_hash_table_new_full(g_str_hash, g_str_equal, NULL, (GDestroyNotify)adapter_free);
    g_autoptr(GDir) dir = folder != NULL ? g_dir_open(folder, 0, NULL) : NULL;
    const char *file;

    for (const HttpAsset *asset = adapter_assets; asset->path != NULL; asset++) {
        g_autoptr(GError) error = NULL;

        if (!add_one(all, asset->path + 1, (const char *)asset->data, asset->size, &error))
            tell_left_out(error);
    }
    while (dir != NULL && (file = g_dir_read_name(dir)) != NULL) {
        g_autoptr(GError) error = NULL;

        if (g_str_has_suffix(file, suffix) && !load_one(all, folder, file, &error))
            tell_left_out(error);
    }
    return g_steal_pointer(&all);
}

/* ---- what it says ---- */

const char *
adapter_name(const Adapter *a)
{
    return a->name;
}

const char *
adapter_dialect(const Adapter *a)
{
    return a->dialect;
}

const char *
adapter_ready(const Adapter *a)
{
    return a->ready;
}

const char *
adapter_setup(const Adapter *a)
{
    return a->setup;
}

static const char *
value_of(const AdapterWords *w, const char *name, size_t n)
{
    const struct {
        const char *name, *value;
    } all[] = {{"prompt", w->prompt}, {"system", w->system},      {"goal", w->goal},
               {"model", w->model},   {"provider", w->provider},  {"workdir", w->workdir},
               {"home", w->home},     {"execution", w->execution}};

    for (size_t i = 0; i < G_N_ELEMENTS(all); i++) {
        if (strlen(all[i].name) == n && strncmp(all[i].name, name, n) == 0)
            return all[i].value;
    }
    return NULL;
}

/* Braces around anything else stay: settings are full of them. */
static char *
fill(const char *text, const AdapterWords *words)
{
    GString *out = g_string_new(NULL);

    while (*text != '\0') {
        const char *end = *text == '{' ? strchr(text, '}') : NULL;
        const char *value = end != NULL ? value_of(words, text + 1, (size_t)(end - text - 1)) : NULL;

        if (value != NULL) {
            g_string_append(out, value);
            text = end + 1;
        } else {
            g_string_append_c(out, *text++);
        }
    }
    return g_string_free(out, FALSE);
}

static char **
fill_all(char **texts, const AdapterWords *words)
{
    GPtrArray *out = g_ptr_array_new();

    for (; texts != NULL && *texts != NULL; texts++)
        g_ptr_array_add(out, fill(*texts, words));
    g_ptr_array_add(out, NULL);
    return (char **)g_ptr_array_free(out, FALSE);
}

char **
adapter_argv(const Adapter *a, const AdapterWords *words)
{
    return fill_all(a->command, words);
}

char **
adapter_env(const Adapter *a, const AdapterWords *words)
{
    return fill_all(a->env, words);
}

bool
adapter_file(const Adapter *a, guint i, const AdapterWords *words, const char **ret_path, char **ret_content)
{
    if (i >= a->files->len)
        return false;
    const AdapterFile *file = a->files->pdata[i];

    *ret_path = file->path;
    *ret_content = fill(file->content, words);
    return true;
}

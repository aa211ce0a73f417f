/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/config-yaml.h"

#include "daemon/setting.h"
#include "json/yaml.h"

typedef struct Walk {
    GHashTable *seen; /* full names: "a.b" may also be written as "b" below "a" */
    const ConfigYamlSink *sink;
} Walk;

static ConfigPlace
place_of(const YamlNode *node)
{
    return (ConfigPlace){node->place.line, node->place.column};
}

static bool
fail(const Walk *w, const YamlNode *node, const char *message)
{
    w->sink->problem(message, place_of(node), w->sink->data);
    return false;
}

static bool
tell_list(const Walk *w, const char *name, const YamlNode *list)
{
    g_autoptr(GPtrArray) texts = g_ptr_array_new();

    for (guint i = 0; i < list->items->len; i++) {
        const YamlNode *item = list->items->pdata[i];

        if (item->text == NULL)
            return fail(w, item, "a list may hold only plain values");
        g_ptr_array_add(texts, item->text);
    }
    g_ptr_array_add(texts, NULL);
    w->sink->value(name, (const char *const *)texts->pdata, true, place_of(list), w->sink->data);
    return true;
}

static bool tell_section(const Walk *w, const char *prefix, const YamlNode *map);

static bool
tell_value(const Walk *w, const char *name, const YamlNode *node)
{
    const char *texts[] = {node->text, NULL};

    switch (node->kind) {
    case YAML_NULL: {
        g_autofree char *message = g_strdup_printf("%s has no value: write one, or remove the line", name);

        (void)fail(w, node, message); /* what follows is still clear */
        return true;
    }
    case YAML_TEXT:
        w->sink->value(name, texts, false, place_of(node), w->sink->data);
        return true;
    case YAML_LIST:
        return tell_list(w, name, node);
    case YAML_MAP:
        break;
    }
    return tell_section(w, name, node);
}

static bool
tell_section(const Walk *w, const char *prefix, const YamlNode *map)
{
    for (guint i = 0; i < map->items->len; i++) {
        const YamlNode *key = map->keys->pdata[i];
        g_autofree char *name = prefix != NULL ? g_strconcat(prefix, ".", key->text, NULL)
                                               : g_strdup(key->text);

        if (!g_hash_table_add(w->seen, g_strdup(name))) {
            g_autofree char *message = g_strdup_printf("%s is there twice", name);

            return fail(w, key, message);
        }
        if (!tell_value(w, name, map->items->pdata[i]))
            return false;
    }
    return true;
}

void
config_yaml_read(const char *text, size_t len, const ConfigYamlSink *sink)
{
    static const YamlLimits limits = {
        .depth = CONFIG_DEPTH_MAX, .values = CONFIG_VALUES_MAX, .text_max = SETTING_TEXT_MAX};
    g_auto(YamlProblem) problem = {0};
    Walk w = {.sink = sink};

    g_assert(len <= CONFIG_FILE_MAX);
    g_autoptr(YamlNode) top = yaml_read(
        text, len, &limits, "the file must hold settings, such as \"log:\" and below it \"  level: info\"",
        &problem);
    w.seen = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    if ((top == NULL || tell_section(&w, NULL, top)) && problem.message != NULL)
        sink->problem(problem.message, (ConfigPlace){problem.place.line, problem.place.column}, sink->data);
    g_hash_table_unref(w.seen);
}

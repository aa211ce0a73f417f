/* SPDX-License-Identifier: Apache-2.0 */
#include "json/yaml-json.h"

#include <math.h>
#include <string.h>

/* Names of numbers, such as "inf", and hexadecimal ones are texts. */
static bool
read_number(const char *text, double *ret)
{
    char *end = NULL;

    *ret = g_ascii_strtod(text, &end);
    return *text != '\0' && text[strspn(text, "+-.0123456789eE")] == '\0' && *end == '\0' && isfinite(*ret);
}

Json *
yaml_scalar_json(const YamlNode *node)
{
    gint64 n;
    double number;

    if (node->kind == YAML_NULL)
        return json_null();
    if (node->kind != YAML_TEXT)
        return NULL;
    if (g_ascii_string_to_signed(node->text, 10, G_MININT64, G_MAXINT64, &n, NULL))
        return json_integer(n);
    if (read_number(node->text, &number))
        return json_real(number);
    if (strcmp(node->text, "true") == 0 || strcmp(node->text, "false") == 0)
        return json_boolean(node->text[0] == 't');
    return json_string(node->text);
}

/* The depth is bounded by whoever read the tree. */
static Json *
node_json(const YamlNode *node, const char *const *typed, bool is_typed)
{
    bool is_map = node->kind == YAML_MAP;

    if (node->kind == YAML_NULL || node->kind == YAML_TEXT)
        return is_typed || node->kind == YAML_NULL ? yaml_scalar_json(node) : json_string(node->text);
    Json *made = is_map ? json_object() : json_array();

    for (guint i = 0; i < node->items->len; i++) {
        const char *key = is_map ? ((YamlNode *)node->keys->pdata[i])->text : NULL;
        Json *value = node_json(node->items->pdata[i], typed,
                                is_typed || (is_map && g_strv_contains(typed, key)));

        if (is_map)
            json_object_set_new(made, key, value);
        else
            json_array_append_new(made, value);
    }
    return made;
}

Json *
yaml_json(const YamlNode *node, const char *const *typed)
{
    return node_json(node, typed, false);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "box/template-recipe.h"

/* Roles name a base as image registries do, packages of that base's language, and tools by
 * what they are for.  What is not in these tables is refused by name: something else in its
 * place would break the promise. */

static const struct {
    const char *name;
    const char *packages[3], *npm[3];
} tools[] = {
    {"git", {"git"}, {NULL}},
    {"curl", {"curl"}, {NULL}},
    {"openssh-client", {"openssh-client"}, {NULL}},
    {"build-essential", {"build-essential"}, {NULL}},
    {"python3", {"python3"}, {NULL}},
    {"ripgrep", {"ripgrep"}, {NULL}},
    {"shellcheck", {"shellcheck"}, {NULL}},
    {"coverage-reporter", {NULL}, {"c8"}},
    {"security-scanner", {NULL}, {"eslint-plugin-security"}},
};

typedef struct RoleReader {
    const char *file;
    Recipe *recipe;
    const char *language; /* "npm", "pip" or NULL */
    GPtrArray *packages, *npm;
    GError **error;
} RoleReader;

static bool
read_base(RoleReader *r, const YamlNode *node)
{
    const char *text = node->kind == YAML_TEXT ? node->text : "";
    Recipe *recipe = r->recipe;
    RecipeCheck *check;

    if (g_regex_match_simple("^node:[1-9][0-9]?$", text, G_REGEX_DOLLAR_ENDONLY, 0)) {
        recipe->node = g_strdup(text + strlen("node:"));
        recipe->from = g_strdup("base");
        r->language = "npm";
    } else if (g_regex_match_simple("^python:3\\.[0-9]{1,2}$", text, G_REGEX_DOLLAR_ENDONLY, 0)) {
        recipe->from = g_strdup("base");
        r->language = "pip";
        g_ptr_array_add(r->packages, g_strconcat("python", text + strlen("python:"), NULL));
        check = g_new0(RecipeCheck, 1);
        *check = (RecipeCheck){g_strdup("python3 --version"),
                               g_strconcat("Python ", text + strlen("python:"), ".", NULL)};
        g_ptr_array_add(recipe->verify, check);
    } else if (strchr(text, ':') == NULL && recipe_name_is_valid(text)) {
        recipe->from = g_strdup(text);
    } else {
        return recipe_fail(r->file, node, r->error,
                           "base '%s' is not known: node:N, python:3.N or the name of a template", text);
    }
    return true;
}

static bool
add_tool(RoleReader *r, const YamlNode *node)
{
    g_autoptr(GString) known = g_string_new(NULL);

    for (size_t i = 0; i < G_N_ELEMENTS(tools); i++) {
        g_string_append_printf(known, "%s%s", i > 0 ? ", " : "", tools[i].name);
        if (node->kind != YAML_TEXT || strcmp(tools[i].name, node->text) != 0)
            continue;
        for (size_t k = 0; tools[i].packages[k] != NULL; k++)
            g_ptr_array_add(r->packages, g_strdup(tools[i].packages[k]));
        for (size_t k = 0; tools[i].npm[k] != NULL; k++)
            g_ptr_array_add(r->npm, g_strdup(tools[i].npm[k]));
        return true;
    }
    return recipe_fail(r->file, node, r->error, "tool '%s' is not known; there are %s",
                       node->text != NULL ? node->text : "", known->str);
}

static bool
read_tools(RoleReader *r, const YamlNode *node)
{
    if (node->kind != YAML_LIST)
        return recipe_fail(r->file, node, r->error, "tools must be a list");
    for (guint i = 0; i < node->items->len; i++) {
        if (!add_tool(r, node->items->pdata[i]))
            return false;
    }
    return true;
}

static bool
read_packages(RoleReader *r, const YamlNode *node)
{
    g_auto(GStrv) texts = NULL;

    if (r->language == NULL)
        return recipe_read_list(node, r->file, "packages", RECIPE_DEBIAN_PATTERN, &r->recipe->packages,
                                r->error);
    if (strcmp(r->language, "pip") == 0)
        return recipe_read_list(node, r->file, "packages", RECIPE_PIP_PATTERN, &r->recipe->pip, r->error);
    if (!recipe_read_list(node, r->file, "packages", RECIPE_NPM_PATTERN, &texts, r->error))
        return false;
    for (guint i = 0; texts[i] != NULL; i++)
        g_ptr_array_add(r->npm, g_strdup(texts[i]));
    return true;
}

static bool
read_role(RoleReader *r, const YamlNode *role)
{
    const YamlNode *base = role->kind == YAML_MAP ? yaml_member(role, "base") : NULL;

    if (!recipe_name_is_valid(r->recipe->name))
        return recipe_fail(r->file, role, r->error, "'%s' cannot be the name of a template", r->recipe->name);
    if (base == NULL)
        return recipe_fail(r->file, role, r->error, "a role has a base, packages and tools");
    if (!read_base(r, base))
        return false;
    for (guint i = 0; i < role->items->len; i++) {
        const YamlNode *key = role->keys->pdata[i];
        const YamlNode *value = role->items->pdata[i];
        bool ok = strcmp(key->text, "base") == 0       ? true
                  : strcmp(key->text, "packages") == 0 ? read_packages(r, value)
                  : strcmp(key->text, "tools") == 0
                      ? read_tools(r, value)
                      : recipe_fail(r->file, key, r->error, "a role has no member '%s'", key->text);

        if (!ok)
            return false;
    }
    return true;
}

/* Appends what the tools brought to what the recipe names itself. */
static void
append(char ***list, GPtrArray *more)
{
    g_autoptr(GPtrArray) all = g_ptr_array_new();

    for (guint i = 0; (*list)[i] != NULL; i++)
        g_ptr_array_add(all, (*list)[i]);
    for (guint i = 0; i < more->len; i++)
        g_ptr_array_add(all, g_strdup(more->pdata[i]));
    g_ptr_array_add(all, NULL);
    g_free(*list);
    *list = (char **)g_ptr_array_free(g_steal_pointer(&all), FALSE);
}

bool
recipe_from_role(const char *name, const YamlNode *role, const char *file, Recipe **ret_recipe,
                 GError **error)
{
    g_autoptr(Recipe) recipe = recipe_new(name);
    g_autoptr(GPtrArray) packages = g_ptr_array_new_with_free_func(g_free);
    g_autoptr(GPtrArray) npm = g_ptr_array_new_with_free_func(g_free);
    RoleReader r = {.file = file, .recipe = recipe, .packages = packages, .npm = npm, .error = error};

    if (!read_role(&r, role))
        return false;
    append(&recipe->packages, packages);
    append(&recipe->npm, npm);
    *ret_recipe = g_steal_pointer(&recipe);
    return true;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Roles: what comes with the program, and over it the files of a folder.  A file is one role with the other
 * names that it goes by; a name is declared once. */
#include <string.h>

#include "base/err.h"
#include "base/log.h"
#include "team/role-private.h"
#include "json/yaml.h"

enum {
    DEPTH_MAX = 4,
    VALUES_MAX = 500,
    NAME_MAX_BYTES = 60,
    BRAIN_MAX_BYTES = 200,
    TOOLS_MAX = 50,
    TURNS_MAX = 10000,
    SECONDS_MAX = 24 * 3600,
    TOKENS_MAX = 10 * 1000 * 1000,
};

static const char *const archetypes[] = {"coder", "reviewer", "tester", "planner", NULL};

void
role_free(Role *role)
{
    if (role == NULL)
        return;
    g_free(role->name);
    g_free(role->archetype);
    g_free(role->specialization);
    g_free(role->template);
    g_free(role->adapter);
    g_free(role->brain);
    g_free(role->prompt);
    g_strfreev(role->tools);
    g_free(role);
}

void
role_alias_free(RoleAlias *alias)
{
    g_free(alias->role);
    g_free(alias->specialization);
    g_free(alias);
}

/* "Backend Developer" and "backend-developer" are "backend_developer". */
char *
role_fold(const char *name)
{
    g_autofree char *folded = g_ascii_strdown(name, -1);

    return g_strstrip(g_strdup(g_strdelimit(folded, " -\t", '_')));
}

/* ---- reading ---- */

typedef struct Reader {
    const char *file;
    GError **error;
} Reader;

static bool fail(const Reader *r, YamlPlace at, const char *fmt, ...) G_GNUC_PRINTF(3, 4);

static bool
fail(const Reader *r, YamlPlace at, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    g_autofree char *why = g_strdup_vprintf(fmt, ap);
    va_end(ap);
    return err_set(r->error, ERR_INVALID, "%s, line %u: %s", r->file, at.line, why);
}

static bool
read_text(const Reader *r, const YamlNode *node, size_t max, char **ret)
{
    if (node->kind != YAML_TEXT || node->text[0] == '\0' || strlen(node->text) > max)
        return fail(r, node->place, "a text of 1 to %zu bytes is expected here", max);
    g_free(*ret);
    *ret = g_strdup(node->text);
    return true;
}

static bool
read_number(const Reader *r, const YamlNode *node, guint max, guint *ret)
{
    guint64 n;

    if (node->kind != YAML_TEXT || !g_ascii_string_to_unsigned(node->text, 10, 1, max, &n, NULL))
        return fail(r, node->place, "a number from 1 to %u is expected here", max);
    *ret = (guint)n;
    return true;
}

static bool
read_tools(const Reader *r, const YamlNode *node, char ***ret)
{
    g_autoptr(GStrvBuilder) words = g_strv_builder_new();

    if (node->kind != YAML_LIST || node->items->len > TOOLS_MAX)
        return fail(r, node->place, "tools must be a list of at most %d names", TOOLS_MAX);
    for (guint i = 0; i < node->items->len; i++) {
        g_autofree char *word = NULL;

        if (!read_text(r, node->items->pdata[i], NAME_MAX_BYTES, &word))
            return false;
        g_strv_builder_add(words, word);
    }
    g_strfreev(*ret);
    *ret = g_strv_builder_end(words);
    return true;
}

static bool
read_limits(const Reader *r, const YamlNode *node, Role *role)
{
    if (node->kind != YAML_MAP)
        return fail(r, node->place, "limits must be a map");
    for (guint i = 0; i < node->items->len; i++) {
        const YamlNode *key = node->keys->pdata[i], *value = node->items->pdata[i];
        bool ok;

        if (strcmp(key->text, "turns") == 0)
            ok = read_number(r, value, TURNS_MAX, &role->turns);
        else if (strcmp(key->text, "seconds") == 0)
            ok = read_number(r, value, SECONDS_MAX, &role->seconds);
        else if (strcmp(key->text, "context_tokens") == 0)
            ok = read_number(r, value, TOKENS_MAX, &role->context_tokens);
        else
            return fail(r, key->place, "limits has no '%s', but turns, seconds and context_tokens",
                        key->text);
        if (!ok)
            return false;
    }
    return true;
}

static bool
read_archetype(const Reader *r, const YamlNode *node, char **ret)
{
    if (!read_text(r, node, NAME_MAX_BYTES, ret))
        return false;
    return g_strv_contains(archetypes, *ret) ||
           fail(r, node->place, "archetype must be coder, reviewer, tester or planner");
}

static bool
read_aliases(const Reader *r, const YamlNode *node, RoleFile *file)
{
    if (node->kind != YAML_MAP)
        return fail(r, node->place, "aliases must be names with a specialisation each, or with \"\"");
    for (guint i = 0; i < node->items->len; i++) {
        const YamlNode *key = node->keys->pdata[i], *value = node->items->pdata[i];

        if (value->kind != YAML_TEXT || strlen(value->text) > NAME_MAX_BYTES ||
            strlen(key->text) > NAME_MAX_BYTES)
            return fail(r, key->place, "'%.60s' must have a short specialisation, or \"\"", key->text);
        g_hash_table_replace(file->aliases, role_fold(key->text), g_strdup(value->text));
    }
    return true;
}

static bool
read_member(const Reader *r, const YamlNode *key, const YamlNode *value, RoleFile *file)
{
    Role *role = file->role;
    const struct {
        const char *name;
        size_t max;
        char **ret;
    } texts[] = {
        {"name", NAME_MAX_BYTES, &role->name},
        {"specialization", NAME_MAX_BYTES, &role->specialization},
        {"template", NAME_MAX_BYTES, &role->template},
        {"adapter", NAME_MAX_BYTES, &role->adapter},
        {"brain", BRAIN_MAX_BYTES, &role->brain},
        {"prompt", SQUAD_PROMPT_MAX, &role->prompt},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(texts); i++) {
        if (strcmp(key->text, texts[i].name) == 0)
            return read_text(r, value, texts[i].max, texts[i].ret);
    }
    if (strcmp(key->text, "archetype") == 0)
        return read_archetype(r, value, &role->archetype);
    if (strcmp(key->text, "tools") == 0)
        return read_tools(r, value, &role->tools);
    if (strcmp(key->text, "limits") == 0)
        return read_limits(r, value, role);
    if (strcmp(key->text, "aliases") == 0)
        return read_aliases(r, value, file);
    return fail(r, key->place, "a role has no '%.60s'", key->text);
}

RoleFile *
role_file_new(void)
{
    RoleFile *file = g_new0(RoleFile, 1);

    file->role = g_new0(Role, 1);
    file->aliases = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    return file;
}

void
role_file_free(RoleFile *file)
{
    role_free(file->role);
    g_hash_table_unref(file->aliases);
    g_free(file);
}

static bool
is_brain(const char *text)
{
    const char *slash = strchr(text, '/');

    return slash != NULL && slash != text && slash[1] != '\0';
}

bool
role_node_read(const YamlNode *map, const char *where, RoleFile *file, GError **error)
{
    const Reader r = {.file = where, .error = error};
    Role *role = file->role;

    if (map->kind != YAML_MAP)
        return fail(&r, map->place, "a role is a map with name, archetype and prompt");
    for (guint i = 0; i < map->items->len; i++) {
        if (!read_member(&r, map->keys->pdata[i], map->items->pdata[i], file))
            return false;
    }
    if (role->name == NULL || role->archetype == NULL)
        return fail(&r, map->place, "a role needs a name and an archetype");
    if (role->brain != NULL && !is_brain(role->brain))
        return fail(&r, map->place, "brain must be PROVIDER/MODEL, not '%s'", role->brain);
    if (role->adapter == NULL)
        role->adapter = g_strdup("coop");
    if (role->prompt == NULL)
        role->prompt = g_strdup("");
    return true;
}

RoleFile *
role_parse(const char *text, size_t len, const char *where, GError **error)
{
    static const YamlLimits limits = {.depth = DEPTH_MAX, .values = VALUES_MAX, .text_max = SQUAD_PROMPT_MAX};
    g_auto(YamlProblem) problem = {0};
    g_autoptr(YamlNode) top = yaml_read(text, len, &limits,
                                        "a role is a map with 'name', 'archetype' and 'prompt'", &problem);
    const Reader r = {.file = where, .error = error};
    g_autoptr(RoleFile) file = role_file_new();

    if (problem.message != NULL) {
        fail(&r, problem.place, "%s", problem.message);
        return NULL;
    }
    if (top == NULL) {
        err_set(error, ERR_INVALID, "%s: there is nothing in it", where);
        return NULL;
    }
    return role_node_read(top, where, file, error) ? g_steal_pointer(&file) : NULL;
}

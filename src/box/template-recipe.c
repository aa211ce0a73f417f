/* SPDX-License-Identifier: Apache-2.0 */
#include "box/template-recipe.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

#include "base/err.h"
#include "base/path.h"

#define NAME_PATTERN "^[a-z0-9][a-z0-9._-]*$"
/* A version may follow; what begins with '-' would be taken for an option. */
const char RECIPE_DEBIAN_PATTERN[] = "^[a-z0-9][a-z0-9+.-]*(:[a-z0-9]+)?(=[A-Za-z0-9.+:~-]+)?$";
const char RECIPE_NPM_PATTERN[] = "^(@[a-z0-9][a-z0-9._-]*/)?[a-z0-9][a-z0-9._-]*(@[A-Za-z0-9^~*.+-]+)?$";
const char RECIPE_PIP_PATTERN[] =
    "^[A-Za-z0-9][A-Za-z0-9._-]*(\\[[A-Za-z0-9,_-]+\\])?(([<>=!~]=|[<>])[A-Za-z0-9.*+!-]+(,([<>=!~]=|[<>])[A-"
    "Za-z0-9.*+!-]+)*)?$";

typedef struct Reader {
    const char *file;
    Recipe *recipe;
    GError **error;
} Reader;

static void
file_free(RecipeFile *file)
{
    g_free(file->path);
    g_free(file->content);
    g_free(file);
}

static void
check_free(RecipeCheck *check)
{
    g_free(check->command);
    g_free(check->want);
    g_free(check);
}

Recipe *
recipe_new(const char *name)
{
    Recipe *r = g_new0(Recipe, 1);

    r->name = g_strdup(name);
    r->packages = g_new0(char *, 1);
    r->npm = g_new0(char *, 1);
    r->pip = g_new0(char *, 1);
    r->commands = g_new0(char *, 1);
    r->env = g_new0(char *, 1);
    r->files = g_ptr_array_new_with_free_func((GDestroyNotify)file_free);
    r->verify = g_ptr_array_new_with_free_func((GDestroyNotify)check_free);
    r->sudo = r->low_ports = RECIPE_UNSET;
    return r;
}

void
recipe_free(Recipe *r)
{
    if (r == NULL)
        return;
    char *texts[] = {r->name, r->description, r->root,     r->folder, r->from,    r->node,
                     r->go,   r->go_amd64,    r->go_arm64, r->user,   r->workdir, r->test};
    char **lists[] = {r->packages, r->npm, r->pip, r->commands, r->env};

    for (size_t i = 0; i < G_N_ELEMENTS(texts); i++)
        g_free(texts[i]);
    for (size_t i = 0; i < G_N_ELEMENTS(lists); i++)
        g_strfreev(lists[i]);
    g_ptr_array_unref(r->files);
    g_ptr_array_unref(r->verify);
    g_free(r);
}

bool
recipe_name_is_valid(const char *name)
{
    return strlen(name) <= RECIPE_NAME_MAX &&
           g_regex_match_simple(NAME_PATTERN, name, G_REGEX_DOLLAR_ENDONLY, 0) &&
           strstr(name, ".tmp-") == NULL && strcmp(name, "cache") != 0;
}

bool
recipe_fail(const char *file, const YamlNode *node, GError **error, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    g_autofree char *message = g_strdup_vprintf(fmt, ap);
    va_end(ap);
    return err_set(error, ERR_INVALID, "%s:%u:%u: %s", file, node->place.line, node->place.column, message);
}

static bool
matches(const char *text, const char *pattern)
{
    return pattern == NULL || g_regex_match_simple(pattern, text, G_REGEX_DOLLAR_ENDONLY, 0);
}

bool
recipe_read_list(const YamlNode *node, const char *file, const char *what, const char *pattern,
                 char ***ret_texts, GError **error)
{
    g_autoptr(GPtrArray) texts = g_ptr_array_new_with_free_func(g_free);

    if (node->kind != YAML_LIST || node->items->len > RECIPE_LIST_MAX)
        return recipe_fail(file, node, error, "%s must be a list of at most %d", what, RECIPE_LIST_MAX);
    for (guint i = 0; i < node->items->len; i++) {
        const YamlNode *item = node->items->pdata[i];

        if (item->kind != YAML_TEXT || !matches(item->text, pattern))
            return recipe_fail(file, item, error, "'%s' cannot be one of %s",
                               item->text != NULL ? item->text : "this", what);
        g_ptr_array_add(texts, g_strdup(item->text));
    }
    g_ptr_array_add(texts, NULL);
    g_strfreev(*ret_texts);
    *ret_texts = (char **)g_ptr_array_free(g_steal_pointer(&texts), FALSE);
    return true;
}

/* ---- the members that are more than a text or a list ---- */

static bool
read_env(Reader *r, const YamlNode *node)
{
    g_autoptr(GPtrArray) env = g_ptr_array_new_with_free_func(g_free);

    if (node->kind != YAML_MAP || node->items->len > RECIPE_LIST_MAX)
        return recipe_fail(r->file, node, r->error, "env must be names with values");
    for (guint i = 0; i < node->items->len; i++) {
        const YamlNode *key = node->keys->pdata[i];
        const YamlNode *value = node->items->pdata[i];

        if (!matches(key->text, "^[A-Za-z_][A-Za-z0-9_]*$"))
            return recipe_fail(r->file, key, r->error, "'%s' cannot be a name in env", key->text);
        if (value->text == NULL)
            return recipe_fail(r->file, value, r->error, "%s in env must have a plain value", key->text);
        g_ptr_array_add(env, g_strconcat(key->text, "=", value->text, NULL));
    }
    g_ptr_array_add(env, NULL);
    g_strfreev(r->recipe->env);
    r->recipe->env = (char **)g_ptr_array_free(g_steal_pointer(&env), FALSE);
    return true;
}

/* The runtime puts its own things there. */
static bool
path_may_be_written(const char *path)
{
    static const char *const kept[] = {"/dev", "/proc", "/sys"};

    if (!path_is_normal(path))
        return false;
    for (size_t i = 0; i < G_N_ELEMENTS(kept); i++) {
        size_t n = strlen(kept[i]);

        if (strncmp(path, kept[i], n) == 0 && (path[n] == '/' || path[n] == '\0'))
            return false;
    }
    return true;
}

static bool
read_file(Reader *r, const char *path, const YamlNode *key, const YamlNode *value)
{
    const YamlNode *content = value->kind == YAML_MAP ? yaml_member(value, "content") : value;
    const YamlNode *mode = value->kind == YAML_MAP ? yaml_member(value, "mode") : NULL;
    guint64 bits = 0644;

    if (!path_may_be_written(path))
        return recipe_fail(r->file, key, r->error, "'%s' cannot be a file of a template", path);
    if (content == NULL || content->text == NULL ||
        (value->kind == YAML_MAP && value->items->len != (mode != NULL ? 2u : 1u)))
        return recipe_fail(r->file, value, r->error, "a file is its content, or a map with content and mode");
    if (mode != NULL &&
        (mode->kind != YAML_TEXT || !g_ascii_string_to_unsigned(mode->text, 8, 0, 0777, &bits, NULL)))
        return recipe_fail(r->file, mode, r->error, "mode must be octal, such as 0755");
    RecipeFile *file = g_new0(RecipeFile, 1);

    *file = (RecipeFile){g_strdup(path), g_strdup(content->text), (guint)bits};
    g_ptr_array_add(r->recipe->files, file);
    return true;
}

static bool
read_files(Reader *r, const YamlNode *node)
{
    if (node->kind != YAML_MAP || node->items->len > RECIPE_LIST_MAX)
        return recipe_fail(r->file, node, r->error, "files must be paths with their content");
    for (guint i = 0; i < node->items->len; i++) {
        const YamlNode *key = node->keys->pdata[i];

        if (!read_file(r, key->text, key, node->items->pdata[i]))
            return false;
    }
    return true;
}

static bool
read_verify(Reader *r, const YamlNode *node)
{
    if (node->kind != YAML_MAP || node->items->len > RECIPE_LIST_MAX)
        return recipe_fail(r->file, node, r->error,
                           "verify must be commands with the beginning of what they print");
    for (guint i = 0; i < node->items->len; i++) {
        const YamlNode *key = node->keys->pdata[i];
        const YamlNode *value = node->items->pdata[i];

        if (value->text == NULL)
            return recipe_fail(r->file, value, r->error, "'%s' must have a plain value", key->text);
        RecipeCheck *check = g_new0(RecipeCheck, 1);
        *check = (RecipeCheck){g_strdup(key->text), g_strdup(value->text)};
        g_ptr_array_add(r->recipe->verify, check);
    }
    return true;
}

static bool
read_go(Reader *r, const YamlNode *node)
{
    const YamlNode *version = node->kind == YAML_MAP ? yaml_member(node, "version") : NULL;

    if (version == NULL || version->kind != YAML_TEXT || !matches(version->text, "^1\\.[0-9]+(\\.[0-9]+)?$"))
        return recipe_fail(r->file, node, r->error, "go must have a version such as 1.21.13");
    r->recipe->go = g_strdup(version->text);
    for (guint i = 0; i < node->items->len; i++) {
        const YamlNode *key = node->keys->pdata[i];
        const YamlNode *value = node->items->pdata[i];
        char **sum = strcmp(key->text, "amd64") == 0   ? &r->recipe->go_amd64
                     : strcmp(key->text, "arm64") == 0 ? &r->recipe->go_arm64
                                                       : NULL;

        if (value == version)
            continue;
        if (sum == NULL)
            return recipe_fail(r->file, key, r->error, "go has no member '%s'", key->text);
        if (value->kind != YAML_TEXT || !matches(value->text, "^h1:[A-Za-z0-9+/]{43}=$"))
            return recipe_fail(r->file, value, r->error, "a sum is h1: and a hash in base 64, as in go.sum");
        *sum = g_strdup(value->text);
    }
    return true;
}

#define MIB_OF(bytes) ((bytes) >> 20)

static const struct {
    const char *name;
    size_t offset;
    bool wide;
    double scale, min, max;
} limit_table[] = {
    {"cpu", offsetof(KeeperLimits, cpu_milli), false, 1000, KEEPER_CPU_MIN / 1000.0, KEEPER_CPU_MAX / 1000.0},
    {"memory_mb", offsetof(KeeperLimits, memory_bytes), true, 1 << 20, MIB_OF(KEEPER_MEMORY_MIN),
     MIB_OF(KEEPER_MEMORY_MAX)},
    {"disk_mb", offsetof(KeeperLimits, disk_bytes), true, 1 << 20, MIB_OF(KEEPER_DISK_MIN),
     MIB_OF(KEEPER_DISK_MAX)},
    {"inodes", offsetof(KeeperLimits, inodes), false, 1, KEEPER_INODES_MIN, KEEPER_INODES_MAX},
    {"processes", offsetof(KeeperLimits, pids), false, 1, KEEPER_PIDS_MIN, KEEPER_PIDS_MAX},
};

static bool
read_limit(Reader *r, const YamlNode *key, const YamlNode *value)
{
    for (size_t i = 0; i < G_N_ELEMENTS(limit_table); i++) {
        char *end = NULL;

        if (strcmp(limit_table[i].name, key->text) != 0)
            continue;
        double number = value->kind == YAML_TEXT ? g_ascii_strtod(value->text, &end) : NAN;
        if (end == NULL || end == value->text || *end != '\0' ||
            !(number >= limit_table[i].min && number <= limit_table[i].max))
            return recipe_fail(r->file, value, r->error, "%s must be a number from %g to %g", key->text,
                               limit_table[i].min, limit_table[i].max);
        void *field = (char *)&r->recipe->limits + limit_table[i].offset;
        if (limit_table[i].wide)
            *(uint64_t *)field = (uint64_t)(number * limit_table[i].scale);
        else
            *(uint32_t *)field = (uint32_t)(number * limit_table[i].scale);
        return true;
    }
    return recipe_fail(r->file, key, r->error, "limits have no member '%s'", key->text);
}

static bool
read_limits(Reader *r, const YamlNode *node)
{
    if (node->kind != YAML_MAP)
        return recipe_fail(r->file, node, r->error, "limits must be names with numbers");
    for (guint i = 0; i < node->items->len; i++) {
        if (!read_limit(r, node->keys->pdata[i], node->items->pdata[i]))
            return false;
    }
    return true;
}

/* ---- the table of members ---- */

typedef enum MemberKind { MEMBER_TEXT, MEMBER_LIST, MEMBER_FLAG, MEMBER_OTHER } MemberKind;

static const struct {
    const char *name;
    MemberKind kind;
    size_t offset;
    const char *pattern;
    bool (*read)(Reader *r, const YamlNode *node);
} members[] = {
    {"name", MEMBER_TEXT, offsetof(Recipe, name), NAME_PATTERN, NULL},
    {"description", MEMBER_TEXT, offsetof(Recipe, description), NULL, NULL},
    {"root", MEMBER_TEXT, offsetof(Recipe, root), "^(debian|host|folder)$", NULL},
    {"folder", MEMBER_TEXT, offsetof(Recipe, folder), "^(/[^/]+)+$", NULL},
    {"from", MEMBER_TEXT, offsetof(Recipe, from), NAME_PATTERN, NULL},
    {"packages", MEMBER_LIST, offsetof(Recipe, packages), RECIPE_DEBIAN_PATTERN, NULL},
    {"node", MEMBER_TEXT, offsetof(Recipe, node), "^[1-9][0-9]{0,2}$", NULL},
    {"npm", MEMBER_LIST, offsetof(Recipe, npm), RECIPE_NPM_PATTERN, NULL},
    {"pip", MEMBER_LIST, offsetof(Recipe, pip), RECIPE_PIP_PATTERN, NULL},
    {"go", MEMBER_OTHER, 0, NULL, read_go},
    {"commands", MEMBER_LIST, offsetof(Recipe, commands), NULL, NULL},
    {"files", MEMBER_OTHER, 0, NULL, read_files},
    {"env", MEMBER_OTHER, 0, NULL, read_env},
    {"user", MEMBER_TEXT, offsetof(Recipe, user), "^[a-z_][a-z0-9_-]{0,31}$", NULL},
    {"workdir", MEMBER_TEXT, offsetof(Recipe, workdir), "^(/[^/]+)+$", NULL},
    {"test", MEMBER_TEXT, offsetof(Recipe, test), NULL, NULL},
    {"verify", MEMBER_OTHER, 0, NULL, read_verify},
    {"limits", MEMBER_OTHER, 0, NULL, read_limits},
    {"sudo", MEMBER_FLAG, offsetof(Recipe, sudo), NULL, NULL},
    {"low_ports", MEMBER_FLAG, offsetof(Recipe, low_ports), NULL, NULL},
};

static bool
read_text(Reader *r, const char *name, const YamlNode *node, const char *pattern, char **ret_text)
{
    if (node->kind != YAML_TEXT || !matches(node->text, pattern))
        return recipe_fail(r->file, node, r->error, "'%s' cannot be the %s of a template",
                           node->text != NULL ? node->text : "this", name);
    g_free(*ret_text);
    *ret_text = g_strdup(node->text);
    return true;
}

static bool
read_flag(Reader *r, const char *name, const YamlNode *node, RecipeFlag *ret_flag)
{
    bool yes = node->kind == YAML_TEXT && strcmp(node->text, "true") == 0;

    if (!yes && (node->kind != YAML_TEXT || strcmp(node->text, "false") != 0))
        return recipe_fail(r->file, node, r->error, "%s must be true or false", name);
    *ret_flag = yes ? RECIPE_ON : RECIPE_OFF;
    return true;
}

static bool
read_member(Reader *r, const YamlNode *key, const YamlNode *value)
{
    for (size_t i = 0; i < G_N_ELEMENTS(members); i++) {
        void *field = (char *)r->recipe + members[i].offset;

        if (strcmp(members[i].name, key->text) != 0)
            continue;
        switch (members[i].kind) {
        case MEMBER_TEXT:
            return read_text(r, key->text, value, members[i].pattern, field);
        case MEMBER_LIST:
            return recipe_read_list(value, r->file, key->text, members[i].pattern, field, r->error);
        case MEMBER_FLAG:
            return read_flag(r, key->text, value, field);
        case MEMBER_OTHER:
            return members[i].read(r, value);
        }
    }
    return recipe_fail(r->file, key, r->error, "a template has no member '%s'", key->text);
}

static bool
check_whole(Reader *r, const YamlNode *top)
{
    const Recipe *recipe = r->recipe;

    if (!recipe_name_is_valid(recipe->name))
        return recipe_fail(r->file, top, r->error, "'%s' cannot be the name of a template", recipe->name);
    if ((recipe->root == NULL) == (recipe->from == NULL))
        return recipe_fail(
            r->file, top, r->error,
            "a template has either a root (debian, host or folder) or another template it is made from");
    if (recipe->root != NULL && strcmp(recipe->root, "debian") != 0 && recipe->packages[0] != NULL)
        return recipe_fail(r->file, top, r->error,
                           "a copied root takes no packages; a template made from it may");
    if ((recipe->folder != NULL) != (g_strcmp0(recipe->root, "folder") == 0))
        return recipe_fail(r->file, top, r->error, "a root of kind folder, and no other, names its folder");
    if (recipe->workdir != NULL && !path_is_normal(recipe->workdir))
        return recipe_fail(r->file, yaml_member(top, "workdir"), r->error, "'%s' is no plain path",
                           recipe->workdir);
    return true;
}

static Recipe *
read_recipe(const YamlNode *top, const char *file, const char *name, GError **error)
{
    g_autoptr(Recipe) recipe = recipe_new(name);
    Reader r = {file, recipe, error};

    for (guint i = 0; i < top->items->len; i++) {
        if (!read_member(&r, top->keys->pdata[i], top->items->pdata[i]))
            return NULL;
    }
    return check_whole(&r, top) ? g_steal_pointer(&recipe) : NULL;
}

static void
read_roles(const YamlNode *roles, const char *file, const RecipeSink *sink)
{
    for (guint i = 0; i < roles->items->len; i++) {
        const YamlNode *key = roles->keys->pdata[i];
        g_autoptr(GError) error = NULL;
        Recipe *recipe = NULL;

        if (recipe_from_role(key->text, roles->items->pdata[i], file, &recipe, &error))
            sink->recipe(recipe, sink->data);
        else
            sink->problem(key->text, error->message, sink->data);
    }
}

void
recipe_read(const char *text, size_t len, const char *file, const RecipeSink *sink)
{
    static const YamlLimits limits = {
        .depth = RECIPE_DEPTH_MAX, .values = RECIPE_VALUES_MAX, .text_max = RECIPE_TEXT_MAX};
    g_autofree char *base = g_path_get_basename(file);
    g_autofree char *name = g_str_has_suffix(base, ".yaml") ? g_strndup(base, strlen(base) - strlen(".yaml"))
                                                            : g_strdup(base);
    g_auto(YamlProblem) problem = {0};
    g_autoptr(GError) error = NULL;
    g_autoptr(YamlNode) top = yaml_read(text, len, &limits, "the file must hold a template", &problem);
    const YamlNode *roles = top != NULL ? yaml_member(top, "templates") : NULL;

    if (problem.message != NULL) {
        g_autofree char *message = g_strdup_printf("%s:%u:%u: %s", file, problem.place.line,
                                                   problem.place.column, problem.message);
        sink->problem(name, message, sink->data);
    } else if (roles != NULL && roles->kind == YAML_MAP && top->items->len == 1) {
        read_roles(roles, file, sink);
    } else if (top != NULL) {
        Recipe *recipe = read_recipe(top, file, name, &error);

        if (recipe != NULL)
            sink->recipe(recipe, sink->data);
        else
            sink->problem(name, error->message, sink->data);
    }
}

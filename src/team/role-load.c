/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/io.h"
#include "base/log.h"
#include "http/assets.h"
#include "team/role-private.h"

extern const HttpAsset role_assets[]; /* templates/roles, by tools/embed */

static void
add_alias(Team *team, const char *name, const char *role, const char *specialization)
{
    RoleAlias *alias = g_new0(RoleAlias, 1);

    alias->role = g_strdup(role);
    if (specialization != NULL && specialization[0] != '\0')
        alias->specialization = g_strdup(specialization);
    g_hash_table_replace(team->aliases, role_fold(name), alias);
}

static void
take(Team *team, RoleFile *file)
{
    Role *role = g_steal_pointer(&file->role);
    GHashTableIter iter;
    gpointer name, specialization;

    g_hash_table_iter_init(&iter, file->aliases);
    while (g_hash_table_iter_next(&iter, &name, &specialization))
        add_alias(team, name, role->name, specialization);
    add_alias(team, role->name, role->name, role->specialization);
    g_hash_table_replace(team->roles, g_strdup(role->name), role);
}

static void
add_text(Team *team, const void *text, size_t len, const char *where)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(RoleFile) file = role_parse(text, len, where, &error);

    if (file != NULL)
        take(team, file);
    else
        log_warn("team", "a role is left out", log_gerror(error));
}

static void
add_file(Team *team, const char *folder, const char *name)
{
    g_autofree char *path = g_build_filename(folder, name, NULL), *text = g_malloc(ROLE_FILE_MAX + 1);
    autofd fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    struct stat st;
    ssize_t n = fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode)
                    ? io_read_full(fd, text, ROLE_FILE_MAX + 1)
                    : -1;

    if (n < 0 || n > ROLE_FILE_MAX)
        log_warn("team", "a role cannot be read, or is too large", log_str("file", path));
    else
        add_text(team, text, (size_t)n, path);
}

static int
compare(gconstpointer a, gconstpointer b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* In the order of names, so that the same files give the same roles. */
static void
add_folder(Team *team, const char *folder)
{
    g_autoptr(GDir) dir = folder != NULL ? g_dir_open(folder, 0, NULL) : NULL;
    g_autoptr(GPtrArray) names = g_ptr_array_new_with_free_func(g_free);
    const char *name;

    while (dir != NULL && names->len < ROLES_MAX && (name = g_dir_read_name(dir)) != NULL) {
        if (g_str_has_suffix(name, ".yaml") && name[0] != '.')
            g_ptr_array_add(names, g_strdup(name));
    }
    g_ptr_array_sort(names, compare);
    for (guint i = 0; i < names->len; i++)
        add_file(team, folder, names->pdata[i]);
}

void
roles_load(Team *team)
{
    team->roles = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, (GDestroyNotify)role_free);
    team->aliases = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, (GDestroyNotify)role_alias_free);
    for (const HttpAsset *asset = role_assets; asset->path != NULL; asset++)
        add_text(team, asset->data, asset->size, asset->path + 1);
    add_folder(team, team->spec.roles_dir);
}

/* ---- asking ---- */

const Role *
team_role(Team *team, const char *name, const char **ret_specialization)
{
    g_autofree char *folded = role_fold(name);
    const RoleAlias *alias = g_hash_table_lookup(team->aliases, folded);

    if (ret_specialization != NULL)
        *ret_specialization = alias != NULL ? alias->specialization : NULL;
    return alias != NULL ? g_hash_table_lookup(team->roles, alias->role) : NULL;
}

static Json *
role_json(Team *team, const Role *role)
{
    Json *names = json_object(), *tools = role->tools != NULL ? json_array() : json_null();
    GHashTableIter iter;
    gpointer name, alias;

    g_hash_table_iter_init(&iter, team->aliases);
    while (g_hash_table_iter_next(&iter, &name, &alias)) {
        const RoleAlias *a = alias;

        if (strcmp(a->role, role->name) == 0 && strcmp(name, role->name) != 0)
            json_object_set_new(names, name, json_string(a->specialization != NULL ? a->specialization : ""));
    }
    for (char **tool = role->tools; tool != NULL && *tool != NULL; tool++)
        json_array_append_new(tools, json_string(*tool));
    return json_pack("{s:s, s:s, s:s?, s:s?, s:s?, s:s, s:s, s:o, s:o}", "name", role->name, "archetype",
                     role->archetype, "specialization", role->specialization, "template", role->template,
                     "brain", role->brain, "adapter", role->adapter, "prompt", role->prompt, "tools", tools,
                     "aliases", names);
}

Json *
team_roles_json(Team *team)
{
    GList *names = g_list_sort(g_hash_table_get_keys(team->roles), (GCompareFunc)strcmp);
    Json *list = json_array();

    for (GList *at = names; at != NULL; at = at->next)
        json_array_append_new(list, role_json(team, g_hash_table_lookup(team->roles, at->data)));
    g_list_free(names);
    return list;
}

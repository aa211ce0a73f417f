/* SPDX-License-Identifier: Apache-2.0 */
#include "team/repo-file.h"

#include <string.h>

#include "base/err.h"
#include "forge/check-plan.h"
#include "forge/contents.h"
#include "forge/repo.h"
#include "team/role-private.h"
#include "team/squad-private.h"
#include "json/yaml-json.h"

enum { DEPTH_MAX = 6, VALUES_MAX = 2000 };

/* ---- roles ---- */

static bool
refuse(const YamlNode *node, const char *why, GError **error)
{
    return err_set(error, ERR_INVALID, "%s, line %u: %s", plan_file_name, node->place.line, why);
}

static void
set_text(Json *object, const char *name, const char *text)
{
    if (text != NULL)
        json_object_set_new(object, name, json_string(text));
}

static Json *
role_json(const Role *role)
{
    const char *slash = role->brain != NULL ? strchr(role->brain, '/') : NULL;
    Json *json = json_pack("{s:s, s:s, s:s, s:I, s:I, s:I}", "name", role->name, "archetype", role->archetype,
                           "prompt", role->prompt, "turns", (json_int_t)role->turns, "seconds",
                           (json_int_t)role->seconds, "context_tokens", (json_int_t)role->context_tokens);

    set_text(json, "specialization", role->specialization);
    set_text(json, "template", role->template);
    if (slash != NULL) {
        json_object_set_new(json, "llm_provider", json_stringn(role->brain, (size_t)(slash - role->brain)));
        set_text(json, "llm_model", slash + 1);
    }
    if (role->tools != NULL)
        json_object_set_new(json, "tools", json_array());
    for (char **tool = role->tools; tool != NULL && *tool != NULL; tool++)
        json_array_append_new(json_object_get(json, "tools"), json_string(*tool));
    return json;
}

/* A name of ours says what it is. */
static void
preset_archetype(const YamlNode *node, Role *role)
{
    static const char *const ours[] = {"coder", "reviewer", "tester", NULL};
    const YamlNode *name = node->kind == YAML_MAP ? yaml_member(node, "name") : NULL;

    if (name != NULL && name->kind == YAML_TEXT && g_strv_contains(ours, name->text))
        role->archetype = g_strdup(name->text);
}

static bool
read_role(const YamlNode *node, Json *roles, GError **error)
{
    g_autoptr(RoleFile) file = role_file_new();

    preset_archetype(node, file->role);
    if (!role_node_read(node, plan_file_name, file, error))
        return false;
    if (yaml_member(node, "adapter") != NULL || yaml_member(node, "aliases") != NULL)
        return refuse(node, "a role of a repository has no 'adapter' and no 'aliases'", error);
    if (strcmp(file->role->archetype, "planner") == 0)
        return refuse(node, "a repository says nothing of who plans, but 'planner'", error);
    g_autofree char *name = role_fold(file->role->name);

    g_free(file->role->name);
    file->role->name = g_steal_pointer(&name);
    return json_array_append_new(roles, role_json(file->role)) == 0;
}

static bool
read_roles(const YamlNode *node, Json *roles, GError **error)
{
    if (node->kind != YAML_LIST || node->items->len > REPO_ROLES_MAX)
        return refuse(node, "roles must be a list, of at most 20", error);
    for (guint i = 0; i < node->items->len; i++) {
        if (!read_role(node->items->pdata[i], roles, error))
            return false;
    }
    return true;
}

/* ---- members ---- */

static bool
read_members(const YamlNode *node, Json *members, GError **error)
{
    static const char *const typed[] = {NULL};

    if (node->kind != YAML_LIST || node->items->len > SQUAD_MEMBERS_MAX)
        return refuse(node, "members must be a list, of at most 50", error);
    for (guint i = 0; i < node->items->len; i++) {
        const YamlNode *one = node->items->pdata[i];

        if (one->kind != YAML_MAP)
            return refuse(one, "a member is a map with a role", error);
        if (yaml_member(one, "config") != NULL || yaml_member(one, "is_active") != NULL)
            return refuse(one,
                          "a member of a repository has no 'config' and no 'is_active': limits and tools are "
                          "those of 'roles'",
                          error);
        json_array_append_new(members, json_pack("{s:I, s:o}", "line", (json_int_t)one->place.line, "fields",
                                                 yaml_json(one, typed)));
    }
    return true;
}

/* ---- the file ---- */

static bool
read_team(const YamlNode *team, Json *config, Json *roles, Json *members, GError **error)
{
    static const char *const refused[] = {"budget", "council", "chairman", "keep", NULL};

    for (guint i = 0; i < team->items->len; i++) {
        const YamlNode *key = team->keys->pdata[i];

        if (strcmp(key->text, "roles") == 0) {
            if (!read_roles(team->items->pdata[i], roles, error))
                return false;
            continue;
        }
        if (strcmp(key->text, "members") == 0) {
            if (!read_members(team->items->pdata[i], members, error))
                return false;
            continue;
        }
        const YamlNode *node = team->items->pdata[i];
        Json *value = node->kind == YAML_TEXT ? yaml_scalar_json(node) : NULL;

        if (value == NULL || g_strv_contains(refused, key->text)) {
            json_decref(value);
            return err_set(error, ERR_INVALID, "%s, line %u: a repository cannot set '%.60s' so",
                           plan_file_name, key->place.line, key->text);
        }
        json_object_set_new(config, key->text, value);
    }
    return true;
}

Json *
repo_file_parse(const char *text, size_t len, GError **error)
{
    static const YamlLimits limits = {.depth = DEPTH_MAX, .values = VALUES_MAX, .text_max = PLAN_RUN_MAX};
    g_auto(YamlProblem) problem = {0};
    g_autoptr(YamlNode) top = yaml_read(text, len, &limits, "the file must be a map", &problem);
    const YamlNode *team = top != NULL && top->kind == YAML_MAP ? yaml_member(top, "team") : NULL;
    g_autoptr(Json) config = json_object(), roles = json_array(), members = json_array();

    if (problem.message != NULL) {
        err_set(error, ERR_INVALID, "%s, line %u: %s", plan_file_name, problem.place.line, problem.message);
        return NULL;
    }
    if (team == NULL)
        return NULL;
    if (team->kind != YAML_MAP) {
        err_set(error, ERR_INVALID, "%s, line %u: team must be a map", plan_file_name, team->place.line);
        return NULL;
    }
    if (!read_team(team, config, roles, members, error))
        return NULL;
    if (!squad_config_check(config, error)) {
        g_prefix_error(error, "%s, line %u: team: ", plan_file_name, team->place.line);
        return NULL;
    }
    return json_pack("{s:O, s:O, s:O}", "config", config, "roles", roles, "members", members);
}

/* ---- reading it ---- */

typedef struct Read {
    Team *team; /* a reference */
    char *branch;
    Json *config;
    TeamJsonFunc done;
    void *data;
} Read;

static void
read_free(gpointer data)
{
    Read *r = data;

    team_unref(r->team);
    g_free(r->branch);
    json_decref(r->config);
    g_free(r);
}

/* A branch or a file that is not there says nothing. */
static bool
is_absent(const GError *error)
{
    return error != NULL && (err_kind(error) == ERR_NOT_FOUND || err_kind(error) == ERR_INVALID);
}

static bool
read_work(GitRepo *git, void *data, GError **error)
{
    Read *r = data;
    g_autoptr(GError) failed = NULL;
    g_autoptr(GByteArray) bytes = NULL;
    g_autofree char *oid = git_branch_oid(git, r->branch, &failed);

    if (oid != NULL)
        (void)contents_file(git, oid, plan_file_name, NULL, &bytes, &failed); /* looked at below */
    if (is_absent(failed))
        return true;
    if (bytes != NULL && bytes->len > PLAN_FILE_MAX)
        return err_set(error, ERR_INVALID, "%s is longer than %d bytes", plan_file_name, PLAN_FILE_MAX);
    if (failed != NULL) {
        g_propagate_error(error, g_steal_pointer(&failed));
        return false;
    }
    g_clear_pointer(&r->config, json_decref);
    r->config = repo_file_parse((const char *)bytes->data, bytes->len, &failed);
    if (failed != NULL)
        g_propagate_error(error, g_steal_pointer(&failed));
    return r->config != NULL || error == NULL || *error == NULL;
}

static Json *
nothing_new(void)
{
    return json_pack("{s:{}, s:[], s:[]}", "config", "roles", "members");
}

static void
on_read(void *data, const GError *error)
{
    Read *r = data;
    g_autoptr(Json) nothing = nothing_new();

    r->done(error != NULL ? NULL : r->config != NULL ? r->config : nothing, error, r->data);
}

void
repo_file_read(Team *team, const char *repository_id, const char *branch, TeamJsonFunc done, void *data)
{
    Repo *repo = team->spec.forge != NULL && team->flow != NULL && repository_id != NULL
                     ? forge_find_id(team->spec.forge, repository_id)
                     : NULL;
    g_autoptr(Json) nothing = nothing_new();
    RepoInfo info;

    if (repo == NULL || !repo_is_ready(repo)) {
        done(nothing, NULL, data);
        return;
    }
    repo_info(repo, &info);
    Read *r = g_new0(Read, 1);

    *r = (Read){.team = team_ref(team),
                .branch = g_strdup(branch != NULL ? branch : info.default_branch),
                .done = done,
                .data = data};
    forge_read(team->spec.forge, repo, "look for settings of the team", read_work, on_read, r, read_free);
}

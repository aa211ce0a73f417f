/* SPDX-License-Identifier: Apache-2.0 */
#include "team/repo-file.h"

#include <string.h>

#include "base/err.h"
#include "forge/check-plan.h"
#include "forge/contents.h"
#include "forge/repo.h"
#include "team/squad-private.h"
#include "json/yaml.h"

enum { DEPTH_MAX = 6, VALUES_MAX = 2000 };

/* ---- the file ---- */

/* Numbers and yes or no are so in JSON too; the rest is text. */
static Json *
scalar_json(const YamlNode *node)
{
    gint64 n;

    if (node->kind != YAML_TEXT)
        return NULL;
    if (g_ascii_string_to_signed(node->text, 10, G_MININT64, G_MAXINT64, &n, NULL))
        return json_integer(n);
    if (strcmp(node->text, "true") == 0 || strcmp(node->text, "false") == 0)
        return json_boolean(node->text[0] == 't');
    return json_string(node->text);
}

static bool
read_members(const YamlNode *team, Json *config, GError **error)
{
    static const char *const refused[] = {"budget", "council", "chairman", "keep", NULL};

    for (guint i = 0; i < team->items->len; i++) {
        const YamlNode *key = team->keys->pdata[i];
        Json *value = scalar_json(team->items->pdata[i]);

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
    g_autoptr(YamlNode) top = yaml_read(text, len, &limits, "settings of checks", &problem);
    const YamlNode *team = top != NULL && top->kind == YAML_MAP ? yaml_member(top, "team") : NULL;
    g_autoptr(Json) config = json_object();

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
    if (!read_members(team, config, error))
        return NULL;
    if (!squad_config_check(config, error)) {
        g_prefix_error(error, "%s, line %u: team: ", plan_file_name, team->place.line);
        return NULL;
    }
    return g_steal_pointer(&config);
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
    if (is_absent(failed) || (bytes != NULL && bytes->len > PLAN_FILE_MAX))
        return true;
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

static void
on_read(void *data, const GError *error)
{
    Read *r = data;
    g_autoptr(Json) nothing = json_object();

    r->done(error != NULL ? NULL : r->config != NULL ? r->config : nothing, error, r->data);
}

void
repo_file_read(Team *team, const char *repository_id, const char *branch, TeamJsonFunc done, void *data)
{
    Repo *repo = team->spec.forge != NULL && team->flow != NULL && repository_id != NULL
                     ? forge_find_id(team->spec.forge, repository_id)
                     : NULL;
    g_autoptr(Json) nothing = json_object();
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

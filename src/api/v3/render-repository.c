/* SPDX-License-Identifier: Apache-2.0 */
#include "api/v3/render.h"

/* Addresses of a repository's parts; what stands in braces is for the client to fill in. */
static const struct {
    const char *name, *path;
} links[] = {
    {"branches_url", "/branches{/branch}"},
    {"collaborators_url", "/collaborators{/collaborator}"},
    {"comments_url", "/comments{/number}"},
    {"commits_url", "/commits{/sha}"},
    {"compare_url", "/compare/{base}...{head}"},
    {"contents_url", "/contents/{+path}"},
    {"git_commits_url", "/git/commits{/sha}"},
    {"git_refs_url", "/git/refs{/sha}"},
    {"hooks_url", "/hooks"},
    {"issue_comment_url", "/issues/comments{/number}"},
    {"issues_url", "/issues{/number}"},
    {"labels_url", "/labels{/name}"},
    {"pulls_url", "/pulls{/number}"},
    {"statuses_url", "/statuses/{sha}"},
    {"trees_url", "/git/trees{/sha}"},
};

static void
add_links(Json *object, const V3Place *place, const RepoInfo *info)
{
    g_autofree char *clone = g_strdup_printf("%s/git/%s/%s.git", place->server, info->owner, info->name);

    json_object_set_new(object, "url", json_string(place->api));
    json_object_set_new(object, "html_url", json_string(place->html));
    json_object_set_new(object, "clone_url", json_string(clone));
    json_object_set_new(object, "mirror_url",
                        info->upstream != NULL ? json_string(info->upstream) : json_null());
    for (size_t i = 0; i < G_N_ELEMENTS(links); i++) {
        g_autofree char *url = g_strconcat(place->api, links[i].path, NULL);

        json_object_set_new(object, links[i].name, json_string(url));
    }
}

Json *
v3_repository(const V3Place *place, const RepoInfo *info)
{
    g_autofree char *full = g_strdup_printf("%s/%s", info->owner, info->name);
    Json *description = info->description[0] != '\0' ? json_string(info->description) : json_null();
    Json *object = json_pack("{s:I, s:s, s:s, s:s, s:o, s:b, s:o, s:b, s:s}", "id", (json_int_t)info->number,
                             "node_id", info->id, "name", info->name, "full_name", full, "owner",
                             v3_owner(place, info->owner), "private", true, "description", description,
                             "fork", false, "visibility", "private");

    add_links(object, place, info);
    json_object_set_new(object, "default_branch",
                        json_string(info->default_branch[0] != '\0' ? info->default_branch : "main"));
    json_object_set_new(object, "size", json_integer((json_int_t)(info->bytes / 1024)));
    json_object_set_new(object, "archived", json_false());
    json_object_set_new(object, "disabled", json_boolean(g_strcmp0(info->state, "ready") != 0));
    json_object_set_new(object, "has_issues", json_true());
    json_object_set_new(object, "created_at", v3_time(info->created_us));
    json_object_set_new(object, "updated_at", v3_time(MAX(info->created_us, info->pushed_us)));
    json_object_set_new(object, "pushed_at", v3_time(info->pushed_us));
    return object;
}

static bool
allows(const RepoSettings *settings, MergeMethod method)
{
    return (settings->merge_methods & 1u << method) != 0;
}

void
v3_repository_add(Json *repository, const V3RepositoryMore *more)
{
    bool admin = (more->scopes & SCOPE_ADMIN) != 0;

    json_object_set_new(repository, "permissions",
                        json_pack("{s:b, s:b, s:b, s:b, s:b}", "admin", admin, "maintain", admin, "push",
                                  scopes_allow(more->scopes, SCOPE_BOX), "triage",
                                  scopes_allow(more->scopes, SCOPE_BOX), "pull",
                                  scopes_allow(more->scopes, SCOPE_READ)));
    json_object_set_new(repository, "allow_merge_commit", json_boolean(allows(more->settings, MERGE_COMMIT)));
    json_object_set_new(repository, "allow_squash_merge", json_boolean(allows(more->settings, MERGE_SQUASH)));
    json_object_set_new(repository, "allow_rebase_merge", json_boolean(allows(more->settings, MERGE_REBASE)));
    json_object_set_new(repository, "open_issues_count", json_integer(more->open_threads));
    json_object_set_new(repository, "open_issues", json_integer(more->open_threads));
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "api/routes.h"

#include "api/api.h"
#include "api/state.h"

/* clang-format off */
static const ApiRoute *const tables[] = {
    agent_face_routes,
    agents_routes,
    backup_routes,
    checks_routes,
    merges_routes,
    command_input_routes,
    command_output_routes,
    command_start_routes,
    commands_routes,
    door_routes,
    events_routes,
    files_content_routes,
    files_routes,
    files_tree_routes,
    files_watch_routes,
    git_routes,
    git_sign_routes,
    github_hook_routes,
    github_routes,
    health_routes,
    identities_routes,
    kept_routes,
    keys_routes,
    metrics_routes,
    models_routes,
    openapi_routes,
    page_routes,
    plans_routes,
    previews_routes,
    progress_routes,
    repo_settings_routes,
    reports_routes,
    repos_routes,
    review_threads_routes,
    plan_text_routes,
    rooms_routes,
    slack_routes,
    streams_routes,
    sandbox_git_routes,
    sandbox_pull_routes,
    sandboxes_routes,
    self_test_routes,
    service_execute_routes,
    service_routes,
    session_routes,
    squad_hooks_routes,
    squads_routes,
    stats_routes,
    tasks_routes,
    templates_routes,
    terminal_routes,
    usage_routes,
    v3_branches_routes,
    v3_check_runs_routes,
    v3_commits_routes,
    v3_contents_routes,
    v3_contents_write_routes,
    v3_hooks_routes,
    v3_issue_comments_routes,
    v3_issues_routes,
    v3_labels_routes,
    v3_objects_routes,
    v3_objects_write_routes,
    v3_pull_git_routes,
    v3_pull_merge_routes,
    v3_pull_update_routes,
    v3_pulls_routes,
    v3_refs_routes,
    v3_repo_list_routes,
    v3_repos_routes,
    v3_review_comments_routes,
    v3_reviews_routes,
    v3_statuses_routes,
    v3_tags_routes,
    v3_users_routes,
    NULL,
};
/* clang-format on */

const ApiRoute *const *
api_route_tables(void)
{
    return tables;
}

static Json *
describe_route(const ApiRoute *r)
{
    g_autofree char *scopes = scopes_format(r->scopes);

    return json_pack("{s:s, s:s, s:s, s:b, s:b}", "method", r->method, "pattern", r->pattern, "scopes",
                     scopes, "public", (r->flags & ROUTE_PUBLIC) != 0, "stream",
                     (r->flags & ROUTE_STREAM) != 0);
}

Json *
api_describe_routes(void)
{
    Json *list = json_array();

    for (const ApiRoute *const *table = tables; *table != NULL; table++) {
        for (const ApiRoute *r = *table; r->method != NULL; r++)
            json_array_append_new(list, describe_route(r));
    }
    return list;
}

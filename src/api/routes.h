/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include "api/call.h"

/* One table per resource, in the file of that name. */
extern const ApiRoute backup_routes[];
extern const ApiRoute checks_routes[];
extern const ApiRoute merges_routes[];
extern const ApiRoute command_input_routes[];
extern const ApiRoute command_output_routes[];
extern const ApiRoute command_start_routes[];
extern const ApiRoute commands_routes[];
extern const ApiRoute door_routes[];
extern const ApiRoute events_routes[];
extern const ApiRoute files_content_routes[];
extern const ApiRoute files_routes[];
extern const ApiRoute files_tree_routes[];
extern const ApiRoute files_watch_routes[];
extern const ApiRoute git_routes[];
extern const ApiRoute git_sign_routes[];
extern const ApiRoute github_hook_routes[];
extern const ApiRoute github_routes[];
extern const ApiRoute health_routes[];
extern const ApiRoute keys_routes[];
extern const ApiRoute metrics_routes[];
extern const ApiRoute models_routes[];
extern const ApiRoute openapi_routes[];
extern const ApiRoute page_routes[];
extern const ApiRoute previews_routes[];
extern const ApiRoute identities_routes[];
extern const ApiRoute progress_routes[];
extern const ApiRoute repo_settings_routes[];
extern const ApiRoute repos_routes[];
extern const ApiRoute sandbox_git_routes[];
extern const ApiRoute sandbox_pull_routes[];
extern const ApiRoute sandboxes_routes[];
extern const ApiRoute service_execute_routes[];
extern const ApiRoute service_routes[];
extern const ApiRoute self_test_routes[];
extern const ApiRoute session_routes[];
extern const ApiRoute stats_routes[];
extern const ApiRoute tasks_routes[];
extern const ApiRoute templates_routes[];
extern const ApiRoute terminal_routes[];
extern const ApiRoute usage_routes[];

/* Those of api/v3 */
extern const ApiRoute v3_branches_routes[];
extern const ApiRoute v3_check_runs_routes[];
extern const ApiRoute v3_commits_routes[];
extern const ApiRoute v3_contents_routes[];
extern const ApiRoute v3_contents_write_routes[];
extern const ApiRoute v3_hooks_routes[];
extern const ApiRoute v3_issue_comments_routes[];
extern const ApiRoute v3_issues_routes[];
extern const ApiRoute v3_labels_routes[];
extern const ApiRoute v3_objects_routes[];
extern const ApiRoute v3_pull_git_routes[];
extern const ApiRoute v3_pull_merge_routes[];
extern const ApiRoute v3_pull_update_routes[];
extern const ApiRoute v3_pulls_routes[];
extern const ApiRoute v3_refs_routes[];
extern const ApiRoute v3_repo_list_routes[];
extern const ApiRoute v3_repos_routes[];
extern const ApiRoute v3_review_comments_routes[];
extern const ApiRoute v3_reviews_routes[];
extern const ApiRoute v3_statuses_routes[];
extern const ApiRoute v3_users_routes[];

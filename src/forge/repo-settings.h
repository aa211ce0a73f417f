/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include "forge/forge.h"
#include "forge/merge.h"
#include "store/db.h"
#include "json/json.h"

/* What is set for one repository: the object in repositories.settings.  What is not in it has the
 * default, so that "{}" is a repository as it comes. */

enum {
    SETTINGS_APPROVALS_MAX = 6,
    SETTINGS_PROTECTED_MAX = 100,
    SETTINGS_TYPES_MAX = 64,
    SETTINGS_PATTERN_MAX = 200,
};

typedef struct RepoSettings {
    guint required_approvals;    /* 0 */
    bool up_to_date;             /* the base's tip must be in the head; false */
    guint merge_methods;         /* 1 << MergeMethod; all */
    char **protected_branches;   /* nobody pushes to them; NULL: the default branch only */
    bool conventional_commits;   /* messages are checked; true */
    char **commit_types;         /* NULL: those of message.h */
    char *branch_pattern;        /* of tasks' branches: "task-{id}" */
    bool allow_no_checks;        /* "checks" is "none": where there are none, none are needed; false */
    bool delete_merged_branches; /* false */
} RepoSettings;

RepoSettings *repo_settings_parse(const char *text, GError **error);
RepoSettings *repo_settings_read(Json *object, GError **error); /* strict: an unknown member is ERR_INVALID */
Json *repo_settings_json(const RepoSettings *settings);         /* whole, with defaults */
/* Only an admin pushes to it. */
bool repo_settings_protect(const RepoSettings *settings, const char *default_branch, const char *branch);
void repo_settings_free(RepoSettings *settings);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(RepoSettings, repo_settings_free)

/* Inside a job.  Putting keeps what `changes` does not name; writes no event. */
RepoSettings *repo_settings_load(DbTx *tx, const char *repository_id, GError **error);
bool repo_settings_change(DbTx *tx, const char *repository_id, Json *changes, GError **error);

/* As JSON, whole.  A change writes repo.changed; a null in it brings the default back. */
typedef struct RepoSettingsPut {
    const char *actor;
    Json *changes;
} RepoSettingsPut;
void repo_settings_get(Forge *forge, Repo *repo, ForgeJsonFunc done, void *data);
void repo_settings_put(Forge *forge, Repo *repo, const RepoSettingsPut *spec, ForgeJsonFunc done, void *data);

/* SPDX-License-Identifier: Apache-2.0 */
#include "forge/repo-settings.h"
#include "forge/row.h"

static bool
run_get(RowJob *job, const void *spec, Json **ret_value, GError **error)
{
    g_autoptr(RepoSettings) settings = repo_settings_load(job->tx, job->repository_id, error);

    if (settings == NULL)
        return false;
    *ret_value = repo_settings_json(settings);
    return true;
}

static bool
run_put(RowJob *job, const void *data, Json **ret_value, GError **error)
{
    const RepoSettingsPut *spec = data;

    return repo_settings_change(job->tx, job->repository_id, spec->changes, error) &&
           row_event(job, "repo.changed", spec->actor, NULL, json_pack("{s:O}", "settings", spec->changes),
                     error) &&
           run_get(job, spec, ret_value, error);
}

void
repo_settings_get(Forge *forge, Repo *repo, ForgeJsonFunc done, void *data)
{
    static const RowOp op = {ROW_READS, 0, NULL, run_get};

    row_run(forge, repo, &op, NULL, done, data);
}

void
repo_settings_put(Forge *forge, Repo *repo, const RepoSettingsPut *spec, ForgeJsonFunc done, void *data)
{
    static const RowMember members[] = {ROW_AT_TEXT(RepoSettingsPut, actor),
                                        ROW_AT_JSON(RepoSettingsPut, changes), ROW_AT_END};
    static const RowOp op = {ROW_WRITES, sizeof(RepoSettingsPut), members, run_put};

    row_run(forge, repo, &op, spec, done, data);
}

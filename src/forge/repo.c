/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"
#include "base/err.h"
#include "forge/forge-private.h"

Repo *
repo_new(Forge *forge, const char *id, const char *owner, const char *name)
{
    Repo *r = g_new0(Repo, 1);
    g_autofree char *path = g_build_filename(forge->repos, id, NULL);
    GitHostSpec host = {.launcher = forge->spec.git, .hooks = forge->spec.hooks, .holder = forge->holder};

    r->upkeep.expired = repo_on_upkeep;
    r->forge = forge_ref(forge);
    r->refs = 1;
    r->id = g_strdup(id);
    r->owner = g_strdup(owner);
    r->name = g_strdup(name);
    r->folded = repo_fold(owner, name);
    r->git = git_repo_new(&host, id, path);
    r->percent = -1;
    return r;
}

Repo *
repo_ref(Repo *repo)
{
    repo->refs++;
    return repo;
}

void
repo_unref(Repo *repo)
{
    if (repo == NULL || --repo->refs > 0)
        return;
    g_free(repo->id);
    g_free(repo->owner);
    g_free(repo->name);
    g_free(repo->folded);
    g_free(repo->default_branch);
    g_free(repo->description);
    g_free(repo->upstream);
    g_free(repo->source);
    g_free(repo->problem);
    g_free(repo->actor);
    git_repo_unref(repo->git);
    forge_unref(repo->forge);
    g_free(repo);
}

char *
repo_fold(const char *owner, const char *name)
{
    g_autofree char *full = g_strdup_printf("%s/%s", owner, name);

    return g_ascii_strdown(full, -1);
}

void
repo_info(const Repo *repo, RepoInfo *ret_info)
{
    *ret_info = (RepoInfo){.id = repo->id,
                           .owner = repo->owner,
                           .name = repo->name,
                           .default_branch = repo->default_branch,
                           .description = repo->description,
                           .upstream = repo->upstream,
                           .state = repo_state_name(repo->state),
                           .problem = repo->problem,
                           .number = repo->number,
                           .created_us = repo->created_us,
                           .pushed_us = repo->pushed_us,
                           .bytes = repo->bytes};
}

GitRepo *
repo_git(Repo *repo)
{
    return repo->git;
}

bool
repo_is_ready(const Repo *repo)
{
    return repo->state == REPO_READY;
}

void
repo_set_state(Repo *repo, RepoState state, const GError *problem)
{
    g_free(repo->problem);
    repo->problem = problem != NULL ? g_strdup(problem->message) : NULL;
    repo->state = state;
    repo->percent = -1;
}

bool
repo_require_ready(const Repo *repo, GError **error)
{
    static const char *const says[REPO_STATE_MAX] = {
        [REPO_IMPORTING] = "is still being imported",
        [REPO_FAILED] = "could not be imported",
        [REPO_REMOVING] = "is being removed",
    };

    return repo_is_ready(repo) ||
           err_set(error, ERR_CONFLICT, "repository '%s/%s' %s", repo->owner, repo->name, says[repo->state]);
}

/* A time that never came is null. */
static Json *
time_json(gint64 us)
{
    char text[CLOCK_ISO_LEN + 1];

    if (us == 0)
        return json_null();
    clock_format_iso(us, text);
    return json_string(text);
}

Json *
repo_json(const Repo *r)
{
    return json_pack("{s:s, s:I, s:s, s:s, s:s, s:s, s:s*, s:s*, s:s, s:s*, s:o, s:I, s:o, s:o, s:o}", "id",
                     r->id, "number", (json_int_t)r->number, "owner", r->owner, "name", r->name,
                     "description", r->description, "default_branch", r->default_branch, "upstream",
                     r->upstream, "source", r->source, "state", repo_state_name(r->state), "problem",
                     r->problem, "progress", r->percent >= 0 ? json_integer(r->percent) : json_null(),
                     "bytes", (json_int_t)r->bytes, "created_at", time_json(r->created_us), "pushed_at",
                     time_json(r->pushed_us), "fetched_at", time_json(r->fetched_us));
}

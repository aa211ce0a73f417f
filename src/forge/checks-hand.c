/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/err.h"
#include "forge/checks-private.h"

typedef struct Asked {
    Checks *checks;
    Repo *repo;
    char *actor, *branch, *base;
    char *head_oid, *base_oid;
    ForgeJsonFunc done;
    void *data;
} Asked;

static void
asked_free(void *data)
{
    Asked *a = data;

    checks_unref(a->checks);
    repo_unref(a->repo);
    g_free(a->actor);
    g_free(a->branch);
    g_free(a->base);
    g_free(a->head_oid);
    g_free(a->base_oid);
    g_free(a);
}

static void
add(const Asked *a, const SuiteSpec *spec)
{
    checks_add(a->checks, a->repo, spec, a->done, a->data);
}

static void
on_pull(Json *pull, const GError *error, void *data)
{
    Asked *a = data;
    g_autoptr(GError) closed = NULL;

    if (error == NULL && strcmp(row_text(pull, "state"), "open") != 0)
        err_set(&closed, ERR_CONFLICT, "the pull request is closed");
    if (error != NULL || closed != NULL)
        a->done(NULL, error != NULL ? error : closed, a->data);
    else
        add(a, &(SuiteSpec){row_text(pull, "base_oid"), row_text(pull, "head_oid"), row_int(pull, "number"),
                            a->actor});
    asked_free(a);
}

static bool
find_tips(GitRepo *git, void *data, GError **error)
{
    Asked *a = data;

    g_clear_pointer(&a->head_oid, g_free);
    g_clear_pointer(&a->base_oid, g_free);
    if (!git_branch_is_valid(a->branch, error))
        return false;
    a->head_oid = git_branch_oid(git, a->branch, error);
    a->base_oid = a->head_oid != NULL ? git_branch_oid(git, a->base, error) : NULL;
    return a->base_oid != NULL;
}

static void
on_tips(void *data, const GError *error)
{
    Asked *a = data;

    if (error != NULL)
        a->done(NULL, error, a->data);
    else
        add(a, &(SuiteSpec){a->base_oid, a->head_oid, 0, a->actor});
}

void
checks_ask(Checks *checks, Repo *repo, const SuiteAsk *ask, ForgeJsonFunc done, void *data)
{
    Asked *a = g_new0(Asked, 1);

    *a = (Asked){.checks = checks_ref(checks),
                 .repo = repo_ref(repo),
                 .actor = g_strdup(ask->actor),
                 .branch = g_strdup(ask->branch),
                 .base = g_strdup(repo->default_branch),
                 .done = done,
                 .data = data};
    if (ask->branch == NULL)
        thread_get(checks->spec.forge, repo, ask->number, "pull", on_pull, a);
    else
        forge_read(checks->spec.forge, repo, "find the tips of branches", find_tips, on_tips, a, asked_free);
}

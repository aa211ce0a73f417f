/* SPDX-License-Identifier: Apache-2.0 */
#include "forge/git.h"

#include <string.h>

#include "base/err.h"
#include "forge/git-hold.h"
#include "forge/git-private.h"
#include "wire/git-launch.h"

GitRepo *
git_repo_new(const GitHostSpec *host, const char *id, const char *path)
{
    GitRepo *repo = g_new0(GitRepo, 1);

    g_assert(path[0] == '/');
    g_atomic_ref_count_init(&repo->refs);
    repo->id = g_strdup(id);
    repo->path = g_strdup(path);
    repo->launcher = g_strdup(host->launcher);
    repo->hooks = g_strdup(host->hooks);
    repo->foreign = host->foreign;
    repo->holder = host->holder != NULL ? git_holder_ref(host->holder) : NULL;
    g_mutex_init(&repo->mutex);
    return repo;
}

GitRepo *
git_repo_ref(GitRepo *repo)
{
    g_atomic_ref_count_inc(&repo->refs);
    return repo;
}

void
git_repo_unref(GitRepo *repo)
{
    if (repo == NULL || !g_atomic_ref_count_dec(&repo->refs))
        return;
    g_free(repo->id);
    g_free(repo->path);
    g_free(repo->launcher);
    g_free(repo->hooks);
    git_holder_unref(repo->holder);
    g_mutex_clear(&repo->mutex);
    g_free(repo);
}

bool
git_fact_find(GitRepo *repo, GitFact *fact)
{
    bool found = false;

    g_mutex_lock(&repo->mutex);
    for (guint i = 0; i < MIN(repo->n_facts, GIT_FACTS_MAX) && !found; i++) {
        const GitFact *known = &repo->facts[i];

        found = strcmp(known->old, fact->old) == 0 && strcmp(known->new, fact->new) == 0;
        if (found)
            *fact = *known;
    }
    g_mutex_unlock(&repo->mutex);
    return found;
}

void
git_fact_keep(GitRepo *repo, const GitFact *fact)
{
    g_mutex_lock(&repo->mutex);
    repo->facts[repo->n_facts++ % GIT_FACTS_MAX] = *fact;
    if (repo->n_facts == 2 * GIT_FACTS_MAX)
        repo->n_facts = GIT_FACTS_MAX;
    g_mutex_unlock(&repo->mutex);
}

const char *
git_repo_id(const GitRepo *repo)
{
    return repo->id;
}

const char *
git_repo_path(const GitRepo *repo)
{
    return repo->path;
}

void
git_end_clear(GitEnd *end)
{
    if (end->output != NULL)
        g_byte_array_unref(end->output);
    if (end->said != NULL)
        g_string_free(end->said, TRUE);
    *end = (GitEnd){0};
}

bool
git_ask(GitRepo *repo, const GitCall *call, int *ret_code, GByteArray **ret_out, GError **error)
{
    g_auto(GitEnd) end = {0};

    if (!git_child_run(repo, call, &end, error))
        return false;
    if (!end.stopped &&
        (end.code == GIT_LAUNCH_FAILED || end.code == GIT_LAUNCH_REFUSED || end.code > GIT_CODE_FATAL))
        return git_error_set(repo, &end, error);
    *ret_code = end.stopped ? 0 : end.code;
    if (ret_out != NULL)
        *ret_out = g_steal_pointer(&end.output);
    return true;
}

bool
git_run(GitRepo *repo, const GitCall *call, GByteArray **ret_out, GError **error)
{
    g_auto(GitEnd) end = {0};

    if (!git_child_run(repo, call, &end, error))
        return false;
    if (!end.stopped && end.code != 0)
        return git_error_set(repo, &end, error);
    if (ret_out != NULL)
        *ret_out = g_steal_pointer(&end.output);
    return true;
}

char *
git_text(GitRepo *repo, GitAccess access, const char *const *args, GError **error)
{
    g_autoptr(GByteArray) out = NULL;
    GitCall call = {.access = access, .args = args};

    if (!git_run(repo, &call, &out, error))
        return NULL;
    if (memchr(out->data, '\0', out->len) != NULL) {
        err_set(error, ERR_INVALID, "git's answer is no text");
        return NULL;
    }
    size_t n = out->len > 0 && out->data[out->len - 1] == '\n' ? out->len - 1 : out->len;

    return g_strndup((const char *)out->data, n);
}

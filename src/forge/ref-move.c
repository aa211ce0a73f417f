/* SPDX-License-Identifier: Apache-2.0 */
#include "forge/ref-move.h"

#include <string.h>

#include "base/err.h"
#include "base/failpoint.h"
#include "forge/commit.h"

static const char heads[] = "refs/heads/";

static bool
is_zero(const char *oid)
{
    return strcmp(oid, git_oid_zero) == 0;
}

static bool
is_protected(const RefMove *m)
{
    return g_str_has_prefix(m->ref, heads) &&
           repo_settings_protect(m->settings, m->default_branch, m->ref + strlen(heads));
}

/* A branch is at a commit, a tag at one or at what leads to one. */
static bool
check_target(GitRepo *git, const RefMove *m, GError **error)
{
    g_autoptr(GError) problem = NULL;

    if (!git_oid_is_valid(m->new))
        return err_set(error, ERR_INVALID, "'%s' is no object's name", m->new);
    g_autofree char *commit = commit_resolve(git, m->new, &problem);

    if (commit == NULL && err_kind(problem) == ERR_NOT_FOUND)
        return err_set(error, ERR_INVALID, "Object does not exist");
    if (commit == NULL) {
        g_propagate_error(error, g_steal_pointer(&problem));
        return false;
    }
    return !g_str_has_prefix(m->ref, heads) || strcmp(commit, m->new) == 0 ||
           err_set(error, ERR_INVALID, "%s is no commit", m->new);
}

static bool
check_move(GitRepo *git, const RefMove *m, const char *old, GError **error)
{
    bool guarded = is_protected(m), forward;

    if (is_zero(m->new))
        return !guarded || err_set(error, ERR_DENIED, "%s is protected: it may not be removed", m->ref);
    if (!check_target(git, m, error))
        return false;
    bool is_first = is_zero(old) && g_str_has_prefix(m->ref, heads) &&
                    strcmp(m->ref + strlen(heads), m->default_branch) == 0;

    if (guarded && !m->may_advance && !is_first)
        return err_set(error, ERR_DENIED, "%s is protected: take another branch and open a pull request",
                       m->ref);
    if (is_zero(old) || (m->force && !guarded))
        return true;
    return commit_is_ancestor(git, old, m->new, &forward, error) &&
           (forward || err_set(error, ERR_INVALID, "Update is not a fast forward"));
}

bool
ref_move(GitRepo *git, const RefMove *move, char ret_old[GIT_OID_LEN + 1], GError **error)
{
    g_autofree char *now = move->old == NULL ? git_ref_oid(git, move->ref, error) : g_strdup(move->old);

    if (now == NULL || !check_move(git, move, now, error))
        return false;
    if (strcmp(now, move->new) != 0 && !git_ref_move(git, move->ref, now, move->new, move->why, error))
        return false;
    FAILPOINT("ref-moved");
    g_strlcpy(ret_old, now, GIT_OID_LEN + 1);
    return true;
}

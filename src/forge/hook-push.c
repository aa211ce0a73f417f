/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "forge/hook-private.h"

static void
commit_free(gpointer data)
{
    HookCommit *c = data;

    g_clear_pointer(&c->commit, git_commit_free);
    g_clear_pointer(&c->changes, diff_page_free);
    g_free(c);
}

void
hook_push_free(HookPush *push)
{
    if (push == NULL)
        return;
    g_ptr_array_unref(push->commits);
    g_clear_pointer(&push->head, git_commit_free);
    g_free(push);
}

static bool
is_zero(const char *oid)
{
    return strcmp(oid, git_oid_zero) == 0;
}

/* A new branch is told with what the default one lacks. */
static char *
find_start(GitRepo *git, const HookPushSpec *spec)
{
    if (!is_zero(spec->before))
        return g_strdup(spec->before);
    g_autofree char *tip = git_branch_oid(git, spec->default_branch, NULL);

    return tip != NULL && strcmp(tip, spec->after) != 0 ? g_steal_pointer(&tip) : NULL;
}

/* What it changed, unless there are too many files to name. */
static DiffPage *
read_changes(GitRepo *git, const GitCommit *commit)
{
    DiffSpec spec = {.old = commit->parents[0], .new = commit->oid, .names_only = true};

    return diff_files(git, &spec, NULL);
}

static bool
read_commits(GitRepo *git, const HookPushSpec *spec, HookPush *push, GError **error)
{
    g_autofree char *start = find_start(git, spec);
    CommitRange range = {
        .head = spec->after, .without = start, .oldest_first = true, .max = HOOK_COMMITS_MAX};
    g_autoptr(GPtrArray) list = commit_list(git, &range, NULL, error);

    if (list == NULL)
        return false;
    g_ptr_array_set_free_func(list, NULL);
    for (guint i = 0; i < list->len; i++) {
        HookCommit *c = g_new0(HookCommit, 1);

        c->commit = list->pdata[i];
        c->changes = read_changes(git, c->commit);
        g_ptr_array_add(push->commits, c);
    }
    return true;
}

HookPush *
hook_push_read(GitRepo *git, const HookPushSpec *spec, GError **error)
{
    g_autoptr(HookPush) push = g_new0(HookPush, 1);
    bool forward = true;

    push->commits = g_ptr_array_new_with_free_func(commit_free);
    if (is_zero(spec->after))
        return g_steal_pointer(&push);
    if (!is_zero(spec->before) && !commit_is_ancestor(git, spec->before, spec->after, &forward, error))
        return NULL;
    push->forced = !forward;
    push->head = commit_read(git, spec->after, error);
    if (push->head == NULL || !read_commits(git, spec, push, error))
        return NULL;
    return g_steal_pointer(&push);
}

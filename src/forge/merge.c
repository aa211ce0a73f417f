/* SPDX-License-Identifier: Apache-2.0 */
#include "forge/merge.h"

#include <string.h>

#include "base/err.h"
#include "base/failpoint.h"
#include "forge/merge-parse.h"
#include "forge/merge-private.h"
#include "forge/object-write.h"

static const char *const method_names[MERGE_METHOD_MAX] = {
    [MERGE_COMMIT] = "merge",
    [MERGE_SQUASH] = "squash",
    [MERGE_REBASE] = "rebase",
};

const char *
merge_method_name(MergeMethod method)
{
    g_assert(method < MERGE_METHOD_MAX);
    return method_names[method];
}

bool
merge_method_parse(const char *name, MergeMethod *ret_method)
{
    for (guint i = 0; i < MERGE_METHOD_MAX; i++) {
        if (strcmp(name, method_names[i]) == 0) {
            *ret_method = (MergeMethod)i;
            return true;
        }
    }
    return false;
}

void
merge_done_clear(MergeDone *done)
{
    merge_result_free(done->conflict);
    g_free(done->conflict_commit);
    *done = (MergeDone){0};
}

/* Why it is neither clean nor in conflict. */
static bool
explain(GitRepo *repo, const GitCall *call, const char *base, const char *head, GError **error)
{
    g_autofree char *common = NULL;

    if (!commit_merge_base(repo, base, head, &common, error))
        return false;
    if (common == NULL)
        return err_set(error, ERR_INVALID, "%s and %s have no history in common", base, head);
    return git_run(repo, call, NULL, error) && err_set(error, ERR_INTERNAL, "a merge failed once");
}

MergeResult *
merge_try(GitRepo *repo, const char *base, const char *head, GError **error)
{
    g_autofree char *renames = g_strdup_printf("merge.renameLimit=%d", MERGE_RENAMES_MAX);
    g_autoptr(GByteArray) out = NULL;
    int code;
    GitCall call = {
        .access = GIT_WRITE,
        .args = GIT_ARGS("-c", renames, "merge-tree", "--write-tree", "-z", base, head),
        .timeout_ms = MERGE_TIMEOUT_MS,
    };

    if (!git_oid_is_valid(base) || !git_oid_is_valid(head)) {
        err_set(error, ERR_INVALID, "this is no object's name");
        return NULL;
    }
    if (!git_ask(repo, &call, &code, &out, error))
        return NULL;
    /* 1 is of conflicts, and also of what is no commit. */
    if (code > 1 || out->len == 0) {
        explain(repo, &call, base, head, error);
        return NULL;
    }
    return merge_result_parse(out->data, out->len, code == 0, error);
}

bool
merge_tree(GitRepo *repo, const char *base, const char *head, MergeDone *done, GError **error)
{
    g_autoptr(MergeResult) result = merge_try(repo, base, head, error);

    done->children++;
    if (result == NULL)
        return false;
    if (result->clean)
        g_strlcpy(done->tree, result->tree, sizeof done->tree);
    else
        done->conflict = g_steal_pointer(&result);
    return true;
}

/* One commit with the tree that was found. */
static bool
commit_it(GitRepo *repo, const MergeSpec *spec, const char *const *parents, MergeDone *done, GError **error)
{
    g_autoptr(GPtrArray) texts = g_ptr_array_new_with_free_func(merge_text_free);
    GString *text = commit_text_new(done->tree, parents, &spec->author, &spec->committer, spec->message);

    g_ptr_array_add(texts, text);
    done->children++;
    FAILPOINT("merge-tree-made");
    if (!commits_write(repo, texts, error))
        return false;
    FAILPOINT("merge-commit-made");
    commit_text_oid(text, done->oid);
    done->commits = 1;
    return true;
}

void
merge_text_free(void *text)
{
    g_string_free(text, TRUE);
}

static bool
spec_is_valid(const MergeSpec *spec, GError **error)
{
    if (!git_oid_is_valid(spec->base) || !git_oid_is_valid(spec->head) ||
        (spec->tree != NULL && !git_oid_is_valid(spec->tree)))
        return err_set(error, ERR_INVALID, "this is no object's name");
    if (spec->method == MERGE_REBASE)
        return true;
    size_t n = spec->message != NULL ? strlen(spec->message) : 0;

    if (n == 0 || n > MERGE_MESSAGE_MAX)
        return err_set(error, ERR_INVALID, "a merge's message has 1 to %d bytes", MERGE_MESSAGE_MAX);
    return g_utf8_validate(spec->message, -1, NULL) ||
           err_set(error, ERR_INVALID, "a merge's message is UTF-8");
}

static bool
merge_or_squash(GitRepo *repo, const MergeSpec *spec, MergeDone *done, GError **error)
{
    const char *parents[] = {spec->base, spec->method == MERGE_COMMIT ? spec->head : NULL, NULL};

    if (spec->tree != NULL)
        g_strlcpy(done->tree, spec->tree, sizeof done->tree);
    else if (!merge_tree(repo, spec->base, spec->head, done, error))
        return false;
    return done->conflict != NULL || commit_it(repo, spec, parents, done, error);
}

bool
merge_make(GitRepo *repo, const MergeSpec *spec, MergeDone *ret_done, GError **error)
{
    g_auto(MergeDone) done = {0};

    if (!spec_is_valid(spec, error))
        return false;
    if (!(spec->method == MERGE_REBASE ? merge_rebase(repo, spec, &done, error)
                                       : merge_or_squash(repo, spec, &done, error)))
        return false;
    *ret_done = done;
    done = (MergeDone){0};
    return true;
}

bool
merge_update_branch(GitRepo *repo, const MergeSpec *spec, MergeDone *ret_done, GError **error)
{
    g_auto(MergeDone) done = {0};
    const char *parents[] = {spec->head, spec->base, NULL};
    bool has_all;

    if (!spec_is_valid(spec, error) || !commit_is_ancestor(repo, spec->base, spec->head, &has_all, error))
        return false;
    done.children++;
    if (has_all)
        g_strlcpy(done.oid, spec->head, sizeof done.oid);
    else if (!merge_tree(repo, spec->head, spec->base, &done, error) ||
             (done.conflict == NULL && !commit_it(repo, spec, parents, &done, error)))
        return false;
    *ret_done = done;
    done = (MergeDone){0};
    return true;
}

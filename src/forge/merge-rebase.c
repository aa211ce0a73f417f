/* SPDX-License-Identifier: Apache-2.0 */
/* Commits of one branch applied on another, without a checkout.
 *
 * To apply commit C, whose parent is P, on what is there so far is a merge of three trees: P's is
 * the base, ours is the tree so far, theirs is C's.  `git merge-tree` of Debian 12 finds the base by
 * itself, as the common ancestor of two commits, so ours is given a commit that says its parent is P:
 * the only common ancestor of it and C that is not another one's ancestor is P.  For the first commit
 * the target is such a one already, where P is one of its ancestors. */
#include <string.h>

#include "base/err.h"
#include "forge/batch.h"
#include "forge/merge-private.h"
#include "forge/object-write.h"
#include "forge/records.h"

enum {
    REBASE_LINES_MAX = 1000, /* commits to be applied, ones that are there already, and the boundary */
    REBASE_BYTES_MAX = 32 << 20,
};

typedef struct Step {
    char *oid, *parent;
    GByteArray *bytes; /* of the commit; borrowed */
    char tree[GIT_OID_LEN + 1], parent_tree[GIT_OID_LEN + 1];
} Step;

typedef struct Rebase {
    GitRepo *repo;
    const MergeSpec *spec;
    MergeDone *done;
    GPtrArray *steps;
    GHashTable *boundary;      /* commits of the target's history that the range hangs on */
    GPtrArray *objects;        /* BatchObject: the target, then commit and parent of each step */
    GPtrArray *texts;          /* of the commits that are made */
    char tip[GIT_OID_LEN + 1]; /* of what was made so far */
} Rebase;

static void
step_free(Step *step)
{
    g_free(step->oid);
    g_free(step->parent);
    g_free(step);
}

/* ---- which commits ---- */

/* "-OID" is of the boundary, "=OID ..." is a change that the target has, "+OID PARENT" is one to be
 * applied. */
static bool
take_line(Rebase *r, const char *line, GError **error)
{
    g_auto(GStrv) words = g_strsplit(line + (line[0] != '\0'), " ", 3);

    if (line[0] == '-') {
        g_hash_table_add(r->boundary, g_strdup(words[0]));
        return true;
    }
    if (line[0] == '=')
        return true;
    if (line[0] != '+' || !git_oid_is_valid(words[0]))
        return err_set(error, ERR_INTERNAL, "git listed '%s' as a commit", line);
    if (g_strv_length(words) != 2)
        return err_set(error, ERR_INVALID, "commit %s begins a history of its own: it cannot be rebased",
                       words[0]);
    Step *step = g_new0(Step, 1);

    step->oid = g_strdup(words[0]);
    step->parent = g_strdup(words[1]);
    g_ptr_array_add(r->steps, step);
    return true;
}

static bool
list_steps(Rebase *r, GError **error)
{
    g_autofree char *range = g_strconcat(r->spec->base, "...", r->spec->head, NULL);
    bool more = false;
    RecordsSpec spec = {
        .args = GIT_ARGS("rev-list", "--reverse", "--topo-order", "--no-merges", "--right-only",
                         "--cherry-mark", "--parents", "--boundary", range, "--"),
        .separator = '\n',
        .max = REBASE_LINES_MAX,
        .timeout_ms = MERGE_TIMEOUT_MS,
    };
    g_autoptr(GPtrArray) lines = records_read(r->repo, &spec, &more, error);

    r->done->children++;
    if (lines == NULL)
        return false;
    for (guint i = 0; i < lines->len; i++) {
        if (!take_line(r, lines->pdata[i], error))
            return false;
    }
    if (more || r->steps->len > MERGE_REBASE_MAX)
        return err_set(error, ERR_LIMIT, "more than %d commits cannot be rebased", MERGE_REBASE_MAX);
    return true;
}

/* ---- what they are ---- */

static bool
read_tree(const BatchObject *object, char ret_tree[GIT_OID_LEN + 1], GError **error)
{
    if (object->bytes == NULL || strcmp(object->type, "commit") != 0)
        return err_set(error, ERR_INVALID, "'%s' is no commit, or too large a one", object->oid);
    g_autoptr(GitCommit)
        commit = git_commit_parse(object->oid, object->bytes->data, object->bytes->len, error);

    if (commit == NULL)
        return false;
    g_strlcpy(ret_tree, commit->tree, GIT_OID_LEN + 1);
    return true;
}

static bool
read_steps(Rebase *r, GError **error)
{
    g_autoptr(GPtrArray) names = g_ptr_array_new();

    g_ptr_array_add(names, g_strdup(r->spec->base));
    g_ptr_array_set_free_func(names, g_free);
    for (guint i = 0; i < r->steps->len; i++) {
        const Step *step = r->steps->pdata[i];

        g_ptr_array_add(names, g_strdup(step->oid));
        g_ptr_array_add(names, g_strdup(step->parent));
    }
    r->objects = batch_read(r->repo, (const char *const *)names->pdata, names->len, COMMIT_OBJECT_MAX,
                            REBASE_BYTES_MAX, error);
    r->done->children++;
    if (r->objects == NULL || !read_tree(r->objects->pdata[0], r->done->tree, error))
        return false;
    for (guint i = 0; i < r->steps->len; i++) {
        Step *step = r->steps->pdata[i];
        const BatchObject *commit = r->objects->pdata[1 + 2 * i];

        if (!read_tree(commit, step->tree, error) ||
            !read_tree(r->objects->pdata[2 + 2 * i], step->parent_tree, error))
            return false;
        step->bytes = commit->bytes;
    }
    return true;
}

/* ---- applying them ---- */

/* A commit with the tree so far and the step's parent; only for this merge. */
static bool
make_ours(Rebase *r, const Step *step, char ret_oid[GIT_OID_LEN + 1], GError **error)
{
    g_autoptr(GPtrArray) texts = g_ptr_array_new_with_free_func(merge_text_free);
    const char *parents[] = {step->parent, NULL};
    GString *text = commit_text_new(r->done->tree, parents, &r->spec->committer, &r->spec->committer,
                                    "rebase");

    g_ptr_array_add(texts, text);
    commit_text_oid(text, ret_oid);
    r->done->children++;
    return commits_write(r->repo, texts, error);
}

/* The tree with the step applied becomes done->tree. */
static bool
apply_tree(Rebase *r, const Step *step, GError **error)
{
    char ours[GIT_OID_LEN + 1];

    if (strcmp(step->parent_tree, r->done->tree) == 0) {
        g_strlcpy(r->done->tree, step->tree, sizeof r->done->tree);
        return true;
    }
    if (strcmp(r->tip, r->spec->base) == 0 && g_hash_table_contains(r->boundary, step->parent))
        g_strlcpy(ours, r->spec->base, sizeof ours);
    else if (!make_ours(r, step, ours, error))
        return false;
    return merge_tree(r->repo, ours, step->oid, r->done, error);
}

static bool
apply(Rebase *r, const Step *step, GError **error)
{
    char before[GIT_OID_LEN + 1];

    g_strlcpy(before, r->done->tree, sizeof before);
    if (!apply_tree(r, step, error))
        return false;
    if (r->done->conflict != NULL) {
        r->done->conflict_commit = g_strdup(step->oid);
        return true;
    }
    /* What the target has got by another way is no commit any more; what was empty from the start was
     * meant so. */
    if (strcmp(before, r->done->tree) == 0 && strcmp(step->tree, step->parent_tree) != 0)
        return true;
    GString *text = commit_text_again(step->bytes->data, step->bytes->len, r->done->tree, r->tip,
                                      &r->spec->committer);

    if (text == NULL)
        return err_set(error, ERR_INVALID, "commit %s has no author", step->oid);
    g_ptr_array_add(r->texts, text);
    commit_text_oid(text, r->tip);
    return true;
}

static bool
run(Rebase *r, GError **error)
{
    MergeDone *done = r->done;

    if (!list_steps(r, error) || !read_steps(r, error))
        return false;
    for (guint i = 0; i < r->steps->len && done->conflict == NULL; i++) {
        if (!apply(r, r->steps->pdata[i], error))
            return false;
    }
    if (done->conflict != NULL)
        return true;
    done->children += r->texts->len > 0;
    if (r->texts->len > 0 && !commits_write(r->repo, r->texts, error))
        return false;
    done->commits = r->texts->len;
    g_strlcpy(done->oid, r->tip, sizeof done->oid);
    return true;
}

bool
merge_rebase(GitRepo *repo, const MergeSpec *spec, MergeDone *done, GError **error)
{
    Rebase r = {
        .repo = repo,
        .spec = spec,
        .done = done,
        .steps = g_ptr_array_new_with_free_func((GDestroyNotify)step_free),
        .boundary = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL),
        .texts = g_ptr_array_new_with_free_func(merge_text_free),
    };

    g_strlcpy(r.tip, spec->base, sizeof r.tip);
    bool ok = run(&r, error);

    g_ptr_array_unref(r.steps);
    g_hash_table_unref(r.boundary);
    g_ptr_array_unref(r.texts);
    if (r.objects != NULL)
        g_ptr_array_unref(r.objects);
    return ok;
}

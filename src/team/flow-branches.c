/* SPDX-License-Identifier: Apache-2.0 */
#include "base/err.h"
#include "forge/push.h"
#include "team/flow-private.h"

typedef struct Branches {
    FlowTask *t;
    Repo *repo; /* a reference */
    GPtrArray *names;
    GPtrArray *oids; /* where each was; NULL: nowhere */
    guint left;      /* moves that are not on the disk */
    GError *error;   /* the first */
    void (*then)(FlowTask *t);
} Branches;

static void
branches_free(Branches *b)
{
    g_ptr_array_unref(b->names);
    g_ptr_array_unref(b->oids);
    g_clear_error(&b->error);
    repo_unref(b->repo);
    g_free(b);
}

static bool
remove_work(GitRepo *repo, void *data, GError **error)
{
    Branches *b = data;

    g_ptr_array_set_size(b->oids, 0);
    for (guint i = 0; i < b->names->len; i++) {
        const char *name = b->names->pdata[i];
        char *oid = git_branch_oid(repo, name, NULL);

        g_ptr_array_add(b->oids, oid);
        if (oid != NULL && !git_branch_move(repo, name, oid, git_oid_zero, "the task is done", error))
            return false;
    }
    return true;
}

static void
on_told(void *data, const GError *error)
{
    Branches *b = data;

    if (error != NULL && b->error == NULL)
        b->error = g_error_copy(error);
    if (--b->left > 0)
        return;
    if (flow_goes_on(b->t, b->error))
        b->then(b->t);
    branches_free(b);
}

static void
on_removed(void *data, const GError *error)
{
    Branches *b = data;

    b->left = 1;
    for (guint i = 0; !b->t->flow->closed && error == NULL && i < b->names->len; i++) {
        g_autofree char *ref = g_strconcat("refs/heads/", b->names->pdata[i], NULL);
        const ForgePush push = {.actor = "coop", .ref = ref, .old = b->oids->pdata[i], .new = git_oid_zero};

        b->left += push.old != NULL;
        if (push.old != NULL)
            forge_pushed_then(b->t->flow->team->spec.forge, b->repo, &push, on_told, b);
    }
    on_told(b, error);
}

static void
add_names(GPtrArray *names, const Json *rows, const char *list, const char *column)
{
    size_t i;
    const Json *row;

    json_array_foreach(json_object_get(rows, list), i, row)
    {
        const char *name = row_text(row, column);

        if (name != NULL && !flow_agent_by_hand(row) &&
            !g_ptr_array_find_with_equal_func(names, name, g_str_equal, NULL))
            g_ptr_array_add(names, g_strdup(name));
    }
}

void
flow_branches_remove(FlowTask *t, void (*then)(FlowTask *t))
{
    Repo *repo = flow_repo(t, NULL);
    Branches *b;

    if (repo == NULL) {
        then(t);
        return;
    }
    b = g_new0(Branches, 1);
    *b = (Branches){.t = t,
                    .repo = repo_ref(repo),
                    .names = g_ptr_array_new_with_free_func(g_free),
                    .oids = g_ptr_array_new_with_free_func(g_free),
                    .then = then};
    add_names(b->names, t->rows, "steps", "branch");
    add_names(b->names, t->rows, "agents", "git_branch");
    forge_write(t->flow->team->spec.forge, repo, "remove branches of steps", remove_work, on_removed, b,
                NULL);
}

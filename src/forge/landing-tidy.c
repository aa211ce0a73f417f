/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/err.h"
#include "base/failpoint.h"
#include "base/log.h"
#include "forge/forge-private.h"
#include "forge/landing-private.h"

typedef struct Tidy {
    Landings *all; /* a reference */
    Repo *repo;    /* a reference */
    gint64 id, leftover;
    char *ref;                     /* of the entry */
    char *actor, *head, *head_oid; /* of the branch; NULL unless it goes */
    char *repository_id;
    bool removed; /* the branch */
} Tidy;

static void
tidy_free(gpointer data)
{
    Tidy *t = data;

    landings_unref(t->all);
    repo_unref(t->repo);
    g_free(t->ref);
    g_free(t->actor);
    g_free(t->head);
    g_free(t->head_oid);
    g_free(t->repository_id);
    g_free(t);
}

/* A branch that somebody pushed to since is his. */
static bool
remove_branch(GitRepo *git, Tidy *t, GError **error)
{
    g_autoptr(GError) failed = NULL;

    t->removed = git_branch_move(git, t->head, t->head_oid, git_oid_zero, "merged", &failed);
    if (t->removed || g_error_matches(failed, ERR_DOMAIN, ERR_CONFLICT))
        return true;
    g_propagate_error(error, g_steal_pointer(&failed));
    return false;
}

static bool
tidy_work(GitRepo *git, void *data, GError **error)
{
    Tidy *t = data;

    if ((t->leftover & LEFT_REF) != 0 &&
        !git_refs_move(git, &(GitRefMove){.ref = t->ref, .new = git_oid_zero}, 1, "merge queue", error))
        return false;
    if ((t->leftover & LEFT_BRANCH) != 0 && !remove_branch(git, t, error))
        return false;
    FAILPOINT("landing-tidied");
    return true;
}

static bool
write_tidied(DbTx *tx, void *data, GError **error)
{
    const Tidy *t = data;

    return db_exec(tx, "UPDATE merges SET leftover = 0 WHERE id = ? AND repository_id = ?",
                   DB_ARGS(db_int(t->id), db_text(t->repository_id)), error);
}

static void
on_written(void *data, const GError *error)
{
    tidy_free(data);
}

/* What could not be removed is found again by the next start. */
static void
on_tidied(void *data, const GError *error)
{
    Tidy *t = data;
    g_autofree char *ref = g_strconcat("refs/heads/", t->head, NULL);
    const ForgePush push = {.actor = t->actor, .ref = ref, .old = t->head_oid, .new = git_oid_zero};

    if (error != NULL && err_kind(error) != ERR_CANCELLED)
        log_warn("forge", "what a merge left behind was not removed", log_str("repository", t->repo->folded),
                 log_gerror(error));
    if (error != NULL || t->all->forge == NULL)
        tidy_free(t);
    else
        forge_push_with(t->all->forge, t->repo, &push, t->removed, (PushFirst){write_tidied, t}, on_written,
                        t);
}

void
landing_tidy(Landings *all, Repo *repo, const Json *entry)
{
    Tidy *t = g_new0(Tidy, 1);

    *t = (Tidy){.all = landings_ref(all),
                .repo = repo_ref(repo),
                .id = row_int(entry, "id"),
                .leftover = row_int(entry, "leftover"),
                .ref = landing_ref(row_int(entry, "id")),
                .actor = g_strdup(row_text(entry, "by")),
                .head = g_strdup(row_text(entry, "head")),
                .head_oid = g_strdup(row_text(entry, "head_oid")),
                .repository_id = g_strdup(repo->id)};
    if (t->actor == NULL)
        t->actor = g_strdup(row_actor(entry, "actor"));
    forge_read(all->forge, repo, "tidy up behind a merge", tidy_work, on_tidied, t, NULL);
}

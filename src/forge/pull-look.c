/* SPDX-License-Identifier: Apache-2.0 */
/* What git says of open pull requests, kept up to date.
 *
 * A push writes the new tips in its own transaction; what compared_head and compared_base say is then
 * of other commits, and that is how a pull request asks to be looked at.  One repository is gone
 * through in the order of the numbers, one after the other, in one pass; whatever moves meanwhile has
 * the next pass begin.  One that git cannot be asked about is left for that. */
#include <string.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "forge/forge-private.h"
#include "forge/pull-private.h"
#include "forge/thread-private.h"

struct Pulls {
    guint refs;         /* the owner, each pass */
    Forge *forge;       /* NULL: the owner has let go */
    GHashTable *passes; /* id of a repository -> Pass, borrowed */
};

typedef struct Pass {
    Pulls *pulls;
    Repo *repo;
    gint64 number; /* the last that was looked at */
    PullLook look; /* of that */
    bool again;
} Pass;

static void
pulls_unref(Pulls *pulls)
{
    if (--pulls->refs > 0)
        return;
    g_hash_table_unref(pulls->passes);
    g_free(pulls);
}

static void next_one(Pass *pass);

static void
pass_end(Pass *pass)
{
    Pulls *pulls = pass->pulls;

    if (pulls->forge != NULL && pass->again) {
        pass->again = false;
        pass->number = 0;
        next_one(pass);
        return;
    }
    g_hash_table_remove(pulls->passes, pass->repo->id);
    repo_unref(pass->repo);
    g_free(pass);
    pulls_unref(pulls);
}

static void
on_put(Json *value, const GError *error, void *data)
{
    if (error != NULL)
        log_warn("forge", "what git says of a pull request was not written down", log_gerror(error));
    next_one(data);
}

typedef struct LookSpec {
    gint64 number;
    PullLook look;
} LookSpec;

static bool
run_put(RowJob *job, const void *data, Json **ret_value, GError **error)
{
    const LookSpec *spec = data;

    return pull_put_look(job, spec->number, &spec->look, error);
}

static bool
look_work(GitRepo *git, void *data, GError **error)
{
    return pull_look(git, &((Pass *)data)->look, error);
}

static void
on_looked(void *data, const GError *error)
{
    static const RowOp put = {ROW_WRITES, sizeof(LookSpec), NULL, run_put};
    Pass *pass = data;

    if (error != NULL || pass->pulls->forge == NULL)
        next_one(pass);
    else
        row_run(pass->pulls->forge, pass->repo, &put, &(LookSpec){pass->number, pass->look}, on_put, pass);
}

static bool
run_next(RowJob *job, const void *data, Json **ret_value, GError **error)
{
    g_auto(RowWhere) where = ROW_WHERE_INIT;

    row_where_add(&where,
                  "t.repository_id = ? AND t.kind = 'pull' AND t.state = 'open' AND t.number > ? AND "
                  "(t.compared_head IS NULL OR t.compared_head <> t.head_oid OR t.compared_base IS NULL OR "
                  "t.compared_base <> t.base_oid)",
                  DB_ARGS(db_text(job->repository_id), db_int(*(const gint64 *)data)));
    *ret_value = row_list(job, &thread_table, &where, "t.number", (ForgePage){.per_page = 1}, error);
    return *ret_value != NULL;
}

static void
look_begin(PullLook *look, const Json *pull)
{
    const char *from = row_text(pull, "from_oid");
    bool same_head = g_strcmp0(row_text(pull, "compared_head"), row_text(pull, "head_oid")) == 0;

    *look = (PullLook){.commits = row_int(pull, "commits"),
                       .files = row_int(pull, "changed_files"),
                       .additions = row_int(pull, "additions"),
                       .deletions = row_int(pull, "deletions")};
    g_strlcpy(look->head_oid, row_text(pull, "head_oid"), sizeof look->head_oid);
    g_strlcpy(look->base_oid, row_text(pull, "base_oid"), sizeof look->base_oid);
    if (row_text(pull, "compared_base") != NULL)
        g_strlcpy(look->was_base, row_text(pull, "compared_base"), sizeof look->was_base);
    g_strlcpy(look->from_oid, from != NULL && same_head ? from : "", sizeof look->from_oid);
}

static void
on_next(Json *value, const GError *error, void *data)
{
    Pass *pass = data;
    const Json *pull = json_array_get(json_object_get(value, "items"), 0);

    if (pull == NULL || pass->pulls->forge == NULL) {
        pass_end(pass);
        return;
    }
    pass->number = row_int(pull, "number");
    look_begin(&pass->look, pull);
    g_autofree char *what = g_strdup_printf("compare #%" G_GINT64_FORMAT, pass->number);

    forge_read(pass->pulls->forge, pass->repo, what, look_work, on_looked, pass, NULL);
}

static void
next_one(Pass *pass)
{
    static const RowOp next = {ROW_READS, sizeof(gint64), NULL, run_next};

    if (pass->pulls->forge == NULL)
        pass_end(pass);
    else
        row_run(pass->pulls->forge, pass->repo, &next, &pass->number, on_next, pass);
}

void
pulls_look_at(Forge *forge, Repo *repo)
{
    Pulls *pulls = forge->pulls;

    if (pulls == NULL)
        return;
    Pass *pass = g_hash_table_lookup(pulls->passes, repo->id);

    if (pass != NULL) {
        pass->again = true;
        return;
    }
    pass = g_new0(Pass, 1);
    *pass = (Pass){.pulls = pulls, .repo = repo_ref(repo)};
    pulls->refs++;
    g_hash_table_insert(pulls->passes, g_strdup(repo->id), pass);
    next_one(pass);
}

/* ---- life ---- */

Pulls *
pulls_new(Forge *forge)
{
    Pulls *pulls = g_new0(Pulls, 1);

    *pulls = (Pulls){.refs = 1, .forge = forge};
    pulls->passes = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    forge_on_push(forge, &pulls_listener);
    return pulls;
}

static void
start_one(Repo *repo, void *data)
{
    pulls_look_at(data, repo);
}

void
pulls_start(Pulls *pulls)
{
    forge_each(pulls->forge, start_one, pulls->forge);
}

void
pulls_free(Pulls *pulls)
{
    if (pulls == NULL)
        return;
    pulls->forge->pulls = NULL;
    pulls->forge = NULL;
    pulls_unref(pulls);
}

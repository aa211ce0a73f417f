/* SPDX-License-Identifier: Apache-2.0 */
#include "api/v3/commit-rows.h"

#include "base/err.h"

static bool
find_commit(GitRepo *git, void *data, GError **error)
{
    V3OnCommit *on = data;
    g_autoptr(GError) problem = NULL;
    g_autofree char *oid = v3_resolve(git, &on->work.place, on->ref, &problem);

    if (oid != NULL) {
        g_strlcpy(on->oid, oid, sizeof on->oid);
        return true;
    }
    if (err_kind(problem) == ERR_NOT_FOUND)
        return err_set(error, ERR_INVALID, "No commit found for SHA: %s", on->ref);
    g_propagate_error(error, g_steal_pointer(&problem));
    return false;
}

static void
on_found(V3Work *work)
{
    V3OnCommit *on = (V3OnCommit *)(void *)work;

    on->ask(on);
}

void
v3_on_commit_begin(V3OnCommit *on)
{
    on->work.then = on_found;
    v3_work_read(&on->work, "find a commit", find_commit);
}

void
v3_on_commit_report(V3OnCommit *on, Json *body)
{
    on->work.body = json_incref(body);
    on->work.status = 201;
    v3_on_commit_begin(on);
}

void
v3_on_commit_rows(Json *value, const GError *error, void *data)
{
    V3OnCommit *on = data;

    if (error == NULL) {
        g_autoptr(Json) rendered = on->render(&on->work.place, on, value);

        v3_encode(&on->work.encoded, rendered);
    }
    v3_work_end(&on->work, error);
}

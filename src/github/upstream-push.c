/* SPDX-License-Identifier: Apache-2.0 */
#include "base/err.h"
#include "base/failpoint.h"
#include "forge/bring.h"
#include "github/text.h"
#include "github/upstream-private.h"

/* The thread sees texts alone. */
typedef struct Push {
    Upstream *upstream;
    WorkRow *row;
    char *url, *credentials;
    const gint *cancel;
} Push;

static void
push_free(gpointer data)
{
    Push *p = data;

    work_row_free(p->row);
    github_wipe(p->credentials);
    g_free(p->url);
    upstream_unref(p->upstream);
    g_free(p);
}

/* A commit that is there already is pushed to no effect, so a second time does no harm. */
static bool
push_work(GitRepo *git, void *data, GError **error)
{
    const Push *p = data;
    BringPush push = {.url = p->url,
                      .credentials = p->credentials,
                      .oid = github_text(p->row->body, "oid"),
                      .branch = github_text(p->row->body, "branch"),
                      .cancel = p->cancel};

    if (!bring_push(git, &push, error))
        return false;
    FAILPOINT("upstream-pushed");
    return true;
}

static void
on_pushed(void *data, const GError *error)
{
    Push *p = data;
    g_autoptr(Json) answer = json_pack("{s:s*}", "oid", github_text(p->row->body, "oid"));
    g_autoptr(GError) again = NULL;

    /* Of git's failures only a refusal is one for good: it does not say which are the network's. */
    if (error != NULL && err_kind(error) == ERR_INVALID)
        again = g_error_new_literal(ERR_DOMAIN, ERR_UNAVAILABLE, error->message);
    upstream_ended(p->upstream, g_steal_pointer(&p->row), error == NULL ? answer : NULL, 0,
                   again != NULL ? again : error);
}

void
upstream_push(Upstream *u, WorkRow *row, Repo *repo)
{
    g_autoptr(GError) error = NULL;
    RepoInfo info;

    repo_info(repo, &info);
    g_autofree char *credentials = info.upstream != NULL
                                       ? github_accounts_credentials(u->spec.accounts, info.upstream)
                                       : NULL;

    if (credentials == NULL) {
        err_set(&error, ERR_NOT_FOUND, "there is no account for its upstream");
        upstream_ended(u, row, NULL, 0, error);
        return;
    }
    Push *p = g_new0(Push, 1);

    *p = (Push){.upstream = upstream_ref(u),
                .row = row,
                .url = g_strdup(info.upstream),
                .credentials = g_steal_pointer(&credentials),
                .cancel = forge_cancel(u->spec.forge)};
    forge_read(u->spec.forge, repo, "push upstream", push_work, on_pushed, p, push_free);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* A branch that a box pushed, and a merge that the queue has landed: one commit to one branch there. */
#include <string.h>

#include "base/err.h"
#include "base/failpoint.h"
#include "forge/bring.h"
#include "github/calls.h"
#include "github/text.h"
#include "github/upstream-private.h"

/* The thread sees texts alone. */
typedef struct Push {
    Upstream *upstream;
    WorkRow *row;
    Repo *repo;
    char *url, *credentials;
    const gint *cancel;
    bool has_head; /* of a merge: what was pushed has the pull request's own commits in it */
} Push;

static void
push_free(gpointer data)
{
    Push *p = data;

    work_row_free(p->row);
    github_wipe(p->credentials);
    g_free(p->url);
    repo_unref(p->repo);
    upstream_unref(p->upstream);
    g_free(p);
}

static bool
has_commit(GitRepo *git, const char *oid, const char *in)
{
    int code = 1;
    GitCall call = {.access = GIT_READ, .args = GIT_ARGS("merge-base", "--is-ancestor", oid, in)};

    return git_oid_is_valid(oid) && git_ask(git, &call, &code, NULL, NULL) && code == 0;
}

/* A commit that is there already is pushed to no effect, so a second time does no harm. */
static bool
push_work(GitRepo *git, void *data, GError **error)
{
    Push *p = data;
    const char *head = github_text(p->row->body, "head");
    BringPush push = {.url = p->url,
                      .credentials = p->credentials,
                      .oid = github_text(p->row->body, "oid"),
                      .branch = github_text(p->row->body, "branch"),
                      .cancel = p->cancel};

    if (!bring_push(git, &push, error))
        return false;
    p->has_head = head != NULL && has_commit(git, head, push.oid);
    FAILPOINT("upstream-pushed");
    return true;
}

/* ---- the pull request of a merge ---- */

typedef struct Close {
    Upstream *upstream;
    WorkRow *row;
} Close;

static void
on_closed(const GithubAnswer *answer, const GError *error, void *data)
{
    Close *c = data;
    g_autoptr(Json) kept = json_pack("{s:s*, s:b}", "oid", github_text(c->row->body, "oid"), "closed", true);

    upstream_ended(
        c->upstream, c->row,
        &(UpstreamEnd){.answer = error == NULL ? kept : NULL, .wait_us = answer->wait_us, .error = error});
    upstream_unref(c->upstream);
    g_free(c);
}

/* Where its commits are in the base, whoever is there sees that it was merged; a squash nobody can see. */
static bool
close_pull(Push *p)
{
    gint64 number = github_number(p->row->above, "number");
    g_auto(GithubPlace) place = {0};

    if (strcmp(p->row->kind, "merge") != 0 || p->has_head || number == 0 ||
        !upstream_find_place(p->upstream, p->repo, &place, NULL))
        return false;
    Close *c = g_new0(Close, 1);
    g_autoptr(Json) body = json_pack("{s:s}", "state", "closed");

    *c = (Close){upstream_ref(p->upstream), g_steal_pointer(&p->row)};
    github_pull_edit(
        &(GithubAsk){
            .client = place.client, .owner = place.owner, .repo = place.repo, .done = on_closed, .data = c},
        number, body);
    return true;
}

static void
on_pushed(void *data, const GError *error)
{
    Push *p = data;
    g_autoptr(Json) answer = json_pack("{s:s*}", "oid", github_text(p->row->body, "oid"));
    g_autoptr(GError) again = NULL;

    if (error == NULL && !p->upstream->stopped && close_pull(p))
        return;
    /* Of git's failures only a refusal is one for good: it does not say which are the network's. */
    if (error != NULL && err_kind(error) == ERR_INVALID)
        again = g_error_new_literal(ERR_DOMAIN, ERR_UNAVAILABLE, error->message);
    upstream_ended(
        p->upstream, g_steal_pointer(&p->row),
        &(UpstreamEnd){.answer = error == NULL ? answer : NULL, .error = again != NULL ? again : error});
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
        upstream_ended(u, row, &(UpstreamEnd){.error = error});
        return;
    }
    Push *p = g_new0(Push, 1);

    *p = (Push){.upstream = upstream_ref(u),
                .row = row,
                .repo = repo_ref(repo),
                .url = g_strdup(info.upstream),
                .credentials = g_steal_pointer(&credentials),
                .cancel = forge_cancel(u->spec.forge)};
    forge_read(u->spec.forge, repo, "push upstream", push_work, on_pushed, p, push_free);
}

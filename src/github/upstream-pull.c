/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/err.h"
#include "forge/thread.h"
#include "github/calls.h"
#include "github/news.h"
#include "github/text.h"
#include "github/upstream-private.h"

typedef struct Pull {
    Upstream *upstream;
    WorkRow *row;
    Repo *repo;
    Json *sent; /* what it shall be there; NULL: nobody has looked yet */
} Pull;

/* Takes what it holds to its end. */
static void
pull_end(Pull *p, const Json *answer, gint64 wait_us, const GError *error)
{
    upstream_ended(p->upstream, g_steal_pointer(&p->row), answer, wait_us, error);
    json_decref(p->sent);
    repo_unref(p->repo);
    upstream_unref(p->upstream);
    g_free(p);
}

/* The webhook of it may come as well, and before this or after. */
static void
tell_opened(const UpstreamSpec *spec, const char *git_url, Json *pull)
{
    g_auto(GithubPlace) place = {0};

    if (!github_accounts_find(spec->accounts, git_url, &place))
        return;
    g_autofree char *name = g_strconcat(place.owner, "/", place.repo, NULL);
    g_autoptr(Json)
        payload = json_pack("{s:s, s:O, s:{s:s}, s:{s:s}}", "action", "opened", "pull_request", pull,
                            "repository", "full_name", name, "sender", "login", place.login);

    github_news_take(spec->accounts, spec->forge, spec->db,
                     &(GithubNews){github_client_base(place.client), "pull_request", NULL, payload}, NULL,
                     NULL);
}

static void
on_answer(const GithubAnswer *answer, const GError *error, void *data)
{
    Pull *p = data;
    bool was_there = p->row->answer != NULL;

    if (error != NULL) {
        pull_end(p, NULL, answer->wait_us, error);
        return;
    }
    g_autoptr(Json) kept = json_pack(
        "{s:I, s:s*, s:s*, s:s*, s:s*, s:O}", "number", (json_int_t)github_number(answer->json, "number"),
        "state", github_text(answer->json, "state"), "url", github_text(answer->json, "html_url"), "head_sha",
        github_text(json_object_get(answer->json, "head"), "sha"), "updated_at",
        github_text(answer->json, "updated_at"), "sent", p->sent);

    const UpstreamSpec spec = p->upstream->spec;
    g_autoptr(Repo) repo = repo_ref(p->repo);
    RepoInfo info;

    repo_info(repo, &info);
    /* In this order: whoever tells of it finds the row. */
    pull_end(p, kept, 0, NULL);
    if (!was_there)
        tell_opened(&spec, info.upstream, answer->json);
}

static void
send(Pull *p, const GithubPlace *place, const char *head, bool is_draft)
{
    GithubAsk ask = {.client = place->client,
                     .owner = place->owner,
                     .repo = place->repo,
                     .look_first = p->row->was_sent,
                     .done = on_answer,
                     .data = p};
    gint64 number = github_number(p->row->answer, "number");

    if (number > 0) {
        github_pull_edit(&ask, number, p->sent);
        return;
    }
    g_autoptr(Json) body = json_deep_copy(p->sent);

    json_object_del(body, "state");
    json_object_set_new(body, "head", json_string(head));
    json_object_set_new(body, "draft", json_boolean(is_draft));
    github_pull_create(&ask, body);
}

static void
on_thread(Json *thread, const GError *error, void *data)
{
    Pull *p = data;
    g_auto(GithubPlace) place = {0};
    g_autoptr(GError) none = NULL;
    RepoInfo info;

    repo_info(p->repo, &info);
    if (p->upstream->stopped)
        err_set(&none, ERR_CANCELLED, "the server ends");
    else if (error == NULL && !github_accounts_find(p->upstream->spec.accounts, info.upstream, &place))
        err_set(&none, ERR_NOT_FOUND, "there is no account for its upstream");
    if (error != NULL || none != NULL) {
        pull_end(p, NULL, 0, error != NULL ? error : none);
        return;
    }
    p->sent = json_pack("{s:s*, s:s*, s:s*, s:s*}", "title", github_text(thread, "title"), "body",
                        github_text(thread, "body"), "base", github_text(thread, "base"), "state",
                        github_text(thread, "state"));
    bool is_new = p->row->answer == NULL;

    /* What was merged here is merged there by whoever merges there. */
    if (json_is_true(json_object_get(thread, "merged")) ||
        (is_new && g_strcmp0(github_text(thread, "state"), "open") != 0) ||
        (!is_new && json_equal(p->sent, json_object_get(p->row->answer, "sent"))))
        pull_end(p, NULL, 0, NULL);
    else
        send(p, &place, github_text(thread, "head"), json_is_true(json_object_get(thread, "draft")));
}

void
upstream_pull(Upstream *u, WorkRow *row, Repo *repo)
{
    Pull *p = g_new0(Pull, 1);

    *p = (Pull){.upstream = upstream_ref(u), .row = row, .repo = repo_ref(repo)};
    thread_get(u->spec.forge, repo, github_number(row->body, "number"), "pull", on_thread, p);
}

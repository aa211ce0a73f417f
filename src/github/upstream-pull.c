/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/err.h"
#include "forge/thread.h"
#include "github/calls.h"
#include "github/names.h"
#include "github/news.h"
#include "github/text.h"
#include "github/upstream-names.h"

typedef struct Pull {
    Upstream *upstream;
    WorkRow *row;
    Repo *repo;
    Json *sent;     /* what it shall be there; NULL: nobody has looked yet */
    Json *there;    /* what it is; NULL: nobody has answered yet */
    Json *problems; /* what was refused there; NULL: nothing */
} Pull;

/* Takes what it holds to its end. */
static void
pull_end(Pull *p, const UpstreamEnd *end)
{
    upstream_ended(p->upstream, g_steal_pointer(&p->row), end);
    json_decref(p->sent);
    json_decref(p->there);
    json_decref(p->problems);
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
finish(Pull *p)
{
    bool was_there = p->row->answer != NULL;
    g_autoptr(Json) there = json_incref(p->there);
    g_autoptr(Json) kept = json_pack("{s:I, s:s*, s:s*, s:s*, s:s*, s:O}", "number",
                                     (json_int_t)github_number(there, "number"), "state",
                                     github_text(there, "state"), "url", github_text(there, "html_url"),
                                     "head_sha", github_text(json_object_get(there, "head"), "sha"),
                                     "updated_at", github_text(there, "updated_at"), "sent", p->sent);
    const UpstreamSpec spec = p->upstream->spec;

    if (json_array_size(p->problems) > 0)
        json_object_set(kept, "problems", p->problems);
    g_autoptr(Repo) repo = repo_ref(p->repo);
    RepoInfo info;

    repo_info(repo, &info);
    /* In this order: whoever tells of it finds the row. */
    pull_end(p, &(UpstreamEnd){.answer = kept});
    if (!was_there)
        tell_opened(&spec, info.upstream, there);
}

/* ---- drafts ---- */

static void
on_drafted(const GithubAnswer *answer, const GError *error, void *data)
{
    Pull *p = data;

    if (error != NULL)
        pull_end(p, &(UpstreamEnd){.wait_us = answer->wait_us, .error = error});
    else
        finish(p);
}

static GithubAsk
make_ask(Pull *p, const GithubPlace *place, GithubFunc done)
{
    return (GithubAsk){.client = place->client,
                       .owner = place->owner,
                       .repo = place->repo,
                       .look_first = p->row->was_sent,
                       .done = done,
                       .data = p};
}

/* REST takes no draft back; where it does (another Coop), nothing is left to do. */
static void
send_draft(Pull *p)
{
    const Json *draft = json_object_get(p->sent, "draft");
    const char *node = github_text(p->there, "node_id");
    g_auto(GithubPlace) place = {0};

    if (draft == NULL || json_equal(draft, json_object_get(p->there, "draft")) || node == NULL ||
        !upstream_find_place(p->upstream, p->repo, &place, NULL)) {
        finish(p);
        return;
    }
    GithubAsk ask = make_ask(p, &place, on_drafted);

    github_pull_set_draft(&ask, node, json_is_true(draft));
}

/* ---- labels and reviewers ---- */

static const Json *
sent_before(const Pull *p)
{
    return json_object_get(p->row->answer, "sent");
}

/* As it is behind them, so that older news is known to be old. */
static void
on_looked(const GithubAnswer *answer, const GError *error, void *data)
{
    Pull *p = data;

    if (error != NULL) {
        pull_end(p, &(UpstreamEnd){.wait_us = answer->wait_us, .error = error});
        return;
    }
    json_decref(p->there);
    p->there = json_incref(answer->json);
    upstream_names_settle(p->sent, sent_before(p), p->there);
    send_draft(p);
}

static void
on_names(guint n_sent, const Json *problems, gint64 wait_us, const GError *error, void *data)
{
    Pull *p = data;
    g_auto(GithubPlace) place = {0};
    g_autoptr(GError) none = NULL;

    if (error == NULL && n_sent > 0)
        (void)upstream_find_place(p->upstream, p->repo, &place, &none);
    if (error != NULL || none != NULL) {
        pull_end(p, &(UpstreamEnd){.wait_us = wait_us, .error = error != NULL ? error : none});
        return;
    }
    if (n_sent == 0) {
        send_draft(p);
        return;
    }
    p->problems = json_deep_copy(problems);
    GithubAsk ask = make_ask(p, &place, on_looked);

    github_pull_get(&ask, github_number(p->there, "number"));
}

static void
on_answer(const GithubAnswer *answer, const GError *error, void *data)
{
    Pull *p = data;

    if (error != NULL) {
        pull_end(p, &(UpstreamEnd){.wait_us = answer->wait_us, .error = error});
        return;
    }
    p->there = json_incref(answer->json);
    upstream_names(&(UpstreamNames){.upstream = p->upstream,
                                    .repo = p->repo,
                                    .number = github_number(p->there, "number"),
                                    .before = sent_before(p),
                                    .wanted = p->sent,
                                    .there = p->there},
                   on_names, p);
}

/* ---- sending ---- */

/* These have calls of their own. */
static void
drop_names(Json *body)
{
    json_object_del(body, "labels");
    json_object_del(body, "reviewers");
}

/* Those that are other than when they were last sent: a closed one takes no base, even its own. */
static Json *
changes_of(const Pull *p)
{
    const Json *before = sent_before(p);
    Json *changes = json_object(), *value;
    const char *name;

    json_object_foreach(p->sent, name, value)
    {
        if (!json_equal(value, json_object_get(before, name)))
            json_object_set(changes, name, value);
    }
    return changes;
}

static void
send(Pull *p, const GithubPlace *place, const char *head)
{
    GithubAsk ask = make_ask(p, place, on_answer);
    gint64 number = github_number(p->row->answer, "number");
    g_autoptr(Json) body = number > 0 ? changes_of(p) : json_deep_copy(p->sent);

    drop_names(body);
    if (number > 0 && json_object_size(body) == 0)
        github_pull_get(&ask, number);
    else if (number > 0)
        github_pull_edit(&ask, number, body);
    if (number > 0)
        return;
    json_object_del(body, "state");
    json_object_set_new(body, "head", json_string(head));
    github_pull_create(&ask, body);
}

static Json *
wanted(const Json *thread)
{
    Json *sent = json_pack("{s:s*, s:s*, s:s*, s:s*}", "title", github_text(thread, "title"), "body",
                           github_text(thread, "body"), "base", github_text(thread, "base"), "state",
                           github_text(thread, "state"));

    /* A closed one stays what it was. */
    if (g_strcmp0(github_text(thread, "state"), "open") == 0)
        json_object_set(sent, "draft", json_object_get(thread, "draft"));
    json_object_set_new(sent, "labels", names_of(json_object_get(thread, "labels"), "name"));
    json_object_set_new(sent, "reviewers", names_of_theirs(json_object_get(thread, "reviewers")));
    return sent;
}

static void
on_thread(Json *thread, const GError *error, void *data)
{
    Pull *p = data;
    g_auto(GithubPlace) place = {0};
    g_autoptr(GError) none = NULL;

    if (p->upstream->stopped)
        err_set(&none, ERR_CANCELLED, "the server ends");
    else if (error == NULL)
        (void)upstream_find_place(p->upstream, p->repo, &place, &none);
    if (error != NULL || none != NULL) {
        pull_end(p, &(UpstreamEnd){.error = error != NULL ? error : none});
        return;
    }
    p->sent = wanted(thread);
    bool is_new = p->row->answer == NULL;

    /* A merge has its own row. */
    if (json_is_true(json_object_get(thread, "merged")) ||
        (is_new && g_strcmp0(github_text(thread, "state"), "open") != 0) ||
        (!is_new && json_equal(p->sent, json_object_get(p->row->answer, "sent"))))
        pull_end(p, &(UpstreamEnd){0});
    else
        send(p, &place, github_text(thread, "head"));
}

void
upstream_pull(Upstream *u, WorkRow *row, Repo *repo)
{
    Pull *p = g_new0(Pull, 1);

    *p = (Pull){.upstream = upstream_ref(u), .row = row, .repo = repo_ref(repo)};
    thread_get(u->spec.forge, repo, github_number(row->body, "number"), "pull", on_thread, p);
}

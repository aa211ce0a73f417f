/* SPDX-License-Identifier: Apache-2.0 */
/* Asks for what webhooks may have missed, one pull request after the other.  What has not changed is a
 * 304 and costs nothing. */
#include <string.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "github/arrive.h"
#include "github/calls.h"
#include "github/news.h"
#include "github/text.h"
#include "github/upstream-private.h"

typedef struct Poll {
    Upstream *upstream;
    GPtrArray *rows; /* WorkRow*, those still to come */
    WorkRow *row;    /* the one that is asked for; NULL: none */
    char *base_url, *full_name;
    Json *pull; /* as it is now */
    size_t at;  /* in parts */
} Poll;

static void next_pull(Poll *p);
static void next_part(Poll *p);

static void
poll_end(Poll *p)
{
    Upstream *u = p->upstream;

    u->polling = false;
    if (!u->stopped)
        loop_timer_set(u->spec.loop, &u->poll, (guint)u->spec.poll_ms);
    g_ptr_array_unref(p->rows);
    json_decref(p->pull);
    g_free(p->base_url);
    g_free(p->full_name);
    work_row_free(p->row);
    upstream_unref(u);
    g_free(p);
}

/* ---- telling ---- */

static void
tell(const Poll *p, const char *name, const char *action, const char *member, Json *object, bool is_quiet)
{
    g_autoptr(Json) payload = json_pack("{s:s, s:{s:s}, s:O}", "action", action, "repository", "full_name",
                                        p->full_name, "pull_request", p->pull);

    json_object_set(payload, member, object);
    github_news_take(p->upstream->spec.accounts, p->upstream->spec.forge, p->upstream->spec.db,
                     &(GithubNews){p->base_url, name, NULL, payload, is_quiet}, NULL, NULL);
}

/* Its end is told of; all else that it has become is only taken over. */
static void
tell_state(const Poll *p)
{
    bool is_closed = g_strcmp0(github_text(p->pull, "state"), "closed") == 0;

    tell(p, "pull_request", is_closed ? "closed" : "polled", "pull_request", p->pull, !is_closed);
}

/* What was told of is forgotten after a while, so what is older is not told of. */
static bool
is_young(const Json *object)
{
    static const char *const members[] = {"submitted_at", "completed_at", "started_at", "created_at"};
    const char *text = NULL;

    for (size_t i = 0; i < G_N_ELEMENTS(members) && text == NULL; i++)
        text = github_text(object, members[i]);
    g_autoptr(GDateTime) at = text != NULL ? g_date_time_new_from_iso8601(text, NULL) : NULL;
    gint64 age_s = at != NULL ? clock_wall_us() / G_USEC_PER_SEC - g_date_time_to_unix(at) : 0;

    return age_s < (GITHUB_DELIVERY_DAYS - 1) * (gint64)24 * 3600;
}

/* Lists of a pull request and what an item of one is called. */
typedef struct PartRow {
    const char *path;   /* below the repository; %d is its number */
    const char *member; /* the list is in this one; NULL: it is the whole */
    const char *name, *action, *object;
} PartRow;

static const PartRow parts[] = {
    {"/repos/%s/%s/pulls/%d/reviews?per_page=100", NULL, "pull_request_review", "submitted", "review"},
    {"/repos/%s/%s/issues/%d/comments?per_page=100", NULL, "issue_comment", "created", "comment"},
    {"/repos/%s/%s/pulls/%d/comments?per_page=100", NULL, "pull_request_review_comment", "created",
     "comment"},
    {NULL, "check_runs", "check_run", "completed", "check_run"}, /* of the head */
};

static char *
path_of(const Poll *p, const GithubAsk *ask)
{
    const char *sha = github_text(json_object_get(p->pull, "head"), "sha");

    if (parts[p->at].path == NULL)
        return github_path("/repos/%s/%s/commits/%s/check-runs?per_page=100", ask->owner, ask->repo,
                           sha != NULL ? sha : "HEAD");
    return github_path(parts[p->at].path, ask->owner, ask->repo, github_number(p->pull, "number"));
}

/* ---- asking ---- */

static GithubAsk
make_ask(Poll *p, GithubFunc done, GithubPlace *ret_place)
{
    Repo *repo = forge_find_id(p->upstream->spec.forge, p->row->repository_id);
    RepoInfo info = {0};

    if (repo != NULL)
        repo_info(repo, &info);
    (void)github_accounts_find(p->upstream->spec.accounts, info.upstream, ret_place);
    return (GithubAsk){.client = ret_place->client,
                       .owner = ret_place->owner,
                       .repo = ret_place->repo,
                       .done = done,
                       .data = p};
}

/* A server that ends, or one that has to wait, comes back another time. */
static bool
is_over(const Poll *p, const GError *error)
{
    return p->upstream->stopped ||
           (error != NULL && err_kind(error) != ERR_NOT_FOUND && err_kind(error) != ERR_DENIED);
}

/* Rows are made once; of what comes as events alone, the old was told of. */
static bool
on_page(const GithubAnswer *page, void *data)
{
    Poll *p = data;
    const PartRow *part = &parts[p->at];
    const Json *list = part->member != NULL ? json_object_get(page->json, part->member) : page->json;

    size_t n = page->cached ? 0 : MIN(json_array_size(list), (size_t)UPSTREAM_POLL_ITEMS);

    for (size_t i = 0; i < n; i++) {
        Json *item = json_array_get(list, i);

        if (github_arrive_member(part->name) != NULL || is_young(item))
            tell(p, part->name, part->action, part->object, item, false);
    }
    return !p->upstream->stopped;
}

static void
on_pages(const GithubAnswer *answer, const GError *error, void *data)
{
    Poll *p = data;

    if (error == NULL && answer->next != NULL)
        log_info("github", "a pull request has more than is read", log_str("list", parts[p->at].name),
                 log_int("number", github_number(p->pull, "number")));
    p->at++;
    if (is_over(p, error))
        poll_end(p);
    else
        next_part(p);
}

static void
next_part(Poll *p)
{
    g_auto(GithubPlace) place = {0};
    GithubAsk ask = make_ask(p, NULL, &place);

    if (p->at == G_N_ELEMENTS(parts) || ask.client == NULL) {
        next_pull(p);
        return;
    }
    g_autofree char *path = path_of(p, &ask);

    github_pages(ask.client, path, UPSTREAM_POLL_PAGES, on_page, on_pages, p);
}

static void
on_pull(const GithubAnswer *answer, const GError *error, void *data)
{
    Poll *p = data;

    if (is_over(p, error)) {
        poll_end(p);
        return;
    }
    if (error != NULL) {
        next_pull(p);
        return;
    }
    json_decref(p->pull);
    p->pull = json_incref(answer->json);
    tell_state(p);
    p->at = 0;
    next_part(p);
}

static void
next_pull(Poll *p)
{
    g_auto(GithubPlace) place = {0};
    GithubAsk ask = {0};

    while (ask.client == NULL && p->rows->len > 0) {
        work_row_free(p->row);
        p->row = g_ptr_array_steal_index(p->rows, p->rows->len - 1);
        github_place_clear(&place);
        ask = make_ask(p, on_pull, &place);
    }
    if (ask.client == NULL) {
        poll_end(p);
        return;
    }
    g_free(p->base_url);
    g_free(p->full_name);
    p->base_url = g_strdup(github_client_base(ask.client));
    p->full_name = g_strconcat(ask.owner, "/", ask.repo, NULL);
    github_pull_get(&ask, github_number(p->row->answer, "number"));
}

static bool
poll_work(DbTx *tx, void *data, GError **error)
{
    Poll *p = data;

    p->rows = work_open_pulls(tx, error);
    return p->rows != NULL;
}

static void
on_rows(void *data, const GError *error)
{
    Poll *p = data;

    if (p->rows == NULL)
        p->rows = g_ptr_array_new();
    if (error != NULL || p->upstream->stopped)
        poll_end(p);
    else
        next_pull(p);
}

void
upstream_poll(Upstream *u)
{
    if (u->polling)
        return;
    Poll *p = g_new0(Poll, 1);

    u->polling = true;
    p->upstream = upstream_ref(u);
    db_read(u->spec.db, poll_work, on_rows, p, NULL);
}

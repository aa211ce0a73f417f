/* SPDX-License-Identifier: Apache-2.0 */
#include "github/news.h"

#include <string.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/failpoint.h"
#include "base/log.h"
#include "forge/arrival.h"
#include "forge/repo.h"
#include "github/arrive.h"
#include "github/map.h"
#include "github/text.h"
#include "github/work.h"
#include "store/events.h"

/* One thing that was told of. */
typedef struct Take {
    Forge *forge;
    char *base_url, *name, *guid; /* NULL guid: of a poll */
    Repo *repo;                   /* NULL: nobody's */
    char *repository_id, *full_name;
    GithubMapped mapped;
    bool has_event, is_push, is_quiet;
    char *action, *login;
    Json *object; /* what may come as rows; NULL: nothing */
    GithubArrived arrived;
    GithubTaken taken;
    GithubNewsFunc done;
    void *data;
} Take;

static void
take_free(gpointer data)
{
    Take *t = data;

    g_free(t->base_url);
    g_free(t->name);
    g_free(t->guid);
    g_free(t->repository_id);
    g_free(t->full_name);
    g_free(t->action);
    g_free(t->login);
    json_decref(t->object);
    g_clear_pointer(&t->repo, repo_unref);
    github_mapped_clear(&t->mapped);
    g_free(t);
}

/* ---- whose ---- */

typedef struct Search {
    GithubAccounts *accounts;
    const char *base_url, *full_name;
    Repo *found;
} Search;

static void
look_at(Repo *repo, void *data)
{
    Search *s = data;
    g_auto(GithubPlace) place = {0};
    RepoInfo info;

    repo_info(repo, &info);
    if (s->found != NULL || !github_accounts_find(s->accounts, info.upstream, &place) ||
        strcmp(github_client_base(place.client), s->base_url) != 0)
        return;
    g_autofree char *name = g_strconcat(place.owner, "/", place.repo, NULL);

    if (g_ascii_strcasecmp(name, s->full_name) == 0)
        s->found = repo;
}

static Repo *
find_repo(GithubAccounts *accounts, Forge *forge, const GithubNews *news)
{
    const char *name = github_text(json_object_get(news->payload, "repository"), "full_name");
    Search s = {accounts, news->base_url, name, NULL};

    if (name != NULL)
        forge_each(forge, look_at, &s);
    return s.found;
}

/* ---- in the database ---- */

/* False in `ret_new`: it was there. */
static bool
note_once(DbTx *tx, const char *guid, const char *event, bool *ret_new, GError **error)
{
    if (!db_exec(
            tx,
            "INSERT INTO github_deliveries (guid, event, received_us) VALUES (?, ?, ?) ON CONFLICT (guid) "
            "DO NOTHING",
            DB_ARGS(db_text(guid), db_text(event), db_int(clock_wall_us())), error))
        return false;
    *ret_new = db_changes(tx) > 0;
    return true;
}

static bool
forget_old(DbTx *tx, GError **error)
{
    static const gint64 day_us = 24 * 3600 * (gint64)G_USEC_PER_SEC;

    return db_exec(tx, "DELETE FROM github_deliveries WHERE received_us < ?",
                   DB_ARGS(db_int(clock_wall_us() - GITHUB_DELIVERY_DAYS * day_us)), error);
}

static bool
write_event(DbTx *tx, Take *t, GError **error)
{
    Json *data = t->mapped.data;
    g_autoptr(WorkRow) row = NULL;

    if (t->mapped.number > 0 && !work_find_pull(tx, t->repository_id, t->mapped.number, &row, error))
        return false;
    gint64 number = row != NULL ? github_number(row->body, "number") : 0;

    json_object_set_new(data, "repository", json_string(t->full_name));
    json_object_set_new(data, "repository_id", json_string(t->repository_id));
    /* Not "number": whoever follows those of our own forge would look for its rows. */
    if (number > 0)
        json_object_set_new(data, "number_here", json_integer(number));
    g_autofree char *text = json_encode(data);

    return event_append(
        tx,
        &(EventSpec){.kind = t->mapped.kind, .actor = t->mapped.actor, .data = text, .owner = EVENT_FOR_ALL},
        NULL, error);
}

static bool
arrive(DbTx *tx, Take *t, GError **error)
{
    GithubArrive a = {.repository_id = t->repository_id,
                      .name = t->name,
                      .action = t->action,
                      .actor = t->mapped.actor,
                      .login = t->login,
                      .object = t->object,
                      .upstream_number = t->mapped.number};

    return t->object == NULL || github_arrive(tx, &a, &t->arrived, error);
}

/* Rows tell of themselves. */
static bool
tell(DbTx *tx, Take *t, GError **error)
{
    g_autofree char *seen = g_strconcat(t->base_url, " ", t->mapped.seen, NULL);
    bool is_new = true;

    if (!t->has_event || t->arrived.is_part || t->arrived.has_changed || t->is_quiet) {
        t->taken = t->arrived.is_part && !t->arrived.has_changed ? GITHUB_TAKEN_BEFORE : t->taken;
        return true;
    }
    if (!note_once(tx, seen, t->name, &is_new, error))
        return false;
    t->taken = is_new ? t->taken : GITHUB_TAKEN_BEFORE;
    return !is_new || write_event(tx, t, error);
}

static bool
take_work(DbTx *tx, void *data, GError **error)
{
    Take *t = data;
    g_autofree char *guid = g_strconcat(t->base_url, " ", t->guid, NULL);
    bool is_new = true;

    if (t->guid != NULL && (!forget_old(tx, error) || !note_once(tx, guid, t->name, &is_new, error)))
        return false;
    if (!is_new) {
        t->taken = GITHUB_TAKEN_BEFORE;
        return true;
    }
    if (!arrive(tx, t, error) || !tell(tx, t, error))
        return false;
    FAILPOINT("github-news");
    return true;
}

/* ---- on the loop ---- */

static Json *
copy_object(const GithubNews *news)
{
    const char *member = github_arrive_member(news->name);

    return member != NULL ? json_deep_copy(json_object_get(news->payload, member)) : NULL;
}

/* Another one under way brings it too, or the next. */
static void
fetch(Repo *repo)
{
    g_autoptr(GError) error = NULL;

    if (!repo_fetch(repo, "github", &error))
        log_info("github", "the push will come with a later fetch", log_gerror(error));
}

static void
on_taken(void *data, const GError *error)
{
    Take *t = data;

    if (error == NULL && t->arrived.has_changed)
        arrival_settle(t->forge, t->repo);
    if (error == NULL &&
        ((t->is_push && t->taken == GITHUB_TAKEN) || (t->arrived.is_merged && t->arrived.has_changed)))
        fetch(t->repo);
    if (t->done != NULL)
        t->done(t->taken, error, t->data);
}

void
github_news_take(GithubAccounts *accounts, Forge *forge, Db *db, const GithubNews *news, GithubNewsFunc done,
                 void *data)
{
    Repo *repo = find_repo(accounts, forge, news);
    Take *t = g_new0(Take, 1);

    *t = (Take){.forge = forge,
                .is_quiet = news->is_quiet,
                .login = g_strdup(github_accounts_login(accounts, news->base_url)),
                .base_url = g_strdup(news->base_url),
                .name = g_strdup(news->name),
                .guid = g_strdup(news->guid),
                .repo = repo != NULL ? repo_ref(repo) : NULL,
                .done = done,
                .data = data};
    if (repo != NULL) {
        RepoInfo info;

        repo_info(repo, &info);
        t->repository_id = g_strdup(info.id);
        t->full_name = g_strconcat(info.owner, "/", info.name, NULL);
        t->has_event = github_map(news->name, news->payload, &t->mapped);
        t->is_push = strcmp(news->name, "push") == 0;
        t->action = g_strdup(github_text(news->payload, "action"));
        t->object = t->has_event && t->mapped.number > 0 ? copy_object(news) : NULL;
    }
    t->taken = t->has_event || t->is_push ? GITHUB_TAKEN : GITHUB_NOT_OURS;
    db_write(db, take_work, on_taken, t, take_free);
}

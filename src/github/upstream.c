/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/failpoint.h"
#include "base/log.h"
#include "github/upstream-private.h"

/* ---- the end of a row ---- */

typedef struct End {
    Upstream *upstream;
    WorkRow *row;
    Json *answer;
    char *problem;
    WorkEnd end;
    gint64 next_us;
    bool counts;
    UpstreamItem item; /* its kind is the row's or a constant */
} End;

static void
end_free(gpointer data)
{
    End *e = data;

    work_row_free(e->row);
    json_decref(e->answer);
    g_free(e->problem);
    upstream_unref(e->upstream);
    g_free(e);
}

static bool
end_work(DbTx *tx, void *data, GError **error)
{
    const End *e = data;

    return work_end(tx, e->row, &(WorkResult){e->end, e->answer, e->problem, e->next_us, e->counts, e->item},
                    error);
}

static void
on_ended(void *data, const GError *error)
{
    Upstream *u = ((End *)data)->upstream;

    if (error != NULL)
        log_warn("github", "work was not written down and will be looked for", log_gerror(error));
    u->working = false;
    if (u->stopped)
        return;
    if (error != NULL)
        loop_timer_set(u->spec.loop, &u->tick, UPSTREAM_TICK_MS);
    else
        upstream_wake(u);
}

/* What will not be otherwise the next time. */
static bool
is_final(const GError *error)
{
    switch (err_kind(error)) {
    case ERR_INVALID:
    case ERR_DENIED:
    case ERR_NOT_FOUND:
    case ERR_CONFLICT:
        return true;
    case ERR_LIMIT:
    case ERR_FULL:
    case ERR_TIMEOUT:
    case ERR_CANCELLED:
    case ERR_UNAVAILABLE:
    case ERR_INTERNAL:
    case ERR_KIND_MAX:
        break;
    }
    return false;
}

static void
judge(End *e, gint64 wait_us, const GError *error)
{
    /* A limit says how long: one that does not is an answer without end, which will be no shorter. */
    bool is_limit = (err_kind(error) == ERR_LIMIT && wait_us > 0) || err_kind(error) == ERR_CANCELLED;
    gint64 pause = is_limit ? MAX(wait_us, (gint64)G_USEC_PER_SEC)
                            : github_work_pause_us(e->row->tries + 1, g_random_int());

    e->problem = g_strdup(error->message);
    e->counts = !is_limit;
    e->next_us = clock_wall_us() + pause;
    e->end = is_final(error) || (!is_limit && e->row->tries + 1 >= WORK_TRIES) ? WORK_FAILED : WORK_AGAIN;
    log_info("github", e->end == WORK_FAILED ? "work has failed" : "work is tried again",
             log_str("work", e->row->key), log_gerror(error));
}

void
upstream_ended(Upstream *u, WorkRow *row, const UpstreamEnd *end)
{
    End *e = g_new0(End, 1);

    *e = (End){.upstream = upstream_ref(u), .row = row, .end = WORK_DONE, .item = end->item};
    e->answer = end->answer != NULL ? json_deep_copy(end->answer) : NULL;
    if (end->error != NULL)
        judge(e, end->wait_us, end->error);
    FAILPOINT("upstream-answered");
    /* The end of the server is no end of the work: the row stays marked. */
    if (u->stopped) {
        u->working = false;
        end_free(e);
        return;
    }
    db_write(u->spec.db, end_work, on_ended, e, end_free);
}

/* ---- the next row ---- */

typedef struct Look {
    Upstream *upstream;
    WorkRow *row;
    gint64 next_us;
} Look;

static void
look_free(gpointer data)
{
    Look *l = data;

    work_row_free(l->row);
    upstream_unref(l->upstream);
    g_free(l);
}

static bool
look_work(DbTx *tx, void *data, GError **error)
{
    Look *l = data;

    return work_take(tx, clock_wall_us(), &l->row, &l->next_us, error);
}

bool
upstream_find_place(Upstream *u, Repo *repo, GithubPlace *ret_place, GError **error)
{
    RepoInfo info;

    repo_info(repo, &info);
    return github_accounts_find(u->spec.accounts, info.upstream, ret_place) ||
           err_set(error, ERR_NOT_FOUND, "there is no account for its upstream");
}

static void
do_row(Upstream *u, WorkRow *row)
{
    static const struct {
        const char *kind;
        void (*func)(Upstream *u, WorkRow *row, Repo *repo);
    } kinds[] = {{"push", upstream_push}, {"merge", upstream_push}, {"pull", upstream_pull}};
    void (*func)(Upstream * u, WorkRow * row, Repo * repo) = upstream_part;
    Repo *repo = forge_find_id(u->spec.forge, row->repository_id);
    g_autoptr(GError) error = NULL;

    FAILPOINT("upstream-marked");
    if (repo == NULL) {
        err_set(&error, ERR_NOT_FOUND, "the repository is no more");
        upstream_ended(u, row, &(UpstreamEnd){.error = error});
        return;
    }
    for (size_t i = 0; i < G_N_ELEMENTS(kinds); i++) {
        if (strcmp(kinds[i].kind, row->kind) == 0)
            func = kinds[i].func;
    }
    func(u, row, repo);
}

static void
on_looked(void *data, const GError *error)
{
    Look *l = data;
    Upstream *u = l->upstream;

    if (!u->stopped && error == NULL && l->row != NULL) {
        do_row(u, g_steal_pointer(&l->row));
        return;
    }
    u->working = false;
    if (u->stopped)
        return;
    if (u->work_again)
        upstream_wake(u);
    else if (error != NULL ||
             (l->next_us != 0 && l->next_us - clock_wall_us() < UPSTREAM_LONG_TICK_MS * 1000))
        loop_timer_set(u->spec.loop, &u->tick, UPSTREAM_TICK_MS);
    else if (l->next_us != 0)
        loop_timer_set(u->spec.loop, &u->tick, UPSTREAM_LONG_TICK_MS);
}

void
upstream_wake(Upstream *u)
{
    u->work_again = u->working;
    if (u->working || u->stopped)
        return;
    Look *l = g_new0(Look, 1);

    u->working = true;
    l->upstream = upstream_ref(u);
    db_write(u->spec.db, look_work, on_looked, l, look_free);
}

static void
on_tick(LoopTimer *timer)
{
    Upstream *u = (Upstream *)((char *)timer - offsetof(Upstream, tick));

    if (u->cursor == NULL)
        upstream_follow_start(u);
    upstream_wake(u);
}

/* ---- showing ---- */

typedef struct List {
    Json *value;
    ForgeJsonFunc done;
    void *data;
} List;

static bool
list_work(DbTx *tx, void *data, GError **error)
{
    List *l = data;

    l->value = work_json(tx, error);
    return l->value != NULL;
}

static void
on_listed(void *data, const GError *error)
{
    List *l = data;

    l->done(l->value, error, l->data);
    json_decref(l->value);
    g_free(l);
}

void
upstream_list(Upstream *u, ForgeJsonFunc done, void *data)
{
    List *l = g_new0(List, 1);

    *l = (List){NULL, done, data};
    db_read(u->spec.db, list_work, on_listed, l, NULL);
}

/* ---- life ---- */

static void
on_poll(LoopTimer *timer)
{
    upstream_poll((Upstream *)((char *)timer - offsetof(Upstream, poll)));
}

Upstream *
upstream_new(const UpstreamSpec *spec)
{
    Upstream *u = g_new0(Upstream, 1);

    *u = (Upstream){.refs = 1, .spec = *spec, .tick = {.expired = on_tick}, .poll = {.expired = on_poll}};
    return u;
}

void
upstream_start(Upstream *u)
{
    upstream_follow_start(u);
    upstream_wake(u);
    loop_timer_set(u->spec.loop, &u->poll, (guint)u->spec.poll_ms);
}

Upstream *
upstream_ref(Upstream *u)
{
    u->refs++;
    return u;
}

void
upstream_unref(Upstream *u)
{
    if (--u->refs > 0)
        return;
    g_free(u);
}

void
upstream_free(Upstream *u)
{
    if (u == NULL)
        return;
    u->stopped = true;
    loop_timer_cancel(u->spec.loop, &u->tick);
    loop_timer_cancel(u->spec.loop, &u->poll);
    g_clear_pointer(&u->cursor, event_cursor_free);
    upstream_unref(u);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Whoever waits for the end of an entry.  A waiter is in the table before the row is read, so that an end
 * in between is not missed. */
#include <string.h>

#include "base/err.h"
#include "forge/forge-private.h"
#include "forge/landing-private.h"

typedef struct Waiter {
    LoopTimer timer; /* first: the loop hands back its address */
    Landings *all;   /* a reference */
    Loop *loop;
    Repo *repo; /* a reference */
    gint64 id;
    bool listed;
    bool over;    /* the time is, or the entry */
    bool asking;  /* the row is being read */
    bool again;   /* it has changed since */
    bool stopped; /* the queue was let go of */
    ForgeJsonFunc done;
    void *data;
} Waiter;

static void ask(Waiter *w);

static void
unlist(Waiter *w)
{
    GPtrArray *list = w->listed ? g_hash_table_lookup(w->all->waiters, &w->id) : NULL;

    loop_timer_cancel(w->loop, &w->timer);
    if (list == NULL)
        return;
    w->listed = false;
    w->all->n_waiters--;
    g_ptr_array_remove(list, w);
    if (list->len == 0)
        g_hash_table_remove(w->all->waiters, &w->id);
}

static void
answer(Waiter *w, Json *value, const GError *error)
{
    unlist(w);
    w->done(value, error, w->data);
    landings_unref(w->all);
    repo_unref(w->repo);
    g_free(w);
}

static bool
has_ended(const Json *entry)
{
    return row_int(entry, "ended_us") != 0;
}

static void
on_got(Json *value, const GError *error, void *data)
{
    Waiter *w = data;

    w->asking = false;
    if (error == NULL && w->again && !w->stopped) {
        w->again = false;
        ask(w);
        return;
    }
    if (error != NULL || w->stopped || has_ended(value) || w->over)
        answer(w, value, error);
}

static void
ask(Waiter *w)
{
    if (w->asking)
        return;
    w->asking = true;
    landing_get(w->all, w->repo, w->id, on_got, w);
}

static void
on_time(LoopTimer *timer)
{
    Waiter *w = (Waiter *)timer;

    w->over = true;
    ask(w);
}

void
landing_wait(Landings *all, Repo *repo, gint64 id, guint ms, ForgeJsonFunc done, void *data)
{
    GPtrArray *list = g_hash_table_lookup(all->waiters, &id);
    Waiter *w = g_new0(Waiter, 1);

    if (list == NULL) {
        list = g_ptr_array_new();
        g_hash_table_insert(all->waiters, g_memdup2(&id, sizeof id), list);
    }
    *w = (Waiter){.timer = {.expired = on_time},
                  .all = landings_ref(all),
                  .loop = all->forge->spec.loop,
                  .repo = repo_ref(repo),
                  .id = id,
                  .listed = true,
                  .done = done,
                  .data = data};
    /* Too many: each hears at once how far it is. */
    w->over = ++all->n_waiters > LANDING_WAITERS_MAX;
    g_ptr_array_add(list, w);
    loop_timer_set(w->loop, &w->timer, MIN(ms, (guint)LANDING_WAIT_MAX_MS));
    ask(w);
}

/* Something is committed: what is being read may be older. */
static void
hears(Waiter *w)
{
    w->again = w->asking;
    w->over = true;
    ask(w);
}

void
landing_tell(Landings *all, gint64 id)
{
    const GPtrArray *list = g_hash_table_lookup(all->waiters, &id);

    for (guint i = 0; list != NULL && i < list->len; i++)
        hears(list->pdata[i]);
}

static GPtrArray *
list_all(Landings *all)
{
    GPtrArray *every = g_ptr_array_new();
    GHashTableIter iter;
    gpointer list;

    g_hash_table_iter_init(&iter, all->waiters);
    while (g_hash_table_iter_next(&iter, NULL, &list))
        g_ptr_array_extend(every, list, NULL, NULL);
    return every;
}

void
landing_waiters_repo_gone(Landings *all, const char *repository_id)
{
    g_autoptr(GPtrArray) every = list_all(all);

    for (guint i = 0; i < every->len; i++) {
        Waiter *w = every->pdata[i];

        if (strcmp(w->repo->id, repository_id) == 0)
            hears(w);
    }
}

void
landing_waiters_end(Landings *all)
{
    g_autoptr(GPtrArray) every = list_all(all);
    g_autoptr(GError) error = g_error_new_literal(ERR_DOMAIN, ERR_CANCELLED, "the server is stopping");

    for (guint i = 0; i < every->len; i++) {
        Waiter *w = every->pdata[i];

        w->stopped = true;
        loop_timer_cancel(w->loop, &w->timer);
        if (!w->asking)
            answer(w, NULL, error);
    }
}

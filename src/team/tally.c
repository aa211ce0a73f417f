/* SPDX-License-Identifier: Apache-2.0 */
#include "team/tally.h"

#include "base/err.h"
#include "base/failpoint.h"
#include "base/log.h"
#include "team/tally-rows.h"
#include "team/team-private.h"

enum { WAVE_MS = 1000, AGAIN_MS = 5000 };

typedef struct Waiter {
    gint64 seq;
    DbDone done;
    void *data;
} Waiter;

struct Tally {
    LoopTimer timer; /* first: the loop hands back its address */
    guint refs;      /* the team's, and each answer that is waited for */
    Team *team;      /* not once it is closed */
    bool closed;
    bool loaded, busy;
    guint loads; /* counts what makes an answer an old one */
    EventCursor *cursor;
    gint64 place; /* in the rows: all up to here is counted */
    gint64 seen;  /* the same, with what did not count */
    TallySums sums;
    GArray *waiting; /* Waiter */
};

static void go_on(Tally *t);

static Tally *
tally_ref(Tally *t)
{
    t->refs++;
    return t;
}

static void
tally_unref(Tally *t)
{
    if (--t->refs > 0)
        return;
    tally_sums_clear(&t->sums);
    g_array_unref(t->waiting);
    g_free(t);
}

/* Those who wait for no more than this; with an error all of them. */
static void
tell_waiting(Tally *t, const GError *error)
{
    g_autoptr(GArray) all = g_steal_pointer(&t->waiting);

    t->waiting = g_array_new(FALSE, FALSE, sizeof(Waiter));
    for (guint i = 0; i < all->len; i++) {
        Waiter *w = &g_array_index(all, Waiter, i);

        if (error == NULL && w->seq > t->seen)
            g_array_append_val(t->waiting, *w);
        else
            w->done(w->data, error);
    }
}

static void
rest(Tally *t, const GError *error)
{
    t->busy = false;
    tell_waiting(t, error);
    if (error != NULL && !t->closed)
        log_warn("team", "the log could not be counted; once more, soon", log_gerror(error));
    if (error != NULL && !t->closed)
        loop_timer_set(t->team->spec.loop, &t->timer, AGAIN_MS);
    else if (t->waiting->len > 0)
        go_on(t);
}

/* ---- a page ---- */

typedef struct PageJob {
    Tally *t; /* a reference; the loop's */
    guint load;
    bool more;
    TallyPage page;
    TallySums sums;
} PageJob;

static void
page_job_free(void *data)
{
    PageJob *job = data;

    g_ptr_array_unref(job->page.events);
    tally_sums_clear(&job->sums);
    tally_unref(job->t);
    g_free(job);
}

static bool
write_page(DbTx *tx, void *data, GError **error)
{
    PageJob *job = data;

    return tally_put(tx, &job->page, &job->sums, error);
}

static void
on_page_written(void *data, const GError *error)
{
    PageJob *job = data;
    Tally *t = job->t;

    if (t->closed || job->load != t->loads)
        return;
    FAILPOINT("tally-counted");
    if (g_error_matches(error, ERR_DOMAIN, ERR_CONFLICT)) {
        t->loaded = t->busy = false;
        go_on(t);
        return;
    }
    if (error != NULL) {
        rest(t, error);
        return;
    }
    t->place = t->seen = job->page.to;
    tally_sums_add(&t->sums, &job->sums);
    t->busy = false;
    if (job->more)
        go_on(t);
    else
        rest(t, NULL);
}

static PageJob *
page_job_new(Tally *t, const EventPage *page)
{
    PageJob *job = g_new0(PageJob, 1);

    job->t = tally_ref(t);
    job->load = t->loads;
    job->more = page->more;
    job->page = (TallyPage){
        .events = g_ptr_array_ref(page->events), .from = t->place, .to = MAX(page->next_after, t->seen)};
    tally_sums_init(&job->sums);
    return job;
}

typedef struct Ask {
    Tally *t; /* a reference */
    guint load;
} Ask;

static void
on_page(const EventPage *page, const GError *error, void *data)
{
    g_autofree Ask *ask = data;
    Tally *t = ask->t;

    if (t->closed || ask->load != t->loads) {
        tally_unref(t);
        return;
    }
    if (error != NULL) {
        rest(t, error);
    } else if (page->events->len > 0) {
        db_write(t->team->spec.db, write_page, on_page_written, page_job_new(t, page), page_job_free);
    } else {
        t->seen = MAX(page->next_after, t->seen);
        rest(t, NULL);
    }
    tally_unref(t);
}

/* ---- the beginning ---- */

typedef struct LoadJob {
    Tally *t; /* a reference; the loop's */
    guint load;
    gint64 place;
    TallySums sums;
} LoadJob;

static void
load_job_free(void *data)
{
    LoadJob *job = data;

    tally_sums_clear(&job->sums);
    tally_unref(job->t);
    g_free(job);
}

static bool
load(DbTx *tx, void *data, GError **error)
{
    LoadJob *job = data;

    return tally_place_load(tx, &job->place, error) && tally_sums_load(tx, &job->sums, error);
}

static void
on_loaded(void *data, const GError *error)
{
    LoadJob *job = data;
    Tally *t = job->t;
    TallySums sums = t->sums;

    if (t->closed || job->load != t->loads)
        return;
    if (error != NULL) {
        rest(t, error);
        return;
    }
    t->loaded = true;
    t->place = t->seen = job->place;
    t->sums = job->sums;
    job->sums = sums;
    t->busy = false;
    go_on(t);
}

static void
begin_load(Tally *t)
{
    LoadJob *job = g_new0(LoadJob, 1);

    job->t = tally_ref(t);
    job->load = ++t->loads;
    tally_sums_init(&job->sums);
    db_read(t->team->spec.db, load, on_loaded, job, load_job_free);
}

/* ---- on and on ---- */

static void
go_on(Tally *t)
{
    const EventFilter filter = {.kinds = fact_kinds()};
    Ask *ask;

    if (t->busy || t->closed)
        return;
    t->busy = true;
    loop_timer_cancel(t->team->spec.loop, &t->timer);
    if (!t->loaded) {
        begin_load(t);
        return;
    }
    ask = g_new(Ask, 1);
    *ask = (Ask){tally_ref(t), t->loads};
    event_log_read(t->team->spec.events, &filter, t->seen, EVENT_PAGE_MAX, on_page, ask);
}

static void follow(Tally *t);

static void
on_timer(LoopTimer *timer)
{
    Tally *t = (Tally *)timer;

    if (t->cursor == NULL)
        follow(t);
    go_on(t);
}

static void
on_events(void *data)
{
    Tally *t = data;
    bool any = false;
    Event *event = NULL;
    EventStep step;

    while ((step = event_cursor_next(t->cursor, &event)) == EVENT_READY) {
        event_unref(event);
        any = true;
    }
    if (any && !t->busy && t->timer.queue == NULL)
        loop_timer_set(t->team->spec.loop, &t->timer, WAVE_MS);
    if (step == EVENT_WAIT)
        return;
    g_clear_pointer(&t->cursor, event_cursor_free);
    loop_timer_set(t->team->spec.loop, &t->timer, AGAIN_MS);
}

/* Only to be woken: what is counted is read from the place. */
static void
follow(Tally *t)
{
    const EventFilter filter = {.kinds = fact_kinds()};

    t->cursor = event_cursor_new(t->team->spec.events, &filter, -1, on_events, t);
    event_cursor_is_own(t->cursor);
    on_events(t);
}

Tally *
tally_new(Team *team)
{
    Tally *t = g_new0(Tally, 1);

    t->timer.expired = on_timer;
    t->refs = 1;
    t->team = team;
    t->waiting = g_array_new(FALSE, FALSE, sizeof(Waiter));
    tally_sums_init(&t->sums);
    return t;
}

void
tally_start(Tally *t)
{
    EventLog *events = t->team->spec.events;

    if (events == NULL)
        return;
    if (t->cursor == NULL)
        follow(t);
    /* A log that was restored may be shorter. */
    for (guint i = 0; i < t->waiting->len; i++) {
        Waiter *w = &g_array_index(t->waiting, Waiter, i);

        w->seq = MIN(w->seq, event_log_last_seq(events));
    }
    t->loads++;
    t->busy = t->loaded = false;
    go_on(t);
}

void
tally_free(Tally *t)
{
    g_autoptr(GError) error = g_error_new_literal(ERR_DOMAIN, ERR_CANCELLED, "the server is stopping");

    t->closed = true;
    loop_timer_cancel(t->team->spec.loop, &t->timer);
    g_clear_pointer(&t->cursor, event_cursor_free);
    tell_waiting(t, error);
    tally_unref(t);
}

void
tally_catch_up(Tally *t, DbDone done, void *data)
{
    EventLog *events = t->team->spec.events;
    Waiter waiter = {events != NULL ? event_log_last_seq(events) : 0, done, data};

    if (events == NULL || (t->loaded && waiter.seq <= t->seen)) {
        done(data, NULL);
        return;
    }
    g_array_append_val(t->waiting, waiter);
    go_on(t);
}

/* ---- what it came to ---- */

const Rate *
tally_rates(const Tally *t)
{
    return t->sums.rates;
}

void
tally_errors(const Tally *t, TallyClassFunc func, void *data)
{
    for (const char *const *class = fact_classes(); *class != NULL; class ++) {
        const gint64 *n = g_hash_table_lookup(t->sums.errors, *class);

        func(*class, n != NULL ? *n : 0, data);
    }
}

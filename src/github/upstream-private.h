/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include "github/upstream.h"
#include "github/work.h"

/* What upstream.c (the queue), upstream-follow.c and upstream-ask.c (events become rows), upstream-push.c,
 * upstream-pull.c and upstream-part.c (one row each) and upstream-poll.c share. */

enum {
    UPSTREAM_TICK_MS = 1000,
    UPSTREAM_LONG_TICK_MS = 60 * 1000,
    UPSTREAM_POLL_PAGES = 30,   /* of each list of a pull request */
    UPSTREAM_POLL_ITEMS = 100,  /* of a page: so many were asked for */
    UPSTREAM_PLACE_EVERY = 256, /* events that were nothing for us, before the place is written */
};

struct Upstream {
    guint refs; /* the owner, and each piece of work under way */
    bool stopped;
    UpstreamSpec spec;
    EventCursor *cursor; /* NULL: not started */
    bool following;      /* an event is being made into rows */
    guint passed;        /* events since the place was written */
    bool working, work_again;
    LoopTimer tick, poll;
    bool polling;
};

Upstream *upstream_ref(Upstream *upstream);
void upstream_unref(Upstream *upstream);

/* The account there; false with ERR_NOT_FOUND: none. */
bool upstream_find_place(Upstream *upstream, Repo *repo, GithubPlace *ret_place, GError **error);

void upstream_follow_start(Upstream *upstream);

/* An event that something may follow from. */
typedef struct UpstreamStep {
    Upstream *upstream;
    gint64 seq;
    char *repository_id, *kind; /* NULL: only the place is written */
    Json *data;
    bool is_of_box;
} UpstreamStep;
bool upstream_ask(DbTx *tx, const UpstreamStep *step, GError **error);

/* One row that was marked.  Ends in upstream_ended(), which takes the row. */
void upstream_push(Upstream *upstream, WorkRow *row, Repo *repo);
void upstream_pull(Upstream *upstream, WorkRow *row, Repo *repo);
void upstream_part(Upstream *upstream, WorkRow *row, Repo *repo);

typedef struct UpstreamEnd {
    const Json *answer;  /* borrowed; NULL: as it was */
    UpstreamItem item;   /* that was made there */
    gint64 wait_us;      /* of ERR_LIMIT */
    const GError *error; /* NULL: it was done */
} UpstreamEnd;
void upstream_ended(Upstream *upstream, WorkRow *row, const UpstreamEnd *end);

void upstream_poll(Upstream *upstream);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include "github/upstream.h"
#include "github/work.h"

/* What upstream.c (the queue), upstream-follow.c (events become rows), upstream-push.c and
 * upstream-pull.c (one row each) and upstream-poll.c share. */

enum {
    UPSTREAM_TICK_MS = 1000,
    UPSTREAM_LONG_TICK_MS = 60 * 1000,
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

void upstream_follow_start(Upstream *upstream);

/* One row that was marked.  Ends in upstream_ended(), which takes the row. */
void upstream_push(Upstream *upstream, WorkRow *row, Repo *repo);
void upstream_pull(Upstream *upstream, WorkRow *row, Repo *repo);
/* NULL `error`: it was done, and this is its answer (borrowed).  `wait_us` is of ERR_LIMIT. */
void
upstream_ended(Upstream *upstream, WorkRow *row, const Json *answer, gint64 wait_us, const GError *error);

void upstream_poll(Upstream *upstream);

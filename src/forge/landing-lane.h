/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include "forge/landing-private.h"

/* Between landing-lane.c, which knows where an entry is, and landing-lane-git.c. */

struct Lane {
    LoopTimer rest; /* first: the loop hands back its address */
    Landings *all;  /* a reference */
    Loop *loop;
    Repo *repo; /* a reference */
    char *key, *target;
    bool busy;  /* an operation is under way, and will come back */
    bool gone;  /* the queue has let go of it */
    bool again; /* something was added while it looked */
    /* the entry; 0: none */
    gint64 id, number;
    char *actor, *head, *head_oid, *target_oid, *candidate, *suite_id;
    bool suite_news; /* it has ended, and was not looked at since */
    bool suite_over;
    bool stale; /* a branch moved meanwhile */
};

/* Every operation comes back through this: false, and nothing is left to be done. */
bool lane_comes_back(Lane *lane);
/* A row could not be read or written: it says where to go on. */
void lane_rest(Lane *lane, const GError *error);
void lane_take(Lane *lane); /* what is next, by the rows */
void lane_step(Lane *lane, const RowOp *op, ForgeJsonFunc done);
/* What a step came to: the entry is over, or goes on from its row. */
void lane_on_stepped(Json *value, const GError *error, void *data);
void lane_end_entry(Lane *lane, const char *state, LandingReason reason, const char *problem,
                    const char *conflict);
void lane_on_suite(Json *value, const GError *error, void *data);

void lane_build(Lane *lane, const Json *taken);
void lane_move(Lane *lane);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include "box/host.h"
#include "support/fake-boxes.h"
#include "support/fake-clock.h"
#include "support/store.h"

/* A host over a real store and a played keeper.  The clock stands still, so the loop's timers
 * do not fire: world_tick() is the only tick. */

typedef struct World {
    StoreBench *store;
    Loop *loop;
    BoxHostSpec spec;
    BoxHost *host;
    char *degraded[2]; /* of "keeper" and "boxes"; NULL: well */
} World;

World *world_new(void); /* with a host that is loaded */
World *world_new_bare(void);
void world_free(World *w);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(World, world_free)
void world_start(World *w);   /* makes a host of `spec`, not loaded */
void world_load(World *w);    /* and waits for it */
void world_restart(World *w); /* free, start, load */

/* Until everything that can happen without a tick has happened. */
void world_settle(World *w);
void world_tick(World *w, gint64 seconds); /* the clock goes on by that much, then one tick */
void world_upkeep(World *w);

/* ---- calls that are waited for ---- */

typedef struct Made {
    bool done, created;
    Box *box; /* a reference */
    GError *error;
} Made;
void made_clear(Made *made);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Made, made_clear)
void world_begin(World *w, const BoxSpec *spec, Made *ret_made); /* not waited for */
void world_create(World *w, const BoxSpec *spec, Made *ret_made);
Box *world_box(World *w, const char *owner); /* a plain one; borrowed from the host */

typedef struct Ended {
    bool done;
    GError *error;
} Ended;
void ended_clear(Ended *ended);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Ended, ended_clear)
void on_box_done(Box *box, const GError *error, void *ended); /* a BoxFunc */

Json *world_row(World *w, const char *id);      /* NULL: none */
Json *world_commands(World *w, const char *id); /* a list */
/* Kinds of a box's events, in order, with a space between. */
char *world_events(World *w, const char *id);
void assert_state(Box *box, BoxState state, const char *reason);
void assert_row(World *w, const char *id, const char *state, const char *reason);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include "door/link.h"
#include "door/peer.h"

/* What link*.c share.
 *
 *   AWAY --connect--> GREETING --hello--> UP
 *     ^------------------+----------------' */
typedef enum LinkState { LINK_AWAY, LINK_GREETING, LINK_UP } LinkState;

struct DoorLink {
    DoorLinkSpec spec;
    char *socket;
    DoorPeer *peer; /* NULL: AWAY */
    LinkState state;
    bool told_down;
    guint delay_ms;
    LoopTimer timer;       /* the next try, or the end of patience with hello */
    GHashTable *boxes;     /* id -> LinkBox* */
    GHashTable *policies;  /* name -> LinkPolicy* */
    GHashTable *providers; /* name -> LinkProvider* */
    GHashTable *budgets;   /* scope -> Json*: the message */
    GHashTable *tests;     /* serial -> LinkTest* */
    json_int_t serial;
    Json *stats;         /* NULL: none yet */
    char *public_key;    /* NULL: none yet */
    Json *own_providers; /* NULL: none yet */
};

/* `message` is taken; without a door it is dropped, because the next one is told everything. */
void door_link_say(DoorLink *link, Json *message, int fd);

/* ---- link-models.c ---- */

void link_models_init(DoorLink *link);
void link_models_clear(DoorLink *link);
void link_models_sync(DoorLink *link);
void link_models_lost(DoorLink *link, const GError *error); /* tests under way fail */
void link_on_tested(DoorLink *link, Json *message);

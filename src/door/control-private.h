/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include "door/control.h"
#include "door/peer.h"

/* What control*.c share. */
enum { CONTROL_VERB_MAX = 16 };

struct DoorControl {
    LoopWatch watch; /* of the listener; first: the loop hands back its address */
    DoorControlSpec spec;
    char **own_providers;
    DoorPeer *peer;        /* NULL: nobody is connected */
    char instance[33];     /* facts are numbered anew with each process */
    guint64 visit;         /* counts connections */
    GHashTable *boxes;     /* id -> ControlBox* */
    GHashTable *policies;  /* name -> ControlPolicy* */
    GHashTable *providers; /* name -> the visit in which it was named, as a pointer */
    GHashTable *budgets;   /* scope -> as with providers */
    guint64 sent;          /* facts on this connection */
    guint64 acked;
    LoopTimer tick;
    DoorStats told; /* the stats sent last */
    bool told_any;
};

/* A message and its fd, which a handler takes with g_steal_fd() where it keeps it. */
typedef struct ControlCall {
    DoorControl *control;
    Json *message;
    int fd;         /* -1: none */
    const char *id; /* of what it is about, for a refusal; NULL: none */
} ControlCall;

/* ---- control-boxes.c ---- */

void control_boxes_init(DoorControl *control);
bool control_policy(ControlCall *call, GError **error);
bool control_box(ControlCall *call, GError **error);
bool control_change(ControlCall *call, GError **error);
bool control_gone(ControlCall *call, GError **error);
/* After everything was told: those that were not named go. */
void control_drop_boxes(DoorControl *control);
void control_send_used(DoorControl *control);

/* ---- control-models.c ---- */

bool control_provider(ControlCall *call, GError **error);
bool control_no_provider(ControlCall *call, GError **error);
bool control_budget(ControlCall *call, GError **error);
bool control_test(ControlCall *call, GError **error);
bool control_try(ControlCall *call, GError **error);
/* After everything was told: those that were not named go, but for those of the environment. */
void control_drop_models(DoorControl *control);

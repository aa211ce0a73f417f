/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <glib.h>
#include <stdbool.h>

#include "base/loop.h"
#include "brain/gate.h"
#include "door/dial.h"
#include "door/fact.h"
#include "door/policy.h"

/* The boxes' one way out.  Each box has one listener here, which is its identity: what a request
 * claims about its sender is never looked at.
 *
 *   CONNECT host:port          a tunnel                     tunnel.c
 *   GET http://host/path       the plain proxy              plain.c
 *   /openai/v1/…, /anthropic/… the model gateway            brain/gate.h
 *   /git/…                     the server's, handed on      forward.c
 *   /                          a short text that says so    door.c */
typedef struct Door Door;
typedef struct DoorBox DoorBox;

enum {
    DOOR_BOXES_MAX = 4096,
    DOOR_BOX_CONNECTIONS = 256,
    DOOR_BOX_TUNNELS = 64,
    DOOR_LABEL_MAX = 128, /* as long as any id that a box can be given */
};

/* Per box; 0: no such bound. */
typedef struct DoorLimits {
    guint64 bytes_per_day;  /* both ways, tunnels and plain proxy */
    guint64 bytes_per_s;    /* both ways together */
    guint requests_per_min; /* CONNECTs and plain requests */
    guint lookups_per_min;
} DoorLimits;
#define DOOR_LIMITS_INIT                                                                                     \
    {                                                                                                        \
        .bytes_per_day = G_GUINT64_CONSTANT(64) << 30, .requests_per_min = 6000, .lookups_per_min = 600      \
    }

typedef struct DoorSpec {
    Loop *loop; /* borrowed, as are the others */
    Dialer *dialer;
    FactLog *facts;
    Gate *gate; /* the model gateway; NULL: none, its paths answer 404 */
} DoorSpec;

/* Gives the server one end of a connection that carries a request of that box; `fd` is borrowed.  False:
 * there is no server. */
typedef bool (*DoorForward)(const char *box_id, int fd, void *ctx);

Door *door_new(const DoorSpec *spec);
/* Without one, what is the server's answers 503. */
void door_set_forward(Door *door, DoorForward forward, void *ctx);
void door_free(Door *door);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Door, door_free)

/* What is charged for what a box does. */
typedef struct DoorLabels {
    const char *agent, *task, *squad; /* NULL: none */
} DoorLabels;

typedef struct DoorBoxSpec {
    const char *id;
    guint64 cookie;    /* of its network (SO_NETNS_COOKIE); 0: the kernel has none */
    Policy *policy;    /* referenced */
    DoorLabels labels; /* copied */
    DoorLimits limits;
} DoorBoxSpec;

/* `fd` is its listener; taken, even on failure.  ERR_DENIED: the socket is of another network
 * than the cookie says.  A box that is there already is replaced, its streams cut. */
DoorBox *door_add(Door *door, int fd, const DoorBoxSpec *spec, GError **error);
DoorBox *door_find(Door *door, const char *id);
/* Streams under way that the new policy would not allow are cut within a second. */
void door_set_policy(DoorBox *box, Policy *policy);
void door_set_limits(DoorBox *box, const DoorLimits *limits);
void door_set_labels(DoorBox *box, const DoorLabels *labels);
/* Bytes of a day of the wall clock, counted from 1970: a door that comes anew goes on from what the one
 * before had counted. */
typedef struct DoorDay {
    gint64 day;
    guint64 bytes;
} DoorDay;
gint64 door_today(void);
void door_box_day(DoorBox *box, DoorDay *ret);
void door_box_note_day(DoorBox *box, const DoorDay *day);
void door_remove(Door *door, DoorBox *box);
/* For the sync after `coop serve` came back: those it did not name again. */
void door_each(Door *door, void (*func)(DoorBox *box, void *data), void *data);
const char *door_box_id(const DoorBox *box);

typedef struct DoorStats {
    guint boxes, connections, tunnels;
    guint64 allowed, denied, observed, bytes_in, bytes_out;
} DoorStats;
void door_stats(const Door *door, DoorStats *ret);

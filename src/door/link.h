/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <glib.h>
#include <stdbool.h>

#include "base/loop.h"
#include "door/door.h"
#include "json/json.h"

/* The server's end of wire/door.h.  It remembers what the door has to know, so that a door that
 * comes back, or is a new one, is told everything again before anything else.  While there is no
 * door, connections of boxes wait in the backlogs of their listeners. */
typedef struct DoorLink DoorLink;

typedef struct DoorLinkSpec {
    Loop *loop; /* borrowed */
    const char *socket;
    void (*up)(const char *instance, void *ctx); /* facts of this process of the door follow */
    void (*down)(const char *why, void *ctx);    /* once for each time it was lost, or not found at first */
    bool (*fact)(Json *fact, void *ctx);         /* false: no more until door_link_ack() */
    void (*forward)(const char *box_id, int fd, void *ctx); /* a box asks something of us; `fd` is taken */
    void *ctx;
} DoorLinkSpec;

DoorLink *door_link_new(const DoorLinkSpec *spec);
/* Begins to look for the door.  Not before every box that lives was added: the door drops what
 * it is not told of, and cuts its streams. */
void door_link_start(DoorLink *link);
void door_link_free(DoorLink *link);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(DoorLink, door_link_free)

bool door_link_is_up(const DoorLink *link);
/* What it said last: {"boxes", "connections", "tunnels", "allowed", "denied", "observed",
 * "bytes_in", "bytes_out"}; borrowed; NULL: nothing yet. */
Json *door_link_stats(const DoorLink *link);
void door_link_ack(DoorLink *link, guint64 upto);

/* ---- boxes ---- */

typedef struct DoorLinkBox {
    const char *id;
    guint64 cookie;
    const char *policy_name; /* what stands for its content: a hash */
    Json *policy;            /* referenced */
    DoorLabels labels;       /* copied */
    DoorLimits limits;
} DoorLinkBox;

/* `fd`, its listener, is taken.  One that is there already is replaced. */
void door_link_add_box(DoorLink *link, int fd, const DoorLinkBox *box);
void door_link_set_policy(DoorLink *link, const char *id, const char *policy_name, Json *policy);
void door_link_set_limits(DoorLink *link, const char *id, const DoorLimits *limits);
/* What the door told last; false: no such box. */
bool door_link_used(const DoorLink *link, const char *id, DoorDay *ret);
void door_link_remove_box(DoorLink *link, const char *id); /* an unknown one is no matter */

/* ---- models (link-models.c) ---- */

/* `sealed` is hex of door_seal(), NULL: no key; `script` the text of a script's file, else NULL. */
void door_link_set_provider(DoorLink *link, Json *provider, const char *sealed, const char *script);
void door_link_remove_provider(DoorLink *link, const char *name);
/* `spent` is what the accounts say; the door never counts less than it has seen itself. */
void door_link_set_budget(DoorLink *link, const char *scope, Json *bounds, Json *spent);
/* Only for a door that comes later: the one that is there has told it. */
void door_link_note_spent(DoorLink *link, const char *scope, Json *spent);
void door_link_remove_budget(DoorLink *link, const char *scope);
/* Hex; NULL before a door was ever there. */
const char *door_link_public_key(const DoorLink *link);
/* A list of names: providers whose keys the door took from the environment; borrowed, may be NULL. */
Json *door_link_own_providers(const DoorLink *link);

typedef void (*DoorTestFunc)(Json *result, const GError *error, void *data);
/* `done` from the loop, at once or from door_link_free() (ERR_CANCELLED); ERR_UNAVAILABLE: there is no
 * door. */
void door_link_test_provider(DoorLink *link, const char *name, DoorTestFunc done, void *data);
/* Whether the door would take it: ERR_INVALID with its words if not, ERR_UNAVAILABLE if it is away or
 * silent for some seconds.  Nothing changes. */
void door_link_try_provider(DoorLink *link, Json *provider, const char *sealed, const char *script,
                            DoorTestFunc done, void *data);

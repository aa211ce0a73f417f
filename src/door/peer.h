/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <glib.h>
#include <stdbool.h>
#include <sys/types.h>

#include "base/loop.h"
#include "json/json.h"

/* One end of the connection between `coop serve` and `coop-door` (wire/door.h): packets that are
 * JSON objects, with at most one fd each, and a queue with a bound for what the other end has
 * not read. */
typedef struct DoorPeer DoorPeer;

typedef struct DoorPeerSpec {
    Loop *loop; /* borrowed */
    int fd;     /* taken, also on failure */
    guint queue_max;
    /* `message` is borrowed; `fd` is the callee's, -1: none came.  The peer may be freed inside. */
    void (*hear)(Json *message, int fd, void *ctx);
    void (*drained)(void *ctx);                 /* everything that had to wait was sent; NULL: no matter */
    void (*closed)(const char *why, void *ctx); /* once, from the loop; nothing comes after it */
    void *ctx;
} DoorPeerSpec;

DoorPeer *door_peer_new(const DoorPeerSpec *spec, GError **error);
void door_peer_free(DoorPeer *peer); /* `closed` is not called */

/* `message` is taken, `fd` (-1: none) borrowed.  False: the queue is full or the other end gone,
 * which `closed` will tell. */
bool door_peer_send(DoorPeer *peer, Json *message, int fd);
/* How many messages wait to be sent. */
guint door_peer_waiting(const DoorPeer *peer);
/* Nothing is heard until it is resumed; the other end waits. */
void door_peer_pause(DoorPeer *peer, bool pause);

/* Whoever made the socket at the other end. */
bool door_peer_uid(const DoorPeer *peer, uid_t *ret_uid);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <glib.h>
#include <stdbool.h>

#include "base/loop.h"
#include "door/name.h"
#include "http/address.h"

/* From a judged name to a connected socket: resolved once, by our own resolver (c-ares, the
 * host's name servers, no search list), every address judged, connected to exactly the address
 * that was judged, and the peer compared afterwards.  If any address is not permitted the whole
 * answer is refused, so that no failing over leads to it. */
typedef struct Dialer Dialer;
typedef struct Dial Dial;

typedef struct DialerSpec {
    Loop *loop; /* borrowed, as is the next */
    OwnAddresses *own;
    const char *servers;          /* "10.0.0.1:5353,…"; NULL: those of /etc/resolv.conf */
    guint resolve_ms, connect_ms; /* 0: 5 s, 10 s */
    guint dead_ms;                /* TCP_USER_TIMEOUT; 0: 60 s */
} DialerSpec;

Dialer *dialer_new(const DialerSpec *spec, GError **error);
void dialer_free(Dialer *dialer); /* cancels what is under way, without `done` */
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Dialer, dialer_free)

/* `fd` is connected, non-blocking, has TCP_NODELAY, keep-alive and TCP_USER_TIMEOUT, and is the
 * callee's; -1: ERR_DENIED (a forbidden address; the message says which range), ERR_NOT_FOUND
 * (no such name), ERR_TIMEOUT, ERR_UNAVAILABLE.  `address` is the one connected to, or for
 * ERR_DENIED the one that was refused, as text; NULL: neither. */
typedef void (*DialFunc)(int fd, const char *address, const GError *error, void *data);
/* `done` comes from the loop, never from inside this call. */
Dial *dial(Dialer *dialer, const DoorName *name, bool inside, DialFunc done, void *data);
void dial_cancel(Dial *dial); /* `done` is not called */

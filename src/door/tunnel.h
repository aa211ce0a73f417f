/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include "base/buf.h"
#include "door/door-private.h"
#include "door/sni.h"

/* What tunnel.c (its life, the first bytes) and flow.c (the bytes) share. */

enum {
    TUNNEL_PEEK_MS = 5000,
    TUNNEL_IDLE_MS = 150000, /* without a byte for one to two of these it is cut */
    TUNNEL_HOLD_MS = 50,
    /* What was read with the request's head, and the part of a ClientHello that came since. */
    TUNNEL_FIRST_MAX = LOOP_READ_SIZE + SNI_HELLO_MAX,
};

/* One direction. */
typedef struct Way {
    LoopWatch *from, *to;
    Pipe *pipe;  /* NULL while nothing is on its way */
    size_t held; /* bytes in it */
    bool eof;    /* `from` has said its last byte */
    bool shut;   /* … and `to` was told */
} Way;

struct Tunnel {
    LoopWatch client, upstream;
    LoopTimer timer; /* for the ClientHello, then for idleness */
    LoopTimer hold;  /* armed: the box's rate is used up for a moment */
    Stream *stream;
    Loop *loop;
    Way up, down;
    Buf first; /* the client's first bytes, for the upstream */
    bool peeking;
    size_t need; /* bytes that the ClientHello has at least */
    bool moved;  /* since the timer was set */
};

/* Moves what can be moved; false: broken. */
bool flow_run(Tunnel *tunnel, bool up, bool down);
bool flow_is_over(const Tunnel *tunnel);
/* Asks the loop for what could move next. */
void flow_arm(Tunnel *tunnel);
void flow_clear(Tunnel *tunnel);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* One stream of a run's output between the pipe it comes from and the server that writes it
 * down.
 *
 *        acked            sent                        end
 *          |---on the way---|-------to be sent----------|
 *          [ spill_from … spill_to )   lost   [ ring_from … end )
 *
 * What is not acknowledged is kept, the oldest of it in the spill file, the newest in the ring.
 * Both are circular, so an offset has one place in each.  When the ring is full its oldest
 * bytes move to the spill; when that is full too, a blocking stream is not read any more, and
 * another one drops the oldest bytes of the ring: what stays is the head, a hole and the tail.
 *
 * Invariants: acked <= sent <= sent_max <= end; acked <= spill_from unless the spill is empty;
 * there is at most one hole, so nothing is spilled while there is one.
 *
 * Nothing here knows the loop: the caller reads when stream_wants_more() and sends what
 * stream_next() says. */

enum {
    STREAM_RING_MIN = 4 * 1024,
    STREAM_RING_MAX = 16 * 1024 * 1024,
    STREAM_FILL_MAX = 64 * 1024, /* read at a time, so that one writer does not starve others */
    STREAM_HOLES_MAX = 4,        /* told and not yet acknowledged */
};

typedef struct StreamHole {
    uint64_t at, bytes;
} StreamHole;

typedef struct Stream {
    int fd; /* -1: at its end, or given away */
    bool block, no_spill;
    uid_t uid; /* whose the spill file is */
    uint32_t ring_bytes, spill_bytes;
    uint8_t *ring; /* NULL until the first byte */
    uint64_t ring_from, ring_base, end;
    int spill_fd; /* -1 until the ring is full for the first time */
    uint64_t spill_from, spill_to, spill_base;
    uint64_t acked, sent, sent_max;
    StreamHole told[STREAM_HOLES_MAX];
    uint32_t n_told;
} Stream;

typedef enum StreamFill { FILL_SOME, FILL_NONE, FILL_END } StreamFill;

/* What to send next: `bytes` NULL and n > 0 is a hole of n; n == 0 is nothing. */
typedef struct StreamPiece {
    const void *bytes;
    uint64_t offset;
    uint32_t n;
} StreamPiece;

/* `fd` is taken: non-blocking; -1: a stream with nothing in it. */
void stream_init(Stream *s, int fd, uint32_t ring_bytes, uint32_t spill_bytes, bool block, uid_t uid);
/* Closes and unmaps everything. */
void stream_clear(Stream *s);
/* Ring and spill go, but the fd stays; for one whose every byte is acknowledged. */
void stream_release(Stream *s);

bool stream_wants_more(const Stream *s);
/* Reads once.  FILL_END: the writers are gone and the fd is closed. */
StreamFill stream_fill(Stream *s);

/* `scratch` has FRAME_DATA_MAX bytes; the piece may point into it. */
StreamPiece stream_next(Stream *s, void *scratch);
void stream_was_sent(Stream *s, const StreamPiece *piece);
/* Everything below has been written down.  An offset that was never sent is ignored. */
void stream_ack(Stream *s, uint64_t offset);
/* A server that has everything below `offset` asks for the rest. */
void stream_rewind(Stream *s, uint64_t offset);

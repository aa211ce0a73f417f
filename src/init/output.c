/* SPDX-License-Identifier: Apache-2.0 */
#include "init/output.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/fsuid.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include "wire/frame.h"

static uint64_t
least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

void
stream_init(Stream *s, int fd, uint32_t ring_bytes, uint32_t spill_bytes, bool block, uid_t uid)
{
    uint32_t ring = ring_bytes < STREAM_RING_MIN ? (uint32_t)STREAM_RING_MIN : ring_bytes;

    *s = (Stream){.fd = fd,
                  .block = block,
                  .uid = uid,
                  .ring_bytes = ring > STREAM_RING_MAX ? (uint32_t)STREAM_RING_MAX : ring,
                  .spill_bytes = spill_bytes,
                  .no_spill = spill_bytes == 0,
                  .spill_fd = -1};
}

void
stream_release(Stream *s)
{
    if (s->ring != NULL)
        munmap(s->ring, s->ring_bytes);
    s->ring = NULL;
    if (s->spill_fd >= 0)
        close(s->spill_fd);
    s->spill_fd = -1;
    s->ring_from = s->ring_base = s->end;
    s->spill_from = s->spill_to = 0;
}

void
stream_clear(Stream *s)
{
    stream_release(s);
    if (s->fd >= 0)
        close(s->fd);
    s->fd = -1;
}

static bool
spill_is_empty(const Stream *s)
{
    return s->spill_from == s->spill_to;
}

static uint64_t
ring_used(const Stream *s)
{
    return s->end - s->ring_from;
}

/* The kept bytes have no hole: what is spilled next joins what lies before it. */
static bool
has_no_hole(const Stream *s)
{
    return (spill_is_empty(s) ? s->acked : s->spill_to) == s->ring_from;
}

static uint64_t
spill_room(const Stream *s)
{
    return s->no_spill || !has_no_hole(s) ? 0 : s->spill_bytes - (s->spill_to - s->spill_from);
}

bool
stream_wants_more(const Stream *s)
{
    return s->fd >= 0 && (!s->block || ring_used(s) < s->ring_bytes || spill_room(s) > 0);
}

/* The file has no name, is charged to the box's disk and is gone with its descriptor.  The file
 * system's rights are those of the run's user for the moment, so that an image that closed its
 * /tmp to the user is not written to. */
static int
spill_open(uid_t uid)
{
    static const char *const folders[] = {"/var/tmp", "/tmp"};
    int fd = -1;

    (void)setfsuid(uid);
    for (size_t i = 0; i < sizeof folders / sizeof folders[0] && fd < 0; i++)
        fd = open(folders[i], O_TMPFILE | O_RDWR | O_CLOEXEC | O_NOFOLLOW, 0600);
    (void)setfsuid(geteuid());
    return fd;
}

static bool
spill_prepare(Stream *s)
{
    if (s->spill_fd < 0)
        s->spill_fd = spill_open(s->uid);
    if (s->spill_fd < 0) {
        s->no_spill = true;
        return false;
    }
    if (spill_is_empty(s))
        s->spill_from = s->spill_to = s->spill_base = s->ring_from;
    return true;
}

/* Moves up to `want` of the oldest bytes of the ring; how many went.  A full disk is a full
 * spill. */
static uint64_t
spill_some(Stream *s, uint64_t want)
{
    uint64_t moved = 0;

    if (spill_room(s) == 0 || !spill_prepare(s))
        return 0;
    want = least(want, least(spill_room(s), ring_used(s)));
    while (moved < want) {
        uint64_t ring_at = (s->ring_from - s->ring_base) % s->ring_bytes;
        uint64_t file_at = (s->spill_to - s->spill_base) % s->spill_bytes;
        uint64_t n = least(want - moved, least(s->ring_bytes - ring_at, s->spill_bytes - file_at));
        ssize_t put = pwrite(s->spill_fd, s->ring + ring_at, (size_t)n, (off_t)file_at);

        if (put <= 0)
            break;
        s->spill_to += (uint64_t)put;
        s->ring_from += (uint64_t)put;
        moved += (uint64_t)put;
    }
    return moved;
}

static bool
make_room(Stream *s)
{
    uint64_t chunk = s->ring_bytes / 2;

    if (s->ring_bytes - ring_used(s) >= least(STREAM_FILL_MAX, chunk))
        return true;
    if (spill_some(s, chunk) > 0)
        return true;
    if (s->block)
        return ring_used(s) < s->ring_bytes;
    if (ring_used(s) == s->ring_bytes)
        s->ring_from += s->ring_bytes / 8;
    return true;
}

static bool
map_ring(Stream *s)
{
    void *ring = mmap(NULL, s->ring_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (ring == MAP_FAILED)
        return false;
    s->ring = ring;
    return true;
}

StreamFill
stream_fill(Stream *s)
{
    if (s->fd < 0)
        return FILL_END;
    if ((s->ring == NULL && !map_ring(s)) || !make_room(s))
        return FILL_NONE;
    uint64_t at = (s->end - s->ring_base) % s->ring_bytes;
    uint64_t room = least(STREAM_FILL_MAX, s->ring_bytes - ring_used(s));
    uint64_t first = least(room, s->ring_bytes - at);
    struct iovec parts[2] = {{s->ring + at, (size_t)first}, {s->ring, (size_t)(room - first)}};
    ssize_t n = readv(s->fd, parts, room > first ? 2 : 1);

    if (n > 0) {
        s->end += (uint64_t)n;
        return FILL_SOME;
    }
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return FILL_NONE;
    /* A terminal says EIO when its last other end is closed. */
    close(s->fd);
    s->fd = -1;
    return FILL_END;
}

/* Bytes on the way; what was told as a hole never took any room. */
static uint64_t
in_flight(const Stream *s)
{
    uint64_t holes = 0;

    for (uint32_t i = 0; i < s->n_told; i++) {
        uint64_t from = s->told[i].at > s->acked ? s->told[i].at : s->acked;

        holes += s->told[i].at + s->told[i].bytes - from;
    }
    return s->sent - s->acked - holes;
}

static StreamPiece
next_hole(const Stream *s)
{
    if (s->n_told == STREAM_HOLES_MAX)
        return (StreamPiece){0};
    return (StreamPiece){NULL, s->sent, (uint32_t)least(s->ring_from - s->sent, UINT32_MAX)};
}

static StreamPiece
next_spilled(Stream *s, void *scratch, uint64_t room)
{
    uint64_t at = (s->sent - s->spill_base) % s->spill_bytes;
    uint64_t n = least(least(room, s->spill_to - s->sent), s->spill_bytes - at);
    ssize_t got = pread(s->spill_fd, scratch, (size_t)n, (off_t)at);

    if (got > 0)
        return (StreamPiece){scratch, s->sent, (uint32_t)got};
    /* The disk does not give it back: from here to the ring it is lost. */
    s->spill_to = s->sent;
    return next_hole(s);
}

StreamPiece
stream_next(Stream *s, void *scratch)
{
    uint64_t flying = in_flight(s);

    if (s->sent == s->end || flying >= FRAME_WINDOW)
        return (StreamPiece){0};
    uint64_t room = least(FRAME_WINDOW - flying, FRAME_DATA_MAX);

    if (!spill_is_empty(s) && s->sent < s->spill_to)
        return next_spilled(s, scratch, room);
    if (s->sent < s->ring_from)
        return next_hole(s);
    uint64_t at = (s->sent - s->ring_base) % s->ring_bytes;
    uint64_t n = least(least(room, s->end - s->sent), s->ring_bytes - at);
    return (StreamPiece){s->ring + at, s->sent, (uint32_t)n};
}

void
stream_was_sent(Stream *s, const StreamPiece *piece)
{
    if (piece->bytes == NULL && s->n_told < STREAM_HOLES_MAX)
        s->told[s->n_told++] = (StreamHole){piece->offset, piece->n};
    s->sent = piece->offset + piece->n;
    if (s->sent > s->sent_max)
        s->sent_max = s->sent;
}

static void
drop_acked(Stream *s)
{
    uint32_t kept = 0;

    for (uint32_t i = 0; i < s->n_told; i++) {
        if (s->told[i].at + s->told[i].bytes > s->acked)
            s->told[kept++] = s->told[i];
    }
    s->n_told = kept;
    if (!spill_is_empty(s) && s->spill_from < s->acked) {
        s->spill_from = least(s->acked, s->spill_to);
        /* The room goes back to the box's disk. */
        if (spill_is_empty(s))
            (void)!ftruncate(s->spill_fd, 0);
    }
    if (s->ring_from < s->acked)
        s->ring_from = s->acked;
    /* An empty ring starts again at its first page, so that little output touches little. */
    if (s->ring_from == s->end)
        s->ring_base = s->end;
}

void
stream_ack(Stream *s, uint64_t offset)
{
    if (offset <= s->acked || offset > s->sent_max)
        return;
    s->acked = offset;
    if (s->sent < offset)
        s->sent = offset;
    drop_acked(s);
}

void
stream_rewind(Stream *s, uint64_t offset)
{
    stream_ack(s, offset);
    s->sent = s->acked;
    s->n_told = 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "init/watch.h"

enum { ROOM = WATCH_QUEUE_BYTES - (int)sizeof(BuiltinEvent) /* the last of it is the OVERFLOW's */ };

bool
queue_init(WatchQueue *q)
{
    *q = (WatchQueue){0};
    q->bytes = mmap(NULL, WATCH_QUEUE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return q->bytes != MAP_FAILED;
}

static uint32_t
hash_path(const char *path, size_t n)
{
    uint32_t hash = 2166136261u;

    for (size_t i = 0; i < n; i++)
        hash = (hash ^ (uint8_t)path[i]) * 16777619u;
    return hash;
}

static bool
repeats(BuiltinEventKind kind)
{
    return kind == WATCH_MODIFIED || kind == WATCH_ATTRIBUTES || kind == WATCH_CREATED;
}

/* True: the queue says it already.  A path that shares a slot with another loses its memory. */
static bool
coalesce(WatchQueue *q, const BuiltinEvent *event, const char *path)
{
    uint32_t hash = hash_path(path, event->path_bytes);
    size_t i = hash % WATCH_SLOTS;
    uint16_t bit = (uint16_t)(1u << event->kind);
    bool known = q->slots[i].at > q->from && q->slots[i].hash == hash &&
                 q->slots[i].path_bytes == event->path_bytes &&
                 memcmp(q->bytes + q->slots[i].at - event->path_bytes, path, event->path_bytes) == 0;

    if (known && repeats(event->kind) && (q->slots[i].kinds & bit) != 0)
        return true;
    bool adds = known && (event->kind == WATCH_MODIFIED || event->kind == WATCH_ATTRIBUTES);
    q->slots[i].kinds = (uint16_t)(adds ? q->slots[i].kinds | bit : bit);
    q->slots[i].hash = hash;
    q->slots[i].path_bytes = event->path_bytes;
    q->slots[i].at = (uint32_t)(q->to + sizeof *event + event->path_bytes);
    return false;
}

static void
put(WatchQueue *q, const BuiltinEvent *event, const char *path)
{
    memcpy(q->bytes + q->to, event, sizeof *event);
    memcpy(q->bytes + q->to + sizeof *event, path, event->path_bytes);
    q->to += sizeof *event + event->path_bytes;
}

/* Slots hold places, which change. */
static void
make_room(WatchQueue *q)
{
    if (q->from == 0)
        return;
    memmove(q->bytes, q->bytes + q->from, q->to - q->from);
    q->to -= q->from;
    q->from = 0;
    memset(q->slots, 0, sizeof q->slots);
}

bool
queue_put(WatchQueue *q, BuiltinEvent event, const char *path)
{
    BuiltinEvent overflow = {.kind = WATCH_OVERFLOW};
    size_t n = sizeof event + event.path_bytes;

    if (q->full && q->to - q->from > WATCH_QUEUE_BYTES / 2)
        return false;
    q->full = false;
    if (q->to + n > ROOM)
        make_room(q);
    if (q->to + n > ROOM) {
        put(q, &overflow, "");
        q->full = true;
        return false;
    }
    if (event.path_bytes == 0 || !coalesce(q, &event, path))
        put(q, &event, path);
    return true;
}

int
queue_write(WatchQueue *q, int fd)
{
    while (q->from < q->to) {
        ssize_t n = write(fd, q->bytes + q->from, q->to - q->from);

        if (n < 0 && errno != EINTR)
            return errno;
        q->from += n > 0 ? (size_t)n : 0;
    }
    q->from = q->to = 0;
    q->full = false;
    memset(q->slots, 0, sizeof q->slots);
    return 0;
}

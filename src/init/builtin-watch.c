/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The life of a watch.  What the kernel says becomes records at once; they wait a moment, so that
 * a file written in many pieces is told once, and then go out as fast as the reader takes them.
 * Reading goes on when the reader does not: what is lost then is lost here, where it is known
 * which folders came and went, and only a storm larger than the kernel's own queue costs a scan.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "init/builtin.h"
#include "init/watch.h"

enum {
    SETTLE_MS = 20,   /* records wait for their like */
    RESCAN_MS = 200,  /* between two scans in a storm, at least, */
    RESCAN_PAUSE = 4, /* and this many times as long as the last one took */
    READS_MAX = 16,   /* before the reader gets something */
    EVENTS_BYTES = 4096,
};

typedef struct Watch {
    WatchTree *tree;
    WatchQueue queue;
    bool reader_full;
    bool lost; /* a scan is owed */
    int end;   /* errno to end with when all is told, or 0 */
    uint64_t write_at, rescan_at;
    char path[WATCH_PATH_MAX];
} Watch;

static uint64_t
now_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

static void
tell(Watch *w, BuiltinEventKind kind, bool is_dir, uint32_t cookie, size_t path_bytes)
{
    BuiltinEvent event = {.kind = (uint8_t)kind,
                          .flags = is_dir ? WATCH_IS_DIR : 0,
                          .path_bytes = (uint16_t)path_bytes,
                          .cookie = cookie};

    if (queue_is_empty(&w->queue))
        w->write_at = now_ms() + SETTLE_MS;
    (void)queue_put(&w->queue, event, w->path);
}

static void
lose(Watch *w)
{
    tell(w, WATCH_OVERFLOW, false, 0, 0);
    w->lost = true;
}

static int
on_found(void *ctx, const WatchNode *folder, const char *name, bool is_dir)
{
    Watch *w = ctx;

    tell(w, WATCH_CREATED, is_dir, 0, tree_path(folder, name, w->path));
    return 0;
}

static void
on_root(Watch *w, uint32_t mask)
{
    if ((mask & IN_ATTRIB) != 0)
        tell(w, WATCH_ATTRIBUTES, true, 0, 0);
    if ((mask & (IN_MOVE_SELF | IN_DELETE_SELF | IN_UNMOUNT)) == 0 || w->end != 0)
        return;
    tell(w, (mask & IN_MOVE_SELF) != 0 ? WATCH_MOVED_FROM : WATCH_REMOVED, true, 0, 0);
    w->end = ENOENT;
}

/* A folder is watched by itself and by the one it lies in, which knows its name. */
static int
on_self(Watch *w, WatchNode *node, uint32_t mask)
{
    if (node == tree_root(w->tree))
        on_root(w, mask);
    else if ((mask & IN_IGNORED) != 0)
        tree_forget(w->tree, node);
    else if ((mask & IN_MOVE_SELF) != 0)
        return tree_moved(w->tree, node);
    return 0;
}

static int
on_folder(Watch *w, WatchNode *parent, const struct inotify_event *event)
{
    if ((event->mask & IN_MOVED_FROM) != 0)
        tree_left(w->tree, event->cookie);
    if ((event->mask & IN_MOVED_TO) != 0)
        return tree_come(w->tree, parent, event->name, event->cookie, on_found, w);
    if ((event->mask & IN_CREATE) != 0)
        return tree_enter(w->tree, parent, event->name, on_found, w);
    return 0;
}

static int
on_event(Watch *w, const struct inotify_event *event)
{
    static const struct {
        uint32_t mask;
        BuiltinEventKind kind;
    } kinds[] = {
        {IN_CREATE, WATCH_CREATED},        {IN_MODIFY, WATCH_MODIFIED},   {IN_DELETE, WATCH_REMOVED},
        {IN_MOVED_FROM, WATCH_MOVED_FROM}, {IN_MOVED_TO, WATCH_MOVED_TO}, {IN_ATTRIB, WATCH_ATTRIBUTES},
    };
    WatchNode *node = tree_find(w->tree, event->wd);
    bool is_dir = (event->mask & IN_ISDIR) != 0;

    if ((event->mask & IN_Q_OVERFLOW) != 0) {
        lose(w);
        return 0;
    }
    if (node == NULL)
        return 0;
    if (event->len == 0)
        return on_self(w, node, event->mask);
    size_t n = tree_path(node, event->name, w->path);
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        if ((event->mask & kinds[i].mask) != 0)
            tell(w, kinds[i].kind, is_dir, event->cookie, n);
    }
    return is_dir ? on_folder(w, node, event) : 0;
}

/* Everything that is there, within a bound. */
static int
hear(Watch *w)
{
    _Alignas(struct inotify_event) char bytes[EVENTS_BYTES];

    for (int i = 0; i < READS_MAX; i++) {
        ssize_t n = read(tree_fd(w->tree), bytes, sizeof bytes);

        if (n <= 0)
            return n < 0 && errno != EAGAIN && errno != EINTR ? errno : 0;
        for (ssize_t at = 0; at < n;) {
            const struct inotify_event *event = (const struct inotify_event *)(const void *)(bytes + at);
            int e = on_event(w, event);

            if (e != 0)
                return e;
            at += (ssize_t)(sizeof *event + event->len);
        }
    }
    return 0;
}

static int
until(uint64_t when, uint64_t now, int timeout)
{
    int left = when > now ? (int)(when - now) : 0;

    return timeout < 0 || left < timeout ? left : timeout;
}

static int
how_long(const Watch *w)
{
    uint64_t now = now_ms();
    int timeout = -1;

    if (!queue_is_empty(&w->queue) && !w->reader_full)
        timeout = until(w->write_at, now, timeout);
    if (w->lost)
        timeout = until(w->rescan_at, now, timeout);
    return timeout;
}

static int
write_some(Watch *w)
{
    int e = queue_write(&w->queue, STDOUT_FILENO);

    w->reader_full = e == EAGAIN;
    return e == EAGAIN ? 0 : e;
}

static int
rescan(Watch *w)
{
    uint64_t before = now_ms();
    int e = tree_rescan(w->tree);
    uint64_t now = now_ms();
    uint64_t pause = (now - before) * RESCAN_PAUSE;

    w->lost = false;
    w->rescan_at = now + (pause > RESCAN_MS ? pause : RESCAN_MS);
    if (e == ENOENT)
        on_root(w, IN_MOVE_SELF);
    return e == ENOENT ? 0 : e;
}

/* An errno: it is over. */
static int
turn(Watch *w)
{
    struct pollfd fds[2] = {{w->end == 0 ? tree_fd(w->tree) : -1, POLLIN, 0},
                            {STDOUT_FILENO, (short)(w->reader_full ? POLLOUT : 0), 0}};
    int n = poll(fds, 2, w->end != 0 ? -1 : how_long(w));
    int e = 0;

    if (n < 0)
        return errno == EINTR ? 0 : errno;
    if ((fds[1].revents & (POLLERR | POLLHUP)) != 0)
        return EPIPE;
    if (fds[0].revents != 0)
        e = hear(w);
    if (e == 0 && w->lost && now_ms() >= w->rescan_at)
        e = rescan(w);
    if (tree_take_unsure(w->tree))
        lose(w);
    if (e == 0 && (w->end != 0 || w->reader_full || now_ms() >= w->write_at))
        e = write_some(w);
    if (e != 0)
        return e;
    return w->end != 0 && queue_is_empty(&w->queue) ? w->end : 0;
}

int
builtin_watch(const char *const *args)
{
    char real[PATH_MAX];
    uint64_t depth;
    Watch *w = mmap(NULL, sizeof *w, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (!number_parse(args[1], 10, BUILTIN_DEPTH_MAX, &depth))
        return EINVAL;
    /* An open directory of our own would keep a removed one alive. */
    if (realpath(args[0], real) == NULL || chdir("/") < 0 || fcntl(STDOUT_FILENO, F_SETFL, O_NONBLOCK) < 0)
        return errno;
    if (w == MAP_FAILED || !queue_init(&w->queue))
        return ENOMEM;
    int e = tree_open(&w->tree, real, (unsigned)depth);
    if (e != 0)
        return e;
    tell(w, WATCH_READY, false, 0, 0);
    e = write_some(w);
    while (e == 0)
        e = turn(w);
    return e;
}

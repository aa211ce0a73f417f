/* SPDX-License-Identifier: Apache-2.0 */
#include "forge/tree-feed.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "base/err.h"
#include "box/files.h"
#include "forge/forge-private.h"
#include "forge/patch.h"

enum { MOVE_MAX = 1 << 20, SEND_S = 60 };

struct TreeFeed {
    LoopWatch watch; /* first: the loop hands back its address; fd -1: closed */
    guint refs;      /* the loop's half until `done`, the work */
    Loop *loop;
    BoxWrite *write;   /* NULL: over */
    TreeFeedFunc done; /* NULL: called, or cancelled */
    void *data;
    bool at_end; /* of the socket */
    bool packed; /* git has said all */

    /* the thread's */
    int theirs;
    bool began;
    char *tree;
    gint64 time_s;
};

static void
feed_unref(void *data)
{
    TreeFeed *f = data;

    if (--f->refs > 0)
        return;
    if (f->theirs >= 0)
        close(f->theirs);
    g_free(f->tree);
    g_free(f);
}

static void
close_socket(TreeFeed *f)
{
    if (f->watch.fd < 0)
        return;
    loop_remove(f->loop, &f->watch);
    close(f->watch.fd);
    f->watch.fd = -1;
}

/* The loop's half is over. */
static void
end(TreeFeed *f, const GError *error)
{
    TreeFeedFunc done = f->done;

    close_socket(f); /* what is still written there fails */
    if (f->write != NULL)
        box_write_cancel(g_steal_pointer(&f->write));
    if (done == NULL)
        return;
    f->done = NULL;
    done(error, f->data);
    feed_unref(f);
}

static void
end_if_whole(TreeFeed *f)
{
    if (f->at_end && f->packed && f->write != NULL)
        box_write_end(f->write);
}

/* ---- in a thread ---- */

static bool
send_piece(const guint8 *bytes, size_t n, void *ctx)
{
    TreeFeed *f = ctx;

    while (n > 0) {
        ssize_t sent = send(f->theirs, bytes, n, MSG_NOSIGNAL);

        if (sent < 0 && errno == EINTR)
            continue;
        if (sent <= 0)
            return false;
        bytes += sent;
        n -= (size_t)sent;
    }
    return true;
}

static bool
pack(GitRepo *git, void *data, GError **error)
{
    TreeFeed *f = data;

    /* A second try would come behind what the first has sent. */
    if (f->began)
        return err_set(error, ERR_INTERNAL, "the archive was cut");
    f->began = true;
    if (!patch_tar(git, f->tree, f->time_s, send_piece, f, NULL, error))
        return false;
    close(g_steal_fd(&f->theirs));
    return true;
}

/* ---- on the loop ---- */

static void
on_packed(void *data, const GError *error)
{
    TreeFeed *f = data;

    if (f->done == NULL)
        return;
    f->packed = true;
    if (error != NULL)
        end(f, error);
    else
        end_if_whole(f);
}

static void
on_readable(LoopWatch *watch, uint32_t events)
{
    TreeFeed *f = (TreeFeed *)watch;
    gssize n = box_write_splice(f->write, watch->fd, MOVE_MAX);

    if (n > 0 || (n < 0 && errno == EAGAIN))
        return;
    if (n < 0 && errno == ENOBUFS) {
        loop_set(f->loop, watch, 0);
    } else if (n < 0) {
        g_autoptr(GError) error = NULL;

        err_errno(&error, "send the tree to the box");
        end(f, error);
    } else {
        f->at_end = true;
        close_socket(f);
        end_if_whole(f);
    }
}

static void
on_room(BoxWrite *write, void *ctx)
{
    TreeFeed *f = ctx;

    if (f->watch.fd >= 0)
        loop_set(f->loop, &f->watch, EPOLLIN);
}

static void
on_written(BoxWrite *write, const GError *error, void *ctx)
{
    TreeFeed *f = ctx;

    f->write = NULL;
    end(f, error);
}

static bool
open_socket(TreeFeed *f, GError **error)
{
    const struct timeval patience = {.tv_sec = SEND_S};
    int fds[2];

    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) < 0)
        return err_errno(error, "make a socket pair");
    f->watch.fd = fds[0];
    f->theirs = fds[1];
    /* A box that takes nothing must not keep a thread of the forge. */
    if (fcntl(fds[0], F_SETFL, O_NONBLOCK) < 0 ||
        setsockopt(fds[1], SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience) < 0)
        return err_errno(error, "set a socket up");
    return loop_add(f->loop, &f->watch, EPOLLIN, error);
}

TreeFeed *
tree_feed_start(const TreeFeedSpec *spec, TreeFeedFunc done, void *data, GError **error)
{
    static const BoxWriteEvents events = {.room = on_room, .end = on_written};
    const BoxFileSpec files = {.box = spec->box, .actor = "coop"};
    TreeFeed *f = g_new0(TreeFeed, 1);

    *f = (TreeFeed){.watch = {.ready = on_readable, .fd = -1},
                    .refs = 1,
                    .loop = spec->forge->spec.loop,
                    .theirs = -1,
                    .tree = g_strdup(spec->tree),
                    .time_s = spec->time_s};
    if (!open_socket(f, error) ||
        (f->write = box_tree_write(&files, spec->path, &events, f, error)) == NULL) {
        close_socket(f);
        feed_unref(f);
        return NULL;
    }
    f->done = done;
    f->data = data;
    f->refs++;
    forge_read(spec->forge, spec->repo, "fill a box for checks", pack, on_packed, f, feed_unref);
    return f;
}

void
tree_feed_cancel(TreeFeed *feed)
{
    feed->done = NULL;
    end(feed, NULL);
    feed_unref(feed);
}

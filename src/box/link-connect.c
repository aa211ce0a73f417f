/* SPDX-License-Identifier: Apache-2.0 */
/* Connections to ports inside, made by init and passed out. */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "box/link-private.h"

struct LinkConnect {
    BoxLink *link; /* which owns this */
    guint32 number;
    guint16 port;
    bool sent;
    GError *refusal; /* told by the timer: callbacks never run inside a call */
    LoopTimer timer;
    BoxConnectFunc func;
    void (*probe)(bool alive, void *data);
    void *data;
};

/* `fd` is the callee's. */
static void
finish(LinkConnect *c, int fd, const GError *error)
{
    g_queue_remove(&c->link->connects, c);
    loop_timer_cancel(c->link->loop, &c->timer);
    if (c->probe != NULL)
        c->probe(error == NULL, c->data);
    else
        c->func(fd, error, c->data);
    g_clear_error(&c->refusal);
    g_free(c);
}

static void
on_timer(LoopTimer *timer)
{
    LinkConnect *c = (LinkConnect *)(void *)((char *)timer - offsetof(LinkConnect, timer));
    g_autoptr(LinkRef) link = link_ref(c->link);
    g_autoptr(GError) error = g_steal_pointer(&c->refusal);

    if (error == NULL)
        err_set(&error, ERR_TIMEOUT, "the box does not answer");
    finish(c, -1, error);
}

static LinkConnect *
connect_new(BoxLink *link, guint16 port)
{
    LinkConnect *c = g_new0(LinkConnect, 1);

    c->link = link;
    c->number = ++link->last_connect;
    c->port = port;
    c->timer.expired = on_timer;
    if (link->closing)
        err_set(&c->refusal, ERR_UNAVAILABLE, "the box is gone");
    else if (link->connects.length >= LINK_CONNECTS_MAX)
        err_set(&c->refusal, ERR_LIMIT, "%d connections at once are being made", LINK_CONNECTS_MAX);
    g_queue_push_tail(&link->connects, c);
    loop_timer_set(link->loop, &c->timer, c->refusal != NULL ? 0 : LINK_CONNECT_MS);
    return c;
}

void
box_link_connect(BoxLink *link, guint16 port, BoxConnectFunc func, void *data)
{
    LinkConnect *c = connect_new(link, port);

    c->func = func;
    c->data = data;
    link_say(link);
}

/* A port that cannot be: init refuses it at once, and has answered. */
void
box_link_probe(BoxLink *link, void (*func)(bool alive, void *data), void *data)
{
    LinkConnect *c = connect_new(link, 0);

    c->probe = func;
    c->data = data;
    link_say(link);
}

bool
link_connect_say(BoxLink *link)
{
    for (GList *node = link->connects.head; node != NULL; node = node->next) {
        LinkConnect *c = node->data;
        FrameHead head = {.type = FRAME_CONNECT, .run = c->number, .value = c->port};

        if (c->sent || c->refusal != NULL)
            continue;
        if (!link_send(link, &head, NULL))
            return false;
        c->sent = true;
    }
    return true;
}

/* What comes out of a box may be any descriptor; only a TCP socket is passed on. */
static bool
is_tcp(int fd)
{
    int type = 0, protocol = 0;
    socklen_t n = sizeof type;

    if (getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &n) < 0)
        return false;
    n = sizeof protocol;
    return getsockopt(fd, SOL_SOCKET, SO_PROTOCOL, &protocol, &n) == 0 && type == SOCK_STREAM &&
           protocol == IPPROTO_TCP && fcntl(fd, F_SETFL, O_NONBLOCK) == 0;
}

static LinkConnect *
find(BoxLink *link, guint32 number)
{
    for (GList *node = link->connects.head; node != NULL; node = node->next) {
        LinkConnect *c = node->data;

        if (c->number == number && c->sent)
            return c;
    }
    return NULL;
}

bool
link_connect_answer(BoxLink *link, const FrameHead *head, int *fd)
{
    LinkConnect *c = find(link, head->run);
    g_autoptr(GError) error = NULL;

    if (head->run <= RUN_ID_CONNECT || head->run > link->last_connect)
        return false;
    if (head->type == FRAME_CONNECTED && (*fd < 0 || !is_tcp(*fd)))
        return false;
    /* One that had waited long enough. */
    if (c == NULL)
        return true;
    if (c->probe == NULL && head->type == FRAME_FAILED)
        err_set(&error, head->value == ETIMEDOUT ? ERR_TIMEOUT : ERR_UNAVAILABLE, "port %u in the box: %s",
                c->port, g_strerror((int)(head->value & 0xfff)));
    finish(c, c->probe == NULL && error == NULL ? g_steal_fd(fd) : -1, error);
    return true;
}

void
link_connect_fail_all(BoxLink *link, ErrKind kind, const char *message)
{
    g_autoptr(GError) error = g_error_new_literal(ERR_DOMAIN, (gint)kind, message);

    for (guint n = link->connects.length; n > 0 && link->connects.length > 0; n--)
        finish(g_queue_peek_head(&link->connects), -1, error);
}

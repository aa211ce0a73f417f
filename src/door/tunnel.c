/* SPDX-License-Identifier: Apache-2.0 */
/* CONNECT.
 *
 *     dialling -> 200 -> peeking (ports 443 and 80) -> open -> over
 *
 * Nothing reaches the upstream before the ClientHello's name was compared: a name that was
 * allowed must not be the way to another one that shares its address. */
#include "door/tunnel.h"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/err.h"
#include "base/tcp.h"

enum { TLS_PORT = 443, WEB_PORT = 80, PEEK_READ = 4096 };

/* ---- the end ---- */

static void
close_side(Tunnel *t, LoopWatch *watch, bool reset)
{
    if (watch->fd < 0)
        return;
    loop_remove(t->loop, watch);
    if (reset)
        tcp_reset_on_close(watch->fd);
    close(watch->fd);
    watch->fd = -1;
}

/* `reset`: neither side may take what it got for the whole. */
static void
tunnel_end(Tunnel *t, bool reset)
{
    Stream *s = t->stream;

    close_side(t, &t->client, reset);
    close_side(t, &t->upstream, reset);
    loop_timer_cancel(t->loop, &t->timer);
    loop_timer_cancel(t->loop, &t->hold);
    flow_clear(t);
    s->tunnel = NULL;
    g_free(t);
    stream_end(s);
}

/* ---- the ClientHello ---- */

/* A client that speaks TLS shows this to its user; a reset says nothing. */
static void
send_alert(int fd)
{
    static const guint8 unrecognized_name[] = {21, 3, 1, 0, 2, 2, 112};

    (void)send(fd, unrecognized_name, sizeof unrecognized_name, MSG_NOSIGNAL | MSG_DONTWAIT);
}

/* NULL: it is as it should be. */
static const char *
fault_of_hello(const Tunnel *t, SniResult result, const char *sni)
{
    const DoorName *name = &t->stream->name;
    DoorName named;

    switch (result) {
    case SNI_NOT_TLS:
        return "what was sent is not TLS, and a tunnel to port 443 or 80 is for nothing else";
    case SNI_BAD:
        return "what was sent is not a proper ClientHello";
    case SNI_NONE:
        return name->is_address ? NULL : "the ClientHello has no server name";
    case SNI_NAME:
        if (name->is_address)
            return NULL;
        return door_name_read(sni, TLS_PORT, &named, NULL) && strcmp(named.host, name->host) == 0
                   ? NULL
                   : "the ClientHello has another server name";
    case SNI_MORE:
        break;
    }
    g_assert_not_reached();
}

static void
tell_fault(const Tunnel *t, const char *kind, const char *fault, const char *sni)
{
    Json *fact = stream_fact(t->stream, kind, fault);

    if (sni != NULL)
        json_object_set_new(fact, "sni", json_string(sni));
    door_box_tell(t->stream->box, fact);
}

/* True: the tunnel goes on. */
static bool
judge_hello(Tunnel *t, SniResult result, const char *sni)
{
    Stream *s = t->stream;
    const char *fault = fault_of_hello(t, result, sni);
    bool observe = policy_mode(s->box->policy) == POLICY_OBSERVE;

    if (fault == NULL)
        return true;
    tell_fault(t, observe ? "door.observed" : "door.denied", fault, result == SNI_NAME ? sni : NULL);
    if (observe) {
        s->box->door->stats.observed++;
        return true;
    }
    s->box->door->stats.denied++;
    return false;
}

static void run(Tunnel *t, bool up, bool down);

static void
look_at_hello(Tunnel *t)
{
    char sni[DOOR_NAME_MAX + 1] = "";
    size_t n;
    const guint8 *bytes = buf_peek(&t->first, &n);
    SniResult result = n < t->need ? SNI_MORE : sni_read(bytes, n, sni, &t->need);

    if (result == SNI_MORE) {
        flow_arm(t);
    } else if (judge_hello(t, result, sni)) {
        t->peeking = false;
        loop_timer_set(t->loop, &t->timer, TUNNEL_IDLE_MS);
        run(t, true, true);
    } else {
        if (result != SNI_NOT_TLS)
            send_alert(t->client.fd);
        tunnel_end(t, result == SNI_NOT_TLS);
    }
}

static void
read_hello(Tunnel *t)
{
    guint8 *room = buf_reserve(&t->first, PEEK_READ);
    ssize_t n = room != NULL ? recv(t->client.fd, room, PEEK_READ, 0) : 0;

    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n <= 0) {
        tunnel_end(t, false); /* gone without a word, or talking without end */
        return;
    }
    buf_grow(&t->first, (size_t)n);
    look_at_hello(t);
}

/* ---- the bytes ---- */

static void
on_timer(LoopTimer *timer)
{
    Tunnel *t = (Tunnel *)((char *)timer - G_STRUCT_OFFSET(Tunnel, timer));

    if (t->peeking) {
        tell_fault(t, "door.denied", "no ClientHello came in time", NULL);
        t->stream->box->door->stats.denied++;
    }
    if (t->peeking || !t->moved) {
        tunnel_end(t, true);
        return;
    }
    t->moved = false;
    loop_timer_set(t->loop, &t->timer, TUNNEL_IDLE_MS);
}

static void
run(Tunnel *t, bool up, bool down)
{
    if (!flow_run(t, up, down))
        tunnel_end(t, true);
    else if (flow_is_over(t))
        tunnel_end(t, false);
    else
        flow_arm(t);
}

static void
on_hold_over(LoopTimer *timer)
{
    Tunnel *t = (Tunnel *)((char *)timer - G_STRUCT_OFFSET(Tunnel, hold));

    run(t, true, true);
}

static void
on_side_ready(Tunnel *t, uint32_t events, bool is_client)
{
    bool in = (events & ~(uint32_t)EPOLLOUT) != 0, out = (events & ~(uint32_t)EPOLLIN) != 0;

    if ((events & EPOLLERR) != 0)
        tunnel_end(t, true);
    else if (!t->peeking)
        run(t, is_client ? in : out, is_client ? out : in);
    else if (is_client)
        read_hello(t);
    else
        tunnel_end(t, false); /* the upstream hung up before it was told anything */
}

static void
on_client_ready(LoopWatch *watch, uint32_t events)
{
    on_side_ready((Tunnel *)((char *)watch - G_STRUCT_OFFSET(Tunnel, client)), events, true);
}

static void
on_upstream_ready(LoopWatch *watch, uint32_t events)
{
    on_side_ready((Tunnel *)((char *)watch - G_STRUCT_OFFSET(Tunnel, upstream)), events, false);
}

/* ---- the start ---- */

static bool
is_from_box(int fd, const DoorBox *box)
{
    guint64 cookie = 0;
    socklen_t n = sizeof cookie;

    if (box->cookie == 0)
        return true;
    return getsockopt(fd, SOL_SOCKET, SO_NETNS_COOKIE, &cookie, &n) == 0 && cookie == box->cookie;
}

/* Both ports that a rule without ports allows: the web server behind 80 often has 443's names, and
 * unencrypted requests have the plain proxy, which reads the name of each. */
static bool
wants_tls(const Stream *s)
{
    return (s->name.port == TLS_PORT || s->name.port == WEB_PORT) && !s->verdict.plain;
}

static bool
start(Tunnel *t, int fd, GBytes *unread)
{
    const Stream *s = t->stream;
    size_t n = 0;
    const void *bytes = unread != NULL ? g_bytes_get_data(unread, &n) : NULL;

    t->client.fd = fd;
    if (fd < 0 || !is_from_box(fd, s->box) || !buf_put(&t->first, bytes, n) ||
        !loop_add(t->loop, &t->client, EPOLLET, NULL) || !loop_add(t->loop, &t->upstream, EPOLLET, NULL))
        return false;
    t->peeking = wants_tls(s);
    loop_timer_set(t->loop, &t->timer, t->peeking ? TUNNEL_PEEK_MS : TUNNEL_IDLE_MS);
    return true;
}

static void
on_handed_out(int fd, GBytes *unread, void *data)
{
    Tunnel *t = data;

    if (!start(t, fd, unread))
        tunnel_end(t, true);
    else if (t->peeking)
        look_at_hello(t);
    else
        run(t, true, true);
}

static void
on_opened(Stream *s, int fd)
{
    Tunnel *t = g_new0(Tunnel, 1);

    s->tunnel = t;
    t->stream = s;
    t->loop = s->box->door->loop;
    t->client = (LoopWatch){.ready = on_client_ready, .fd = -1};
    t->upstream = (LoopWatch){.ready = on_upstream_ready, .fd = fd};
    t->timer.expired = on_timer;
    t->hold.expired = on_hold_over;
    t->up = (Way){.from = &t->client, .to = &t->upstream};
    t->down = (Way){.from = &t->upstream, .to = &t->client};
    t->need = 1;
    buf_init(&t->first, TUNNEL_FIRST_MAX);
    http_respond_hijack(s->request, 200, on_handed_out, t);
}

/* Before the socket was handed out it is the request's: that ends, and on_handed_out() comes. */
static void
cut(Stream *s)
{
    if (s->tunnel->client.fd < 0)
        http_request_cut(s->request);
    else
        tunnel_end(s->tunnel, true);
}

/* The authority decides; a Host beside it may only say the same. */
static bool
check_host(const HttpRequest *request, const DoorName *name, GError **error)
{
    const char *host = http_request_header(request, "Host");
    DoorName other;

    if (host == NULL)
        return true;
    if (!door_name_read(host, name->port, &other, error))
        return false;
    if (strcmp(other.host, name->host) != 0 || other.port != name->port)
        return err_set(error, ERR_INVALID, "the Host header names another destination than CONNECT");
    return true;
}

void
tunnel_request(DoorBox *box, HttpRequest *request)
{
    static const StreamKind kind = {.opened = on_opened, .cut = cut};
    g_autoptr(GError) error = NULL;
    DoorName name;

    if (!door_name_read(http_request_target(request), 0, &name, &error) ||
        !check_host(request, &name, &error))
        answer_bad_name(box, request, error);
    else
        stream_start(box, request, &name, NULL, &kind);
}

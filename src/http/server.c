/* SPDX-License-Identifier: Apache-2.0 */
#include "http/server.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/id.h"
#include "base/log.h"
#include "base/tcp.h"
#include "http/conn.h"
#include "http/limits.h"

enum {
    SHED_LOG_US = 10 * G_USEC_PER_SEC,
    ACCEPT_PAUSE_MS = 100,
};

static const char shed_answer[] = "HTTP/1.1 503 Service Unavailable\r\n"
                                  "Content-Type: application/json\r\n"
                                  "Retry-After: 1\r\n"
                                  "Connection: close\r\n"
                                  "Content-Length: 57\r\n\r\n"
                                  "{\"code\":503,\"message\":\"too many connections, try later\"}\n";
G_STATIC_ASSERT(sizeof "{\"code\":503,\"message\":\"too many connections, try later\"}\n" - 1 == 57);

typedef union Address {
    struct sockaddr any;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
    struct sockaddr_un local;
} Address;

HttpServer *
http_server_new(const HttpServerSpec *spec)
{
    HttpServer *s = g_new0(HttpServer, 1);

    s->loop = spec->loop;
    s->limits = spec->limits;
    s->handler = spec->handler;
    s->data = spec->data;
    s->server_name = g_strdup(spec->server_name);
    s->listeners = g_ptr_array_new();
    s->reserve_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    id_random_bytes(&s->id_prefix, sizeof s->id_prefix);
    return s;
}

/* ---- accepting ---- */

static void
describe_peer(const HttpListener *l, int fd, const Address *a, HttpPeer *ret_peer)
{
    struct ucred cred;
    socklen_t n = sizeof cred;
    HttpPeer p = {.is_unix = l->is_unix, .local_port = l->port};

    if (l->is_unix) {
        p.is_loopback = true;
        p.uid = (uid_t)-1; /* nobody, unless the kernel says who */
        if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &n) == 0) {
            p.pid = cred.pid;
            p.uid = cred.uid;
        }
    } else if (a->any.sa_family == AF_INET) {
        inet_ntop(AF_INET, &a->v4.sin_addr, p.address, sizeof p.address);
        p.is_loopback = (ntohl(a->v4.sin_addr.s_addr) >> 24) == 127;
    } else if (a->any.sa_family == AF_INET6) {
        inet_ntop(AF_INET6, &a->v6.sin6_addr, p.address, sizeof p.address);
        p.is_loopback = IN6_IS_ADDR_LOOPBACK(&a->v6.sin6_addr);
    }
    *ret_peer = p;
}

static void
log_shed(HttpServer *s, const char *why)
{
    gint64 now = clock_mono_us();

    s->stats.shed++;
    if (s->shed_logged_us != 0 && now - s->shed_logged_us < SHED_LOG_US)
        return;
    s->shed_logged_us = now;
    log_warn("http", "connections are being refused", log_str("why", why),
             log_int("open", s->stats.connections), log_int("refused_so_far", s->stats.shed));
}

static bool
is_over_limit(const HttpServer *s, const HttpListener *l)
{
    return s->stats.connections >= s->limits.connections ||
           (l->max_connections > 0 && l->connections >= l->max_connections);
}

static void
take_connection(HttpServer *s, HttpListener *l, int fd, const Address *a)
{
    g_autoptr(GError) error = NULL;
    HttpPeer peer;

    if (is_over_limit(s, l)) {
        log_shed(s, "limit");
        (void)send(fd, shed_answer, sizeof shed_answer - 1, MSG_NOSIGNAL | MSG_DONTWAIT); /* a courtesy */
        close(fd);
        return;
    }
    describe_peer(l, fd, a, &peer);
    HttpConn *c = conn_new(s, l, fd, &peer);
    c->next = s->conns;
    if (s->conns != NULL)
        s->conns->prev = c;
    s->conns = c;
    l->connections++;
    s->stats.connections++;
    s->stats.accepted++;
    if (!loop_add(s->loop, &c->watch, EPOLLIN | EPOLLRDHUP, &error)) {
        log_shed(s, error->message);
        conn_kill(c);
        return;
    }
    conn_run(c);
}

/* No fd is left: one is kept in reserve to accept the client and let it go, because an
 * unaccepted one would keep the listener readable and the loop spinning. */
static bool
shed_without_fds(HttpServer *s, HttpListener *l)
{
    if (s->reserve_fd < 0)
        s->reserve_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (s->reserve_fd < 0)
        return false;
    close(s->reserve_fd);
    int fd = accept4(l->watch.fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd >= 0) {
        (void)send(fd, shed_answer, sizeof shed_answer - 1, MSG_NOSIGNAL | MSG_DONTWAIT); /* a courtesy */
        close(fd);
    }
    s->reserve_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    log_shed(s, "no file descriptors left");
    return fd >= 0;
}

/* Whatever accept() lacks, the listener stays readable: asking again at once would spin. */
static void
pause_accepting(HttpListener *l)
{
    loop_set(l->server->loop, &l->watch, 0);
    loop_timer_set(l->server->loop, &l->pause, ACCEPT_PAUSE_MS);
}

static void
on_pause_over(LoopTimer *timer)
{
    HttpListener *l = (HttpListener *)((char *)timer - G_STRUCT_OFFSET(HttpListener, pause));

    loop_set(l->server->loop, &l->watch, EPOLLIN);
}

static void
on_acceptable(LoopWatch *watch, uint32_t events)
{
    HttpListener *l = (HttpListener *)watch;
    HttpServer *s = l->server;

    for (int i = 0; i < HTTP_ACCEPT_BATCH; i++) {
        Address a = {0};
        socklen_t n = sizeof a;
        int fd = accept4(watch->fd, &a.any, &n, SOCK_NONBLOCK | SOCK_CLOEXEC);
        int problem = fd < 0 ? errno : 0;

        if (fd >= 0) {
            take_connection(s, l, fd, &a);
        } else if (problem == EAGAIN) {
            return;
        } else if (problem != EINTR && problem != ECONNABORTED &&
                   ((problem != EMFILE && problem != ENFILE) || !shed_without_fds(s, l))) {
            pause_accepting(l);
            return;
        }
    }
}

static HttpListener *
listener_new(HttpServer *server, const HttpListenerSpec *spec, GError **error)
{
    if (server->listeners->len == HTTP_LISTENERS_MAX) {
        err_set(error, ERR_LIMIT, "more than %d listeners", HTTP_LISTENERS_MAX);
        return NULL;
    }
    HttpListener *l = g_new0(HttpListener, 1);

    l->watch = (LoopWatch){.ready = on_acceptable, .fd = -1};
    l->pause.expired = on_pause_over;
    l->server = server;
    l->name = g_strdup(spec->name);
    l->data = spec->data;
    l->max_connections = spec->connections;
    return l;
}

static bool
begin_listening(HttpListener *l, int fd, GError **error)
{
    autofd owned = fd;
    Address a = {0};
    socklen_t n = sizeof a;

    if (getsockname(fd, &a.any, &n) < 0 || fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK) < 0)
        return err_errno(error, "listener '%s'", l->name);
    l->is_unix = a.any.sa_family == AF_UNIX;
    l->port = a.any.sa_family == AF_INET    ? ntohs(a.v4.sin_port)
              : a.any.sa_family == AF_INET6 ? ntohs(a.v6.sin6_port)
                                            : 0;
    if (!l->is_unix)
        tcp_tune(fd); /* accepted sockets inherit it */
    l->watch.fd = fd;
    if (!loop_add(l->server->loop, &l->watch, EPOLLIN, error))
        return false;
    (void)g_steal_fd(&owned);
    return true;
}

HttpListener *
http_server_listen(HttpServer *server, int fd, const HttpListenerSpec *spec, GError **error)
{
    autofd owned = fd;
    HttpListener *l = listener_new(server, spec, error);

    if (l == NULL)
        return NULL;
    if (!begin_listening(l, g_steal_fd(&owned), error)) {
        g_free(l->name);
        g_free(l);
        return NULL;
    }
    g_ptr_array_add(server->listeners, l);
    return l;
}

HttpListener *
http_server_listen_to_none(HttpServer *server, const HttpListenerSpec *spec, GError **error)
{
    HttpListener *l = listener_new(server, spec, error);

    if (l != NULL)
        g_ptr_array_add(server->listeners, l);
    return l;
}

static void
stop_listening(HttpServer *s, HttpListener *l)
{
    if (l->watch.fd < 0)
        return;
    loop_timer_cancel(s->loop, &l->pause);
    loop_remove(s->loop, &l->watch);
    close(l->watch.fd);
    l->watch.fd = -1;
}

/* A killed connection's callbacks may run others, and those may end too: while we walk the
 * list nothing is freed, so that every `next` stays readable. */
static void
kill_where(HttpServer *s, bool (*match)(const HttpConn *c, const void *data), const void *data)
{
    s->walking++;
    for (HttpConn *c = s->conns; c != NULL; c = c->next) {
        if (!c->buried && match(c, data))
            conn_kill(c);
    }
    if (--s->walking > 0)
        return;
    while (s->buried != NULL) {
        HttpConn *c = s->buried;

        s->buried = c->grave;
        g_free(c);
    }
}

static void
free_unused_listener(HttpListener *l)
{
    if (!l->closed || l->connections > 0)
        return;
    g_free(l->name);
    g_free(l);
}

static bool
came_by(const HttpConn *c, const void *listener)
{
    return c->listener == listener;
}

void
http_server_unlisten(HttpServer *server, HttpListener *listener)
{
    stop_listening(server, listener);
    g_ptr_array_remove_fast(server->listeners, listener);
    kill_where(server, came_by, listener);
    /* A connection whose handler called us ends when that returns. */
    listener->closed = true;
    free_unused_listener(listener);
}

bool
http_server_adopt(HttpServer *server, int fd, HttpListener *listener, GError **error)
{
    Address a = {0};
    socklen_t n = sizeof a;

    if (getpeername(fd, &a.any, &n) < 0 || fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK) < 0) {
        err_errno(error, "adopt a connection");
        close(fd);
        return false;
    }
    take_connection(server, listener, fd, &a);
    return true;
}

/* ---- stopping ---- */

static gboolean
tell_drained(gpointer data)
{
    HttpServer *s = data;

    s->drained_source = 0;
    s->drained(s->drained_data);
    return G_SOURCE_REMOVE;
}

static void
check_drained(HttpServer *s)
{
    if (s->draining && s->conns == NULL && s->drained_source == 0)
        s->drained_source = g_idle_add(tell_drained, s);
}

void
server_conn_closed(HttpServer *s, HttpConn *c)
{
    *(c->prev != NULL ? &c->prev->next : &s->conns) = c->next;
    if (c->next != NULL)
        c->next->prev = c->prev;
    c->listener->connections--;
    free_unused_listener(c->listener);
    s->stats.connections--;
    check_drained(s);
    if (s->walking == 0) {
        g_free(c);
        return;
    }
    c->buried = true;
    c->grave = s->buried;
    s->buried = c;
}

static bool
waits_without_end(const HttpConn *c, const void *data)
{
    const HttpRequest *r = c->request;

    return c->state == CONN_IDLE || c->state == CONN_HEAD || c->state == CONN_DUPLEX ||
           (r != NULL && r->answer == ANSWER_STREAM && r->length_left < 0);
}

static bool
any(const HttpConn *c, const void *data)
{
    return true;
}

void
http_server_drain(HttpServer *server, void (*drained)(void *data), void *data)
{
    server->draining = true;
    server->drained = drained;
    server->drained_data = data;
    for (guint i = 0; i < server->listeners->len; i++)
        stop_listening(server, server->listeners->pdata[i]);
    kill_where(server, waits_without_end, NULL);
    check_drained(server);
}

void
http_server_free(HttpServer *server)
{
    if (server == NULL)
        return;
    while (server->listeners->len > 0)
        http_server_unlisten(server, server->listeners->pdata[0]);
    kill_where(server, any, NULL);
    g_assert(server->conns == NULL); /* a server is not freed from inside a handler */
    g_ptr_array_unref(server->listeners);
    if (server->reserve_fd >= 0)
        close(server->reserve_fd);
    if (server->drained_source != 0)
        g_source_remove(server->drained_source);
    g_free(server->server_name);
    g_free(server);
}

/* ---- what others ask ---- */

const char *
server_date(HttpServer *s)
{
    gint64 now = clock_wall_us() / G_USEC_PER_SEC;

    if (now != s->date_s) {
        time_t t = (time_t)now;
        struct tm tm;

        gmtime_r(&t, &tm);
        strftime(s->date, sizeof s->date, "%a, %d %b %Y %H:%M:%S GMT", &tm);
        s->date_s = now;
    }
    return s->date;
}

void
http_server_stats(const HttpServer *server, HttpStats *ret_stats)
{
    *ret_stats = server->stats;
}

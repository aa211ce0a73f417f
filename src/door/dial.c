/* SPDX-License-Identifier: Apache-2.0 */
#include "door/dial.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/err.h"
#include "base/tcp.h"
#include "door/resolver.h"

enum { RESOLVE_MS = 5000, CONNECT_MS = 10000, TRIES_MAX = 4 };

struct Dialer {
    Loop *loop;
    OwnAddresses *own;
    Resolver *resolver;
    guint resolve_ms, connect_ms, dead_ms;
    Dial *dials; /* list */
};

struct Dial {
    LoopWatch watch; /* first; fd < 0: not connecting */
    LoopTimer timer; /* the deadline of the stage under way, or the wish to begin */
    Dialer *dialer;
    Dial *prev, *next;
    Lookup *lookup; /* NULL: not resolving */
    DoorName name;
    bool inside;
    DialFunc done;
    void *data;
    guint n, at, tries;
    struct sockaddr_storage addresses[TRIES_MAX];
    int problem; /* errno of the last address */
};

Dialer *
dialer_new(const DialerSpec *spec, GError **error)
{
    guint resolve_ms = spec->resolve_ms > 0 ? spec->resolve_ms : RESOLVE_MS;
    Resolver *resolver = resolver_new(spec->loop, spec->servers, resolve_ms, error);

    if (resolver == NULL)
        return NULL;
    Dialer *d = g_new0(Dialer, 1);
    d->loop = spec->loop;
    d->own = spec->own;
    d->resolver = resolver;
    d->resolve_ms = resolve_ms;
    d->connect_ms = spec->connect_ms > 0 ? spec->connect_ms : CONNECT_MS;
    d->dead_ms = spec->dead_ms > 0 ? spec->dead_ms : TCP_DEAD_MS;
    return d;
}

void
dialer_free(Dialer *dialer)
{
    if (dialer == NULL)
        return;
    while (dialer->dials != NULL)
        dial_cancel(dialer->dials);
    resolver_free(dialer->resolver);
    g_free(dialer);
}

/* ---- the end ---- */

static void
stop_connecting(Dial *d)
{
    if (d->watch.fd < 0)
        return;
    loop_remove(d->dialer->loop, &d->watch);
    close(d->watch.fd);
    d->watch.fd = -1;
}

void
dial_cancel(Dial *dial)
{
    if (dial->lookup != NULL)
        lookup_cancel(dial->lookup);
    stop_connecting(dial);
    loop_timer_cancel(dial->dialer->loop, &dial->timer);
    *(dial->prev != NULL ? &dial->prev->next : &dial->dialer->dials) = dial->next;
    if (dial->next != NULL)
        dial->next->prev = dial->prev;
    g_free(dial);
}

static void
format_address(const struct sockaddr_storage *address, char ret_text[INET6_ADDRSTRLEN])
{
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;

    memcpy(&v4, address, sizeof v4);
    memcpy(&v6, address, sizeof v6);
    if (address->ss_family == AF_INET)
        inet_ntop(AF_INET, &v4.sin_addr, ret_text, INET6_ADDRSTRLEN);
    else
        inet_ntop(AF_INET6, &v6.sin6_addr, ret_text, INET6_ADDRSTRLEN);
}

/* Takes the error and the fd; `address` NULL: none is to be named. */
static void
finish(Dial *d, int fd, const struct sockaddr_storage *address, GError *error)
{
    DialFunc done = d->done;
    void *data = d->data;
    char text[INET6_ADDRSTRLEN] = "";

    if (address != NULL)
        format_address(address, text);
    dial_cancel(d);
    done(fd, address != NULL ? text : NULL, error, data);
    g_clear_error(&error);
}

/* ---- connecting ---- */

static void try_next(Dial *d);

static bool
is_connected_to(int fd, const struct sockaddr_storage *wanted)
{
    struct sockaddr_storage peer = {0};
    socklen_t n = sizeof peer;
    struct sockaddr_in v4[2];
    struct sockaddr_in6 v6[2];

    if (getpeername(fd, (struct sockaddr *)&peer, &n) < 0 || peer.ss_family != wanted->ss_family)
        return false;
    memcpy(&v4[0], &peer, sizeof v4[0]);
    memcpy(&v4[1], wanted, sizeof v4[1]);
    memcpy(&v6[0], &peer, sizeof v6[0]);
    memcpy(&v6[1], wanted, sizeof v6[1]);
    if (peer.ss_family == AF_INET)
        return v4[0].sin_port == v4[1].sin_port && v4[0].sin_addr.s_addr == v4[1].sin_addr.s_addr;
    return v6[0].sin6_port == v6[1].sin6_port && v6[0].sin6_scope_id == 0 &&
           memcmp(&v6[0].sin6_addr, &v6[1].sin6_addr, sizeof v6[0].sin6_addr) == 0;
}

static void
on_connected(Dial *d)
{
    const struct sockaddr_storage *address = &d->addresses[d->at];
    int problem = 0;
    socklen_t n = sizeof problem;

    if (getsockopt(d->watch.fd, SOL_SOCKET, SO_ERROR, &problem, &n) < 0)
        problem = errno;
    if (problem == 0 && !is_connected_to(d->watch.fd, address))
        problem = EPROTO;
    if (problem == 0) {
        struct sockaddr_storage copy = *address;

        loop_remove(d->dialer->loop, &d->watch);
        finish(d, g_steal_fd(&d->watch.fd), &copy, NULL);
        return;
    }
    d->problem = problem;
    stop_connecting(d);
    d->at++;
    try_next(d);
}

static void
on_ready(LoopWatch *watch, uint32_t events)
{
    on_connected((Dial *)watch);
}

static bool
begin_connecting(Dial *d)
{
    const struct sockaddr *address = (const struct sockaddr *)&d->addresses[d->at];
    socklen_t n = address->sa_family == AF_INET ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6);

    d->watch.fd = socket(address->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (d->watch.fd < 0)
        return false;
    tcp_tune(d->watch.fd);
    tcp_set_dead_ms(d->watch.fd, d->dialer->dead_ms);
    if (connect(d->watch.fd, address, n) < 0 && errno != EINPROGRESS)
        return false;
    if (!loop_add(d->dialer->loop, &d->watch, EPOLLOUT, NULL)) {
        errno = ENOMEM;
        return false;
    }
    return true;
}

static void
try_next(Dial *d)
{
    GError *error = NULL;

    for (; d->at < d->n; d->at++) {
        if (begin_connecting(d)) {
            loop_timer_set(d->dialer->loop, &d->timer, d->dialer->connect_ms / d->n);
            return;
        }
        d->problem = errno;
        stop_connecting(d);
    }
    err_set(&error, d->problem == ETIMEDOUT ? ERR_TIMEOUT : ERR_UNAVAILABLE, "connect to %s port %d: %s",
            d->name.host, d->name.port, g_strerror(d->problem));
    finish(d, -1, NULL, error);
}

/* ---- judging ---- */

static bool
is_permitted(Dial *d, const struct sockaddr_storage *address, const char **ret_why)
{
    AddressKind kind = address_judge((const struct sockaddr *)address, ret_why);

    if (kind == ADDRESS_FORBIDDEN || (kind == ADDRESS_INSIDE && !d->inside))
        return false;
    if (own_addresses_have(d->dialer->own, (const struct sockaddr *)address)) {
        *ret_why = "this host";
        return false;
    }
    return true;
}

static void
set_port(struct sockaddr_storage *address, guint16 port)
{
    if (address->ss_family == AF_INET)
        ((struct sockaddr_in *)(void *)address)->sin_port = htons(port);
    else
        ((struct sockaddr_in6 *)(void *)address)->sin6_port = htons(port);
}

/* One that is not permitted refuses all: otherwise it would be enough that the others are down. */
static void
take_addresses(Dial *d, const struct sockaddr_storage *addresses, guint n)
{
    GError *error = NULL;
    const char *why;

    for (guint i = 0; i < n; i++) {
        if (is_permitted(d, &addresses[i], &why))
            continue;
        struct sockaddr_storage refused = addresses[i];

        /* The address is not in the message: the box has no business to learn it. */
        err_set(&error, ERR_DENIED,
                d->name.is_address ? "%s is a forbidden address (%s)"
                                   : "%s resolved to a forbidden address (%s)",
                d->name.host, why);
        finish(d, -1, &refused, error);
        return;
    }
    d->n = MIN(n, (guint)TRIES_MAX);
    for (guint i = 0; i < d->n; i++) {
        d->addresses[i] = addresses[i];
        set_port(&d->addresses[i], d->name.port);
    }
    try_next(d);
}

static void
on_looked_up(const struct sockaddr_storage *addresses, guint n, const GError *error, void *data)
{
    Dial *d = data;

    d->lookup = NULL;
    loop_timer_cancel(d->dialer->loop, &d->timer);
    if (error != NULL)
        finish(d, -1, NULL, g_error_copy(error));
    else
        take_addresses(d, addresses, n);
}

/* ---- the start ---- */

static void
on_timer(LoopTimer *timer)
{
    Dial *d = (Dial *)((char *)timer - G_STRUCT_OFFSET(Dial, timer));
    GError *error = NULL;

    if (d->lookup != NULL) {
        err_set(&error, ERR_TIMEOUT, "no name server answered for %s in time", d->name.host);
        finish(d, -1, NULL, error);
    } else if (d->watch.fd >= 0) {
        d->problem = ETIMEDOUT;
        stop_connecting(d);
        d->at++;
        try_next(d);
    } else if (d->name.is_address) {
        struct sockaddr_storage address = d->name.address;

        take_addresses(d, &address, 1);
    } else {
        err_set(&error, ERR_DENIED, "%s is a name of this host", d->name.host);
        finish(d, -1, NULL, error);
    }
}

/* Of this host by definition (RFC 6761, 6.3): not to be looked up, whatever a server would say. */
static bool
is_local(const DoorName *name)
{
    return !name->is_address &&
           (strcmp(name->host, "localhost") == 0 || g_str_has_suffix(name->host, ".localhost"));
}

Dial *
dial(Dialer *dialer, const DoorName *name, bool inside, DialFunc done, void *data)
{
    Dial *d = g_new0(Dial, 1);

    d->watch = (LoopWatch){.ready = on_ready, .fd = -1};
    d->timer.expired = on_timer;
    d->dialer = dialer;
    d->name = *name;
    d->inside = inside;
    d->done = done;
    d->data = data;
    d->next = dialer->dials;
    if (d->next != NULL)
        d->next->prev = d;
    dialer->dials = d;
    if (name->is_address || is_local(name)) {
        loop_timer_set(dialer->loop, &d->timer, 0);
    } else {
        d->lookup = resolver_look_up(dialer->resolver, name->host, on_looked_up, d);
        loop_timer_set(dialer->loop, &d->timer, dialer->resolve_ms);
    }
    return d;
}

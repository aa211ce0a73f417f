/* SPDX-License-Identifier: Apache-2.0 */
/* c-ares on our loop.  It cannot take back a single query, so a cancelled Lookup stays, without
 * its function, until c-ares is done with it. */
#include "door/resolver.h"

#include <ares.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"

enum {
    TICK_MS = 100, /* how exactly c-ares' own deadlines are kept while a query is under way */
    TRIES = 3,
    TRY_MS_MIN = 50,
    CONFIG_FRESH_US = G_USEC_PER_SEC,
};
static const char resolv_conf[] = "/etc/resolv.conf";

struct Resolver {
    Loop *loop;
    char *servers; /* NULL: those of resolv_conf */
    guint total_ms;
    gint64 config_us, looked_us; /* when that was changed, and when we looked */
    ares_channel channel;
    GHashTable *sockets; /* fd -> Socket */
    GHashTable *waiting; /* a set of Lookups that c-ares is done with */
    LoopTimer tick;
    guint under_way;
};

typedef struct Socket {
    LoopWatch watch; /* first */
    Resolver *resolver;
} Socket;

struct Lookup {
    LoopTimer later; /* armed: the answer waits for the loop, since c-ares bears no visitors inside */
    Resolver *resolver;
    char *host;
    LookupFunc func; /* NULL: cancelled */
    void *data;
    GArray *addresses; /* struct sockaddr_storage */
    GError *error;
};

/* ---- the loop's side ---- */

static void
on_tick(LoopTimer *timer)
{
    Resolver *r = (Resolver *)((char *)timer - G_STRUCT_OFFSET(Resolver, tick));

    ares_process_fd(r->channel, ARES_SOCKET_BAD, ARES_SOCKET_BAD);
    if (r->under_way > 0)
        loop_timer_set(r->loop, &r->tick, TICK_MS);
}

static void
on_socket_ready(LoopWatch *watch, uint32_t events)
{
    Resolver *r = ((Socket *)watch)->resolver;
    int fd = watch->fd;

    ares_process_fd(r->channel, (events & ~(uint32_t)EPOLLOUT) != 0 ? fd : ARES_SOCKET_BAD,
                    (events & EPOLLOUT) != 0 ? fd : ARES_SOCKET_BAD);
}

static void
free_socket(gpointer data)
{
    Socket *s = data;

    loop_remove(s->resolver->loop, &s->watch);
    g_free(s);
}

static void
on_socket_state(void *data, ares_socket_t fd, int readable, int writable)
{
    Resolver *r = data;
    Socket *s = g_hash_table_lookup(r->sockets, GINT_TO_POINTER(fd));
    uint32_t events = (readable ? EPOLLIN : 0u) | (writable ? EPOLLOUT : 0u);

    if (events == 0) {
        g_hash_table_remove(r->sockets, GINT_TO_POINTER(fd));
        return;
    }
    if (s != NULL) {
        loop_set(r->loop, &s->watch, events);
        return;
    }
    s = g_new0(Socket, 1);
    s->watch = (LoopWatch){.ready = on_socket_ready, .fd = fd};
    s->resolver = r;
    if (loop_add(r->loop, &s->watch, events, NULL))
        g_hash_table_insert(r->sockets, GINT_TO_POINTER(fd), s);
    else
        g_free(s); /* the query runs into its deadline */
}

/* ---- lookups ---- */

static void
lookup_free(Lookup *l)
{
    loop_timer_cancel(l->resolver->loop, &l->later);
    g_array_unref(l->addresses);
    g_clear_error(&l->error);
    g_free(l->host);
    g_free(l);
}

static void
finish(Lookup *l)
{
    if (l->func != NULL)
        l->func((const struct sockaddr_storage *)(const void *)l->addresses->data, l->addresses->len,
                l->error, l->data);
    lookup_free(l);
}

static void
on_later(LoopTimer *timer)
{
    Lookup *l = (Lookup *)((char *)timer - G_STRUCT_OFFSET(Lookup, later));

    l->resolver->under_way--;
    g_hash_table_remove(l->resolver->waiting, l);
    finish(l);
}

static void
finish_later(Lookup *l)
{
    g_hash_table_add(l->resolver->waiting, l);
    loop_timer_set(l->resolver->loop, &l->later, 0);
}

static void
take_addresses(Lookup *l, const struct ares_addrinfo *answer, int family)
{
    for (const struct ares_addrinfo_node *n = answer->nodes; n != NULL; n = n->ai_next) {
        struct sockaddr_storage a = {0};

        if (n->ai_family != family || n->ai_addrlen > sizeof a)
            continue;
        memcpy(&a, n->ai_addr, n->ai_addrlen);
        g_array_append_val(l->addresses, a);
    }
}

static void
set_error(Lookup *l, int status)
{
    if (status == ARES_ENODATA || status == ARES_ENOTFOUND || status == ARES_SUCCESS)
        err_set(&l->error, ERR_NOT_FOUND, "there is no address for %s", l->host);
    else if (status == ARES_ETIMEOUT)
        err_set(&l->error, ERR_TIMEOUT, "no name server answered for %s in time", l->host);
    else
        err_set(&l->error, ERR_UNAVAILABLE, "%s cannot be resolved: %s", l->host, ares_strerror(status));
}

static void
on_answer(void *data, int status, int timeouts, struct ares_addrinfo *answer)
{
    Lookup *l = data;
    Resolver *r = l->resolver;

    if (answer != NULL && status == ARES_SUCCESS) {
        take_addresses(l, answer, AF_INET);
        take_addresses(l, answer, AF_INET6);
    }
    ares_freeaddrinfo(answer);
    if (status == ARES_EDESTRUCTION) {
        r->under_way--;
        lookup_free(l);
        return;
    }
    if (l->addresses->len == 0)
        set_error(l, status);
    finish_later(l);
}

/* ---- life ---- */

static bool
open_channel(Resolver *r, GError **error)
{
    char lookups[] = "b";
    struct ares_options options = {
        .flags = ARES_FLAG_NOSEARCH | ARES_FLAG_NOALIASES,
        .timeout = (int)MAX(r->total_ms / TRIES, (guint)TRY_MS_MIN),
        .tries = TRIES,
        .lookups = lookups,
        .sock_state_cb = on_socket_state,
        .sock_state_cb_data = r,
    };
    int mask = ARES_OPT_FLAGS | ARES_OPT_TIMEOUTMS | ARES_OPT_TRIES | ARES_OPT_DOMAINS | ARES_OPT_LOOKUPS |
               ARES_OPT_SOCK_STATE_CB;
    ares_channel channel = NULL;
    int status = ares_init_options(&channel, &options, mask);

    if (status == ARES_SUCCESS && r->servers != NULL)
        status = ares_set_servers_ports_csv(channel, r->servers);
    if (status != ARES_SUCCESS) {
        if (channel != NULL)
            ares_destroy(channel);
        return err_set(error, ERR_UNAVAILABLE, "start the resolver: %s", ares_strerror(status));
    }
    if (r->channel != NULL)
        ares_destroy(r->channel);
    r->channel = channel;
    return true;
}

static gint64
config_changed_us(void)
{
    struct stat st;
    autofd fd = open(resolv_conf, O_RDONLY | O_CLOEXEC);

    if (fd < 0 || fstat(fd, &st) < 0)
        return 0;
    return (gint64)st.st_mtim.tv_sec * G_USEC_PER_SEC + st.st_mtim.tv_nsec / 1000;
}

/* A machine that changes networks changes its name servers.  c-ares reads them once; a file that
 * cannot be read leaves those that are known. */
static void
follow_config(Resolver *r)
{
    gint64 now = clock_mono_us();

    if (r->servers != NULL || r->under_way > 0 || now - r->looked_us < CONFIG_FRESH_US)
        return;
    gint64 changed = config_changed_us();

    r->looked_us = now;
    if (changed != 0 && changed != r->config_us && open_channel(r, NULL))
        r->config_us = changed;
}

Resolver *
resolver_new(Loop *loop, const char *servers, guint total_ms, GError **error)
{
    Resolver *r = g_new0(Resolver, 1);

    r->loop = loop;
    r->servers = g_strdup(servers);
    r->total_ms = total_ms;
    r->tick.expired = on_tick;
    r->sockets = g_hash_table_new_full(NULL, NULL, NULL, free_socket);
    r->waiting = g_hash_table_new(NULL, NULL);
    r->config_us = config_changed_us();
    (void)ares_library_init(ARES_LIB_INIT_ALL); /* fails on other systems only */
    if (!open_channel(r, error)) {
        resolver_free(r);
        return NULL;
    }
    return r;
}

void
resolver_free(Resolver *resolver)
{
    GHashTableIter iter;
    gpointer lookup;

    if (resolver == NULL)
        return;
    if (resolver->channel != NULL)
        ares_destroy(resolver->channel); /* ends every query */
    g_hash_table_iter_init(&iter, resolver->waiting);
    while (g_hash_table_iter_next(&iter, &lookup, NULL))
        lookup_free(lookup);
    g_hash_table_unref(resolver->waiting);
    loop_timer_cancel(resolver->loop, &resolver->tick);
    g_hash_table_unref(resolver->sockets);
    ares_library_cleanup();
    g_free(resolver->servers);
    g_free(resolver);
}

/* ---- what others ask ---- */

Lookup *
resolver_look_up(Resolver *resolver, const char *host, LookupFunc func, void *data)
{
    Lookup *l = g_new0(Lookup, 1);
    g_autofree char *absolute = g_strconcat(host, ".", NULL);
    struct ares_addrinfo_hints hints = {
        .ai_flags = ARES_AI_NOSORT, .ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};

    l->later.expired = on_later;
    l->resolver = resolver;
    l->host = g_strdup(host);
    l->func = func;
    l->data = data;
    l->addresses = g_array_new(FALSE, FALSE, sizeof(struct sockaddr_storage));
    follow_config(resolver);
    if (resolver->under_way++ >= RESOLVER_LOOKUPS_MAX) {
        err_set(&l->error, ERR_UNAVAILABLE, "too many names are being looked up");
        finish_later(l);
        return l;
    }
    ares_getaddrinfo(resolver->channel, absolute, NULL, &hints, on_answer, l);
    if (resolver->tick.queue == NULL)
        loop_timer_set(resolver->loop, &resolver->tick, TICK_MS);
    return l;
}

void
lookup_cancel(Lookup *lookup)
{
    lookup->func = NULL;
}

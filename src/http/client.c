/* SPDX-License-Identifier: Apache-2.0 */
#include "http/client.h"

#include <errno.h>
#include <sys/epoll.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "http/client-private.h"
#include "http/limits.h"

/* One GSource carries everything: curl's sockets sit in an epoll fd of the client's own, and
 * the source's ready time is the earliest of curl's timer and the calls' deadlines.  The
 * source may recurse, so that a callback which runs the loop keeps its client alive. */
typedef struct ClientSource {
    GSource base;
    HttpClient *client; /* outlives the source */
} ClientSource;

static gint64
earlier_us(gint64 a, gint64 b)
{
    if (a < 0 || b < 0)
        return MAX(a, b);
    return MIN(a, b);
}

static void
client_unref(HttpClient *client)
{
    if (--client->refs > 0)
        return;
    g_source_unref(client->source);
    own_addresses_free(client->own);
    g_free(client);
    curl_global_cleanup();
}

static void
arm(HttpClient *client)
{
    if (client->multi == NULL)
        return;
    g_source_set_ready_time(client->source, client->ready.length > 0
                                                ? 0
                                                : earlier_us(client->curl_due_us, client->expire_due_us));
}

void
client_mark_ready(HttpClient *client, HttpCall *call)
{
    if (call->is_ready)
        return;
    call->is_ready = true;
    g_queue_push_tail_link(&client->ready, &call->ready_link);
}

void
client_watch_deadline(HttpClient *client, const HttpCall *call)
{
    client->expire_due_us = earlier_us(client->expire_due_us, call_due_us(call));
}

static int
on_curl_timer(CURLM *multi, long timeout_ms, void *data)
{
    HttpClient *client = data;

    client->curl_due_us = timeout_ms < 0 ? -1 : clock_mono_us() + timeout_ms * 1000;
    arm(client);
    return 0;
}

static bool
watch_socket(int epoll_fd, curl_socket_t fd, int what)
{
    struct epoll_event event = {.data.fd = fd};

    if ((what & CURL_POLL_IN) != 0)
        event.events |= EPOLLIN;
    if ((what & CURL_POLL_OUT) != 0)
        event.events |= EPOLLOUT;
    return epoll_ctl(epoll_fd, EPOLL_CTL_MOD, fd, &event) == 0 ||
           (errno == ENOENT && epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &event) == 0);
}

static int
on_curl_socket(CURL *easy, curl_socket_t fd, int what, void *data, void *socket_data)
{
    HttpClient *client = data;
    HttpCall *call = NULL;

    if (what == CURL_POLL_REMOVE) {
        /* ENOENT when curl has closed it already. */
        (void)epoll_ctl(client->epoll_fd, EPOLL_CTL_DEL, fd, NULL);
        return 0;
    }
    if (watch_socket(client->epoll_fd, fd, what))
        return 0;
    /* -1 would end every call of this client, so only this one is failed. */
    int e = errno;
    if (curl_easy_getinfo(easy, CURLINFO_PRIVATE, &call) != CURLE_OK || call == NULL || call->error != NULL)
        return 0;
    errno = e;
    err_errno(&call->error, "%s: watch the connection", call->peer);
    client_mark_ready(client, call);
    return 0;
}

static void
run_sockets(HttpClient *client)
{
    struct epoll_event events[HTTP_EVENT_BATCH];
    int n = epoll_wait(client->epoll_fd, events, HTTP_EVENT_BATCH, 0);

    for (int i = 0; i < n; i++) {
        int what = 0, running;

        if ((events[i].events & EPOLLIN) != 0)
            what |= CURL_CSELECT_IN;
        if ((events[i].events & EPOLLOUT) != 0)
            what |= CURL_CSELECT_OUT;
        if ((events[i].events & (EPOLLERR | EPOLLHUP)) != 0)
            what |= CURL_CSELECT_ERR;
        (void)curl_multi_socket_action(client->multi, events[i].data.fd, what, &running);
    }
}

static void
run_timer(HttpClient *client)
{
    int running;

    if (client->curl_due_us < 0 || client->curl_due_us > clock_mono_us())
        return;
    client->curl_due_us = -1;
    (void)curl_multi_socket_action(client->multi, CURL_SOCKET_TIMEOUT, 0, &running);
}

static void
read_results(HttpClient *client)
{
    CURLMsg *msg;
    int left;

    while ((msg = curl_multi_info_read(client->multi, &left)) != NULL) {
        HttpCall *call;

        if (curl_easy_getinfo(msg->easy_handle, CURLINFO_PRIVATE, &call) == CURLE_OK)
            call_complete(call, msg->data.result);
    }
}

/* A call whose progress has moved its deadline is only looked at again here, when the old one
 * has passed: progress is frequent, deadlines are not. */
static void
expire_calls(HttpClient *client)
{
    gint64 now = clock_mono_us();

    if (client->expire_due_us < 0 || client->expire_due_us > now)
        return;
    client->expire_due_us = -1;
    for (GList *l = client->calls.head; l != NULL; l = l->next) {
        HttpCall *call = l->data;
        gint64 due = call_due_us(call);

        if (due >= 0 && due <= now)
            call_expire(call);
        else
            client->expire_due_us = earlier_us(client->expire_due_us, due);
    }
}

static void
deliver_ready(HttpClient *client)
{
    GList *link;

    while ((link = g_queue_pop_head_link(&client->ready)) != NULL) {
        HttpCall *call = link->data;

        call->is_ready = false;
        call_deliver(call);
    }
}

static gboolean
on_dispatch(GSource *source, GSourceFunc callback, gpointer data)
{
    HttpClient *client = ((ClientSource *)source)->client;

    client->refs++;
    if (g_source_query_unix_fd(source, client->epoll_tag) != 0)
        run_sockets(client);
    run_timer(client);
    read_results(client);
    expire_calls(client);
    deliver_ready(client);
    arm(client);
    client_unref(client);
    return G_SOURCE_CONTINUE;
}

static GSource *
make_source(HttpClient *client)
{
    static GSourceFuncs funcs = {.dispatch = on_dispatch};
    GSource *source = g_source_new(&funcs, sizeof(ClientSource));

    ((ClientSource *)source)->client = client;
    g_source_set_static_name(source, "http client");
    g_source_set_can_recurse(source, TRUE);
    client->epoll_tag = g_source_add_unix_fd(source, client->epoll_fd, G_IO_IN);
    return source;
}

HttpClient *
http_client_new(GMainContext *context)
{
    HttpClient *client = g_new0(HttpClient, 1);

    if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
        g_error("libcurl cannot start");
    *client = (HttpClient){.refs = 1, .curl_due_us = -1, .expire_due_us = -1};
    client->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    client->multi = curl_multi_init();
    if (client->epoll_fd < 0 || client->multi == NULL)
        g_error("no HTTP client: %s", g_strerror(errno));
    client->source = make_source(client);
    curl_multi_setopt(client->multi, CURLMOPT_SOCKETFUNCTION, on_curl_socket);
    curl_multi_setopt(client->multi, CURLMOPT_SOCKETDATA, client);
    curl_multi_setopt(client->multi, CURLMOPT_TIMERFUNCTION, on_curl_timer);
    curl_multi_setopt(client->multi, CURLMOPT_TIMERDATA, client);
    /* One call, one connection: curl stops reading a shared one as soon as one of its streams
     * is paused, so a slow reader would hold up strangers. */
    curl_multi_setopt(client->multi, CURLMOPT_PIPELINING, (long)CURLPIPE_NOTHING);
    curl_multi_setopt(client->multi, CURLMOPT_MAX_TOTAL_CONNECTIONS, (long)HTTP_CLIENT_CONNECTIONS_MAX);
    curl_multi_setopt(client->multi, CURLMOPT_MAX_HOST_CONNECTIONS, (long)HTTP_CLIENT_PER_HOST_MAX);
    curl_multi_setopt(client->multi, CURLMOPT_MAXCONNECTS, (long)HTTP_CLIENT_KEEP_MAX);
    g_source_attach(client->source, context);
    return client;
}

void
http_client_allow(HttpClient *client, guint connections, guint per_host)
{
    curl_multi_setopt(client->multi, CURLMOPT_MAX_TOTAL_CONNECTIONS, (long)connections);
    curl_multi_setopt(client->multi, CURLMOPT_MAX_HOST_CONNECTIONS, (long)per_host);
    curl_multi_setopt(client->multi, CURLMOPT_MAXCONNECTS, (long)per_host);
}

void
http_client_fence(HttpClient *client, HttpReach reach)
{
    client->reach = reach;
    if (reach != HTTP_REACH_ANY && client->own == NULL)
        client->own = own_addresses_new();
}

const char *
client_denies(HttpClient *client, const struct sockaddr *address)
{
    const char *why;

    if (client->reach == HTTP_REACH_ANY)
        return NULL;
    if (address_judge(address, &why) != ADDRESS_PUBLIC)
        return client->reach == HTTP_REACH_LOOPBACK && address_is_loopback(address) ? NULL : why;
    return own_addresses_have(client->own, address) ? "this host" : NULL;
}

void
http_client_free(HttpClient *client)
{
    HttpCall *call;

    if (client == NULL)
        return;
    while ((call = g_queue_peek_head(&client->calls)) != NULL)
        call_detach(call);
    g_source_destroy(client->source);
    curl_multi_cleanup(g_steal_pointer(&client->multi));
    close(client->epoll_fd);
    client_unref(client);
}

HttpCall *
http_client_call(HttpClient *client, const HttpCallSpec *spec, const HttpCallHandler *handler, void *ctx,
                 GError **error)
{
    g_autoptr(HttpCall) call = call_new(spec, handler, ctx, error);

    if (call == NULL)
        return NULL;
    CURLMcode code = curl_multi_add_handle(client->multi, call->easy);
    if (code != CURLM_OK) {
        err_set(error, ERR_INTERNAL, "%s: %s", call->peer, curl_multi_strerror(code));
        return NULL;
    }
    call->client = client;
    g_queue_push_tail_link(&client->calls, &call->link);
    client_watch_deadline(client, call);
    arm(client);
    return g_steal_pointer(&call);
}

void
http_call_cancel(HttpCall *call)
{
    call_detach(call);
}

void
http_call_resume(HttpCall *call)
{
    call->was_resumed = true;
    if (!call->is_paused || call->client == NULL)
        return;
    call->is_paused = false;
    call->mark_us = clock_mono_us();
    client_watch_deadline(call->client, call);
    client_mark_ready(call->client, call);
    arm(call->client);
}

const char *
http_call_header(HttpCall *call, const char *name)
{
    struct curl_header *header;

    if (curl_easy_header(call->easy, name, 0, CURLH_HEADER, -1, &header) != CURLHE_OK)
        return NULL;
    /* curl's own string is promised only until its next call; of an empty value it keeps the
     * line's CR. */
    g_autofree char *value = g_strstrip(g_strdup(header->value));
    if (call->values == NULL)
        call->values = g_string_chunk_new(64);
    return g_string_chunk_insert_const(call->values, value);
}

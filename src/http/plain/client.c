/* SPDX-License-Identifier: Apache-2.0 */
#include "http/plain/client.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/tcp.h"

enum { PORT_DEFAULT = 80, PORT_MAX = 65535 };

struct PlainClient {
    union {
        struct sockaddr any;
        struct sockaddr_in v4;
        struct sockaddr_in6 v6;
    } address;
    socklen_t address_len;
    char *host; /* as the Host header has it */
    int fd;     /* -1: not connected */
    int cancel_fd;
};

/* One call. */
typedef struct Exchange {
    PlainClient *client;
    const PlainCall *call;
    PlainAnswer *answer;
    HttpParser *parser;
    bool refused; /* the caller's function said so */
    bool flooded;
    bool chatty; /* something came behind the answer */
} Exchange;

/* ---- addresses ---- */

static bool
parse_host(PlainClient *c, const char *host, size_t n, guint16 port)
{
    g_autofree char *text = g_strndup(host, n);

    if (strcmp(text, "localhost") == 0) {
        g_free(text);
        text = g_strdup("127.0.0.1");
    }
    if (inet_pton(AF_INET, text, &c->address.v4.sin_addr) == 1) {
        c->address.v4.sin_family = AF_INET;
        c->address.v4.sin_port = htons(port);
        c->address_len = sizeof c->address.v4;
        return true;
    }
    if (n > 2 && text[0] == '[' && text[n - 1] == ']') {
        text[n - 1] = '\0';
        c->address.v6.sin6_family = AF_INET6;
        c->address.v6.sin6_port = htons(port);
        c->address_len = sizeof c->address.v6;
        return inet_pton(AF_INET6, text + 1, &c->address.v6.sin6_addr) == 1;
    }
    return false;
}

/* The part of a URL that names the host and the port; NULL: it is not of http. */
static const char *
find_authority(const char *url, size_t *ret_n)
{
    static const char scheme[] = "http://";

    if (!g_str_has_prefix(url, scheme))
        return NULL;
    *ret_n = strcspn(url + strlen(scheme), "/?#");
    return url + strlen(scheme);
}

static bool
parse_authority(PlainClient *c, const char *at, size_t n)
{
    size_t host_n = n;
    guint64 port = PORT_DEFAULT;

    while (host_n > 0 && g_ascii_isdigit(at[host_n - 1]))
        host_n--;
    if (host_n > 0 && host_n < n && at[host_n - 1] == ':') {
        g_autofree char *digits = g_strndup(at + host_n, n - host_n);

        if (!g_ascii_string_to_unsigned(digits, 10, 1, PORT_MAX, &port, NULL))
            return false;
        host_n--;
    } else {
        host_n = n;
    }
    return parse_host(c, at, host_n, (guint16)port);
}

PlainClient *
plain_client_new(const char *url, GError **error)
{
    g_autoptr(PlainClient) c = g_new0(PlainClient, 1);
    size_t n = 0;
    const char *at = find_authority(url, &n);

    c->fd = c->cancel_fd = -1;
    if (at == NULL || !parse_authority(c, at, n)) {
        err_set(error, ERR_INVALID, "'%s' is not http:// with the number of an address", url);
        return NULL;
    }
    c->host = g_strndup(at, n);
    return g_steal_pointer(&c);
}

static void
disconnect(PlainClient *c)
{
    auto_close(&c->fd);
    c->fd = -1;
}

void
plain_client_free(PlainClient *client)
{
    if (client == NULL)
        return;
    disconnect(client);
    g_free(client->host);
    g_free(client);
}

void
plain_client_set_cancel(PlainClient *client, int fd)
{
    client->cancel_fd = fd;
}

char *
plain_url_path(const char *url)
{
    size_t n = 0;
    const char *at = find_authority(url, &n);
    char *path = g_strdup(at != NULL ? at + n : "");

    path[strcspn(path, "?#")] = '\0';
    for (size_t len = strlen(path); len > 0 && path[len - 1] == '/'; len--)
        path[len - 1] = '\0';
    return path;
}

/* ---- waiting ---- */

/* fd < 0: only for the time.  ERR_TIMEOUT, ERR_CANCELLED. */
static bool
wait_for(PlainClient *c, int fd, short events, gint64 deadline_us, GError **error)
{
    struct pollfd fds[] = {{.fd = fd, .events = events}, {.fd = c->cancel_fd, .events = POLLIN}};

    for (;;) {
        gint64 left_us = deadline_us - clock_mono_us();
        /* Rounded up, so that the last wait is not one of many of no length. */
        gint64 left_ms = left_us <= 0 ? 0 : (left_us + 999) / 1000;
        int n = poll(fds, G_N_ELEMENTS(fds), (int)MIN(left_ms, G_MAXINT));

        if (n < 0 && errno != EINTR)
            return err_errno(error, "poll");
        if (n > 0 && fds[1].revents != 0)
            return err_set(error, ERR_CANCELLED, "asked to end");
        if (n > 0 && fds[0].revents != 0)
            return true;
        if (n == 0 && left_ms == 0)
            return err_set(error, ERR_TIMEOUT, "no answer from %s in time", c->host);
    }
}

bool
plain_client_pause(PlainClient *client, gint64 ms, GError **error)
{
    g_autoptr(GError) ended = NULL;

    if (!wait_for(client, -1, 0, clock_mono_us() + ms * 1000, &ended) &&
        g_error_matches(ended, ERR_DOMAIN, ERR_TIMEOUT))
        return true;
    g_propagate_error(error, g_steal_pointer(&ended));
    return false;
}

static bool
fail_broken(const PlainClient *c, GError **error)
{
    return err_set(error, ERR_UNAVAILABLE, "the connection to %s broke: %s", c->host,
                   errno != 0 ? g_strerror(errno) : "it was closed");
}

/* ---- connecting ---- */

/* A connection that the other side has ended meanwhile, or has said something on unasked, is of no use. */
static bool
is_usable(const PlainClient *c)
{
    struct pollfd p = {.fd = c->fd, .events = POLLIN | POLLRDHUP};

    return c->fd >= 0 && poll(&p, 1, 0) == 0;
}

static bool
connect_client(PlainClient *c, GError **error)
{
    if (is_usable(c))
        return true;
    disconnect(c);
    autofd fd = socket(c->address.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return err_errno(error, "socket");
    int e = connect(fd, &c->address.any, c->address_len) == 0 ? 0 : errno;
    if (e == EINPROGRESS) {
        socklen_t n = sizeof e;

        if (!wait_for(c, fd, POLLOUT, clock_mono_us() + PLAIN_CONNECT_MS * 1000, error))
            return false;
        if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &e, &n) < 0)
            e = errno;
    }
    if (e != 0)
        return err_set(error, ERR_UNAVAILABLE, "nobody answers at %s: %s", c->host, g_strerror(e));
    tcp_tune(fd);
    c->fd = g_steal_fd(&fd);
    return true;
}

/* ---- sending ---- */

static GString *
format_head(const PlainClient *c, const PlainCall *call)
{
    GString *head = g_string_new(NULL);

    g_string_printf(head, "%s %s HTTP/1.1\r\nHost: %s\r\n", call->method, call->path, c->host);
    for (guint i = 0; call->headers != NULL && call->headers[i] != NULL; i++)
        g_string_append_printf(head, "%s\r\n", call->headers[i]);
    if (call->body != NULL)
        g_string_append_printf(head, "Content-Length: %zu\r\n", call->body_len);
    g_string_append(head, "\r\n");
    return head;
}

static bool
send_bytes(PlainClient *c, const char *bytes, size_t n, gint64 deadline_us, GError **error)
{
    while (n > 0) {
        ssize_t sent = send(c->fd, bytes, n, MSG_NOSIGNAL);

        if (sent > 0) {
            bytes += sent;
            n -= (size_t)sent;
        } else if (errno == EAGAIN) {
            if (!wait_for(c, c->fd, POLLOUT, deadline_us, error))
                return false;
        } else if (errno != EINTR) {
            /* A server that refuses a body closes while it is sent; its answer may be there to read. */
            return errno == EPIPE || errno == ECONNRESET ? true : fail_broken(c, error);
        }
    }
    return true;
}

static bool
send_request(Exchange *x, GError **error)
{
    PlainClient *c = x->client;
    g_autoptr(GString) out = format_head(c, x->call);
    gint64 deadline_us = clock_mono_us() + PLAIN_SEND_MS * 1000;

    /* One write where it is small: the head alone would be a packet. */
    if (x->call->body != NULL && x->call->body_len <= PLAIN_READ_SIZE) {
        g_string_append_len(out, x->call->body, (gssize)x->call->body_len);
        return send_bytes(c, out->str, out->len, deadline_us, error);
    }
    return send_bytes(c, out->str, out->len, deadline_us, error) &&
           (x->call->body == NULL || send_bytes(c, x->call->body, x->call->body_len, deadline_us, error));
}

/* ---- receiving ---- */

static bool
on_body(void *ctx, const guint8 *bytes, size_t n)
{
    Exchange *x = ctx;
    PlainAnswer *a = x->answer;

    if (x->call->on_body != NULL && a->status / 100 == 2) {
        x->refused = !x->call->on_body(a->status, bytes, n, x->call->ctx);
        return !x->refused;
    }
    if (a->body->len + n > PLAIN_BODY_MAX) {
        x->flooded = true;
        return false;
    }
    g_string_append_len(a->body, (const char *)bytes, (gssize)n);
    return true;
}

static void
take_head(Exchange *x)
{
    http_head_clear(&x->answer->head);
    http_parser_take_head(x->parser, &x->answer->head);
    x->answer->status = x->answer->head.status;
}

/* What came from the socket.  `*ret_done`: the answer is whole. */
static bool
feed(Exchange *x, const guint8 *bytes, size_t n, bool *ret_done, GError **error)
{
    *ret_done = false;
    do {
        size_t used;
        HttpParseResult result = http_parser_feed(x->parser, bytes, n, &used);

        bytes += used;
        n -= used;
        if (x->refused)
            return err_set(error, ERR_CANCELLED, "enough of the answer");
        if (x->flooded)
            return err_set(error, ERR_LIMIT, "the answer of %s is longer than %d bytes", x->client->host,
                           PLAIN_BODY_MAX);
        if (result == HTTP_PARSE_BAD)
            return err_set(error, ERR_INVALID, "%s does not speak HTTP: %s", x->client->host,
                           http_parser_reason(x->parser));
        if (result == HTTP_PARSE_HEAD) {
            take_head(x);
        } else if (result == HTTP_PARSE_DONE && x->answer->status / 100 == 1) {
            http_parser_reset(x->parser);
            x->answer->status = 0;
        } else if (result == HTTP_PARSE_DONE) {
            *ret_done = true;
            x->chatty = n > 0;
            return true;
        }
    } while (n > 0);
    return true;
}

/* Once more with nothing: an answer without a body is whole with its head. */
static bool
receive_piece(Exchange *x, const guint8 *bytes, size_t n, bool *ret_done, GError **error)
{
    bool had_head = x->answer->status != 0;

    if (!feed(x, bytes, n, ret_done, error))
        return false;
    if (*ret_done || had_head || x->answer->status == 0)
        return true;
    return feed(x, bytes + n, 0, ret_done, error);
}

/* So long from here, but not beyond the end of all. */
static gint64
deadline_after(const PlainCall *call, gint64 ms)
{
    gint64 at_us = clock_mono_us() + ms * 1000;

    return call->deadline_us > 0 ? MIN(at_us, call->deadline_us) : at_us;
}

static bool
receive(Exchange *x, GError **error)
{
    PlainClient *c = x->client;
    gint64 deadline_us = deadline_after(x->call, x->call->head_ms);
    bool done = false;

    while (!done) {
        guint8 bytes[PLAIN_READ_SIZE];

        if (!wait_for(c, c->fd, POLLIN, deadline_us, error))
            return false;
        /* One that always has something to say would never make us wait. */
        if (clock_mono_us() > deadline_us)
            return err_set(error, ERR_TIMEOUT, "the answer of %s takes too long", c->host);
        ssize_t n = recv(c->fd, bytes, sizeof bytes, 0);
        if (n < 0 && (errno == EINTR || errno == EAGAIN))
            continue;
        if (n == 0 && http_parser_finish(x->parser))
            break;
        if (n == 0)
            errno = 0;
        if (n <= 0)
            return fail_broken(c, error);
        if (!receive_piece(x, bytes, (size_t)n, &done, error))
            return false;
        if (x->answer->status != 0)
            deadline_us = deadline_after(x->call, x->call->stall_ms);
    }
    if (!x->answer->head.keep_alive || x->chatty || !done)
        disconnect(c);
    return true;
}

void
plain_answer_clear(PlainAnswer *answer)
{
    http_head_clear(&answer->head);
    if (answer->body != NULL)
        g_string_free(answer->body, TRUE);
    *answer = (PlainAnswer){0};
}

bool
plain_call(PlainClient *client, const PlainCall *call, PlainAnswer *ret_answer, GError **error)
{
    *ret_answer = (PlainAnswer){.body = g_string_new(NULL)};
    Exchange x = {.client = client, .call = call, .answer = ret_answer};
    g_autoptr(HttpParser) parser = http_parser_new(HTTP_PARSE_RESPONSE, on_body, &x);

    x.parser = parser;
    if (connect_client(client, error) && send_request(&x, error) && receive(&x, error))
        return true;
    disconnect(client);
    return false;
}

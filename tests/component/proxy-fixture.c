/* SPDX-License-Identifier: Apache-2.0 */
#include "proxy-fixture.h"

#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static void
pass_on(ProxyTest *t, HttpRequest *request)
{
    int pair[2];

    g_assert_cmpint(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair), ==, 0);
    proxy_close_upstream(t);
    t->upstream = pair[1];
    http_proxy(request, pair[0], &t->spec);
}

static void
handle(HttpRequest *request, void *data)
{
    ProxyTest *t = data;

    if (t->wait)
        t->kept = http_request_ref(request);
    else
        pass_on(t, request);
}

void
proxy_pass_on(ProxyTest *t)
{
    g_autoptr(HttpRequest) request = g_steal_pointer(&t->kept);

    g_assert_nonnull(request);
    pass_on(t, request);
}

void
proxy_test_init(ProxyTest *t, const HttpLimits *limits)
{
    *t = (ProxyTest){.client = -1, .upstream = -1};
    fixture_init_handler(&t->f, limits, handle, t);
    t->spec.loop = t->f.loop;
}

void
proxy_close_client(ProxyTest *t)
{
    if (t->client >= 0)
        close(t->client);
    t->client = -1;
}

void
proxy_close_upstream(ProxyTest *t)
{
    if (t->upstream >= 0)
        close(t->upstream);
    t->upstream = -1;
}

void
proxy_test_clear(ProxyTest *t)
{
    fixture_clear(&t->f);
    proxy_close_client(t);
    proxy_close_upstream(t);
}

void
proxy_ask(ProxyTest *t, const char *request)
{
    guint handled = t->f.handled;

    proxy_close_client(t);
    t->client = fixture_connect(&t->f);
    client_sends(t->client, request);
    fixture_until(&t->f.handled, handled + 1);
}

char *
proxy_ask_head(ProxyTest *t, const char *request)
{
    proxy_ask(t, request);
    return g_string_free(client_read(t->upstream, "\r\n\r\n"), FALSE);
}

void
proxy_expect_hangup(ProxyTest *t)
{
    g_assert_true(client_sees_close(t->upstream));
}

static const char piece[64 * 1024];

size_t
proxy_fill(int fd)
{
    size_t total = 0;

    /* Full is what stays full over some turns of the loop. */
    for (int idle = 0; idle < 20;) {
        fixture_turn();
        ssize_t n = send(fd, piece, sizeof piece, MSG_NOSIGNAL);

        idle = n > 0 ? 0 : idle + 1;
        total += n > 0 ? (size_t)n : 0;
        g_assert_cmpuint(total, <, 32 * MIB); /* somebody keeps it all */
    }
    return total;
}

void
proxy_take(int fd, size_t n)
{
    for (size_t got = 0; got < n;) {
        g_autoptr(GByteArray) part = client_read_n(fd, MIN(n - got, sizeof piece));

        g_assert_cmpuint(part->len, >, 0);
        got += part->len;
    }
}

void
proxy_pass(int from, int to, size_t n)
{
    while (n > 0) {
        size_t part = MIN(n, sizeof piece);

        client_send(from, piece, part);
        proxy_take(to, part);
        n -= part;
    }
}

GString *
answer_unchunk(const char *answer)
{
    g_autoptr(GString) body = g_string_new(NULL);
    const char *p = answer_body(answer);

    for (;;) {
        char *line_end;
        guint64 n = g_ascii_strtoull(p, &line_end, 16);

        if (line_end == p || strncmp(line_end, "\r\n", 2) != 0)
            return NULL;
        p = line_end + 2;
        if (n == 0)
            return strcmp(p, "\r\n") == 0 ? g_steal_pointer(&body) : NULL;
        if (strlen(p) < n + 2)
            return NULL;
        g_string_append_len(body, p, (gssize)n);
        p += n + 2;
    }
}

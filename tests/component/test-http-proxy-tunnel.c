/* SPDX-License-Identifier: Apache-2.0 */
/* WebSockets through the proxy: by hand, and with our own server as the upstream. */
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "proxy-fixture.h"
#include "support/ws-frames.h"
#include "ws-fixture.h"

#define ASK WS_HANDSHAKE("/x")
#define SWITCH                                                                                               \
    "HTTP/1.1 101 Yes\r\nConnection: upgrade\r\nUpgrade: WebSocket\r\nSec-WebSocket-Accept: s\r\n\r\n"

static void
open_tunnel(ProxyTest *t)
{
    g_autofree char *request = proxy_ask_head(t, ASK);

    g_assert_nonnull(strstr(request, "\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"));
    g_assert_nonnull(strstr(request, "\r\n" WS_KEY));
    client_sends(t->upstream, SWITCH);
    g_autofree char *answer = ws_read_head(t->client);
    g_assert_cmpint(answer_status(answer), ==, 101);
    g_assert_nonnull(strstr(answer, "\r\nUpgrade: websocket\r\n"));
    g_assert_nonnull(strstr(answer, "\r\nConnection: Upgrade\r\n"));
    g_assert_nonnull(strstr(answer, "\r\nSec-WebSocket-Accept: s\r\n"));
}

static void
expect(int fd, const char *text)
{
    g_autoptr(GByteArray) got = client_read_n(fd, strlen(text));

    g_assert_cmpmem(got->data, got->len, text, strlen(text));
}

/* Bytes that come along with the heads belong to the tunnel. */
static void
test_early_bytes(void)
{
    static const char up[] = SWITCH "from the server";
    ProxyTest t;

    proxy_test_init(&t, NULL);
    for (size_t at = 0; at < sizeof up - 1; at++) {
        proxy_ask(&t, ASK "from the client");
        g_autofree char *request = ws_read_head(t.upstream);
        client_send(t.upstream, up, at);
        fixture_turn();
        client_send(t.upstream, up + at, sizeof up - 1 - at);
        g_autofree char *answer = ws_read_head(t.client);
        g_assert_cmpint(answer_status(answer), ==, 101);
        expect(t.client, "from the server");
        expect(t.upstream, "from the client");
    }
    proxy_test_clear(&t);
}

static void
test_half_close(void)
{
    for (int client_first = 0; client_first < 2; client_first++) {
        ProxyTest t;

        proxy_test_init(&t, NULL);
        open_tunnel(&t);
        int first = client_first ? t.client : t.upstream;
        int second = client_first ? t.upstream : t.client;
        client_sends(first, "last words");
        g_assert_cmpint(shutdown(first, SHUT_WR), ==, 0);
        g_autoptr(GString) heard = client_read(second, NULL);
        g_assert_cmpstr(heard->str, ==, "last words");
        for (int i = 0; i < 3; i++) {
            client_sends(second, "still here");
            expect(first, "still here");
        }
        g_assert_cmpuint(t.f.over, ==, 0);
        g_assert_cmpint(shutdown(second, SHUT_WR), ==, 0);
        g_assert_true(client_sees_close(first));
        fixture_until(&t.f.over, 1);
        g_assert_cmpuint(t.f.gone, ==, 0);
        proxy_test_clear(&t);
    }
}

static void
test_either_goes(void)
{
    for (int who = 0; who < 5; who++) {
        ProxyTest t;

        proxy_test_init(&t, NULL);
        open_tunnel(&t);
        if (who == 0) {
            client_reset(g_steal_fd(&t.client));
        } else if (who == 1) {
            /* What was not read turns the close into a reset. */
            client_sends(t.client, "unread");
            fixture_turn();
            proxy_close_upstream(&t);
        } else if (who == 2) {
            proxy_close_client(&t);
            g_assert_cmpint(shutdown(t.upstream, SHUT_WR), ==, 0);
        } else if (who == 3) {
            /* It has said its last word, and goes without hearing ours. */
            g_assert_cmpint(shutdown(t.upstream, SHUT_WR), ==, 0);
            proxy_fill(t.client);
            proxy_close_upstream(&t);
        } else {
            /* It hears nothing any more: what the client says is told to nobody. */
            proxy_close_upstream(&t);
            g_assert_true(client_sees_close(t.client));
            client_sends(t.client, "hello?");
            client_sends(t.client, "hello?");
        }
        fixture_until(&t.f.over, 1);
        if (t.client >= 0)
            g_assert_true(client_sees_close(t.client));
        if (t.upstream >= 0)
            proxy_expect_hangup(&t);
        proxy_test_clear(&t);
    }
}

static void
test_not_switched(void)
{
    static const struct {
        const char *request, *answer;
        int status;
    } cases[] = {
        {ASK, "HTTP/1.1 426 No\r\nContent-Length: 2\r\n\r\nno", 426},
        {ASK, "HTTP/1.1 101 Yes\r\nConnection: upgrade\r\n\r\n", 502},
        {ASK, "HTTP/1.1 101 Yes\r\nConnection: upgrade\r\nUpgrade: h2c\r\n\r\n", 502},
        {WS_REQUEST("/") "Connection: Upgrade\r\nUpgrade: h2c\r\n\r\n",
         "HTTP/1.1 101 Yes\r\nConnection: upgrade\r\nUpgrade: h2c\r\n\r\n", 502},
        {WS_REQUEST("/") "Upgrade: websocket\r\n\r\n", SWITCH, 502},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        ProxyTest t;

        g_test_message("case %zu", i);
        proxy_test_init(&t, NULL);
        g_autofree char *request = proxy_ask_head(&t, cases[i].request);
        client_sends(t.upstream, cases[i].answer);
        g_autofree char *answer = ws_read_head(t.client);
        g_assert_cmpint(answer_status(answer), ==, cases[i].status);
        proxy_expect_hangup(&t);
        proxy_test_clear(&t);
    }
}

static void
test_stall(void)
{
    ProxyTest t;

    proxy_test_init(&t, NULL);
    t.spec.stall_ms =
        1500; /* a second more than it is left alone, for a machine that has other things to do */
    open_tunnel(&t);
    for (int i = 0; i < 4; i++) {
        for (gint64 end = g_get_monotonic_time() + 500000; g_get_monotonic_time() < end;)
            fixture_turn();
        client_sends(i % 2 ? t.client : t.upstream, "x");
    }
    g_assert_cmpuint(t.f.over, ==, 0);
    g_assert_true(client_sees_close(t.client));
    proxy_expect_hangup(&t);

    /* Nor does one wait for ever for the other side of a half-closed one. */
    open_tunnel(&t);
    g_assert_cmpint(shutdown(t.upstream, SHUT_WR), ==, 0);
    fixture_until(&t.f.over, 2);
    proxy_test_clear(&t);
}

static void
test_slow_sides(void)
{
    for (int up = 0; up < 2; up++) {
        ProxyTest t;

        proxy_test_init(&t, NULL);
        open_tunnel(&t);
        int from = up ? t.client : t.upstream;
        int to = up ? t.upstream : t.client;
        size_t sent = proxy_fill(from);
        size_t rss = fixture_rss();
        proxy_take(to, sent);
        proxy_pass(from, to, 64 * MIB);
        g_assert_cmpuint(fixture_rss(), <, rss + 8 * MIB);
        proxy_test_clear(&t);
    }
}

/* ---- our own server behind it ---- */

typedef struct Pair {
    ProxyTest proxy;
    WsTest ws;
} Pair;

static void
pass_on(HttpRequest *request, void *data)
{
    Pair *p = data;

    http_proxy(request, fixture_connect(&p->ws.f), &p->proxy.spec);
}

static void
pair_init(Pair *p)
{
    ws_test_init(&p->ws);
    p->proxy = (ProxyTest){.client = -1, .upstream = -1};
    fixture_init_handler(&p->proxy.f, NULL, pass_on, p);
    p->proxy.spec.loop = p->proxy.f.loop;
}

static void
pair_clear(Pair *p)
{
    proxy_test_clear(&p->proxy);
    fixture_until(&p->ws.closed, p->ws.opened);
    ws_test_clear(&p->ws);
}

static int
pair_connect(Pair *p, const char *handshake)
{
    int fd = fixture_connect(&p->proxy.f);

    client_sends(fd, handshake);
    g_autofree char *head = ws_read_head(fd);
    g_assert_cmpint(answer_status(head), ==, 101);
    g_assert_nonnull(strstr(head, "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n"));
    return fd;
}

static void
test_websocket(void)
{
    g_autoptr(GByteArray) talk = g_byte_array_new();
    g_autofree char *large = g_strnfill(200000, 'l');
    Pair p;

    ws_put_conversation(talk);
    pair_init(&p);
    for (guint at = 1; at < talk->len; at++) {
        int fd = pair_connect(&p, WS_HANDSHAKE("/echo"));

        client_send(fd, talk->data, at);
        fixture_turn();
        client_send(fd, talk->data + at, talk->len - at);
        ws_expect_conversation(fd);
        g_assert_true(client_sees_close(fd));
        close(fd);
        fixture_until(&p.ws.closed, at);
        g_assert_cmpuint(p.ws.code, ==, 1000);
    }
    autofd fd = pair_connect(&p, WS_HANDSHAKE("/echo"));
    ws_send_frame(fd, 0x81, large, 200000);
    ws_expect_frame(fd, 0x81, large, 200000);
    pair_clear(&p);
    g_assert_cmpuint(p.ws.code, ==, 1006);
}

static void
test_websocket_slow_reader(void)
{
    Pair p;

    pair_init(&p);
    autofd fd = pair_connect(&p, WS_HANDSHAKE("/push"));
    fixture_until(&p.ws.refused, 1);
    fixture_turn();
    size_t rss = fixture_rss();
    for (guint i = 0; i < 32 * MIB / PUSH_SIZE; i++) {
        guint8 first;
        g_autoptr(GByteArray) frame = ws_read_frame(fd, &first);

        g_assert_cmpuint(frame->len, ==, PUSH_SIZE);
    }
    g_assert_cmpuint(p.ws.queued_max, <=, QUEUE_MAX + 10);
    g_assert_cmpuint(fixture_rss(), <, rss + 8 * MIB);
    pair_clear(&p);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/proxy-tunnel/early", test_early_bytes);
    g_test_add_func("/proxy-tunnel/half-close", test_half_close);
    g_test_add_func("/proxy-tunnel/gone", test_either_goes);
    g_test_add_func("/proxy-tunnel/not-switched", test_not_switched);
    g_test_add_func("/proxy-tunnel/stall", test_stall);
    g_test_add_func("/proxy-tunnel/slow", test_slow_sides);
    g_test_add_func("/proxy-tunnel/websocket", test_websocket);
    g_test_add_func("/proxy-tunnel/websocket-slow", test_websocket_slow_reader);
    return g_test_run();
}

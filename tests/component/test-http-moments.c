/* SPDX-License-Identifier: Apache-2.0 */
/* Things that happen to a connection at an odd moment. */
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "http-fixture.h"

#define GET(path) "GET " path " HTTP/1.1\r\nHost: a\r\n\r\n"

/* ---- an answer that streams while the body still comes ---- */

static bool
drop_data(void *ctx, const guint8 *bytes, size_t n)
{
    return true;
}

static void
count_end(void *ctx, const GError *error)
{
    ++*(guint *)ctx;
}

static HttpPull
say_hi(void *ctx, Buf *out)
{
    bool *said = ctx;

    if (*said)
        return HTTP_PULL_WAIT;
    *said = buf_puts(out, "hi\n");
    return HTTP_PULL_DATA;
}

static void
answer_early(HttpRequest *request, void *data)
{
    static const HttpSink sink = {.data = drop_data, .end = count_end};
    static const HttpSource source = {.pull = say_hi, .closed = g_free};

    http_request_read_body(request, &sink, data, G_MAXUINT64);
    http_respond_stream(request, 200, "text/plain", -1, &source, g_new0(bool, 1));
}

static void
test_bad_body_after_the_answer_began(void)
{
    Fixture f;
    guint ends = 0;

    fixture_init_handler(&f, NULL, answer_early, &ends);
    autofd fd = fixture_connect(&f);
    client_sends(fd, "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n");
    g_autoptr(GString) answer = client_read(fd, "hi\n");
    g_assert_cmpint(answer_status(answer->str), ==, 200);
    client_sends(fd, "zz\r\n");
    g_assert_true(client_sees_close(fd));
    g_assert_cmpuint(f.gone, ==, 1);
    g_assert_cmpuint(ends, ==, 1);
    fixture_clear(&f);
}

/* ---- deadlines ---- */

enum { IDLE_MS = 400 };

/* Two requests with half the idle time between them; returns when the second was sent, or 0
 * when this process was held up so long that the connection's time was over. */
static gint64
ask_twice(int fd)
{
    gint64 start = clock_mono_us();
    gint64 second = 0;

    for (int i = 0; i < 2; i++) {
        while (clock_mono_us() < start + i * IDLE_MS * 1000 / 2)
            g_main_context_iteration(NULL, FALSE);
        second = clock_mono_us();
        client_sends(fd, GET("/hello"));
        g_autoptr(GString) answer = client_read(fd, "hello\n");
        if (clock_mono_us() >= start + IDLE_MS * 1000)
            return 0;
        g_assert_cmpint(answer_status(answer->str), ==, 200);
    }
    return second;
}

/* A request that is answered in the turn it comes in begins the wait anew. */
static void
test_requests_keep_a_connection_alive(void)
{
    HttpLimits limits = HTTP_LIMITS_INIT;
    gint64 second = 0;
    Fixture f;

    limits.idle_ms = IDLE_MS;
    fixture_init(&f, &limits);
    while (second == 0) {
        autofd fd = fixture_connect(&f);

        second = ask_twice(fd);
        g_assert_true(client_sees_close(fd));
    }
    g_assert_cmpint(clock_mono_us(), >=, second + IDLE_MS * 1000);
    fixture_clear(&f);
}

/* ---- closing ---- */

/* The end is told at once, not when the wait for the rest of the body is over. */
static void
test_unread_body_ends_with_a_fin(void)
{
    Fixture f;
    HttpStats stats;

    fixture_init(&f, NULL);
    autofd fd = fixture_connect(&f);
    client_sends(fd, "POST /nope HTTP/1.1\r\nHost: a\r\nContent-Length: 50\r\n\r\n");
    g_autoptr(GString) answer = client_read(fd, NULL);
    g_assert_cmpint(answer_status(answer->str), ==, 404);
    http_server_stats(f.server, &stats);
    g_assert_cmpuint(stats.timeouts, ==, 0);
    fixture_clear(&f);
}

/* ---- both sides of a duplex end while its sink wants nothing ---- */

typedef struct Tunnel {
    HttpRequest *request;
    guint64 got;
    guint ends, broken;
    bool open; /* the sink wants bytes */
} Tunnel;

static bool
take_data(void *ctx, const guint8 *bytes, size_t n)
{
    Tunnel *t = ctx;

    t->got += n;
    return t->open;
}

static void
take_end(void *ctx, const GError *error)
{
    Tunnel *t = ctx;

    t->ends++;
    t->broken += error != NULL;
}

static HttpPull
end_at_once(void *ctx, Buf *out)
{
    return HTTP_PULL_END;
}

static void
begin_tunnel(HttpRequest *request, void *data)
{
    static const HttpSink sink = {.data = take_data, .end = take_end};
    static const HttpSource source = {.pull = end_at_once};
    Tunnel *t = data;

    t->request = http_request_ref(request);
    http_respond_duplex(request, 200, &source, &sink, t);
}

static void
test_paused_duplex_loses_nothing(void)
{
    Tunnel t = {0};
    Fixture f;

    fixture_init_handler(&f, NULL, begin_tunnel, &t);
    autofd fd = fixture_connect(&f);
    client_sends(fd, "CONNECT a:1 HTTP/1.1\r\nHost: a:1\r\n\r\n");
    g_autoptr(GString) head = client_read(fd, NULL);
    g_assert_cmpint(answer_status(head->str), ==, 200);
    client_sends(fd, "x");
    while (t.got < 1)
        fixture_turn();
    client_sends(fd, "yz");
    g_assert_cmpint(shutdown(fd, SHUT_WR), ==, 0);
    fixture_turn();
    g_assert_cmpuint(t.ends, ==, 0);
    t.open = true;
    http_request_resume_body(t.request);
    fixture_until(&t.ends, 1);
    g_assert_cmpuint(t.got, ==, 3);
    g_assert_cmpuint(t.broken, ==, 0);
    http_request_unref(t.request);
    fixture_clear(&f);
}

/* ---- a connection that was accepted elsewhere ---- */

static void
tell_where_from(HttpRequest *request, void *data)
{
    const HttpPeer *peer = http_request_peer(request);

    http_respond_text(request, 200, "text/plain", http_request_listener_data(request));
    g_assert_true(peer->is_unix);
    g_assert_cmpuint(peer->uid, ==, getuid());
}

static int
listen_on_nothing(void)
{
    struct sockaddr_un any = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    g_assert_cmpint(bind(fd, (struct sockaddr *)&any, sizeof any.sun_family), ==, 0); /* abstract */
    g_assert_cmpint(listen(fd, 1), ==, 0);
    return fd;
}

static void
test_adopted(void)
{
    char data[] = "by this listener";
    HttpListenerSpec spec = {.name = "local", .data = data};
    g_autoptr(GError) error = NULL;
    int ends[2];
    Fixture f;

    fixture_init_handler(&f, NULL, tell_where_from, NULL);
    HttpListener *listener = http_server_listen(f.server, listen_on_nothing(), &spec, &error);
    g_assert_no_error(error);
    g_assert_cmpint(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends), ==, 0);
    g_assert_true(http_server_adopt(f.server, ends[0], listener, &error));
    autofd fd = ends[1];
    client_sends(fd, GET("/"));
    g_autoptr(GString) answer = client_read(fd, data);
    g_assert_cmpint(answer_status(answer->str), ==, 200);
    http_server_unlisten(f.server, listener);
    g_assert_true(client_sees_close(fd));

    g_assert_false(http_server_adopt(f.server, listen_on_nothing(), f.listener, &error));
    g_assert_nonnull(error);
    fixture_clear(&f);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/moments/bad-body-after-answer", test_bad_body_after_the_answer_began);
    g_test_add_func("/moments/keeps-alive", test_requests_keep_a_connection_alive);
    g_test_add_func("/moments/fin", test_unread_body_ends_with_a_fin);
    g_test_add_func("/moments/paused-duplex", test_paused_duplex_loses_nothing);
    g_test_add_func("/moments/adopted", test_adopted);
    return g_test_run();
}

/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "http-fixture.h"

#define GET(path) "GET " path " HTTP/1.1\r\nHost: a\r\n\r\n"
#define GET_CLOSE(path) "GET " path " HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"

static void
test_keep_alive(void)
{
    Fixture f;

    fixture_init(&f, NULL);
    autofd fd = fixture_connect(&f);
    for (int i = 0; i < 3; i++) {
        client_sends(fd, GET("/hello"));
        g_autoptr(GString) a = client_read(fd, "hello\n");
        g_assert_cmpint(answer_status(a->str), ==, 200);
        g_assert_null(strstr(a->str, "Connection:"));
    }
    client_sends(fd, "GET /hello HTTP/1.0\r\n\r\n");
    g_autoptr(GString) last = client_read(fd, NULL);
    g_assert_nonnull(strstr(last->str, "Connection: close\r\n"));
    g_assert_cmpuint(f.handled, ==, 4);
    fixture_clear(&f);
}

static void
test_pipelined(void)
{
    Fixture f;

    fixture_init(&f, NULL);
    g_autofree char *answer = client_ask(&f, GET("/hello") GET("/echo") GET_CLOSE("/hello"));
    g_auto(GStrv) parts = g_strsplit(answer, "HTTP/1.1 200 OK", -1);
    g_assert_cmpuint(g_strv_length(parts), ==, 4);
    g_assert_cmpstr(answer_body(parts[3]), ==, "hello\n");
    fixture_clear(&f);
}

static void
test_bodies(void)
{
    static const struct {
        const char *request, *body;
    } cases[] = {
        {"POST /echo HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: 3\r\n\r\nabc", "abc"},
        {"POST /echo HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: 0\r\n\r\n", ""},
        {"POST /echo HTTP/1.1\r\nHost: a\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n"
         "3\r\nabc\r\n1;x=y\r\nd\r\n0\r\nTrailer: t\r\n\r\n",
         "abcd"},
        {"POST /slow-count HTTP/1.1\r\nHost: a\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n"
         "1\r\na\r\n1\r\nb\r\n1\r\nc\r\n0\r\n\r\n",
         "3\n"},
        {"POST /slow-count HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: 3\r\n\r\nabc", "3\n"},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        Fixture f;

        fixture_init(&f, NULL);
        g_test_message("case %zu", i);
        g_autofree char *answer = client_ask(&f, cases[i].request);
        g_assert_cmpint(answer_status(answer), ==, 200);
        g_assert_cmpstr(answer_body(answer), ==, cases[i].body);
        fixture_clear(&f);
    }
}

/* The same requests, cut at every byte, must give the same answers. */
static void
test_split_at_every_byte(void)
{
    static const char request[] =
        "POST /echo?a=b HTTP/1.1\r\nHost: a\r\nX-Long: some value \r\n"
        "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n" GET_CLOSE("/hello");
    Fixture f;

    fixture_init(&f, NULL);
    g_autofree char *whole = client_ask(&f, request);
    for (size_t at = 1; at < sizeof request - 1; at++) {
        autofd fd = fixture_connect(&f);

        client_send(fd, request, at);
        fixture_turn();
        client_send(fd, request + at, sizeof request - 1 - at);
        g_autoptr(GString) answer = client_read(fd, NULL);
        g_assert_cmpuint(answer->len, ==, strlen(whole));
        g_assert_true(g_str_has_suffix(answer->str, "\r\n\r\nhello\n"));
    }
    fixture_clear(&f);
}

static void
test_streams(void)
{
    Fixture f;

    fixture_init(&f, NULL);
    g_autofree char *chunked = client_ask(&f, GET_CLOSE("/stream/100000"));
    g_assert_nonnull(strstr(chunked, "Transfer-Encoding: chunked\r\n"));
    g_assert_true(g_str_has_suffix(chunked, "\r\n0\r\n\r\n"));
    g_autofree char *fixed = client_ask(&f, GET_CLOSE("/length/100000"));
    g_assert_cmpuint(strlen(answer_body(fixed)), ==, 100000);
    g_autofree char *old = client_ask(&f, "GET /stream/100000 HTTP/1.0\r\n\r\n");
    g_assert_null(strstr(old, "chunked"));
    g_assert_cmpuint(strlen(answer_body(old)), ==, 100000);
    g_autofree char *head = client_ask(&f, "HEAD /length/5 HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    g_assert_nonnull(strstr(head, "Content-Length: 5\r\n"));
    g_assert_cmpstr(answer_body(head), ==, "");
    fixture_clear(&f);
}

static void
test_broken_stream_does_not_look_whole(void)
{
    Fixture f;

    fixture_init(&f, NULL);
    g_autofree char *answer = client_ask(&f, GET("/fail"));
    g_assert_null(strstr(answer, "0\r\n\r\n"));
    fixture_until(&f.gone, 1);
    fixture_clear(&f);
}

static void
test_idle_stream_sees_the_client_go(void)
{
    static const char *const paths[] = {GET("/wait"), GET("/never")};

    for (size_t i = 0; i < G_N_ELEMENTS(paths); i++) {
        Fixture f;

        fixture_init(&f, NULL);
        int fd = fixture_connect(&f);
        client_sends(fd, paths[i]);
        fixture_until(&f.handled, 1);
        close(fd);
        fixture_until(&f.gone, 1);
        fixture_clear(&f);
    }
}

static void
test_half_close_still_gets_its_answer(void)
{
    Fixture f;

    fixture_init(&f, NULL);
    autofd fd = fixture_connect(&f);
    client_sends(fd, GET("/length/3000000"));
    g_assert_cmpint(shutdown(fd, SHUT_WR), ==, 0);
    g_autoptr(GString) answer = client_read(fd, NULL);
    g_assert_cmpuint(strlen(answer_body(answer->str)), ==, 3000000);
    fixture_clear(&f);
}

static void
test_forgotten_answer(void)
{
    Fixture f;

    fixture_init(&f, NULL);
    g_autofree char *answer = client_ask(&f, GET_CLOSE("/forgotten"));
    g_assert_cmpint(answer_status(answer), ==, 500);
    fixture_clear(&f);
}

static void
test_expect(void)
{
    Fixture f;

    fixture_init(&f, NULL);
    autofd fd = fixture_connect(&f);
    client_sends(fd, "POST /echo HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\n");
    g_autoptr(GString) go = client_read(fd, "\r\n\r\n");
    g_assert_cmpstr(go->str, ==, "HTTP/1.1 100 Continue\r\n\r\n");
    client_sends(fd, "abc");
    g_autoptr(GString) answer = client_read(fd, "abc");
    g_assert_cmpint(answer_status(answer->str), ==, 200);

    /* A route that refuses does not invite the body. */
    g_autofree char *refused = client_ask(
        &f, "POST /nope HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\n");
    g_assert_cmpint(answer_status(refused), ==, 404);
    g_autofree char *unknown = client_ask(
        &f, "POST /echo HTTP/1.1\r\nHost: a\r\nExpect: x\r\nConnection: close\r\n\r\n");
    g_assert_cmpint(answer_status(unknown), ==, 417);
    fixture_clear(&f);
}

static void
test_duplex(void)
{
    static const char *const heads[] = {
        "GET /duplex HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\nearly",
        "CONNECT a:1 HTTP/1.1\r\nHost: a:1\r\n\r\nearly",
    };

    for (size_t i = 0; i < G_N_ELEMENTS(heads); i++) {
        Fixture f;

        fixture_init(&f, NULL);
        autofd fd = fixture_connect(&f);
        client_sends(fd, heads[i]);
        g_autoptr(GString) head = client_read(fd, "early");
        g_assert_cmpint(answer_status(head->str), ==, i == 0 ? 101 : 200);
        client_sends(fd, " and late");
        g_assert_cmpint(shutdown(fd, SHUT_WR), ==, 0);
        g_autoptr(GString) rest = client_read(fd, NULL);
        g_assert_cmpstr(rest->str, ==, " and late");
        fixture_clear(&f);
    }
}

static void
test_hijack(void)
{
    Fixture f;

    fixture_init(&f, NULL);
    g_autofree char *answer = client_ask(
        &f, "GET /hijack HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\nearly");
    g_assert_cmpstr(answer_body(answer), ==, "taken early\n");
    fixture_clear(&f);
}

static void
test_unread_body_closes(void)
{
    Fixture f;

    fixture_init(&f, NULL);
    g_autofree char *answer = client_ask(
        &f, "POST /nope HTTP/1.1\r\nHost: a\r\nContent-Length: 50\r\n\r\n" GET("/hello"));
    g_assert_cmpint(answer_status(answer), ==, 404);
    g_assert_nonnull(strstr(answer, "Connection: close\r\n"));
    g_assert_cmpuint(f.handled, ==, 1); /* the body was not taken for a request */
    fixture_clear(&f);
}

static void
on_drained(void *data)
{
    ++*(guint *)data;
}

static void
test_drain(void)
{
    Fixture f;
    guint drained = 0;

    fixture_init(&f, NULL);
    autofd idle = fixture_connect(&f);
    autofd stream = fixture_connect(&f);
    client_sends(stream, GET("/wait"));
    autofd busy = fixture_connect(&f);
    client_sends(busy, "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\na");
    fixture_until(&f.handled, 2);
    http_server_drain(f.server, on_drained, &drained);
    g_assert_true(client_sees_close(idle));
    g_assert_true(client_sees_close(stream));
    g_assert_cmpuint(drained, ==, 0);
    client_sends(busy, "bc");
    g_autoptr(GString) answer = client_read(busy, NULL);
    g_assert_cmpstr(answer_body(answer->str), ==, "abc");
    fixture_until(&drained, 1);
    fixture_clear(&f);
}

static void
test_unlisten_cuts(void)
{
    Fixture f;

    fixture_init(&f, NULL);
    autofd fd = fixture_connect(&f);
    client_sends(fd, GET("/never"));
    fixture_until(&f.handled, 1);
    http_server_unlisten(f.server, f.listener);
    g_assert_true(client_sees_close(fd));
    g_assert_cmpuint(f.gone, ==, 1);
    fixture_clear(&f);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/server/keep-alive", test_keep_alive);
    g_test_add_func("/server/pipelined", test_pipelined);
    g_test_add_func("/server/bodies", test_bodies);
    g_test_add_func("/server/split", test_split_at_every_byte);
    g_test_add_func("/server/streams", test_streams);
    g_test_add_func("/server/broken-stream", test_broken_stream_does_not_look_whole);
    g_test_add_func("/server/idle-gone", test_idle_stream_sees_the_client_go);
    g_test_add_func("/server/half-close", test_half_close_still_gets_its_answer);
    g_test_add_func("/server/forgotten", test_forgotten_answer);
    g_test_add_func("/server/expect", test_expect);
    g_test_add_func("/server/duplex", test_duplex);
    g_test_add_func("/server/hijack", test_hijack);
    g_test_add_func("/server/unread-body", test_unread_body_closes);
    g_test_add_func("/server/drain", test_drain);
    g_test_add_func("/server/unlisten", test_unlisten_cuts);
    return g_test_run();
}

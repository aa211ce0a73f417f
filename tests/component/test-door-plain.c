/* SPDX-License-Identifier: Apache-2.0 */
/* The plain proxy, its clients and its upstreams. */
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "door-world.h"
#include "http-fixture.h"

#define POLICY "{\"rules\": [{\"allow\": \"ok.test\"}, {\"allow\": \"ws.test\", \"upgrade\": true}]}"

static void
init(World *w)
{
    world_init(w, POLICY);
    world_name(w, "ok.test", "11.0.0.1", NULL);
    world_name(w, "ws.test", "11.0.0.2", NULL);
    world_name(w, "evil.test", "11.6.6.6", NULL);
}

static void
test_e10(void)
{
    World w;

    init(&w);
    g_autofree char *evil = world_ask(
        &w, "GET http://evil.test/ HTTP/1.1\r\nHost: ok.test\r\nConnection: close\r\n\r\n", NULL);
    g_assert_cmpint(answer_status(evil), ==, 403);
    g_autofree char *ok = world_ask(
        &w, "GET http://OK.test:80/x HTTP/1.1\r\nHost: evil.test\r\nConnection: close\r\n\r\n", NULL);
    g_assert_cmpint(answer_status(ok), ==, 200);
    g_assert_nonnull(strstr(ok, "\nGET /x HTTP/1.1\r\nHost: ok.test\r\n"));
    g_assert_null(strstr(ok, "evil.test"));
    g_assert_false(world_was_reached(&w, "11.6.6.6"));
    world_clear(&w);
}

/* What CONNECT refuses the plain proxy refuses, and the other way round. */
static void
test_e11(void)
{
    static const struct {
        const char *authority;
        bool allowed;
    } cases[] = {{"ok.test:80", true},   {"evil.test:80", false}, {"ok.test:22", false},
                 {"11.0.0.1:80", false}, {"127.0.0.1:80", false}, {"[::1]:80", false}};
    World w;

    init(&w);
    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *request = g_strdup_printf(
            "GET http://%s/ HTTP/1.1\r\nHost: ok.test\r\nConnection: close\r\n\r\n", cases[i].authority);
        g_autofree char *answer = world_ask(&w, request, NULL);
        autofd fd = world_tunnel(&w, cases[i].authority, NULL);

        g_assert_cmpint(answer_status(answer), ==, cases[i].allowed ? 200 : 403);
        g_assert_cmpint(fd >= 0, ==, cases[i].allowed);
    }
    world_clear(&w);
}

static void
test_e14(void)
{
    World w;

    init(&w);
    autofd fd = world_connect(&w);
    client_sends(fd, "GET http://ok.test/1 HTTP/1.1\r\nHost: ok.test\r\n\r\n");
    g_autofree char *first = g_string_free(client_read(fd, "GET /1"), FALSE);
    g_assert_cmpint(answer_status(first), ==, 200);
    client_sends(fd, "GET http://evil.test/2 HTTP/1.1\r\nHost: ok.test\r\n\r\n");
    g_autofree char *second = g_string_free(client_read(fd, "--box"), FALSE);
    g_assert_nonnull(strstr(second, "HTTP/1.1 403 "));
    client_sends(fd, "GET http://ok.test/3 HTTP/1.1\r\nHost: ok.test\r\n\r\n");
    g_autofree char *third = g_string_free(client_read(fd, "GET /3"), FALSE);
    g_assert_nonnull(strstr(third, "HTTP/1.1 200 "));
    g_assert_false(world_was_reached(&w, "11.6.6.6"));
    world_clear(&w);
}

static void
test_e16(void)
{
    World w;

    init(&w);
    w.script = "HTTP/1.1 302 Found\r\nLocation: http://169.254.169.254/latest\r\nContent-Length: 0\r\n\r\n";
    g_autofree char *answer = world_ask(
        &w, "GET http://ok.test/ HTTP/1.1\r\nHost: ok.test\r\nConnection: close\r\n\r\n", NULL);
    g_assert_cmpint(answer_status(answer), ==, 302);
    g_assert_nonnull(strstr(answer, "Location: http://169.254.169.254/latest"));
    g_assert_cmpuint(w.reached->len, ==, 1);
    world_clear(&w);
}

#define WISH(protocol)                                                                                       \
    "Connection: Upgrade, X-Named, HTTP2-Settings\r\nUpgrade: " protocol                                     \
    "\r\nX-Named: 1\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n\r\n"

static void
test_e20(void)
{
    World w;

    init(&w);
    g_autofree char *ws = world_ask(&w, "GET http://ok.test/ HTTP/1.1\r\nHost: ok.test\r\n" WISH("websocket"),
                                    "Connection: close\r\n\r\n");
    g_assert_cmpint(answer_status(ws), ==, 200); /* as if it had not asked */
    g_assert_null(strstr(ws, "Upgrade"));
    g_assert_null(strstr(ws, "X-Named"));
    g_autofree char *h2c = world_ask(&w, "GET http://ws.test/ HTTP/1.1\r\nHost: ok.test\r\n" WISH("h2c"),
                                     "Connection: close\r\n\r\n");
    g_assert_null(strstr(h2c, "pgrade"));
    g_assert_null(strstr(h2c, "HTTP2-Settings"));
    w.script = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n";
    g_autofree char *forced = world_ask(
        &w, "GET http://ok.test/ HTTP/1.1\r\nHost: ok.test\r\n" WISH("websocket"), "\r\n\r\n");
    g_assert_cmpint(answer_status(forced), ==, 502);
    g_autofree char *allowed = world_ask(
        &w, "GET http://ws.test/ HTTP/1.1\r\nHost: ws.test\r\n" WISH("websocket"), "\r\n\r\n");
    g_assert_cmpint(answer_status(allowed), ==, 101);
    world_clear(&w);
}

static void
test_e21(void)
{
    World w;
    g_autoptr(GString) many = g_string_new("GET http://ok.test/ HTTP/1.1\r\nHost: ok.test\r\n");
    g_autoptr(GString) large = g_string_new("GET http://ok.test/ HTTP/1.1\r\nHost: ok.test\r\nX: ");
    g_autoptr(GString) endless = g_string_new("POST http://ok.test/ HTTP/1.1\r\nHost: ok.test\r\n"
                                              "Transfer-Encoding: chunked\r\n\r\n1;x=");

    init(&w);
    for (guint i = 0; i < 200; i++)
        g_string_append_printf(many, "X-%u: 1\r\n", i);
    g_string_append(many, "\r\n");
    for (guint i = 0; i < 17 * 1024; i++)
        g_string_append_c(large, 'a');
    g_string_append(large, "\r\n\r\n");
    for (guint i = 0; i < 64 * 1024; i++)
        g_string_append_c(endless, 'a');
    g_autofree char *a = world_ask(&w, many->str, "\r\n\r\n");
    g_assert_cmpint(answer_status(a), ==, 431);
    g_autofree char *b = world_ask(&w, large->str, "\r\n\r\n");
    g_assert_cmpint(answer_status(b), ==, 431);
    g_autofree char *c = world_ask(&w, endless->str, "\r\n\r\n");
    g_assert_cmpint(answer_status(c), ==, 400);

    /* Dripping bytes hold nobody up; that they end after 10 s is the HTTP layer's own test. */
    autofd slow = world_connect(&w);
    client_sends(slow, "GET http://ok.te");
    g_autofree char *ok = world_ask(
        &w, "GET http://ok.test/ HTTP/1.1\r\nHost: ok.test\r\nConnection: close\r\n\r\n", NULL);
    g_assert_cmpint(answer_status(ok), ==, 200);
    world_clear(&w);
}

static void
test_connections(void)
{
    World w;
    int fds[DOOR_BOX_CONNECTIONS + 8];
    guint shed = 0;

    init(&w);
    for (size_t i = 0; i < G_N_ELEMENTS(fds); i++) {
        fds[i] = world_connect(&w);
        fixture_turn();
    }
    for (size_t i = DOOR_BOX_CONNECTIONS; i < G_N_ELEMENTS(fds); i++) {
        g_autofree char *answer = g_string_free(client_read(fds[i], NULL), FALSE);

        shed += answer_status(answer) == 503;
    }
    g_assert_cmpuint(shed, ==, G_N_ELEMENTS(fds) - DOOR_BOX_CONNECTIONS);
    for (size_t i = 0; i < G_N_ELEMENTS(fds); i++)
        close(fds[i]);
    world_clear(&w);
}

#define POST "POST http://ok.test/ HTTP/1.1\r\nHost: ok.test\r\n"

static void
test_e22_e23(void)
{
    static const char *const requests[] = {
        POST "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        POST "Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello",
        POST "Content-Length: +5\r\n\r\nhello",
        POST "Content-Length: 0x5\r\n\r\nhello",
        POST "Content-Length: 5, 5\r\n\r\nhello",
        POST "Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
        POST "Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n",
        POST "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        POST "X: a\r\n b\r\n\r\n",
        POST "X : a\r\n\r\n",
        POST "X: a\nY: b\n\n",
        POST "Transfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\nx\r\n",
        POST "Transfer-Encoding: chunked\r\n\r\n-1\r\nx\r\n",
        POST "Transfer-Encoding: chunked\r\n\r\n1\r\nxy\r\n",
        POST "Transfer-Encoding: chunked\r\n\r\n1\nx\n0\n\n",
        "POST http://ok.test/ HTTP/1.1\r\n\r\n",
        POST "Host: evil.test\r\n\r\n",
    };
    World w;

    init(&w);
    for (size_t i = 0; i < G_N_ELEMENTS(requests); i++) {
        g_autofree char *answer = world_ask(&w, requests[i], NULL); /* and closed */

        g_test_message("%s", requests[i]);
        g_assert_cmpint(answer_status(answer), ==, 400);
        g_assert_null(strstr(answer, "canary"));
    }
    world_clear(&w);
}

static void
test_e24(void)
{
    g_autofree char *huge = g_strnfill(200 * 1024, 'a');
    g_autofree char *status_line = g_strdup_printf("HTTP/1.1 200 %s\r\n\r\n", huge);
    const struct {
        const char *script;
        int status; /* 0: cut in the middle */
    } cases[] = {
        {"hello\r\n", 502}, /* HTTP/0.9 */
        {"HTTP/2.0 200 OK\r\n\r\n", 502},
        {status_line, 502},
        {"HTTP/1.1 99 X\r\n\r\n", 502},
        {"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello", 502},
        {"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\nhello", 502},
        {"HTTP/1.1 200 OK\r\nX: a\r\n b\r\nContent-Length: 0\r\n\r\n", 502},
        {"HTTP/1.1 200 OK\r\nX\x01: a\r\nContent-Length: 0\r\n\r\n", 502},
        {"HTTP/1.1 100 Continue\r\nContent-Length: 5\r\n\r\nhello", 502},
        {"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\n\r\n", 502},
        {"", 502},
        {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", 0},
        {"HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\nhello", 0},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        World w;

        init(&w);
        w.script = cases[i].script;
        w.script_ends = true;
        g_autofree char *answer = world_ask(
            &w, "GET http://ok.test/ HTTP/1.1\r\nHost: ok.test\r\nConnection: close\r\n\r\n", NULL);
        g_test_message("%.80s", cases[i].script);
        if (cases[i].status != 0)
            g_assert_cmpint(answer_status(answer), ==, cases[i].status);
        else /* neither the last chunk nor the whole length */
            g_assert_false(g_str_has_suffix(answer, "0\r\n\r\n"));
        world_clear(&w);
    }
}

static void
test_bytes(void)
{
    World w;
    DoorStats stats;

    init(&w);
    g_autofree char *answer = world_ask(&w, POST "Content-Length: 5\r\nConnection: close\r\n\r\nhello", NULL);
    g_assert_cmpint(answer_status(answer), ==, 200);
    door_stats(w.door, &stats);
    g_assert_cmpuint(stats.bytes_out, >=, 5);
    g_assert_cmpuint(stats.bytes_in, >=, strlen(answer_body(answer)));
    Json *fact = world_fact(&w, "door.closed", "ok.test");
    g_assert_cmpint(json_integer_value(json_object_get(fact, "bytes_out")), ==, (gint64)stats.bytes_out);
    g_assert_cmpint(json_integer_value(json_object_get(fact, "bytes_in")), ==, (gint64)stats.bytes_in);
    world_clear(&w);
}

/* 300 KiB at 150 KiB/s, of which one second's worth is there at once. */
enum { RATE = 150 * 1024, RATE_SIZE = 300 * 1024, RATE_US = G_USEC_PER_SEC / 2 };

static gint64
init_rate(World *w)
{
    DoorLimits limits = DOOR_LIMITS_INIT;

    init(w);
    limits.bytes_per_s = RATE;
    door_set_limits(w->box, &limits);
    return clock_mono_us();
}

static void
test_rate_down(void)
{
    g_autofree char *body = g_strnfill(RATE_SIZE, 'x');
    g_autofree char *script = g_strdup_printf("HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", RATE_SIZE,
                                              body);
    World w;
    gint64 start = init_rate(&w);

    w.script = script;
    g_autofree char *answer = world_ask(&w, POST "Connection: close\r\n\r\n", NULL);
    g_assert_cmpuint(strlen(answer_body(answer)), ==, RATE_SIZE);
    g_assert_cmpint(clock_mono_us() - start, >, RATE_US);
    world_clear(&w);
}

static void
test_rate_up(void)
{
    g_autofree char *body = g_strnfill(RATE_SIZE, 'x');
    g_autofree char *request = g_strdup_printf(POST "Content-Length: %d\r\n\r\n%s", RATE_SIZE, body);
    World w;
    gint64 start = init_rate(&w);
    autofd fd = world_connect(&w);

    w.patience = RATE_SIZE;
    client_sends(fd, request);
    while (w.got->len < RATE_SIZE)
        g_main_context_iteration(NULL, TRUE);
    g_assert_cmpint(clock_mono_us() - start, >, RATE_US);
    world_clear(&w);
}

static void
test_own_paths(void)
{
    World w;

    init(&w);
    g_autofree char *root = world_ask(&w, "GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", NULL);
    g_assert_cmpint(answer_status(root), ==, 200);
    g_autofree char *model = world_ask(
        &w, "GET /openai/v1/models HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", NULL);
    g_assert_cmpint(answer_status(model), ==, 404); /* there is no gateway */
    world_clear(&w);
}

int
main(int argc, char **argv)
{
    if (!world_enter(&argc, &argv))
        return 0;
    g_test_add_func("/door/E10-host-header", test_e10);
    g_test_add_func("/door/E11-both-ways-alike", test_e11);
    g_test_add_func("/door/E14-each-request", test_e14);
    g_test_add_func("/door/E16-redirects", test_e16);
    g_test_add_func("/door/E20-upgrade", test_e20);
    g_test_add_func("/door/E21-slow-and-large", test_e21);
    g_test_add_func("/door/E21-connections", test_connections);
    g_test_add_func("/door/E22-E23-framing", test_e22_e23);
    g_test_add_func("/door/E24-bad-upstreams", test_e24);
    g_test_add_func("/door/bytes", test_bytes);
    g_test_add_func("/door/rate-down", test_rate_down);
    g_test_add_func("/door/rate-up", test_rate_up);
    g_test_add_func("/door/own-paths", test_own_paths);
    return g_test_run();
}

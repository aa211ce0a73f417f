/* SPDX-License-Identifier: Apache-2.0 */
/* What the server does with requests that no honest client sends: one row, one case. */
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "http-fixture.h"

#define H "Host: a\r\n"
#define POST "POST /echo HTTP/1.1\r\n" H
#define CHUNKED POST "Transfer-Encoding: chunked\r\n\r\n"

/* Some requests contain NUL. */
#define ROW(name, request, status)                                                                           \
    {                                                                                                        \
        name, request, sizeof(request) - 1, status                                                           \
    }

static const struct {
    const char *name, *request;
    size_t n;
    int status;
} rows[] = {
    ROW("length-and-chunked", POST "Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400),
    ROW("chunked-and-length", POST "Transfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n0\r\n\r\n", 400),
    ROW("two-lengths", POST "Content-Length: 1\r\nContent-Length: 2\r\n\r\nab", 400),
    ROW("two-equal-lengths", POST "Content-Length: 1\r\nContent-Length: 1\r\n\r\na", 400),
    ROW("length-plus", POST "Content-Length: +1\r\n\r\na", 400),
    ROW("length-minus", POST "Content-Length: -1\r\n\r\na", 400),
    ROW("length-hex", POST "Content-Length: 0x1\r\n\r\na", 400),
    ROW("length-list", POST "Content-Length: 1, 1\r\n\r\na", 400),
    ROW("length-empty", POST "Content-Length: \r\n\r\na", 400),
    ROW("length-huge", POST "Content-Length: 99999999999999999999\r\n\r\na", 400),
    ROW("length-space-inside", POST "Content-Length: 1 1\r\n\r\na", 400),
    ROW("coding-unknown", POST "Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n", 400),
    ROW("coding-gzip-chunked", POST "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", 400),
    ROW("coding-identity", POST "Transfer-Encoding: identity\r\n\r\n", 400),
    ROW("coding-twice", POST "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        400),
    ROW("coding-in-1.0", "POST /echo HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400),
    ROW("chunk-minus", CHUNKED "-1\r\na\r\n0\r\n\r\n", 400),
    ROW("chunk-0x", CHUNKED "0x1\r\na\r\n0\r\n\r\n", 400),
    ROW("chunk-overflow", CHUNKED "fffffffffffffffff\r\na\r\n", 400),
    ROW("chunk-max", CHUNKED "ffffffffffffffff\r\na\r\n", 400),
    ROW("chunk-empty-size", CHUNKED "\r\na\r\n0\r\n\r\n", 400),
    ROW("chunk-bare-lf", CHUNKED "1\na\n0\n\n", 400),
    ROW("chunk-no-crlf-after", CHUNKED "1\r\nab0\r\n\r\n", 400),
    ROW("bare-lf", "GET /hello HTTP/1.1\nHost: a\n\n", 400),
    ROW("bare-lf-in-headers", "GET /hello HTTP/1.1\r\nHost: a\nX: y\r\n\r\n", 400),
    ROW("bare-cr", "GET /hello HTTP/1.1\r\nHost: a\rX: y\r\n\r\n", 400),
    ROW("nul-in-value", "GET /hello HTTP/1.1\r\n" H "X: a\0b\r\n\r\n", 400),
    ROW("nul-in-target", "GET /he\0lo HTTP/1.1\r\n" H "\r\n", 400),
    ROW("control-in-value", "GET /hello HTTP/1.1\r\n" H "X: a\001b\r\n\r\n", 400),
    ROW("no-colon", "GET /hello HTTP/1.1\r\n" H "nocolon\r\n\r\n", 400),
    ROW("method-odd", "G(T /hello HTTP/1.1\r\n" H "\r\n", 400),
    ROW("method-lower", "get /hello HTTP/1.1\r\n" H "\r\n", 400),
    ROW("two-hosts", "GET /hello HTTP/1.1\r\n" H "Host: b\r\n\r\n", 400),
    ROW("no-host", "GET /hello HTTP/1.1\r\n\r\n", 400),
    ROW("space-before-colon", "GET /hello HTTP/1.1\r\nHost : a\r\n\r\n", 400),
    ROW("empty-name", "GET /hello HTTP/1.1\r\n" H ": x\r\n\r\n", 400),
    ROW("name-not-token", "GET /hello HTTP/1.1\r\n" H "a@b: x\r\n\r\n", 400),
    ROW("fold", "GET /hello HTTP/1.1\r\n" H "X: a\r\n b\r\n\r\n", 400),
    ROW("fold-tab", "GET /hello HTTP/1.1\r\n" H "X: a\r\n\tb\r\n\r\n", 400),
    ROW("fold-first", "GET /hello HTTP/1.1\r\n " H "\r\n", 400),
    ROW("fold-length", POST "X: a\r\n Content-Length: 5\r\n\r\nhello", 400),
    ROW("http-0.9", "GET /hello\r\n\r\n", 505),
    ROW("http-2.0", "GET /hello HTTP/2.0\r\n" H "\r\n", 505),
    ROW("http-1.2", "GET /hello HTTP/1.2\r\n" H "\r\n", 505),
    ROW("http-preface", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 400),
    ROW("tls-hello", "\026\003\001\002\000\001\000\001\374\003\003", 400),
    ROW("fragment", "GET /hello#x HTTP/1.1\r\n" H "\r\n", 400),
    ROW("high-bit-target", "GET /h\xc3\xa9 HTTP/1.1\r\n" H "\r\n", 400),
    ROW("space-in-target", "GET /he llo HTTP/1.1\r\n" H "\r\n", 400),
    ROW("upgrade-with-body",
        "POST /duplex HTTP/1.1\r\n" H "Connection: Upgrade\r\nUpgrade: echo\r\nContent-Length: 1\r\n\r\na",
        400),
};

static void
test_row(gconstpointer data)
{
    size_t i = GPOINTER_TO_SIZE(data);
    size_t n = rows[i].n;
    Fixture f;

    fixture_init(&f, NULL);
    /* Whole, and then byte by byte. */
    for (size_t step = n; step > 0; step = step == n ? 1 : 0) {
        autofd fd = fixture_connect(&f);

        for (size_t at = 0; at < n; at += step) {
            client_send(fd, rows[i].request + at, MIN(step, n - at));
            fixture_turn();
        }
        g_autoptr(GString) answer = client_read(fd, NULL);
        g_assert_cmpint(answer_status(answer->str), ==, rows[i].status);
        g_assert_nonnull(strstr(answer->str, "Connection: close\r\n"));
        g_assert_null(strstr(answer_body(answer->str), "\r\n")); /* one answer, no reuse */
        if (n == 1)
            break;
    }
    g_autofree char *next = client_ask(&f, "GET /hello HTTP/1.1\r\n" H "Connection: close\r\n\r\n");
    g_assert_cmpint(answer_status(next), ==, 200);
    fixture_clear(&f);
}

/* ---- floods: a unit is sent until the server answers ---- */

static const struct {
    const char *name, *start, *unit;
    int status;
} floods[] = {
    {"long-target", "GET /", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", 414},
    {"many-headers", "GET /hello HTTP/1.1\r\n" H, "A: b\r\n", 431},
    {"long-header", "GET /hello HTTP/1.1\r\n" H "A: ", "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb", 431},
    {"long-name", "GET /hello HTTP/1.1\r\n" H, "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", 431},
    {"padding", "GET /hello HTTP/1.1\r\n" H "A:", "                                ", 431},
    {"empty-lines", "", "\r\n\r\n\r\n\r\n", 431},
    {"chunk-extension", CHUNKED "1;", "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx", 400},
    {"trailers", CHUNKED "0\r\n", "T: ttttttttttttttttttttttttttttt\r\n", 400},
    {"zeros-in-size", CHUNKED, "00000000000000000000000000000000", 400},
    {"too-much-body", CHUNKED "7fffffff\r\n", "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx", 413},
};

static void
test_flood(gconstpointer data)
{
    size_t i = GPOINTER_TO_SIZE(data);
    g_autoptr(GString) text = g_string_new(floods[i].start);
    Fixture f;

    while (text->len < 1200 * 1024)
        g_string_append(text, floods[i].unit);
    fixture_init(&f, NULL);
    autofd fd = fixture_connect(&f);
    client_send(fd, text->str, text->len);
    g_autoptr(GString) answer = client_read(fd, NULL);
    g_assert_cmpint(answer_status(answer->str), ==, floods[i].status);
    fixture_clear(&f);
}

/* ---- clients that are too slow ---- */

static void
test_slow_head(void)
{
    HttpLimits limits = HTTP_LIMITS_INIT;
    Fixture f;

    limits.header_ms = 30;
    fixture_init(&f, &limits);
    g_autofree char *answer = client_ask(&f, "GET /hello HTTP/1.1\r\nHo");
    g_assert_cmpint(answer_status(answer), ==, 408);
    g_autofree char *silent = client_ask(&f, "");
    g_assert_cmpstr(silent, ==, "");
    fixture_clear(&f);
}

static void
test_slow_body(void)
{
    HttpLimits limits = HTTP_LIMITS_INIT;
    Fixture f;

    limits.body_stall_ms = 30;
    fixture_init(&f, &limits);
    g_autofree char *answer = client_ask(&f, POST "Content-Length: 5\r\n\r\nab");
    g_assert_cmpint(answer_status(answer), ==, 413); /* what the fixture makes of any error */
    fixture_clear(&f);
}

static void
test_stalled_reader(void)
{
    HttpLimits limits = HTTP_LIMITS_INIT;
    Fixture f;

    limits.write_stall_ms = 50;
    fixture_init(&f, &limits);
    autofd fd = fixture_connect(&f);
    client_sends(fd, "GET /stream/1000000000 HTTP/1.1\r\n" H "\r\n");
    fixture_until(&f.gone, 1);
    fixture_clear(&f);
}

static void
test_idle_keep_alive(void)
{
    HttpLimits limits = HTTP_LIMITS_INIT;
    Fixture f;

    limits.idle_ms = 30;
    fixture_init(&f, &limits);
    autofd fd = fixture_connect(&f);
    client_sends(fd, "GET /hello HTTP/1.1\r\n" H "\r\n");
    g_autoptr(GString) answer = client_read(fd, NULL);
    g_assert_cmpstr(answer_body(answer->str), ==, "hello\n");
    fixture_clear(&f);
}

/* ---- clients that vanish at every byte, in both directions ---- */

static void
test_vanish(void)
{
    static const char request[] = CHUNKED "5\r\nhello\r\n0\r\n\r\nGET /stream/10000 HTTP/1.1\r\n" H "\r\n";
    Fixture f;

    fixture_init(&f, NULL);
    for (size_t at = 0; at < sizeof request; at++) {
        int fd = fixture_connect(&f);

        client_send(fd, request, at);
        close(fd);
        fixture_turn();
    }
    g_autofree char *next = client_ask(&f, "GET /hello HTTP/1.1\r\n" H "Connection: close\r\n\r\n");
    g_assert_cmpint(answer_status(next), ==, 200);
    fixture_clear(&f);
}

static void
test_connection_limit(void)
{
    HttpLimits limits = HTTP_LIMITS_INIT;
    Fixture f;

    limits.connections = 2;
    fixture_init(&f, &limits);
    autofd one = fixture_connect(&f);
    int two = fixture_connect(&f);
    fixture_turn();
    g_autofree char *shed = client_ask(&f, "");
    g_assert_cmpint(answer_status(shed), ==, 503);
    g_assert_cmpuint(strlen(answer_body(shed)), ==, 57);
    close(two);
    fixture_turn();
    g_autofree char *next = client_ask(&f, "GET /hello HTTP/1.1\r\n" H "Connection: close\r\n\r\n");
    g_assert_cmpint(answer_status(next), ==, 200);
    fixture_clear(&f);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    for (size_t i = 0; i < G_N_ELEMENTS(rows); i++) {
        g_autofree char *name = g_strdup_printf("/hostile/row/%s", rows[i].name);
        g_test_add_data_func(name, GSIZE_TO_POINTER(i), test_row);
    }
    for (size_t i = 0; i < G_N_ELEMENTS(floods); i++) {
        g_autofree char *name = g_strdup_printf("/hostile/flood/%s", floods[i].name);
        g_test_add_data_func(name, GSIZE_TO_POINTER(i), test_flood);
    }
    g_test_add_func("/hostile/slow/head", test_slow_head);
    g_test_add_func("/hostile/slow/body", test_slow_body);
    g_test_add_func("/hostile/slow/reader", test_stalled_reader);
    g_test_add_func("/hostile/slow/idle", test_idle_keep_alive);
    g_test_add_func("/hostile/vanish", test_vanish);
    g_test_add_func("/hostile/connections", test_connection_limit);
    return g_test_run();
}

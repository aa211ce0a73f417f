/* SPDX-License-Identifier: Apache-2.0 */
/* What the server does with requests that no honest client sends: one row, one case.  The
 * rows are in tests/data, because the whole program is tried with them too. */
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "http-fixture.h"
#include "json/json.h"

#define H "Host: a\r\n"
#define POST "POST /echo HTTP/1.1\r\n" H
#define CHUNKED POST "Transfer-Encoding: chunked\r\n\r\n"

static Json *
load_table(void)
{
    g_autofree char *path = g_test_build_filename(G_TEST_DIST, "data", "hostile-requests.json", NULL);
    json_error_t error;
    Json *table = json_load_file(path, JSON_ALLOW_NUL, &error);

    if (table == NULL)
        g_error("%s: %s", path, error.text);
    return table;
}

static const char *
row_name(const Json *row)
{
    return json_string_value(json_object_get(row, "name"));
}

static int
row_status(const Json *row)
{
    return (int)json_integer_value(json_object_get(row, "status"));
}

/* A character of the table stands for one byte; {host}, {get} and {post} for what serves. */
static GString *
row_bytes(const Json *row, const char *member)
{
    const Json *text = json_object_get(row, member);
    const char *p = json_string_value(text), *end = p + json_string_length(text);
    GString *bytes = g_string_new(NULL);

    for (; p < end; p += g_utf8_skip[(guchar)*p])
        g_string_append_c(bytes, (char)g_utf8_get_char(p));
    /* These stand before the NULs that some rows contain. */
    g_string_replace(bytes, "{host}", "a", 0);
    g_string_replace(bytes, "{post}", "/echo", 0);
    g_string_replace(bytes, "{get}", "/hello", 0);
    return bytes;
}

static void
test_row(gconstpointer data)
{
    g_autoptr(GString) request = row_bytes(data, "request");
    size_t n = request->len;
    Fixture f;

    fixture_init(&f, NULL);
    /* Whole, and then byte by byte. */
    for (size_t step = n; step > 0; step = step == n ? 1 : 0) {
        autofd fd = fixture_connect(&f);

        for (size_t at = 0; at < n; at += step) {
            client_send(fd, request->str + at, MIN(step, n - at));
            fixture_turn();
        }
        g_autoptr(GString) answer = client_read(fd, NULL);
        g_assert_cmpint(answer_status(answer->str), ==, row_status(data));
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

static void
test_flood(gconstpointer data)
{
    g_autoptr(GString) text = row_bytes(data, "start");
    g_autoptr(GString) unit = row_bytes(data, "unit");
    Fixture f;

    while (text->len < 1200 * 1024)
        g_string_append_len(text, unit->str, (gssize)unit->len);
    fixture_init(&f, NULL);
    autofd fd = fixture_connect(&f);
    client_send(fd, text->str, text->len);
    g_autoptr(GString) answer = client_read(fd, NULL);
    g_assert_cmpint(answer_status(answer->str), ==, row_status(data));
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

static void
add_rows(const Json *table, const char *member, void (*test)(gconstpointer row))
{
    const Json *rows = json_object_get(table, member);

    g_assert_cmpuint(json_array_size(rows), >, 0);
    for (size_t i = 0; i < json_array_size(rows); i++) {
        const Json *row = json_array_get(rows, i);
        g_autofree char *name = g_strdup_printf("/hostile/%s/%s", member, row_name(row));

        g_test_add_data_func(name, row, test);
    }
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_autoptr(Json) table = load_table();

    add_rows(table, "rows", test_row);
    add_rows(table, "floods", test_flood);
    g_test_add_func("/hostile/slow/head", test_slow_head);
    g_test_add_func("/hostile/slow/body", test_slow_body);
    g_test_add_func("/hostile/slow/reader", test_stalled_reader);
    g_test_add_func("/hostile/slow/idle", test_idle_keep_alive);
    g_test_add_func("/hostile/vanish", test_vanish);
    g_test_add_func("/hostile/connections", test_connection_limit);
    return g_test_run();
}

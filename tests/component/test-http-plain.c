/* SPDX-License-Identifier: Apache-2.0 */
/* The client that waits, against servers that play given bytes. */
#include <errno.h>
#include <glib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "http-script.h"
#include "http/plain/client.h"

#define OK "HTTP/1.1 200 OK\r\n"
#define HELLO OK "Content-Length: 5\r\n\r\nhello"

enum { SHORT_MS = 100, LONG_MS = 60 * 1000 };

static PlainClient *
open_client(const Script *script)
{
    g_autofree char *url = script_url(script, "/base/");
    g_autoptr(GError) error = NULL;
    PlainClient *client = plain_client_new(url, &error);

    g_assert_no_error(error);
    return client;
}

static bool
get(PlainClient *client, PlainAnswer *ret_answer, GError **error)
{
    return plain_call(client,
                      &(PlainCall){.method = "GET", .path = "/x", .head_ms = LONG_MS, .stall_ms = LONG_MS},
                      ret_answer, error);
}

/* ---- answers ---- */

static const struct {
    const char *name, *bytes;
    int status;
    const char *body;
    bool until_close; /* less of it is an answer too, once the head is there */
} answers[] = {
    {"length", HELLO, 200, "hello"},
    {"empty", OK "Content-Length: 0\r\n\r\n", 200, ""},
    {"no content", "HTTP/1.1 204 No Content\r\n\r\n", 204, ""},
    {"chunked", OK "Transfer-Encoding: chunked\r\n\r\n3\r\nhel\r\n2;x=y\r\nlo\r\n0\r\nA: b\r\n\r\n", 200,
     "hello"},
    {"interim", "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early\r\nLink: </a>\r\n\r\n" HELLO, 200, "hello"},
    {"error", "HTTP/1.1 503 No\r\nRetry-After: 7\r\nContent-Length: 4\r\n\r\naway", 503, "away"},
    {"until close", OK "\r\nhello", 200, "hello", true},
};

static void
test_answers(void)
{
    for (size_t i = 0; i < G_N_ELEMENTS(answers); i++) {
        size_t whole = strlen(answers[i].bytes);

        for (size_t n = 1; n <= whole; n++) {
            const ScriptStep steps[] = {{SCRIPT_REQUEST}, {SCRIPT_SEND, answers[i].bytes, n}, {SCRIPT_CLOSE}};
            g_autoptr(Script) script = script_serve_one(steps);
            g_autoptr(PlainClient) client = open_client(script);
            g_auto(PlainAnswer) answer = {0};
            g_autoptr(GError) error = NULL;
            bool came = get(client, &answer, &error);

            g_test_message("%s, %zu of %zu bytes", answers[i].name, n, whole);
            if (n == whole) {
                g_assert_no_error(error);
                g_assert_cmpint(answer.status, ==, answers[i].status);
                g_assert_cmpstr(answer.body->str, ==, answers[i].body);
            } else if (!came) {
                g_assert_error(error, ERR_DOMAIN, ERR_UNAVAILABLE);
            } else {
                g_assert_true(answers[i].until_close);
            }
        }
    }
}

static void
test_hostile(void)
{
    static const struct {
        const char *bytes;
        guint64 fill;
        ErrKind kind;
    } cases[] = {
        {"nonsense\r\n\r\n", 0, ERR_INVALID},
        {OK "Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello", 0, ERR_INVALID},
        {OK "Transfer-Encoding: chunked\r\n\r\nzz\r\n", 0, ERR_INVALID},
        {OK "X: ", 1 << 20, ERR_INVALID},
        {OK "\r\n", 64 << 20, ERR_LIMIT},
        {OK "Content-Length: 99999999999\r\n\r\n", 64 << 20, ERR_LIMIT},
        {"HTTP/1.1 500 No\r\n\r\n", 64 << 20, ERR_LIMIT},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        const ScriptStep steps[] = {{SCRIPT_REQUEST},
                                    {SCRIPT_SEND, cases[i].bytes},
                                    {cases[i].fill > 0 ? SCRIPT_FILL : SCRIPT_CLOSE, NULL, cases[i].fill},
                                    {SCRIPT_CLOSE}};
        g_autoptr(Script) script = script_serve_one(steps);
        g_autoptr(PlainClient) client = open_client(script);
        g_auto(PlainAnswer) answer = {0};
        g_autoptr(GError) error = NULL;

        g_assert_false(get(client, &answer, &error));
        g_test_message("%s", error->message);
        g_assert_error(error, ERR_DOMAIN, (int)cases[i].kind);
        g_assert_cmpuint(answer.body->len, <=, PLAIN_BODY_MAX);
    }
}

/* ---- connections ---- */

static void
test_kept(void)
{
    static const ScriptStep steps[] = {{SCRIPT_REQUEST}, {SCRIPT_SEND, HELLO}, {SCRIPT_AGAIN}};
    g_autoptr(Script) script = script_serve_one(steps);
    g_autoptr(PlainClient) client = open_client(script);

    for (guint i = 0; i < 5; i++) {
        g_auto(PlainAnswer) answer = {0};

        g_assert_true(get(client, &answer, NULL));
    }
    g_assert_cmpuint(script_accepts(script), ==, 1);
}

/* One that was closed, or has said something unasked, is not used again. */
static void
test_stale(void)
{
    static const ScriptStep closes[] = {{SCRIPT_REQUEST}, {SCRIPT_SEND, HELLO}, {SCRIPT_CLOSE}};
    static const ScriptStep chatters[] = {
        {SCRIPT_REQUEST}, {SCRIPT_SEND, HELLO "HTTP/1.1 500 X\r\n\r\n"}, {SCRIPT_HOLD}, {SCRIPT_CLOSE}};
    static const ScriptStep *const cases[] = {closes, chatters};

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(Script) script = script_serve_one(cases[i]);
        g_autoptr(PlainClient) client = open_client(script);

        for (guint n = 0; n < 3; n++) {
            g_auto(PlainAnswer) answer = {0};
            g_autoptr(GError) error = NULL;

            /* The close may be under way while the next request is sent. */
            if (!get(client, &answer, &error))
                g_assert_error(error, ERR_DOMAIN, ERR_UNAVAILABLE);
            else
                g_assert_cmpstr(answer.body->str, ==, "hello");
        }
        g_assert_cmpuint(script_accepts(script), >=, 2);
    }
}

static void
test_nobody(void)
{
    g_autoptr(PlainClient) client = plain_client_new("http://127.0.0.1:1", NULL);
    g_auto(PlainAnswer) answer = {0};
    g_autoptr(GError) error = NULL;

    g_assert_false(get(client, &answer, &error));
    g_assert_error(error, ERR_DOMAIN, ERR_UNAVAILABLE);
    g_assert_cmpint(answer.status, ==, 0);
}

static void
test_bodies(void)
{
    static const size_t sizes[] = {0, 1, 1000, 100 * 1000, 3 * 1000 * 1000};
    static const ScriptStep steps[] = {{SCRIPT_REQUEST}, {SCRIPT_SEND, HELLO}, {SCRIPT_AGAIN}};
    g_autoptr(Script) script = script_serve_one(steps);
    g_autoptr(PlainClient) client = open_client(script);

    for (size_t i = 0; i < G_N_ELEMENTS(sizes); i++) {
        g_autofree guint8 *body = g_malloc(sizes[i] + 1);
        g_auto(PlainAnswer) answer = {0};
        const char *const headers[] = {"X-One: 1", "X-Two: 2", NULL};
        const PlainCall call = {.method = "POST",
                                .path = "/y?z=1",
                                .headers = headers,
                                .body = body,
                                .body_len = sizes[i],
                                .head_ms = LONG_MS,
                                .stall_ms = LONG_MS};

        script_pattern_fill(body, sizes[i], 0);
        g_assert_true(plain_call(client, &call, &answer, NULL));
        g_assert_cmpuint(script_body_len(script), ==, sizes[i]);
        g_assert_true(script_body_is_pattern(script));
        g_autofree char *head = script_dup_head(script);
        g_assert_true(g_str_has_prefix(head, "POST /y?z=1 HTTP/1.1\r\n"));
        g_assert_nonnull(strstr(head, "\r\nX-One: 1\r\nX-Two: 2\r\n"));
    }
}

/* ---- time ---- */

static void
test_times(void)
{
    static const ScriptStep silent[] = {{SCRIPT_REQUEST}, {SCRIPT_HOLD}, {SCRIPT_CLOSE}};
    static const ScriptStep stalls[] = {
        {SCRIPT_REQUEST}, {SCRIPT_SEND, OK "Content-Length: 5\r\n\r\nhel"}, {SCRIPT_HOLD}, {SCRIPT_CLOSE}};
    static const struct {
        const ScriptStep *steps;
        gint64 head_ms, stall_ms, deadline_ms;
    } cases[] = {
        {silent, SHORT_MS, LONG_MS, 0},
        {silent, LONG_MS, LONG_MS, SHORT_MS},
        {stalls, LONG_MS, SHORT_MS, 0},
        {stalls, LONG_MS, LONG_MS, SHORT_MS},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(Script) script = script_serve_one(cases[i].steps);
        g_autoptr(PlainClient) client = open_client(script);
        g_auto(PlainAnswer) answer = {0};
        g_autoptr(GError) error = NULL;
        gint64 begun_us = clock_mono_us();
        const PlainCall call = {
            .method = "GET",
            .path = "/",
            .head_ms = cases[i].head_ms,
            .stall_ms = cases[i].stall_ms,
            .deadline_us = cases[i].deadline_ms > 0 ? begun_us + cases[i].deadline_ms * 1000 : 0};

        g_assert_false(plain_call(client, &call, &answer, &error));
        g_assert_error(error, ERR_DOMAIN, ERR_TIMEOUT);
        g_assert_cmpint(clock_mono_us() - begun_us, >=, SHORT_MS * 1000);
    }
}

/* One that never stops has a deadline too. */
static bool
on_endless(int status, const void *bytes, size_t n, void *ctx)
{
    *(guint64 *)ctx += n;
    return true;
}

static void
test_endless(void)
{
    static const ScriptStep steps[] = {{SCRIPT_REQUEST},
                                       {SCRIPT_SEND, OK "\r\n"},
                                       {SCRIPT_FILL, NULL, G_GUINT64_CONSTANT(1) << 50},
                                       {SCRIPT_CLOSE}};
    g_autoptr(Script) script = script_serve_one(steps);
    g_autoptr(PlainClient) client = open_client(script);
    g_auto(PlainAnswer) answer = {0};
    g_autoptr(GError) error = NULL;
    guint64 got = 0;
    const PlainCall call = {.method = "GET",
                            .path = "/",
                            .head_ms = LONG_MS,
                            .stall_ms = LONG_MS,
                            .deadline_us = clock_mono_us() + SHORT_MS * 1000,
                            .on_body = on_endless,
                            .ctx = &got};

    g_assert_false(plain_call(client, &call, &answer, &error));
    g_assert_error(error, ERR_DOMAIN, ERR_TIMEOUT);
    g_assert_cmpuint(answer.body->len, ==, 0);
}

static void
test_cancel(void)
{
    static const ScriptStep steps[] = {{SCRIPT_REQUEST}, {SCRIPT_HOLD}, {SCRIPT_CLOSE}};
    g_autoptr(Script) script = script_serve_one(steps);
    g_autoptr(PlainClient) client = open_client(script);
    g_auto(PlainAnswer) answer = {0};
    g_autoptr(GError) error = NULL, pause_error = NULL;
    int fds[2];

    g_assert_cmpint(pipe(fds), ==, 0);
    plain_client_set_cancel(client, fds[0]);
    g_assert_true(plain_client_pause(client, 1, &error));
    g_assert_cmpint(write(fds[1], "x", 1), ==, 1);
    g_assert_false(get(client, &answer, &error));
    g_assert_error(error, ERR_DOMAIN, ERR_CANCELLED);
    g_assert_false(plain_client_pause(client, LONG_MS, &pause_error));
    g_assert_error(pause_error, ERR_DOMAIN, ERR_CANCELLED);
    close(fds[0]);
    close(fds[1]);
}

/* ---- addresses ---- */

static void
test_urls(void)
{
    static const struct {
        const char *url, *path; /* NULL: refused */
    } cases[] = {
        {"http://127.0.0.1:3128/openai/v1", "/openai/v1"},
        {"http://127.0.0.1:3128/anthropic/", "/anthropic"},
        {"http://127.0.0.1", ""},
        {"http://localhost:80/a?b#c", "/a"},
        {"http://[::1]:8080/x", "/x"},
        {"http://[::1]", ""},
        {"https://127.0.0.1/", NULL},
        {"http://example.org/", NULL},
        {"http://127.0.0.1:0/", NULL},
        {"http://127.0.0.1:99999/", NULL},
        {"http://127.0.0.1:x/", NULL},
        {"http://", NULL},
        {"http://user@127.0.0.1/", NULL},
        {"127.0.0.1", NULL},
        {"", NULL},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(GError) error = NULL;
        g_autoptr(PlainClient) client = plain_client_new(cases[i].url, &error);

        g_test_message("%s", cases[i].url);
        g_assert_cmpint(client != NULL, ==, cases[i].path != NULL);
        if (client == NULL) {
            g_assert_error(error, ERR_DOMAIN, ERR_INVALID);
            continue;
        }
        g_autofree char *path = plain_url_path(cases[i].url);
        g_assert_cmpstr(path, ==, cases[i].path);
    }
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/http/plain/answers", test_answers);
    g_test_add_func("/http/plain/hostile", test_hostile);
    g_test_add_func("/http/plain/kept", test_kept);
    g_test_add_func("/http/plain/stale", test_stale);
    g_test_add_func("/http/plain/nobody", test_nobody);
    g_test_add_func("/http/plain/bodies", test_bodies);
    g_test_add_func("/http/plain/times", test_times);
    g_test_add_func("/http/plain/endless", test_endless);
    g_test_add_func("/http/plain/cancel", test_cancel);
    g_test_add_func("/http/plain/urls", test_urls);
    return g_test_run();
}

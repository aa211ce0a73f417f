/* SPDX-License-Identifier: Apache-2.0 */
#include <glib.h>
#include <string.h>

#include "base/clock.h"
#include "http-probe.h"
#include "http-script.h"
#include "http/limits.h"

#define OK "HTTP/1.1 200 OK\r\n"
#define HUNDRED_BYTES                                                                                        \
    "0123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789"

enum { SHORT_MS = 60, LONG_MS = 60 * 1000, BIG = 16 << 20 };

typedef struct Answer {
    const char *name;
    const char *bytes;
    size_t n; /* 0: up to the NUL */
    const char *method;
    int status; /* 0: an error */
    const char *body;
    size_t spare; /* bytes at the end that may be missing */
} Answer;

static const Answer good_answers[] = {
    {"length", OK "Content-Length: 5\r\n\r\nhello", 0, "GET", 200, "hello"},
    {"empty", OK "Content-Length: 0\r\n\r\n", 0, "GET", 200, ""},
    {"until close", "HTTP/1.0 200 OK\r\n\r\nhello", 0, "GET", 200, "hello"},
    {"chunked", OK "Transfer-Encoding: chunked\r\n\r\n3\r\nhel\r\n2;x=y\r\nlo\r\n0\r\nA: b\r\n\r\n", 0, "GET",
     200, "hello"},
    {"no content", "HTTP/1.1 204 No Content\r\n\r\n", 0, "DELETE", 204, ""},
    {"not modified", "HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n", 0, "GET", 304, ""},
    {"head", OK "Content-Length: 5\r\n\r\n", 0, "HEAD", 200, ""},
    {"interim",
     "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n" OK
     "Content-Length: 2\r\n\r\nok",
     0, "POST", 200, "ok"},
    {"redirect", "HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 1\r\n\r\nx", 0,
     "GET", 302, "x"},
    {"error status", "HTTP/1.1 500 No\r\nContent-Length: 3\r\n\r\nbad", 0, "GET", 500, "bad"},
    {"refused early", "HTTP/1.1 401 Who\r\nWWW-Authenticate: Basic\r\nContent-Length: 0\r\n\r\n", 0, "GET",
     401, ""},
    {"bytes after the end", OK "Content-Length: 2\r\n\r\nokHTTP/1.1 500 X\r\n\r\n", 0, "GET", 200, "ok"},
};

static void
check_answer(HttpClient *client, const Answer *a, size_t n)
{
    const ScriptStep steps[] = {
        {SCRIPT_REQUEST}, {n > 0 ? SCRIPT_SEND : SCRIPT_CLOSE, a->bytes, n}, {SCRIPT_CLOSE}};
    g_autoptr(Script) script = script_serve_one(steps);
    g_autofree char *url = script_url(script, "/");
    g_auto(Probe) probe = probe_init(client);
    HttpCallSpec spec = HTTP_CALL_SPEC_INIT;

    g_test_message("%s, %zu bytes", a->name, n);
    spec.url = url;
    spec.method = a->method;
    probe_start(&probe, &spec);
    probe_wait(&probe);
    bool spared = n < strlen(a->bytes) && n >= strlen(a->bytes) - a->spare && probe.error != NULL;
    if (a->status != 0 && n >= strlen(a->bytes) - a->spare && !spared) {
        probe_check_ok(&probe, a->status, a->body);
    } else {
        probe_check_error(&probe, ERR_INVALID, "127.0.0.1:");
        g_assert_cmpint(probe.status, ==, probe.heads > 0 ? 200 : 0);
    }
}

static void
test_good_answers(void)
{
    g_autoptr(HttpClient) client = http_client_new(NULL);

    for (size_t i = 0; i < G_N_ELEMENTS(good_answers); i++)
        check_answer(client, &good_answers[i], strlen(good_answers[i].bytes));
}

/* Each byte that is missing at the end must be missed. */
static void
test_cut_answers(void)
{
    static const Answer answers[] = {
        {"length", OK "Content-Length: 5\r\nA: b\r\n\r\nhello", 0, "GET", 200, "hello"},
        /* Some releases of curl do not wait for the last LF, when all that counts has come. */
        {"chunked", OK "Transfer-Encoding: chunked\r\n\r\n3\r\nhel\r\n0\r\n\r\n", 0, "GET", 200, "hel", 1},
        {"interim", "HTTP/1.1 103 Hm\r\n\r\n" OK "Content-Length: 1\r\n\r\nx", 0, "GET", 200, "x"},
    };
    g_autoptr(HttpClient) client = http_client_new(NULL);

    for (size_t i = 0; i < G_N_ELEMENTS(answers); i++) {
        for (size_t n = 0; n <= strlen(answers[i].bytes); n++)
            check_answer(client, &answers[i], n);
    }
}

#define NUL_HEADER OK "A: b\0c\r\nContent-Length: 0\r\n\r\n"

static void
test_bad_answers(void)
{
    static const Answer answers[] = {
        {"not HTTP", "SSH-2.0-OpenSSH_9.2\r\n"},
        {"no version", "HTTP/x 200 OK\r\n\r\n"},
        {"no status", "HTTP/1.1 abc\r\n\r\n"},
        {"status 0", "HTTP/1.1 000 Nothing\r\nContent-Length: 0\r\n\r\n"},
        {"status 42", "HTTP/1.1 042 Low\r\nContent-Length: 0\r\n\r\n"},
        {"switching", "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\nbytes"},
        {"NUL in a header", NUL_HEADER, sizeof NUL_HEADER - 1},
        {"two lengths", OK "Content-Length: 1\r\nContent-Length: 2\r\n\r\nxx"},
        {"negative length", OK "Content-Length: -1\r\n\r\nxx"},
        {"length of letters", OK "Content-Length: ten\r\n\r\nxx"},
        {"length of 40 digits", OK "Content-Length: 9999999999999999999999999999999999999999\r\n\r\nx"},
        {"compressed transfer", OK "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n"},
        {"two codings", OK "Transfer-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"},
        {"chunk size", OK "Transfer-Encoding: chunked\r\n\r\nxyz\r\nhello\r\n0\r\n\r\n"},
        {"chunk size of 20 digits",
         OK "Transfer-Encoding: chunked\r\n\r\nfffffffffffffffffffff\r\nhello\r\n"},
        {"chunk end", OK "Transfer-Encoding: chunked\r\n\r\n3\r\nhello\r\n0\r\n\r\n"},
    };
    g_autoptr(HttpClient) client = http_client_new(NULL);

    for (size_t i = 0; i < G_N_ELEMENTS(answers); i++)
        check_answer(client, &answers[i], answers[i].n > 0 ? answers[i].n : strlen(answers[i].bytes));
}

static void
check_flood(HttpClient *client, const char *first, const char *again, guint times, const char *text)
{
    g_autoptr(GString) bytes = g_string_new(first);

    for (guint i = 0; i < times; i++)
        g_string_append(bytes, again);
    g_string_append(bytes, "\r\n\r\n");

    const ScriptStep steps[] = {{SCRIPT_REQUEST}, {SCRIPT_SEND, bytes->str, bytes->len}, {SCRIPT_HOLD}};
    g_autoptr(Script) script = script_serve_one(steps);
    g_autofree char *url = script_url(script, "/");
    g_auto(Probe) probe = probe_init(client);

    g_test_message("%u times %.4s…: %s", times, again, text);
    probe_get(&probe, url);
    probe_wait(&probe);
    if (text != NULL)
        probe_check_error(&probe, ERR_INVALID, text);
    else
        probe_check_ok(&probe, 200, "");
}

static void
test_header_floods(void)
{
    static const char ok_empty[] = OK "Content-Length: 0\r\n";
    static const char chunked[] = OK "Transfer-Encoding: chunked\r\n\r\n0\r\n";
    g_autoptr(HttpClient) client = http_client_new(NULL);

    check_flood(client, ok_empty, "A: b\r\n", HTTP_HEADER_COUNT_MAX - 1, NULL);
    check_flood(client, ok_empty, "A: b\r\n", HTTP_HEADER_COUNT_MAX, "too many headers");
    check_flood(client, ok_empty, "A: b\r\n", 1000000, "too many headers");
    check_flood(client, OK "Content-Length: 0\r\nA: ", HUNDRED_BYTES, HTTP_HEAD_MAX / 100 - 1, NULL);
    check_flood(client, OK "Content-Length: 0\r\nA: ", HUNDRED_BYTES, HTTP_HEAD_MAX / 100 + 1, "too long");
    check_flood(client, OK "Content-Length: 0\r\nA: ", HUNDRED_BYTES, 20000, "too long");
    check_flood(client, "HTTP/1.1 ", HUNDRED_BYTES, 20000, "127.0.0.1");
    check_flood(client, "", "HTTP/1.1 103 Hm\r\n\r\n", 100000, "too");
    check_flood(client, chunked, "A: " HUNDRED_BYTES "\r\n", HTTP_TRAILER_MAX / 110, NULL);
    check_flood(client, chunked, "A: " HUNDRED_BYTES "\r\n", HTTP_TRAILER_MAX / 100 + 1, "trailers");
}

typedef struct Stall {
    const char *name;
    ScriptStep steps[4];
    HttpCallSpec spec;
    const char *text;
} Stall;

static const Stall stalls[] = {
    {"answer",
     {{SCRIPT_REQUEST}, {SCRIPT_HOLD}},
     {.first_byte_ms = SHORT_MS, .stall_ms = LONG_MS},
     "connected, but no answer for 60 ms"},
    {"in the head",
     {{SCRIPT_REQUEST}, {SCRIPT_SEND, "HTTP/1.1 200 OK\r\nA:"}, {SCRIPT_HOLD}},
     {.first_byte_ms = SHORT_MS},
     "connected, but no answer for 60 ms"},
    {"interim is no answer",
     {{SCRIPT_REQUEST}, {SCRIPT_SEND, "HTTP/1.1 100 Continue\r\n\r\n"}, {SCRIPT_HOLD}},
     {.first_byte_ms = SHORT_MS},
     "connected, but no answer for 60 ms"},
    {"body",
     {{SCRIPT_REQUEST}, {SCRIPT_SEND, "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n"}, {SCRIPT_HOLD}},
     {.first_byte_ms = LONG_MS, .stall_ms = SHORT_MS},
     "the answer stalled for 60 ms"},
    {"in the body",
     {{SCRIPT_REQUEST}, {SCRIPT_SEND, "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhel"}, {SCRIPT_HOLD}},
     {.stall_ms = SHORT_MS, .total_ms = LONG_MS},
     "the answer stalled for 60 ms"},
    {"total, no head",
     {{SCRIPT_REQUEST}, {SCRIPT_HOLD}},
     {.first_byte_ms = LONG_MS, .total_ms = SHORT_MS},
     "not finished within 60 ms (waiting for the answer)"},
    {"total, in the body",
     {{SCRIPT_REQUEST}, {SCRIPT_SEND, "HTTP/1.1 200 OK\r\n\r\nhel"}, {SCRIPT_HOLD}},
     {.stall_ms = LONG_MS, .total_ms = SHORT_MS},
     "not finished within 60 ms (reading the answer)"},
    {"request not read",
     {{SCRIPT_HEAD}, {SCRIPT_IGNORE}},
     {.method = "PUT", .first_byte_ms = SHORT_MS},
     "connected, but no answer for 60 ms"},
};

static void
check_stall(HttpClient *client, const Stall *stall)
{
    g_autoptr(Script) script = script_serve_one(stall->steps);
    g_autofree char *url = script_url(script, "/");
    g_autofree char *body = g_malloc0(BIG);
    g_auto(Probe) probe = probe_init(client);
    HttpCallSpec spec = stall->spec;
    gint64 start = clock_mono_us();

    g_test_message("%s", stall->name);
    spec.url = url;
    spec.body_fd = -1;
    if (spec.method != NULL) {
        spec.body = body;
        spec.body_len = BIG;
    }
    probe_start(&probe, &spec);
    probe_wait(&probe);
    probe_check_error(&probe, ERR_TIMEOUT, stall->text);
    g_assert_nonnull(strstr(probe.error->message, "127.0.0.1:"));
    g_assert_cmpint(clock_mono_us() - start, >=, SHORT_MS * 1000);
    g_assert_cmpint(clock_mono_us() - start, <, LONG_MS * 1000);
}

static void
test_stalls(void)
{
    g_autoptr(HttpClient) client = http_client_new(NULL);

    for (size_t i = 0; i < G_N_ELEMENTS(stalls); i++)
        check_stall(client, &stalls[i]);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    probe_start_watchdog();
    g_test_add_func("/http/client/answers/good", test_good_answers);
    g_test_add_func("/http/client/answers/cut", test_cut_answers);
    g_test_add_func("/http/client/answers/bad", test_bad_answers);
    g_test_add_func("/http/client/answers/header-floods", test_header_floods);
    g_test_add_func("/http/client/answers/stalls", test_stalls);
    return g_test_run();
}

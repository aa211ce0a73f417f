/* SPDX-License-Identifier: Apache-2.0 */
/* What the proxy makes of heads and bodies, in both directions. */
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "proxy-fixture.h"

#define GET "GET /a?b=c HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n"
#define HEAD_METHOD "HEAD / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n"
#define UPGRADE_H "Connection: keep-alive, Upgrade\r\n"

/* ---- requests ---- */

static const char *const drop[] = {"Authorization", "cookie", NULL};
static const char *const add[] = {"X-Forwarded-For", "9.9.9.9", "X-Coop-Box", "b1", NULL};

static const struct {
    const char *name, *sent, *expected;
    bool with_spec;
} requests[] = {
    {"plain", "GET /a?b=%20c HTTP/1.1\r\nhost: h:1\r\nAccept: a\r\nAccept: b\r\nX-Empty:\r\n\r\n",
     "GET /a?b=%20c HTTP/1.1\r\nHost: h:1\r\nAccept: a\r\nAccept: b\r\nX-Empty: \r\nConnection: "
     "close\r\n\r\n",
     false},
    {"old", "GET / HTTP/1.0\r\n\r\n", "GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n",
     false},
    {"hop-by-hop",
     "GET / HTTP/1.1\r\nHost: h\r\nConnection: keep-alive, X-One,x-two ,,X-Three\r\nX-One: 1\r\nX-TWO: 2\r\n"
     "X-Two-More: 3\r\nKeep-Alive: 5\r\nProxy-Authorization: x\r\nPROXY-Anything: y\r\nTE: trailers\r\n"
     "Trailer: T\r\nX-Three: 3\r\nConnection: X-Four, Kept-Not\r\nX-Four: 4\r\nKept: k\r\n\r\n",
     "GET / HTTP/1.1\r\nHost: h\r\nX-Two-More: 3\r\nKept: k\r\nConnection: close\r\n\r\n", false},
    {"connection-names-ours",
     "POST / HTTP/1.1\r\nConnection: Host, Content-Length, close\r\nHost: h\r\nContent-Length: 0\r\n\r\n",
     "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\nConnection: close\r\n\r\n", false},
    {"claims",
     "GET / HTTP/1.1\r\nHost: h\r\nX-Forwarded-For: 1.2.3.4\r\nX-Forwarded-Proto: https\r\n"
     "X-FORWARDED-HOST: evil\r\nForwarded: for=1.2.3.4\r\nX-Real-IP: 1.2.3.4\r\nX-Forward: kept\r\n\r\n",
     "GET / HTTP/1.1\r\nHost: h\r\nX-Forward: kept\r\nConnection: close\r\n\r\n", false},
    {"spec",
     "GET /own HTTP/1.1\r\nHost: own\r\nx-coop-box: forged\r\nX-Forwarded-For: 1.2.3.4\r\nAuthorization: "
     "s\r\n"
     "Cookie: s\r\nCookie2: kept\r\n\r\n",
     "GET /other?x HTTP/1.1\r\nHost: other\r\nCookie2: kept\r\nX-Forwarded-For: 9.9.9.9\r\nX-Coop-Box: b1\r\n"
     "Connection: close\r\n\r\n",
     true},
    {"star", "OPTIONS * HTTP/1.1\r\nHost: h\r\n\r\n",
     "OPTIONS * HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n", false},
    {"h2c",
     "GET / HTTP/1.1\r\nHost: h\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: "
     "x\r\n\r\n",
     "GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n", false},
    {"websocket",
     "GET / HTTP/1.1\r\nHost: h\r\n" UPGRADE_H "Upgrade: WebSocket\r\nSec-WebSocket-Key: k\r\n\r\n",
     "GET / HTTP/1.1\r\nHost: h\r\nSec-WebSocket-Key: k\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n",
     false},
    {"length", "PUT / HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\nabc",
     "PUT / HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\nConnection: close\r\n\r\nabc", false},
    {"length-padded", "PUT / HTTP/1.1\r\nHost: h\r\nContent-Length:   0003  \r\n\r\nabc",
     "PUT / HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\nConnection: close\r\n\r\nabc", false},
    {"expect", "PUT / HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\nabc",
     "PUT / HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\nConnection: close\r\n\r\nabc", false},
    {"chunked",
     "PUT / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: Chunked\r\n\r\n0003;x=y\r\nabc\r\n0\r\nT: u\r\n\r\n",
     "PUT / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\nConnection: "
     "close\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
     false},
};

static void
test_requests(void)
{
    for (size_t i = 0; i < G_N_ELEMENTS(requests); i++) {
        ProxyTest t;

        g_test_message("%s", requests[i].name);
        proxy_test_init(&t, NULL);
        if (requests[i].with_spec) {
            t.spec.target = "/other?x";
            t.spec.host = "other";
            t.spec.drop_headers = drop;
            t.spec.add_headers = add;
        }
        proxy_ask(&t, requests[i].sent);
        g_autoptr(GByteArray) got = client_read_n(t.upstream, strlen(requests[i].expected));
        g_assert_cmpmem(got->data, got->len, requests[i].expected, strlen(requests[i].expected));
        fixture_turn();
        g_assert_cmpint(recv(t.upstream, (char[1]){0}, 1, 0), ==, -1); /* and nothing more */
        proxy_test_clear(&t);
    }
}

static void
test_unwritable_requests(void)
{
    static const char *const bad_value[] = {"X-A", "b\r\nX-Evil: 1", NULL};
    static const char *const bad_name[] = {"X A", "b", NULL};
    static const struct {
        const char *sent;
        HttpProxySpec spec;
        int status;
    } cases[] = {
        {"GET http://evil/ HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n", {0}, 400},
        {"CONNECT h:1 HTTP/1.1\r\nHost: h:1\r\nConnection: close\r\n\r\n", {0}, 501},
        {"GET / HTTP/1.1\r\nHost:\r\nConnection: close\r\n\r\n", {0}, 400},
        {GET, {.target = "/a b"}, 400},
        {GET, {.target = "/a\r\nX: y"}, 400},
        {GET, {.target = "//a\x7f"}, 400},
        {GET, {.target = "a"}, 400},
        {GET, {.host = "a\r\nX: y"}, 400},
        {GET, {.host = ""}, 400},
        {GET, {.add_headers = bad_value}, 400},
        {GET, {.add_headers = bad_name}, 400},
        {"PUT / HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\nabc", {.target = ""}, 400},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        ProxyTest t;

        g_test_message("case %zu", i);
        proxy_test_init(&t, NULL);
        Loop *loop = t.spec.loop;
        t.spec = cases[i].spec;
        t.spec.loop = loop;
        proxy_ask(&t, cases[i].sent);
        g_autoptr(GString) upstream = client_read(t.upstream, NULL);
        g_assert_cmpstr(upstream->str, ==, "");
        g_autoptr(GString) answer = client_read(t.client, "}\n");
        g_assert_cmpint(answer_status(answer->str), ==, cases[i].status);
        proxy_test_clear(&t);
    }
}

/* A request whose end two readers might see at different places never gets that far. */
static void
test_smuggling_is_refused_before(void)
{
    static const char *const tries[] = {
        "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 4\r\nContent-Length: 5\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: h\r\nX: a\r\n Content-Length: 5\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: h\r\nHost: i\r\n\r\n",
    };

    for (size_t i = 0; i < G_N_ELEMENTS(tries); i++) {
        ProxyTest t;

        proxy_test_init(&t, NULL);
        g_autofree char *answer = client_ask(&t.f, tries[i]);
        g_assert_cmpint(answer_status(answer), ==, 400);
        g_assert_cmpuint(t.f.handled, ==, 0);
        proxy_test_clear(&t);
    }
}

/* ---- answers ---- */

typedef enum AnswerKind { LENGTH, CHUNKED, NOTHING } AnswerKind;

#define OK "HTTP/1.1 200 OK\r\n"

static const struct {
    const char *name, *request, *sent;
    int status;
    const char *body;
    AnswerKind kind;
} answers[] = {
    {"length", GET, OK "Content-Length: 5\r\n\r\nhello", 200, "hello", LENGTH},
    {"length-and-more", GET, OK "Content-Length: 5\r\n\r\nhelloHTTP/1.1 500 No\r\n\r\n", 200, "hello",
     LENGTH},
    {"length-0", GET, OK "Content-Length: 0\r\n\r\n", 200, "", LENGTH},
    {"chunked", GET, OK "Transfer-Encoding: chunked\r\n\r\n3\r\nhel\r\n2;x\r\nlo\r\n0\r\nT: u\r\n\r\n", 200,
     "hello", CHUNKED},
    {"until-the-end", GET, OK "X: y\r\n\r\nhello", 200, "hello", CHUNKED},
    {"until-the-end-1.0", GET, "HTTP/1.0 200 OK\r\n\r\nhello", 200, "hello", CHUNKED},
    {"until-the-end-empty", GET, OK "\r\n", 200, "", CHUNKED},
    {"no-reason", GET, "HTTP/1.1 404 \r\nContent-Length: 2\r\n\r\nno", 404, "no", LENGTH},
    {"head", HEAD_METHOD, OK "Content-Length: 5\r\n\r\n", 200, "", LENGTH},
    {"head-with-body", HEAD_METHOD, OK "Content-Length: 5\r\n\r\nhello", 200, "", LENGTH},
    {"head-chunked", HEAD_METHOD, OK "Transfer-Encoding: chunked\r\n\r\n", 200, "", NOTHING},
    {"no-content", GET, "HTTP/1.1 204 No Content\r\nX: y\r\n\r\n", 204, "", NOTHING},
    {"no-content-with-length", GET, "HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\nhello", 204, "",
     NOTHING},
    {"not-modified", GET, "HTTP/1.1 304 Not Modified\r\nETag: \"a\"\r\nContent-Length: 5\r\n\r\n", 304, "",
     NOTHING},
    {"continue", GET, "HTTP/1.1 100 Continue\r\n\r\n" OK "Content-Length: 5\r\n\r\nhello", 200, "hello",
     LENGTH},
    {"early-hints", GET,
     "HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 102 Processing\r\n\r\n" OK
     "Content-Length: 5\r\n\r\nhello",
     200, "hello", LENGTH},
    {"error", GET, "HTTP/1.1 500 Broken\r\nContent-Length: 2\r\n\r\nno", 500, "no", LENGTH},
    {"old-client", "GET / HTTP/1.0\r\n\r\n", OK "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
     200, "hello", NOTHING},
};

static void
check_answer(size_t i, const char *answer)
{
    const char *body = answers[i].body;

    g_assert_cmpint(answer_status(answer), ==, answers[i].status);
    bool chunked = strstr(answer, "Transfer-Encoding: chunked\r\n") != NULL;
    bool length = strstr(answer, "Content-Length: ") != NULL;
    g_assert_false(chunked && length);
    if (answers[i].kind == NOTHING && strcmp(answers[i].name, "head-chunked") != 0)
        g_assert_false(chunked || length);
    if (answers[i].kind == CHUNKED) {
        g_autoptr(GString) got = answer_unchunk(answer);

        g_assert_nonnull(got);
        g_assert_cmpstr(got->str, ==, body);
    } else {
        g_assert_cmpstr(answer_body(answer), ==, body);
    }
}

/* Whole, and cut at every byte. */
static void
test_answers(void)
{
    for (size_t i = 0; i < G_N_ELEMENTS(answers); i++) {
        size_t n = strlen(answers[i].sent);
        ProxyTest t;

        g_test_message("%s", answers[i].name);
        proxy_test_init(&t, NULL);
        for (size_t at = 0; at < n; at++) {
            g_autofree char *head = proxy_ask_head(&t, answers[i].request);

            client_send(t.upstream, answers[i].sent, at);
            fixture_turn();
            client_send(t.upstream, answers[i].sent + at, n - at);
            proxy_close_upstream(&t);
            g_autoptr(GString) answer = client_read(t.client, NULL);
            check_answer(i, answer->str);
        }
        g_assert_cmpuint(t.f.gone, ==, 0);
        proxy_test_clear(&t);
    }
}

static void
test_answer_headers(void)
{
    static const char sent[] = "HTTP/1.1 200 OK\r\nSet-Cookie: a\r\nConnection: X-One, close\r\nx-one: 1\r\n"
                               "Keep-Alive: 5\r\nProxy-Authenticate: x\r\nUpgrade: h2c\r\nTrailer: T\r\n"
                               "Date: never\r\nServer: theirs\r\nContent-Type: text/x\r\nSet-Cookie: b\r\n"
                               "X-Text: caf\xc3\xa9\tx\r\nContent-Length: 2\r\n\r\nok";
    static const char kept[] = "Set-Cookie: a\r\nContent-Type: text/x\r\nSet-Cookie: b\r\n"
                               "X-Text: caf\xc3\xa9\tx\r\n\r\nok";
    ProxyTest t;

    proxy_test_init(&t, NULL);
    g_autofree char *head = proxy_ask_head(&t, "GET / HTTP/1.1\r\nHost: h\r\n\r\n");
    client_sends(t.upstream, sent);
    g_autoptr(GString) answer = client_read(t.client, "\r\n\r\nok");
    g_assert_true(g_str_has_suffix(answer->str, kept));
    static const char *const gone[] = {"x-one",   "Keep-Alive", "Proxy",  "Upgrade",
                                       "Trailer", "never",      "theirs", "Connection"};
    for (size_t i = 0; i < G_N_ELEMENTS(gone); i++)
        g_assert_null(strstr(answer->str, gone[i]));
    proxy_expect_hangup(&t);

    /* The client's connection serves another request. */
    guint handled = t.f.handled;
    client_sends(t.client, GET);
    fixture_until(&t.f.handled, handled + 1);
    client_sends(t.upstream, OK "Content-Length: 5\r\n\r\nagain");
    g_autoptr(GString) second = client_read(t.client, NULL);
    g_assert_cmpstr(answer_body(second->str), ==, "again");
    proxy_test_clear(&t);
}

static char *
judge(const char *name, const char *value)
{
    if (g_ascii_strcasecmp(name, "X-Drop") == 0)
        return NULL;
    return g_ascii_strcasecmp(name, "Set-Cookie") == 0 ? g_strconcat(value, "; Judged", NULL)
                                                       : g_strdup(value);
}

static void
test_answer_headers_are_judged(void)
{
    static const struct {
        const char *request, *sent, *kept;
    } cases[] = {
        {GET,
         "HTTP/1.1 200 OK\r\nx-drop: 1\r\nSet-Cookie: a\r\nX-Kept: k\r\nX-DROP: 2\r\n"
         "Content-Length: 2\r\n\r\nok",
         "Set-Cookie: a; Judged\r\nX-Kept: k\r\n\r\nok"},
        {"GET / HTTP/1.1\r\nHost: h\r\n" UPGRADE_H "Upgrade: websocket\r\n\r\n",
         "HTTP/1.1 101 Switching\r\nUpgrade: websocket\r\nX-Drop: 1\r\nSet-Cookie: b\r\n\r\nok",
         "Set-Cookie: b; Judged\r\nUpgrade: websocket\r\n\r\nok"},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        ProxyTest t;

        proxy_test_init(&t, NULL);
        t.spec.judge_answer = judge;
        g_autofree char *head = proxy_ask_head(&t, cases[i].request);
        client_sends(t.upstream, cases[i].sent);
        g_autoptr(GString) answer = client_read(t.client, "\r\n\r\nok");
        g_assert_true(g_str_has_suffix(answer->str, cases[i].kept));
        proxy_test_clear(&t);
    }
}

/* ---- answers that are none ---- */

#define LONG_TEXT "llllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllll"

static const struct {
    const char *name, *sent;
    size_t n;
} nonsense[] = {
#define ROW(name, bytes)                                                                                     \
    {                                                                                                        \
        name, bytes, sizeof(bytes) - 1                                                                       \
    }
    ROW("nothing", ""),
    ROW("garbage", "SSH-2.0-OpenSSH\r\n"),
    ROW("request", "GET / HTTP/1.1\r\nHost: a\r\n\r\n"),
    ROW("cut-head", "HTTP/1.1 200 OK\r\nContent-Le"),
    ROW("only-100", "HTTP/1.1 100 Continue\r\n\r\n"),
    ROW("length-and-chunked", OK "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
    ROW("chunked-and-length", OK "Transfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n0\r\n\r\n"),
    ROW("two-lengths", OK "Content-Length: 3\r\nContent-Length: 4\r\n\r\nabcd"),
    ROW("two-equal-lengths", OK "Content-Length: 3\r\nContent-Length: 3\r\n\r\nabc"),
    ROW("length-list", OK "Content-Length: 3, 3\r\n\r\nabc"),
    ROW("length-minus", OK "Content-Length: -3\r\n\r\nabc"),
    ROW("length-huge", OK "Content-Length: 99999999999999999999\r\n\r\nabc"),
    ROW("coding-gzip", OK "Transfer-Encoding: gzip\r\n\r\nabc"),
    ROW("coding-twice", OK "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
    ROW("coding-in-1.0", "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
    ROW("fold", OK "X: a\r\n b\r\nContent-Length: 0\r\n\r\n"),
    ROW("fold-length", OK "X: a\r\n Content-Length: 5\r\n\r\nhello"),
    ROW("bare-lf", "HTTP/1.1 200 OK\nContent-Length: 0\n\n"),
    ROW("nul-in-value", OK "X: a\0b\r\nContent-Length: 0\r\n\r\n"),
    ROW("control-in-value", OK "X: a\001b\r\nContent-Length: 0\r\n\r\n"),
    ROW("delete-in-value", OK "X: a\177b\r\nContent-Length: 0\r\n\r\n"),
    ROW("name-not-token", OK "X Y: a\r\nContent-Length: 0\r\n\r\n"),
    ROW("no-colon", OK "nocolon\r\nContent-Length: 0\r\n\r\n"),
    ROW("http-2", "HTTP/2.0 200 OK\r\nContent-Length: 0\r\n\r\n"),
    ROW("http-1.2", "HTTP/1.2 200 OK\r\nContent-Length: 0\r\n\r\n"),
    ROW("status-0", "HTTP/1.1 000 No\r\nContent-Length: 0\r\n\r\n"),
    ROW("status-99", "HTTP/1.1 099 No\r\nContent-Length: 0\r\n\r\n"),
    ROW("status-600", "HTTP/1.1 600 No\r\nContent-Length: 0\r\n\r\n"),
    ROW("status-long", "HTTP/1.1 2000 No\r\nContent-Length: 0\r\n\r\n"),
    ROW("status-text", "HTTP/1.1 abc No\r\nContent-Length: 0\r\n\r\n"),
    ROW("upgrade-unasked", "HTTP/1.1 101 Yes\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"),
    ROW("interim-with-length",
        "HTTP/1.1 103 Hints\r\nContent-Length: 3\r\n\r\nabc" OK "Content-Length: 0\r\n\r\n"),
    ROW("interim-with-length-of-the-next",
        "HTTP/1.1 103 Hints\r\nContent-Length: 38\r\n\r\n" OK "Content-Length: 0\r\n\r\n"),
    ROW("interim-chunked", "HTTP/1.1 100 Continue\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" OK
                           "Content-Length: 0\r\n\r\n"),
#undef ROW
};

static void
expect_502(ProxyTest *t)
{
    g_autoptr(GString) answer = client_read(t->client, "}\n");

    g_assert_cmpint(answer_status(answer->str), ==, 502);
}

static void
test_nonsense(void)
{
    for (size_t i = 0; i < G_N_ELEMENTS(nonsense); i++) {
        ProxyTest t;

        g_test_message("%s", nonsense[i].name);
        proxy_test_init(&t, NULL);
        for (size_t at = 0; at <= nonsense[i].n; at++) {
            g_autofree char *head = proxy_ask_head(&t, GET);

            client_send(t.upstream, nonsense[i].sent, at);
            fixture_turn();
            client_send(t.upstream, nonsense[i].sent + at, nonsense[i].n - at);
            proxy_close_upstream(&t);
            expect_502(&t);
        }
        proxy_test_clear(&t);
    }
}

/* What is too much, in an answer that would be fine with less. */
static void
test_floods(void)
{
    static const struct {
        const char *unit, *rest;
        size_t passes, fails; /* how often the unit stands before the rest */
    } cases[] = {
        {"X: y\r\n", "Content-Length: 0\r\n\r\n", 99, 100},
        {"X: " LONG_TEXT "\r\n", "Content-Length: 0\r\n\r\n", 99, 1000},
        {"X: " LONG_TEXT LONG_TEXT LONG_TEXT LONG_TEXT LONG_TEXT "\r\n", "Content-Length: 0\r\n\r\n", 80, 90},
        {"X:" LONG_TEXT LONG_TEXT LONG_TEXT LONG_TEXT LONG_TEXT "\r\n", "Content-Length: 0\r\n\r\n", 80, 99},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        ProxyTest t;

        proxy_test_init(&t, NULL);
        for (int bad = 0; bad < 2; bad++) {
            g_autoptr(GString) sent = g_string_new(OK);
            g_autofree char *head = proxy_ask_head(&t, GET);

            for (size_t k = 0; k < (bad ? cases[i].fails : cases[i].passes); k++)
                g_string_append(sent, cases[i].unit);
            g_string_append(sent, cases[i].rest);
            client_send(t.upstream, sent->str, sent->len);
            g_autoptr(GString) answer = client_read(t.client, NULL);
            g_test_message("case %zu %d", i, bad);
            g_assert_cmpint(answer_status(answer->str), ==, bad ? 502 : 200);
        }
        proxy_test_clear(&t);
    }
}

/* An answer that breaks off is cut off, whatever framing would hide it. */
static void
test_broken_bodies(void)
{
    static const char *const cases[] = {
        OK "Content-Length: 5\r\n\r\nhel",
        OK "Transfer-Encoding: chunked\r\n\r\n3\r\nhel\r\n",
        OK "Transfer-Encoding: chunked\r\n\r\n3\r\nhel\r\n0\r\n",
        OK "Transfer-Encoding: chunked\r\n\r\n3\r\nhel\r\nx\r\n",
        OK "Transfer-Encoding: chunked\r\n\r\n3\r\nhello\r\n0\r\n\r\n",
        OK "Transfer-Encoding: chunked\r\n\r\n3\nhel\n0\n\n",
        OK "Transfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\nhel",
    };

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        ProxyTest t;

        g_test_message("case %zu", i);
        proxy_test_init(&t, NULL);
        g_autofree char *head = proxy_ask_head(&t, GET);
        client_sends(t.upstream, cases[i]);
        proxy_close_upstream(&t);
        g_autoptr(GString) answer = client_read(t.client, NULL);
        g_assert_cmpint(answer_status(answer->str), !=, 502); /* it has begun */
        g_assert_false(g_str_has_suffix(answer->str, "0\r\n\r\n"));
        fixture_until(&t.f.gone, 1);
        proxy_test_clear(&t);
    }
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/proxy/requests/good", test_requests);
    g_test_add_func("/proxy/requests/unwritable", test_unwritable_requests);
    g_test_add_func("/proxy/requests/smuggling", test_smuggling_is_refused_before);
    g_test_add_func("/proxy/answers/good", test_answers);
    g_test_add_func("/proxy/answers/headers", test_answer_headers);
    g_test_add_func("/proxy/answers/judged", test_answer_headers_are_judged);
    g_test_add_func("/proxy/answers/nonsense", test_nonsense);
    g_test_add_func("/proxy/answers/floods", test_floods);
    g_test_add_func("/proxy/answers/broken", test_broken_bodies);
    return g_test_run();
}

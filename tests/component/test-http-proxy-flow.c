/* SPDX-License-Identifier: Apache-2.0 */
/* The proxy over time: bodies larger than any buffer, sides that are slow, late or gone. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "proxy-fixture.h"

#define GET "GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n"
#define PUT_CHUNKED "PUT / HTTP/1.1\r\nHost: h\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n"
#define OK "HTTP/1.1 200 OK\r\n"
#define OK_EMPTY OK "Content-Length: 0\r\n\r\n"

enum { LARGE = 64 * MIB, MARGIN = 8 * MIB };

/* ---- large bodies ---- */

static void
test_upload(void)
{
    g_autofree char *request = g_strdup_printf(
        "PUT / HTTP/1.1\r\nHost: h\r\nConnection: close\r\nContent-Length: %d\r\n\r\n", LARGE);
    ProxyTest t;

    proxy_test_init(&t, NULL);
    g_autofree char *head = proxy_ask_head(&t, request);
    size_t sent = proxy_fill(t.client); /* the upstream does not read */
    size_t rss = fixture_rss();
    proxy_take(t.upstream, sent);
    proxy_pass(t.client, t.upstream, LARGE - sent);
    g_assert_cmpuint(fixture_rss(), <, rss + MARGIN);
    client_sends(t.upstream, OK_EMPTY);
    g_autoptr(GString) answer = client_read(t.client, NULL);
    g_assert_cmpint(answer_status(answer->str), ==, 200);
    proxy_test_clear(&t);
}

static void
test_download(void)
{
    g_autofree char *head = g_strdup_printf(OK "Content-Length: %d\r\n\r\n", LARGE);
    ProxyTest t;

    proxy_test_init(&t, NULL);
    g_autofree char *request = proxy_ask_head(&t, GET);
    client_sends(t.upstream, head);
    g_autoptr(GString) answer = client_read(t.client, "\r\n\r\n");
    size_t sent = proxy_fill(t.upstream); /* the client does not read */
    size_t rss = fixture_rss();
    proxy_take(t.client, sent);
    proxy_pass(t.upstream, t.client, LARGE - sent);
    g_assert_cmpuint(fixture_rss(), <, rss + MARGIN);
    g_assert_true(client_sees_close(t.client));
    proxy_expect_hangup(&t);
    g_assert_cmpuint(t.f.gone, ==, 0);
    proxy_test_clear(&t);
}

/* Both directions at once: the answer begins before the request has ended. */
static void
test_both_ways(void)
{
    ProxyTest t;

    proxy_test_init(&t, NULL);
    g_autofree char *head = proxy_ask_head(&t, PUT_CHUNKED);
    client_sends(t.upstream, OK "Transfer-Encoding: chunked\r\n\r\n");
    for (int i = 0; i < 20; i++) {
        client_sends(t.client, "4\r\nping\r\n");
        g_autoptr(GByteArray) up = client_read_n(t.upstream, 9);
        g_assert_cmpmem(up->data, up->len, "4\r\nping\r\n", 9);
        client_sends(t.upstream, "4\r\npong\r\n");
        g_autoptr(GString) down = client_read(t.client, "pong\r\n");
    }
    client_sends(t.client, "0\r\n\r\n");
    g_autoptr(GByteArray) end = client_read_n(t.upstream, 5);
    g_assert_cmpmem(end->data, end->len, "0\r\n\r\n", 5);
    client_sends(t.upstream, "0\r\n\r\n");
    g_autoptr(GString) rest = client_read(t.client, NULL);
    g_assert_cmpstr(rest->str, ==, "0\r\n\r\n");
    proxy_test_clear(&t);
}

static void
test_continue(void)
{
    ProxyTest t;

    proxy_test_init(&t, NULL);
    g_autofree char *head = proxy_ask_head(
        &t, "PUT / HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\n");
    g_assert_null(strstr(head, "Expect"));
    g_autoptr(GString) go = client_read(t.client, "\r\n\r\n");
    g_assert_cmpstr(go->str, ==, "HTTP/1.1 100 Continue\r\n\r\n");
    client_sends(t.upstream, "HTTP/1.1 100 Continue\r\n\r\n"); /* not a second time */
    client_sends(t.client, "abc");
    g_autoptr(GByteArray) body = client_read_n(t.upstream, 3);
    client_sends(t.upstream, OK_EMPTY);
    g_autoptr(GString) answer = client_read(t.client, "\r\n\r\n");
    g_assert_cmpint(answer_status(answer->str), ==, 200);
    proxy_test_clear(&t);
}

/* An upstream that refuses a body does so before it has read it, and often closes at once. */
static void
test_early_answer(void)
{
    for (int closes = 0; closes < 2; closes++) {
        ProxyTest t;

        proxy_test_init(&t, NULL);
        g_autofree char *head = proxy_ask_head(
            &t, "PUT / HTTP/1.1\r\nHost: h\r\nContent-Length: 100000000\r\n\r\n");
        proxy_fill(t.client);
        client_sends(t.upstream, "HTTP/1.1 413 Too Large\r\nContent-Length: 2\r\n\r\nno");
        if (closes)
            proxy_close_upstream(&t);
        g_autoptr(GString) answer = client_read(t.client, "\r\n\r\nno");
        g_assert_cmpint(answer_status(answer->str), ==, 413);
        if (!closes)
            proxy_expect_hangup(&t);
        proxy_test_clear(&t);
    }
}

/* ---- deadlines ---- */

static void
test_late_head(void)
{
    static const char *const said[] = {"", "HTTP/1.1 200 O", "HTTP/1.1 100 Continue\r\n\r\n"};

    for (size_t i = 0; i < G_N_ELEMENTS(said); i++) {
        ProxyTest t;

        proxy_test_init(&t, NULL);
        t.spec.head_ms = 50;
        g_autofree char *head = proxy_ask_head(&t, GET);
        client_sends(t.upstream, said[i]);
        g_autoptr(GString) answer = client_read(t.client, NULL);
        g_assert_cmpint(answer_status(answer->str), ==, 504);
        proxy_expect_hangup(&t);
        proxy_test_clear(&t);
    }
}

/* Interim answers, however many, do not buy time. */
static void
test_hints_for_ever(void)
{
    ProxyTest t;

    proxy_test_init(&t, NULL);
    t.spec.head_ms = 50;
    g_autofree char *head = proxy_ask_head(&t, GET);
    while (t.f.over == 0) {
        (void)send(t.upstream, "HTTP/1.1 103 Early Hints\r\n\r\n", 28, MSG_NOSIGNAL);
        fixture_turn();
    }
    g_autoptr(GString) answer = client_read(t.client, NULL);
    g_assert_cmpint(answer_status(answer->str), ==, 504);
    proxy_test_clear(&t);
}

static void
wait_ms(guint ms)
{
    for (gint64 end = g_get_monotonic_time() + ms * 1000; g_get_monotonic_time() < end;)
        fixture_turn();
}

/* The upstream's deadline does not run while it waits for the client. */
static void
test_slow_upload_is_no_late_answer(void)
{
    ProxyTest t;

    proxy_test_init(&t, NULL);
    t.spec.head_ms = 30;
    g_autofree char *head = proxy_ask_head(&t, PUT_CHUNKED);
    for (int i = 0; i < 3; i++) {
        wait_ms(60);
        client_sends(t.client, "1\r\na\r\n");
        g_autoptr(GByteArray) got = client_read_n(t.upstream, 6);
        g_assert_cmpuint(got->len, ==, 6);
    }
    client_sends(t.client, "0\r\n\r\n");
    g_autoptr(GString) answer = client_read(t.client, NULL);
    g_assert_cmpint(answer_status(answer->str), ==, 504);
    proxy_test_clear(&t);
}

/* One that does not take the body is late, too. */
static void
test_unread_upload(void)
{
    ProxyTest t;

    proxy_test_init(&t, NULL);
    t.spec.head_ms = 50;
    g_autofree char *head = proxy_ask_head(&t,
                                           "PUT / HTTP/1.1\r\nHost: h\r\nContent-Length: 100000000\r\n\r\n");
    proxy_fill(t.client);
    g_autoptr(GString) answer = client_read(t.client, "}\n");
    g_assert_cmpint(answer_status(answer->str), ==, 504);
    proxy_test_clear(&t);
}

static void
test_client_stalls(void)
{
    HttpLimits limits = HTTP_LIMITS_INIT;
    ProxyTest t;

    limits.body_stall_ms = 40;
    proxy_test_init(&t, &limits);
    g_autofree char *head = proxy_ask_head(&t, PUT_CHUNKED);
    g_autoptr(GString) answer = client_read(t.client, "}\n");
    g_assert_cmpint(answer_status(answer->str), ==, 408);
    proxy_expect_hangup(&t);

    /* With the answer begun there is nothing to say but the end. */
    g_autofree char *second = proxy_ask_head(&t, PUT_CHUNKED);
    client_sends(t.upstream, OK "\r\n");
    g_assert_true(client_sees_close(t.client));
    proxy_expect_hangup(&t);
    proxy_test_clear(&t);
}

static void
test_stalled_answer(void)
{
    ProxyTest t;

    proxy_test_init(&t, NULL);
    t.spec.head_ms = 10000;
    t.spec.stall_ms = 1500; /* far more than between two pieces, for a machine that has other things to do */
    g_autofree char *head = proxy_ask_head(&t, GET);
    wait_ms(1600); /* no answer yet: the other deadline */
    client_sends(t.upstream, OK "Content-Length: 100\r\n\r\nhel");
    for (int i = 0; i < 5; i++) {
        wait_ms(400);
        client_sends(t.upstream, "l");
    }
    g_autoptr(GString) answer = client_read(t.client, NULL);
    g_assert_cmpstr(answer_body(answer->str), ==, "hellllll");
    g_assert_cmpuint(t.f.gone, ==, 1);
    proxy_expect_hangup(&t);
    proxy_test_clear(&t);
}

/* When it is the client that does not read, the upstream is not to blame. */
static void
test_slow_reader_is_no_stall(void)
{
    ProxyTest t;

    proxy_test_init(&t, NULL);
    t.spec.stall_ms = 30;
    g_autofree char *head = proxy_ask_head(&t, GET);
    client_sends(t.upstream, OK "Content-Length: 100000000\r\n\r\n");
    proxy_fill(t.upstream);
    wait_ms(120);
    g_assert_cmpuint(t.f.gone, ==, 0);
    proxy_test_clear(&t);
}

/* An upstream that has closed is readable for ever: the loop must not turn on it meanwhile. */
static void
test_slow_reader_is_not_spun_on(void)
{
    int turns = 0;
    ProxyTest t;

    proxy_test_init(&t, NULL);
    g_autofree char *head = proxy_ask_head(&t, GET);
    client_sends(t.upstream, OK "\r\n");
    size_t sent = proxy_fill(t.upstream);
    proxy_close_upstream(&t);
    while (turns < 1000 && g_main_context_iteration(NULL, FALSE))
        turns++;
    g_assert_cmpint(turns, <, 1000);
    proxy_take(t.client, sent); /* and nothing is lost */
    g_autoptr(GString) end = client_read(t.client, NULL);
    g_assert_cmpuint(end->len, >, 5);
    g_assert_cmpmem(end->str + end->len - 5, 5, "0\r\n\r\n", 5);
    proxy_test_clear(&t);
}

/* ---- whoever goes ---- */

static void
test_client_goes(void)
{
    static const struct {
        const char *request, *answer;
    } cases[] = {
        {GET, ""},
        {GET, "HTTP/1.1 200 O"},
        {GET, OK "\r\nhel"},
        {GET, OK "Content-Length: 5\r\n\r\nhel"},
        {PUT_CHUNKED, ""},
        {PUT_CHUNKED "5\r\nhel", ""},
        {PUT_CHUNKED "5\r\nhel", OK "\r\n"},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        ProxyTest t;

        g_test_message("case %zu", i);
        proxy_test_init(&t, NULL);
        g_autofree char *head = proxy_ask_head(&t, cases[i].request);
        client_sends(t.upstream, cases[i].answer);
        fixture_turn();
        /* With bytes unread the close is a reset; without, a FIN that only a write makes known. */
        g_autoptr(GString) seen = strstr(cases[i].answer, "hel") != NULL ? client_read(t.client, "hel")
                                                                         : g_string_new(NULL);
        proxy_close_client(&t);
        if (strstr(cases[i].answer, "Content-Length") != NULL)
            proxy_fill(t.upstream);
        proxy_expect_hangup(&t);
        g_assert_cmpuint(t.f.over, ==, 1);
        proxy_test_clear(&t);
    }
}

/* At every byte of a request, with an upstream that answers what it can. */
static void
test_client_vanishes(void)
{
    static const char request[] = PUT_CHUNKED "5\r\nhello\r\n3\r\nabc\r\n0\r\n\r\n";
    ProxyTest t;

    proxy_test_init(&t, NULL);
    for (size_t at = 0; at < sizeof request; at++) {
        int fd = fixture_connect(&t.f);

        client_send(fd, request, at);
        fixture_turn();
        if (t.upstream >= 0)
            client_sends(t.upstream, OK "\r\nbegun");
        fixture_turn();
        close(fd);
        fixture_turn();
        if (t.upstream >= 0)
            proxy_expect_hangup(&t);
        proxy_close_upstream(&t);
    }
    g_assert_cmpuint(t.f.handled, >, 20);
    proxy_test_clear(&t);
}

static void
test_server_ends(void)
{
    static const char *const answers[] = {"", OK "\r\nhel"};

    for (size_t i = 0; i < G_N_ELEMENTS(answers); i++) {
        ProxyTest t;

        proxy_test_init(&t, NULL);
        g_autofree char *head = proxy_ask_head(&t, PUT_CHUNKED "5\r\nhel");
        client_sends(t.upstream, answers[i]);
        fixture_turn();
        http_server_unlisten(t.f.server, t.f.listener);
        proxy_expect_hangup(&t);
        proxy_test_clear(&t);
    }
}

/* The proxy begins when nobody waits any more; in the second and third case it is the one to
 * find out. */
static void
test_gone_before(void)
{
    static const struct {
        const char *request, *target;
        bool known;
    } cases[] = {{GET, NULL, true}, {GET, "not a target", false}, {PUT_CHUNKED, "not a target", false}};

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        struct linger now = {.l_onoff = 1, .l_linger = 0};
        ProxyTest t;

        proxy_test_init(&t, NULL);
        t.spec.target = cases[i].target;
        t.wait = true;
        proxy_ask(&t, cases[i].request);
        g_assert_cmpint(setsockopt(t.client, SOL_SOCKET, SO_LINGER, &now, sizeof now), ==, 0);
        proxy_close_client(&t);
        if (cases[i].known)
            fixture_until(&t.f.over, 1);
        proxy_pass_on(&t);
        g_assert_cmpint(recv(t.upstream, (char[1]){0}, 1, 0), ==, 0); /* closed at once */
        fixture_until(&t.f.over, 1);
        proxy_test_clear(&t);
    }
}

/* ---- an fd that is still connecting ---- */

static void
connect_nowhere(HttpRequest *request, void *data)
{
    ProxyTest *t = data;
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t n = sizeof a;
    autofd closed = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

    /* Bound but not listening: nobody is there. */
    g_assert_cmpint(bind(closed, (struct sockaddr *)&a, sizeof a), ==, 0);
    g_assert_cmpint(getsockname(closed, (struct sockaddr *)&a, &n), ==, 0);
    (void)connect(fd, (struct sockaddr *)&a, sizeof a); /* tells the proxy, not us */
    http_proxy(request, fd, &t->spec);
}

static void
test_nobody_listens(void)
{
    static const char *const requests[] = {GET, PUT_CHUNKED "3\r\nabc\r\n0\r\n\r\n"};

    for (size_t i = 0; i < G_N_ELEMENTS(requests); i++) {
        ProxyTest t = {.client = -1, .upstream = -1};

        fixture_init_handler(&t.f, NULL, connect_nowhere, &t);
        t.spec.loop = t.f.loop;
        proxy_ask(&t, requests[i]);
        g_autoptr(GString) answer = client_read(t.client, NULL);
        g_assert_cmpint(answer_status(answer->str), ==, 502);
        proxy_test_clear(&t);
    }
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/proxy-flow/upload", test_upload);
    g_test_add_func("/proxy-flow/download", test_download);
    g_test_add_func("/proxy-flow/both-ways", test_both_ways);
    g_test_add_func("/proxy-flow/continue", test_continue);
    g_test_add_func("/proxy-flow/early-answer", test_early_answer);
    g_test_add_func("/proxy-flow/late/head", test_late_head);
    g_test_add_func("/proxy-flow/late/hints", test_hints_for_ever);
    g_test_add_func("/proxy-flow/late/slow-upload", test_slow_upload_is_no_late_answer);
    g_test_add_func("/proxy-flow/late/unread-upload", test_unread_upload);
    g_test_add_func("/proxy-flow/late/client", test_client_stalls);
    g_test_add_func("/proxy-flow/late/answer", test_stalled_answer);
    g_test_add_func("/proxy-flow/late/reader", test_slow_reader_is_no_stall);
    g_test_add_func("/proxy-flow/late/spin", test_slow_reader_is_not_spun_on);
    g_test_add_func("/proxy-flow/gone/before", test_gone_before);
    g_test_add_func("/proxy-flow/gone/client", test_client_goes);
    g_test_add_func("/proxy-flow/gone/vanish", test_client_vanishes);
    g_test_add_func("/proxy-flow/gone/server", test_server_ends);
    g_test_add_func("/proxy-flow/gone/nobody", test_nobody_listens);
    return g_test_run();
}

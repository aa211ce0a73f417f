/* SPDX-License-Identifier: Apache-2.0 */
/* Destinations that must never be reached, by every spelling, through the real door. */
#include <arpa/inet.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "door-world.h"
#include "http-fixture.h"

/* Every address that the attacks name has a rule of its own, so that only the address itself can
 * be what refuses it; `inside` on top, for good measure. */
#define RULE(pattern) "{\"allow\": \"" pattern "\", \"ports\": [80, 443], \"inside\": true},"
#define POLICY                                                                                               \
    "{\"rules\": [" RULE("127.0.0.1") RULE("127.8.8.8") RULE("0.0.0.0") RULE("11.255.0.1") RULE("::")        \
        RULE("::1") RULE("2a00:ff::1") RULE("169.254.169.254") RULE("168.63.129.16") RULE("100.100.100.200") \
            RULE("192.0.0.192") RULE("224.0.0.1") RULE("255.255.255.255") RULE("::ffff:169.254.169.254")     \
                RULE("::ffff:127.0.0.1") RULE("64:ff9b::a9fe:a9fe") RULE("64:ff9b:1::1")                     \
                    RULE("2002:a9fe:a9fe::1") RULE("2001:0:5601:5601:0:0:5601:5601") RULE("fd00:ec2::254")   \
                        RULE("fe80::1") RULE("fec0::1") RULE("ff02::1") RULE("::7f00:1")                     \
                            RULE("localhost") "{\"allow\": \"ok.test\"}]}"

typedef struct Case {
    const char *authority;
    int status;
} Case;

static void
check_connect(World *w, const char *authority, int status)
{
    g_autofree char *answer = NULL;

    g_test_message("CONNECT %s", authority);
    autofd fd = world_tunnel(w, authority, &answer);
    g_assert_cmpint(fd, <, 0);
    g_assert_cmpint(answer_status(answer), ==, status);
}

/* The same by the plain proxy. */
static void
check_plain(World *w, const char *authority, int status)
{
    g_autofree char *request = g_strdup_printf(
        "GET http://%s/ HTTP/1.1\r\nHost: ok.test\r\nConnection: close\r\n\r\n", authority);
    g_autofree char *answer = world_ask(w, request, NULL);

    g_test_message("GET http://%s/: %s", authority, answer);
    g_assert_cmpint(answer_status(answer), ==, status);
    g_assert_null(strstr(answer, "canary"));
}

static void
check_all(const Case *cases, size_t n)
{
    World w;

    world_init(&w, POLICY);
    for (size_t i = 0; i < n; i++) {
        g_autofree char *tls = g_strconcat(cases[i].authority, ":443", NULL);

        check_connect(&w, tls, cases[i].status);
        check_plain(&w, cases[i].authority, cases[i].status);
    }
    g_assert_cmpuint(w.reached->len, ==, 0);
    g_assert_cmpuint(w.asked->len, ==, 0);
    world_clear(&w);
}

static void
test_e1(void)
{
    static const Case cases[] = {
        {"127.0.0.1", 403}, {"127.8.8.8", 403},       {"0.0.0.0", 403},   {"[::]", 403},
        {"[::1]", 403},     {"11.255.0.1", 403},      {"localhost", 403}, {"[2a00:ff::1]", 403},
        {"10.0.0.1", 403},  {"169.254.169.254", 403}, {"11.0.0.1", 403}, /* no rule names these */
    };

    check_all(cases, G_N_ELEMENTS(cases));
}

static void
test_e2(void)
{
    static const Case cases[] = {
        {"2130706433", 400},
        {"0x7f000001", 400},
        {"0x7f.1", 400},
        {"0X7F.0.0.1", 400},
        {"0177.0.0.1", 400},
        {"127.1", 400},
        {"127.0.1", 400},
        {"0", 400},
        {"127.0.0.1.", 400},
        {"127.0.0.256", 400},
        {"127.00.0.1", 400},
        {"1.1.1.1.1", 400},
        {"ok.test.127", 400},
        {"ok.test.0x7f", 400},
        {"\xef\xbc\x91\xef\xbc\x92\xef\xbc\x97.0.0.1", 400},
    };

    check_all(cases, G_N_ELEMENTS(cases));
}

static void
test_e3(void)
{
    static const Case cases[] = {
        {"169.254.169.254", 403},
        {"168.63.129.16", 403},
        {"100.100.100.200", 403},
        {"192.0.0.192", 403},
        {"[::ffff:169.254.169.254]", 403},
        {"[::ffff:a9fe:a9fe]", 403},
        {"[::ffff:127.0.0.1]", 403},
        {"[::7f00:1]", 403},
        {"[64:ff9b::a9fe:a9fe]", 403},
        {"[64:ff9b::169.254.169.254]", 403},
        {"[64:ff9b:1::1]", 403},
        {"[2002:a9fe:a9fe::1]", 403},
        {"[2001:0:5601:5601:0:0:5601:5601]", 403},
        {"[fd00:ec2::254]", 403},
        {"[fe80::1]", 403},
        {"[fec0::1]", 403},
        {"[ff02::1]", 403},
        {"[fe80::1%25lo]", 400},
        {"[fe80::1%lo]", 400},
        {"224.0.0.1", 403},
        {"255.255.255.255", 403},
    };

    check_all(cases, G_N_ELEMENTS(cases));
}

static void
test_e7(void)
{
    static const char *const requests[] = {
        "CONNECT ok.test:443@evil.test HTTP/1.1\r\nHost: ok.test:443\r\n\r\n",
        "CONNECT user@ok.test:443 HTTP/1.1\r\nHost: ok.test:443\r\n\r\n",
        "CONNECT ok.test#.evil.test:443 HTTP/1.1\r\nHost: ok.test:443\r\n\r\n",
        "CONNECT evil%00.ok.test:443 HTTP/1.1\r\nHost: ok.test:443\r\n\r\n",
        "CONNECT ok.test%2eevil.test:443 HTTP/1.1\r\nHost: ok.test:443\r\n\r\n",
        "CONNECT ok.test\\.evil.test:443 HTTP/1.1\r\nHost: ok.test:443\r\n\r\n",
        "CONNECT ok.test/:443 HTTP/1.1\r\nHost: ok.test:443\r\n\r\n",
        "CONNECT ok.test?:443 HTTP/1.1\r\nHost: ok.test:443\r\n\r\n",
        "CONNECT http://ok.test:443 HTTP/1.1\r\nHost: ok.test:443\r\n\r\n",
        "CONNECT ok.test HTTP/1.1\r\nHost: ok.test\r\n\r\n",
        "CONNECT ok.test:99999 HTTP/1.1\r\nHost: ok.test\r\n\r\n",
        "CONNECT / HTTP/1.1\r\nHost: ok.test\r\n\r\n",
        "GET http://user@ok.test/ HTTP/1.1\r\nHost: ok.test\r\n\r\n",
        "GET http://user:pw@ok.test/ HTTP/1.1\r\nHost: ok.test\r\n\r\n",
        "GET http://evil.test\\@ok.test/ HTTP/1.1\r\nHost: ok.test\r\n\r\n",
        "GET http://ok.test#@evil.test/ HTTP/1.1\r\nHost: ok.test\r\n\r\n",
        "GET http://evil%00.ok.test/ HTTP/1.1\r\nHost: ok.test\r\n\r\n",
        "GET http://ok.test:80:80/ HTTP/1.1\r\nHost: ok.test\r\n\r\n",
        "GET https://ok.test/ HTTP/1.1\r\nHost: ok.test\r\n\r\n",
        "GET ftp://ok.test/ HTTP/1.1\r\nHost: ok.test\r\n\r\n",
        "OPTIONS * HTTP/1.1\r\nHost: ok.test\r\n\r\n",
    };
    World w;

    world_init(&w, POLICY);
    world_name(&w, "ok.test", "11.0.0.1", NULL);
    for (size_t i = 0; i < G_N_ELEMENTS(requests); i++) {
        g_autofree char *answer = world_ask(&w, requests[i], "\r\n\r\n");

        g_test_message("%s", requests[i]);
        g_assert_cmpint(answer_status(answer), ==, 400);
    }
    /* A NUL cannot be written as a string. */
    static const char nul[] = "CONNECT ok.test\0.evil.test:443 HTTP/1.1\r\nHost: ok.test:443\r\n\r\n";
    autofd fd = world_connect(&w);
    client_send(fd, nul, sizeof nul - 1);
    g_autofree char *answer = g_string_free(client_read(fd, "\r\n\r\n"), FALSE);
    g_assert_cmpint(answer_status(answer), ==, 400);
    g_assert_cmpuint(w.reached->len + w.asked->len, ==, 0);
    world_clear(&w);
}

static void
test_e8(void)
{
    static const char *const ports[] = {"22", "25", "53", "465", "587", "2375", "6379", "5432", "8080"};
    World w;

    world_init(&w, POLICY);
    world_name(&w, "ok.test", "11.0.0.1", NULL);
    for (size_t i = 0; i < G_N_ELEMENTS(ports); i++) {
        g_autofree char *authority = g_strconcat("ok.test:", ports[i], NULL);

        check_connect(&w, authority, 403);
        check_plain(&w, authority, 403);
    }
    g_assert_cmpuint(w.reached->len + w.asked->len, ==, 0);
    world_clear(&w);
}

static void
test_e9(void)
{
    static const struct {
        const char *host;
        int status;
    } cases[] = {
        {"ok.test:443", 200},
        {"ok.test", 200},
        {"OK.test.:443", 200},
        {"evil.test:443", 400},
        {"ok.test:80", 400},
        {"x.ok.test:443", 400},
        {"", 400},
    };
    World w;

    world_init(&w, POLICY);
    world_name(&w, "ok.test", "11.0.0.1", NULL);
    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *request = g_strdup_printf("CONNECT ok.test:443 HTTP/1.1\r\nHost: %s\r\n\r\n",
                                                   cases[i].host);
        g_autofree char *answer = world_ask(&w, request, "\r\n\r\n");

        g_test_message("Host: %s", cases[i].host);
        g_assert_cmpint(answer_status(answer), ==, cases[i].status);
    }
    world_clear(&w);
}

static void
test_denial_text(void)
{
    World w;

    world_init(
        &w, "{\"rules\": [{\"deny\": \"*.bad.test\", \"source\": \"squad web\"}, {\"allow\": \"ok.test\"}]}");
    g_autofree char *none = world_ask(&w, "GET http://other.test/ HTTP/1.0\r\n\r\n", NULL);
    g_assert_cmpint(answer_status(none), ==, 403);
    g_assert_nonnull(strstr(none, "X-Coop-Door: denied\r\n"));
    g_assert_nonnull(strstr(none, "reach other.test:80: no rule allows it.\n"
                                  "To allow it: coop door allow other.test --box " WORLD_BOX "\n"));
    g_autofree char *rule = world_ask(&w, "GET http://x.bad.test/ HTTP/1.0\r\n\r\n", NULL);
    g_assert_nonnull(strstr(rule, "the rule \"deny *.bad.test\" (squad web) denies it"));
    g_autofree char *port = world_ask(&w, "GET http://ok.test:81/ HTTP/1.0\r\n\r\n", NULL);
    g_assert_nonnull(strstr(port, "coop door allow ok.test:81 --box"));
    Json *fact = world_fact(&w, "door.denied", "x.bad.test");
    g_assert_cmpstr(json_string_value(json_object_get(fact, "rule")), ==, "*.bad.test");
    g_assert_cmpstr(json_string_value(json_object_get(fact, "box")), ==, WORLD_BOX);
    g_assert_cmpuint(w.asked->len, ==, 0); /* E17: what is denied is not even looked up */
    world_clear(&w);
}

int
main(int argc, char **argv)
{
    if (!world_enter(&argc, &argv))
        return 0;
    g_test_add_func("/door/E1-loopback-and-host", test_e1);
    g_test_add_func("/door/E2-odd-addresses", test_e2);
    g_test_add_func("/door/E3-wrapped-addresses", test_e3);
    g_test_add_func("/door/E7-confusing-names", test_e7);
    g_test_add_func("/door/E8-ports", test_e8);
    g_test_add_func("/door/E9-host-beside-connect", test_e9);
    g_test_add_func("/door/E17-denial-text", test_denial_text);
    return g_test_run();
}

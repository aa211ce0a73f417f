/* SPDX-License-Identifier: Apache-2.0 */
#include <netinet/in.h>
#include <string.h>

#include "base/err.h"
#include "door/name.h"

typedef struct Good {
    const char *authority, *host;
    guint16 port;
    int family; /* 0: a name */
} Good;

static const Good good[] = {
    {"example.org:443", "example.org", 443, 0},
    {"EXAMPLE.Org:443", "example.org", 443, 0},
    {"example.org.:443", "example.org", 443, 0},
    {"xn--bcher-kva.example:80", "xn--bcher-kva.example", 80, 0},
    {"a-b.c1:1", "a-b.c1", 1, 0},
    {"localhost:65535", "localhost", 65535, 0},
    {"1.example:443", "1.example", 443, 0},
    {"3com.test:443", "3com.test", 443, 0},
    {"1.2.3.4:443", "1.2.3.4", 443, AF_INET},
    {"[2A00::1]:443", "2a00::1", 443, AF_INET6},
    {"[2a00:0:0:0:0:0:0:1]:443", "2a00::1", 443, AF_INET6},
    {"[::ffff:1.2.3.4]:443", "::ffff:1.2.3.4", 443, AF_INET6},
};

static void
test_good(void)
{
    for (size_t i = 0; i < G_N_ELEMENTS(good); i++) {
        g_autoptr(GError) error = NULL;
        DoorName name;

        g_test_message("%s", good[i].authority);
        g_assert_true(door_name_read(good[i].authority, 0, &name, &error));
        g_assert_no_error(error);
        g_assert_cmpstr(name.host, ==, good[i].host);
        g_assert_cmpint(name.port, ==, good[i].port);
        g_assert_cmpint(name.is_address, ==, good[i].family != 0);
        g_assert_cmpint(name.address.ss_family, ==, good[i].family);
        if (good[i].family == AF_INET)
            g_assert_cmpint(((struct sockaddr_in *)&name.address)->sin_port, ==, htons(name.port));
    }
}

static const char *const bad[] = {
    /* E2: resolvers take these for addresses. */
    "2130706433:443",
    "0x7f000001:443",
    "0x7f.1:443",
    "0X7F.1:443",
    "0177.0.0.1:443",
    "127.1:443",
    "127.0.1:443",
    "0:443",
    "00:443",
    "127.0.0.1.:443",
    "127.0.0.01:443",
    "127.0.0.256:443",
    "127.0.0.1.1:443",
    "1.2.3.0x4:443",
    "foo.0x:443",
    "foo.1:443",
    "127.0.0.1..:443",
    "\xef\xbc\x91\xef\xbc\x92\xef\xbc\x97.0.0.1:443", /* full-width 127 */
    "\xe2\x91\xa0\xe2\x91\xa1\xe2\x91\xa6.0.0.1:443", /* circled 127 */
    /* E7: one thing to us, another to the next one. */
    "allowed.com:443@evil",
    "user@allowed.com:443",
    "user:pass@allowed.com:443",
    "allowed.com#.evil:443",
    "allowed.com%00.evil:443",
    "evil%00.allowed.com:443",
    "allowed.com/.evil:443",
    "allowed.com\\.evil:443",
    "allowed.com?.evil:443",
    "allowed.com .evil:443",
    "allowed.com\t:443",
    "allowed.com\r\n:443",
    "allowed.com\x01:443",
    "allowed.com\x7f:443",
    "b\xc3\xbc\x63her.example:443",
    "allowed_com:443",
    "*.allowed.com:443",
    "allowed.com:443:443",
    "allowed.com,evil:443",
    "allowed.com;evil:443",
    /* Form. */
    "",
    ":",
    ":443",
    ".:443",
    "..:443",
    "a..b:443",
    ".a:443",
    "a..:443",
    "-a.b:443",
    "a-.b:443",
    "allowed.com",
    "allowed.com:",
    "allowed.com:0",
    "allowed.com:00443",
    "allowed.com:0443",
    "allowed.com:65536",
    "allowed.com:999999",
    "allowed.com:99999999999999999999",
    "allowed.com:+443",
    "allowed.com:-1",
    "allowed.com: 443",
    "allowed.com:443 ",
    "allowed.com:0x1bb",
    "allowed.com:4a",
    "allowed.com:\xd9\xa4",
    "[::1",
    "[::1]",
    "[::1]443",
    "[::1]x:443",
    "[]:443",
    "[1.2.3.4]:443",
    "[fe80::1%eth0]:443",
    "[fe80::1%25eth0]:443",
    "[::1]]:443",
    "[[::1]]:443",
    "::1:443",
    "[:::1]:443",
    "[12345::1]:443",
    "[v1.x]:443",
};

static void
test_bad(void)
{
    for (size_t i = 0; i < G_N_ELEMENTS(bad); i++) {
        g_autoptr(GError) error = NULL;
        DoorName name = {.port = 7};

        g_test_message("%s", bad[i]);
        g_assert_false(door_name_read(bad[i], 0, &name, &error));
        g_assert_error(error, ERR_DOMAIN, ERR_INVALID);
        g_assert_cmpint(name.port, ==, 7);
    }
}

static char *
long_name(guint labels, guint label_len, guint last_len)
{
    g_autoptr(GString) name = g_string_new(NULL);

    for (guint i = 0; i < labels; i++) {
        for (guint k = 0; k < label_len; k++)
            g_string_append_c(name, 'a');
        g_string_append_c(name, '.');
    }
    for (guint k = 0; k < last_len; k++)
        g_string_append_c(name, 'b');
    return g_string_free(g_steal_pointer(&name), FALSE);
}

static void
test_length(void)
{
    static const struct {
        guint labels, label_len, last_len;
        bool ok;
    } cases[] = {
        {3, 63, 61, true}, {3, 63, 62, false}, {1, 64, 3, false}, {1, 63, 3, true}, {126, 1, 1, true}};

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *host = long_name(cases[i].labels, cases[i].label_len, cases[i].last_len);
        g_autofree char *dotted = g_strconcat(host, ".", NULL);
        DoorName name;

        g_assert_cmpint(door_name_read(host, 443, &name, NULL), ==, cases[i].ok);
        g_assert_cmpint(door_name_read(dotted, 443, &name, NULL), ==, cases[i].ok);
    }
}

static void
test_uri(void)
{
    static const struct {
        const char *uri, *host;
        guint16 port;
        const char *target; /* NULL: refused */
    } cases[] = {
        {"http://example.org/a?b", "example.org", 80, "/a?b"},
        {"HTTP://Example.ORG:8080/", "example.org", 8080, "/"},
        {"http://example.org", "example.org", 80, "/"},
        {"http://1.2.3.4/x", "1.2.3.4", 80, "/x"},
        {"http://[2a00::1]:81/x", "2a00::1", 81, "/x"},
        {"http://example.org/a@b", "example.org", 80, "/a@b"},
        {"http://example.org//evil.com/x", "example.org", 80, "//evil.com/x"},
        {"https://example.org/", NULL, 0, NULL},
        {"ftp://example.org/", NULL, 0, NULL},
        {"http:/example.org/", NULL, 0, NULL},
        {"http:///path", NULL, 0, NULL},
        {"http://", NULL, 0, NULL},
        {"example.org/", NULL, 0, NULL},
        {"*", NULL, 0, NULL},
        {"", NULL, 0, NULL},
        {"http://user@example.org/", NULL, 0, NULL},
        {"http://user:pw@example.org/", NULL, 0, NULL},
        {"http://example.org\\@evil.com/", NULL, 0, NULL},
        {"http://example.org?x", NULL, 0, NULL},
        {"http://example.org#.evil.com/", NULL, 0, NULL},
        {"http://example.org/#frag", NULL, 0, NULL},
        {"http://example.org/a b", NULL, 0, NULL},
        {"http://example.org/\r\nX: y", NULL, 0, NULL},
        {"http://example.org/\xc3\xbc", NULL, 0, NULL},
        {"http://0x7f.1/", NULL, 0, NULL},
        {"http://example.org:/", NULL, 0, NULL},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(GError) error = NULL;
        const char *target = NULL;
        DoorName name;
        bool ok = door_name_read_uri(cases[i].uri, &name, &target, &error);

        g_test_message("%s", cases[i].uri);
        g_assert_cmpint(ok, ==, cases[i].target != NULL);
        g_assert_cmpstr(target, ==, cases[i].target);
        if (!ok) {
            g_assert_error(error, ERR_DOMAIN, ERR_INVALID);
            continue;
        }
        g_assert_cmpstr(name.host, ==, cases[i].host);
        g_assert_cmpint(name.port, ==, cases[i].port);
    }
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/door/name/good", test_good);
    g_test_add_func("/door/name/E2-E7-bad", test_bad);
    g_test_add_func("/door/name/length", test_length);
    g_test_add_func("/door/name/uri", test_uri);
    return g_test_run();
}

/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "door-world.h"
#include "http-fixture.h"
#include "support/fake-gate.h"

#define OTHER_RULES                                                                                          \
    "{\"allow\": \"raw.test\", \"ports\": [443, 8080], \"plain\": true}, {\"allow\": \"11.0.0.9\"}"
#define POLICY "{\"rules\": [{\"allow\": \"ok.test\", \"ports\": [80, 443, 8080]}, " OTHER_RULES "]}"
#define WITHOUT_OK "{\"rules\": [" OTHER_RULES "]}"

static void
init(World *w, const char *policy)
{
    world_init(w, policy);
    world_name(w, "ok.test", "11.0.0.1", NULL);
    world_name(w, "raw.test", "11.0.0.2", NULL);
}

static bool
echoes(int fd, const void *bytes, size_t n)
{
    client_send(fd, bytes, n);
    g_autoptr(GByteArray) echo = client_read_n(fd, n);

    return echo->len == n && memcmp(echo->data, bytes, n) == 0;
}

/* The hello in records of `piece` bytes. */
static GByteArray *
in_records(const GByteArray *hello, size_t piece)
{
    GByteArray *out = g_byte_array_new();

    for (size_t at = 5; at < hello->len; at += piece) {
        size_t n = MIN(piece, hello->len - at);
        const guint8 head[] = {22, 3, 1, (guint8)(n >> 8), (guint8)n};

        g_byte_array_append(out, head, sizeof head);
        g_byte_array_append(out, hello->data + at, (guint)n);
    }
    return out;
}

typedef struct HelloCase {
    const char *what, *authority, *sni; /* NULL: none */
    size_t record;                      /* 0: one */
    bool twice;
    bool passes;
} HelloCase;

static void
check_hello(const HelloCase *c, const char *policy)
{
    World w;

    g_test_message("%s", c->what);
    init(&w, policy);
    autofd fd = world_tunnel(&w, c->authority, NULL);
    g_assert_cmpint(fd, >=, 0);
    g_autoptr(GByteArray) plain = world_hello(c->sni);
    g_autoptr(GByteArray) hello = in_records(plain, c->record > 0 ? c->record : plain->len);
    if (c->twice)
        g_byte_array_append(hello, plain->data, plain->len);
    if (c->passes) {
        g_assert_true(echoes(fd, hello->data, hello->len));
    } else {
        client_send(fd, hello->data, hello->len);
        g_assert_true(client_sees_close(fd));
        g_assert_cmpuint(w.got->len, ==, 0); /* not a byte went on */
        g_assert_nonnull(world_fact(&w, "door.denied", NULL));
    }
    world_clear(&w);
}

static void
test_e12(void)
{
    static const HelloCase cases[] = {
        {"the same name", "ok.test:443", "ok.test", 0, false, true},
        {"in other letters", "ok.test:443", "OK.Test", 0, false, true},
        {"in records of 7 bytes", "ok.test:443", "ok.test", 7, false, true},
        {"another name", "ok.test:443", "evil.test", 0, false, false},
        {"a name below", "ok.test:443", "x.ok.test", 0, false, false},
        {"another name in records", "ok.test:443", "evil.test", 7, false, false},
        {"an outer name of ECH", "ok.test:443", "cdn.test", 0, false, false},
        {"no name", "ok.test:443", NULL, 0, false, false},
        {"two hellos", "ok.test:443", "ok.test", 0, true, false},
        {"another name at port 80", "ok.test:80", "evil.test", 0, false, false},
        {"no name at port 80", "ok.test:80", NULL, 0, false, false},
        {"an address, no name", "11.0.0.9:443", NULL, 0, false, true},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++)
        check_hello(&cases[i], POLICY);
}

static void
test_e12_segments(void)
{
    World w;

    init(&w, POLICY);
    autofd fd = world_tunnel(&w, "ok.test:443", NULL);
    g_autoptr(GByteArray) hello = world_hello("ok.test");
    for (guint i = 0; i < hello->len; i++) {
        g_assert_cmpuint(w.got->len, ==, 0);
        client_send(fd, hello->data + i, 1);
        fixture_turn();
    }
    g_autoptr(GByteArray) echo = client_read_n(fd, hello->len);
    g_assert_cmpmem(echo->data, echo->len, hello->data, hello->len);
    world_clear(&w);
}

static void
test_e12_not_tls(void)
{
    World w;

    init(&w, POLICY);
    autofd fd = world_tunnel(&w, "ok.test:443", NULL);
    client_sends(fd, "GET / HTTP/1.1\r\n\r\n");
    g_assert_true(client_sees_close(fd));
    g_assert_cmpuint(w.got->len, ==, 0);
    autofd web = world_tunnel(&w, "ok.test:80", NULL);
    client_sends(web, "GET / HTTP/1.1\r\nHost: evil.test\r\n\r\n");
    g_assert_true(client_sees_close(web));
    g_assert_cmpuint(w.got->len, ==, 0);
    autofd raw = world_tunnel(&w, "raw.test:443", NULL); /* the rule says so */
    g_assert_true(echoes(raw, "SSH-2.0-x\r\n", 11));
    world_clear(&w);
}

static void
test_e12_too_long(void)
{
    World w;
    g_autofree char *endless = g_strnfill(20000, 'x');

    init(&w, POLICY);
    memcpy(endless, "\x16\x03\x01\x40\x00\x01\x00\x3f\xfc", 9);
    autofd fd = world_tunnel(&w, "ok.test:443", NULL);
    client_send(fd, endless, 20000);
    g_assert_true(client_sees_close(fd));
    g_assert_cmpuint(w.got->len, ==, 0);
    world_clear(&w);
}

static void
test_observe(void)
{
    World w;

    init(&w, "{\"mode\": \"observe\"}");
    autofd fd = world_tunnel(&w, "ok.test:443", NULL);
    g_autoptr(GByteArray) hello = world_hello("evil.test");
    g_assert_true(echoes(fd, hello->data, hello->len));
    g_assert_nonnull(world_fact(&w, "door.observed", "ok.test"));
    world_name(&w, "ok.test", "10.0.0.1", NULL); /* addresses are judged all the same */
    autofd inside = world_tunnel(&w, "ok.test:443", NULL);
    g_assert_cmpint(inside, <, 0);
    world_clear(&w);
}

/* What comes with the CONNECT goes on after the 200, and is never read as a request. */
static void
test_e15(void)
{
    static const char smuggled[] = "GET http://raw.test:8080/ HTTP/1.1\r\nHost: raw.test\r\n\r\n";
    World w;

    init(&w, POLICY);
    autofd fd = world_connect(&w);
    client_sends(fd, "CONNECT ok.test:8080 HTTP/1.1\r\nHost: ok.test:8080\r\n\r\nearly bytes");
    g_autofree char *answer = g_string_free(client_read(fd, "early bytes"), FALSE);
    g_assert_cmpint(answer_status(answer), ==, 200);
    g_assert_cmpstr(w.got->str, ==, "early bytes");
    autofd denied = world_connect(&w);
    client_sends(denied, "CONNECT evil.test:443 HTTP/1.1\r\nHost: evil.test:443\r\n\r\n");
    client_sends(denied, smuggled);
    g_autofree char *refused = g_string_free(client_read(denied, NULL), FALSE);
    g_assert_cmpint(answer_status(refused), ==, 403);
    g_assert_null(strstr(refused + 1, "HTTP/1.1"));
    g_assert_false(world_was_reached(&w, "11.0.0.2"));
    world_clear(&w);
}

static void
test_half_close(void)
{
    World w;

    init(&w, POLICY);
    autofd fd = world_tunnel(&w, "ok.test:8080", NULL);
    g_assert_true(echoes(fd, "hello", 5));
    client_sends(fd, "last words");
    g_assert_cmpint(shutdown(fd, SHUT_WR), ==, 0);
    g_autofree char *rest = g_string_free(client_read(fd, NULL), FALSE);
    g_assert_cmpstr(rest, ==, "last words");
    fixture_until(&w.server_closed, 1);
    fixture_turn();
    Json *fact = world_fact(&w, "door.closed", "ok.test");
    g_assert_cmpint(json_integer_value(json_object_get(fact, "bytes_out")), ==, 15);
    g_assert_cmpint(json_integer_value(json_object_get(fact, "bytes_in")), ==, 15);
    world_clear(&w);
}

/* More than all buffers on the way: nothing is lost, and the one who does not read stops the other. */
static void
test_bulk(void)
{
    enum { PIECE = 8 * MIB };
    World w;
    g_autofree guint8 *bytes = g_malloc(PIECE);
    g_autoptr(GByteArray) got = g_byte_array_new();

    for (guint i = 0; i < PIECE; i++)
        bytes[i] = (guint8)(i * 2654435761u >> 13);
    init(&w, POLICY);
    autofd fd = world_tunnel(&w, "ok.test:8080", NULL);
    for (guint sent = 0; got->len < PIECE;) {
        ssize_t n = sent < PIECE ? send(fd, bytes + sent, PIECE - sent, MSG_NOSIGNAL) : 0;
        guint8 piece[64 * 1024];

        sent += n > 0 ? (guint)n : 0;
        g_main_context_iteration(NULL, FALSE);
        n = recv(fd, piece, sizeof piece, 0);
        if (n > 0)
            g_byte_array_append(got, piece, (guint)n);
    }
    g_assert_cmpmem(got->data, got->len, bytes, PIECE);
    world_clear(&w);
}

/* The end is passed on wherever it falls among the moves of a turn. */
static void
test_bulk_end(void)
{
    World w;

    init(&w, POLICY);
    w.script_ends = true;
    for (guint i = 0; i < 24; i++) {
        g_autofree char *text = g_strnfill(3 * MIB + i * 40000, 'x');
        autofd fd = world_tunnel(&w, "ok.test:8080", NULL);

        w.script = text;
        client_sends(fd, "go");
        g_autoptr(GString) got = client_read(fd, NULL);
        g_assert_cmpuint(got->len, ==, strlen(text));
    }
    world_clear(&w);
}

/* How long it took. */
static gint64
cut_by_policy(void)
{
    World w;
    g_autoptr(Policy) without = world_policy(WITHOUT_OK);

    init(&w, POLICY);
    autofd fd = world_tunnel(&w, "ok.test:8080", NULL);
    autofd kept = world_tunnel(&w, "raw.test:8080", NULL);
    g_assert_true(echoes(fd, "hello", 5));
    g_assert_true(echoes(kept, "hello", 5));
    gint64 start = clock_mono_us();
    door_set_policy(w.box, without);
    g_assert_true(client_sees_close(fd));
    gint64 took_us = clock_mono_us() - start;
    g_assert_true(echoes(kept, "hello", 5));
    fixture_until(&w.server_closed, 1);
    door_remove(w.door, w.box);
    g_assert_true(client_sees_close(kept));
    fixture_until(&w.server_closed, 2);
    world_clear(&w);
    return took_us;
}

static void
test_e25(void)
{
    gint64 best_us = G_MAXINT64;

    for (int i = 0; i < 5 && best_us >= G_USEC_PER_SEC; i++) /* on a busy machine one may take longer */
        best_us = MIN(best_us, cut_by_policy());
    g_assert_cmpint(best_us, <, G_USEC_PER_SEC);
}

/* In whatever state it is: dialling, peeking, between answers of the plain proxy. */
static void
test_e25_states(void)
{
    World w;
    g_autoptr(Policy) deny = world_policy("{\"mode\": \"deny\"}");

    init(&w, "{\"rules\": [{\"allow\": \"ok.test\", \"ports\": [80, 443]}, {\"allow\": \"hole.test\"}]}");
    world_ip("far", "route add blackhole 11.9.9.9");
    world_name(&w, "hole.test", "11.9.9.9", NULL);
    w.script = "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nbeginning";
    autofd dialling = world_connect(&w);
    client_sends(dialling, "CONNECT hole.test:443 HTTP/1.1\r\nHost: hole.test\r\n\r\n");
    autofd peeking = world_tunnel(&w, "ok.test:443", NULL);
    client_sends(peeking, "\x16\x03\x01");
    autofd plain = world_connect(&w);
    client_sends(plain, "GET http://ok.test/ HTTP/1.1\r\nHost: ok.test\r\n\r\n");
    g_string_free(client_read(plain, "beginning"), TRUE);
    door_set_policy(w.box, deny);
    g_assert_true(client_sees_close(dialling));
    g_assert_true(client_sees_close(peeking));
    g_assert_true(client_sees_close(plain));
    DoorStats stats;
    door_stats(w.door, &stats);
    g_assert_cmpuint(stats.tunnels, ==, 0);
    world_clear(&w);
    world_ip("far", "route del blackhole 11.9.9.9");
}

static void
test_e26(void)
{
    World w;

    init(&w, POLICY);
    autofd fd = world_tunnel(&w, "ok.test:8080", NULL);
    g_assert_true(echoes(fd, "hello", 5));
    world_ip("far", "route del local default dev lo table main");
    client_sends(fd, "anybody there?");
    g_assert_true(client_sees_close(fd)); /* after WORLD_DEAD_MS without an answer */
    world_ip("far", "route add local default dev lo table main");
    g_assert_nonnull(world_fact(&w, "door.closed", "ok.test"));
    world_clear(&w);
}

static void
test_client_vanishes(void)
{
    World w;
    struct linger now = {.l_onoff = 1};

    init(&w, POLICY);
    int fd = world_tunnel(&w, "ok.test:8080", NULL);
    g_assert_true(echoes(fd, "hello", 5));
    g_assert_cmpint(setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof now), ==, 0);
    close(fd);
    fixture_until(&w.server_closed, 1);
    world_clear(&w);
}

static void
test_limits(void)
{
    World w;
    int fds[DOOR_BOX_TUNNELS];
    DoorLimits limits = DOOR_LIMITS_INIT;

    init(&w, POLICY);
    for (size_t i = 0; i < G_N_ELEMENTS(fds); i++) {
        fds[i] = world_tunnel(&w, "ok.test:8080", NULL);
        g_assert_cmpint(fds[i], >=, 0);
    }
    g_autofree char *many = NULL;
    g_assert_cmpint(world_tunnel(&w, "ok.test:8080", &many), <, 0);
    g_assert_cmpint(answer_status(many), ==, 429);
    for (size_t i = 1; i < G_N_ELEMENTS(fds); i++)
        close(fds[i]);
    limits.bytes_per_day = 10;
    door_set_limits(w.box, &limits);
    client_sends(fds[0], "eleven bytes");
    g_assert_true(client_sees_close(fds[0]));
    close(fds[0]);
    g_autofree char *used_up = NULL;
    g_assert_cmpint(world_tunnel(&w, "ok.test:8080", &used_up), <, 0);
    g_assert_cmpint(answer_status(used_up), ==, 429);
    world_clear(&w);
}

/* 100 KiB there and back at 200 KiB/s, of which one second's worth is there at once. */
static void
test_rate(void)
{
    enum { SIZE = 150 * 1024 };
    World w;
    DoorLimits limits = DOOR_LIMITS_INIT;
    g_autofree guint8 *bytes = g_malloc0(SIZE);

    init(&w, POLICY);
    limits.bytes_per_s = 200 * 1024;
    door_set_limits(w.box, &limits);
    autofd fd = world_tunnel(&w, "ok.test:8080", NULL);
    gint64 start = clock_mono_us();
    g_assert_true(echoes(fd, bytes, SIZE));
    g_assert_cmpint(clock_mono_us() - start, >, G_USEC_PER_SEC / 4);
    world_clear(&w);
}

static void
test_identity(void)
{
    World w;
    g_autoptr(GError) error = NULL;
    g_autoptr(Policy) policy = world_policy(POLICY);

    init(&w, POLICY);
    const DoorBoxSpec other = {
        .id = "other", .cookie = world_cookie("box"), .policy = policy, .limits = DOOR_LIMITS_INIT};
    g_assert_null(door_add(w.door, world_listen("near"), &other, &error));
    g_assert_error(error, ERR_DOMAIN, ERR_DENIED);
    g_assert_null(door_find(w.door, "other"));
    /* The same box again: its streams are cut, its listener serves. */
    autofd fd = world_tunnel(&w, "ok.test:8080", NULL);
    door_remove(w.door, w.box);
    const DoorBoxSpec again = {
        .id = WORLD_BOX, .cookie = world_cookie("box"), .policy = policy, .limits = DOOR_LIMITS_INIT};
    g_clear_error(&error);
    w.box = door_add(w.door, world_listen("box"), &again, &error);
    g_assert_no_error(error);
    g_assert_true(client_sees_close(fd));
    autofd next = world_tunnel(&w, "ok.test:8080", NULL);
    g_assert_true(echoes(next, "hello", 5));
    world_clear(&w);
}

static void
test_gate(void)
{
    World w;
    Gate *gate = fake_gate_new();

    init(&w, POLICY);
    door_free(w.door);
    w.door = door_new(&(DoorSpec){.loop = w.loop, .dialer = w.dialer, .facts = w.facts, .gate = gate});
    g_autoptr(Policy) policy = world_policy(POLICY);
    const DoorBoxSpec spec = {.id = WORLD_BOX,
                              .cookie = world_cookie("box"),
                              .policy = policy,
                              .labels = {.agent = "ann", .task = "t1", .squad = "web"},
                              .limits = DOOR_LIMITS_INIT};
    w.box = door_add(w.door, world_listen("box"), &spec, NULL);
    g_autofree char *answer = world_ask(
        &w, "GET /openai/v1/models HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", NULL);
    g_assert_cmpstr(answer_body(answer), ==, WORLD_BOX " ann t1 web\n");
    door_remove(w.door, w.box);
    g_assert_cmpuint(fake_gate_forgotten(gate), ==, 1);
    world_clear(&w);
    gate_free(gate);
}

int
main(int argc, char **argv)
{
    if (!world_enter(&argc, &argv))
        return 0;
    g_test_add_func("/door/E12-server-names", test_e12);
    g_test_add_func("/door/E12-segments", test_e12_segments);
    g_test_add_func("/door/E12-not-tls", test_e12_not_tls);
    g_test_add_func("/door/E12-too-long", test_e12_too_long);
    g_test_add_func("/door/observe", test_observe);
    g_test_add_func("/door/E15-early-bytes", test_e15);
    g_test_add_func("/door/half-close", test_half_close);
    g_test_add_func("/door/bulk", test_bulk);
    g_test_add_func("/door/bulk-end", test_bulk_end);
    g_test_add_func("/door/E25-policy-and-end", test_e25);
    g_test_add_func("/door/E25-every-state", test_e25_states);
    g_test_add_func("/door/E26-half-open", test_e26);
    g_test_add_func("/door/client-vanishes", test_client_vanishes);
    g_test_add_func("/door/limits", test_limits);
    g_test_add_func("/door/rate", test_rate);
    g_test_add_func("/door/identity", test_identity);
    g_test_add_func("/door/gate", test_gate);
    return g_test_run();
}

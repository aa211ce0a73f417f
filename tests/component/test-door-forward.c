/* SPDX-License-Identifier: Apache-2.0 */
/* What a box asks of the server: the test is both ends, and neither is to be trusted with the other. */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "door-world.h"
#include "http-fixture.h"

enum { MANY = 60, LARGE = 64 * MIB, HELD_MAX = 24 * MIB, QUIET_TURNS = 200 };

#define POLICY "{\"rules\": []}"
#define CLOSE "Host: x\r\nConnection: close\r\n\r\n"
#define OK_ANSWER "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nok\n"

typedef struct Bench {
    World w;
    GArray *ends; /* int: the server's */
    bool away;
} Bench;

static bool
on_forward(const char *box_id, int fd, void *ctx)
{
    Bench *b = ctx;
    int end = b->away ? -1 : dup(fd);

    g_assert_cmpstr(box_id, ==, WORLD_BOX);
    if (end >= 0)
        g_array_append_val(b->ends, end);
    return end >= 0;
}

static void
bench_init(Bench *b)
{
    world_init(&b->w, POLICY);
    b->ends = g_array_new(FALSE, FALSE, sizeof(int));
    b->away = false;
    door_set_forward(b->w.door, on_forward, b);
}

static void
bench_clear(Bench *b)
{
    world_clear(&b->w);
    for (guint i = 0; i < b->ends->len; i++)
        close(g_array_index(b->ends, int, i));
    g_array_unref(b->ends);
}

/* The server's end of the request that was sent last. */
static int
server_end(Bench *b, guint n)
{
    fixture_until(&b->ends->len, n);
    return g_array_index(b->ends, int, n - 1);
}

static void
server_close(Bench *b, guint n)
{
    close(g_array_index(b->ends, int, n - 1));
    g_array_index(b->ends, int, n - 1) = -1;
}

/* One more request works, whatever the one before did. */
static void
check_alive(Bench *b)
{
    guint n = b->ends->len + 1;
    autofd fd = world_connect(&b->w);

    client_sends(fd, "GET /git/coop/next.git/info/refs HTTP/1.1\r\n" CLOSE);
    int end = server_end(b, n);
    g_autoptr(GString) asked = client_read(end, "\r\n\r\n");

    client_sends(end, OK_ANSWER);
    g_autofree char *answer = g_string_free(client_read(fd, NULL), FALSE);

    g_assert_nonnull(strstr(asked->str, "/git/coop/next.git/"));
    g_assert_cmpint(answer_status(answer), ==, 200);
}

/* ---- what arrives ---- */

static void
test_request(void)
{
    Bench b;

    bench_init(&b);
    autofd fd = world_connect(&b.w);
    client_sends(fd,
                 "POST /git/a/b.git/git-receive-pack?x=%2e HTTP/1.1\r\nHost: evil\r\n"
                 "Authorization: Basic a2V5OmtleQ==\r\nX-API-Key: e2b_secret\r\nCookie: session=secret\r\n"
                 "Git-Protocol: version=2\r\nContent-Length: 4\r\n\r\nbody");
    int end = server_end(&b, 1);
    g_autoptr(GString) got = client_read(end, "body");

    g_assert_true(g_str_has_prefix(got->str, "POST /git/a/b.git/git-receive-pack?x=%2e HTTP/1.1\r\n"));
    g_assert_nonnull(strstr(got->str, "Git-Protocol: version=2\r\n"));
    g_assert_null(strstr(got->str, "secret"));
    g_assert_null(strstr(got->str, "a2V5"));
    g_assert_null(strstr(got->str, WORLD_BOX));
    client_sends(end, OK_ANSWER);
    g_autoptr(GString) answer = client_read(fd, "ok\n");
    g_assert_cmpint(answer_status(answer->str), ==, 200);
    g_assert_cmpuint(b.w.reached->len, ==, 0);
    bench_clear(&b);
}

static void
test_not_the_servers(void)
{
    static const char *const paths[] = {"/git",     "/gitx/a", "/api/v1/repos",
                                        "/%67it/a", "//git/a", "/x/../git/a"};
    Bench b;

    bench_init(&b);
    for (size_t i = 0; i < G_N_ELEMENTS(paths); i++) {
        g_autofree char *request = g_strdup_printf("GET %s HTTP/1.1\r\n" CLOSE, paths[i]);
        g_autofree char *answer = world_ask(&b.w, request, NULL);

        g_test_message("%s", paths[i]);
        g_assert_cmpint(answer_status(answer), >=, 400);
        g_assert_cmpuint(b.ends->len, ==, 0);
    }
    bench_clear(&b);
}

static void
test_away(void)
{
    static const char request[] = "GET /git/a/b.git/info/refs HTTP/1.1\r\n" CLOSE;
    Bench b;

    bench_init(&b);
    b.away = true;
    g_autofree char *refused = world_ask(&b.w, request, NULL);
    g_assert_cmpint(answer_status(refused), ==, 503);
    door_set_forward(b.w.door, NULL, NULL);
    g_autofree char *nobody = world_ask(&b.w, request, NULL);
    g_assert_cmpint(answer_status(nobody), ==, 503);
    b.away = false;
    door_set_forward(b.w.door, on_forward, &b);
    check_alive(&b);
    bench_clear(&b);
}

/* ---- a server that answers badly ---- */

static void
test_bad_answers(void)
{
    static const struct {
        const char *text;
        int status; /* 0: what came is cut */
    } cases[] = {
        {"", 502},
        {"SSH-2.0-x\r\n\r\n", 502},
        {"HTTP/1.1 200 OK\r\n", 502},
        {"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab", 502},
        {"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n", 502},
        {"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 502},
        {"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nab", 0},
        {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab", 0},
        {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", 0},
    };
    Bench b;

    bench_init(&b);
    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        guint n = b.ends->len + 1;
        autofd fd = world_connect(&b.w);

        g_test_message("%zu", i);
        client_sends(fd, "GET /git/a/b.git/info/refs HTTP/1.1\r\n" CLOSE);
        int end = server_end(&b, n);
        g_autoptr(GString) asked = client_read(end, "\r\n\r\n");

        client_sends(end, cases[i].text);
        server_close(&b, n);
        g_autofree char *answer = g_string_free(client_read(fd, NULL), FALSE);

        if (cases[i].status != 0)
            g_assert_cmpint(answer_status(answer), ==, cases[i].status);
        else /* a client must be able to tell that it is not whole */
            g_assert_true(answer_status(answer) == 0 || !g_str_has_suffix(answer, "0\r\n\r\n"));
        check_alive(&b);
    }
    bench_clear(&b);
}

/* It has more to say than a head may have. */
static void
test_endless_head(void)
{
    Bench b;
    g_autoptr(GString) lines = g_string_new("HTTP/1.1 200 OK\r\n");

    bench_init(&b);
    for (guint i = 0; i < 100 * 1000; i++)
        g_string_append_printf(lines, "X-%u: y\r\n", i);
    autofd fd = world_connect(&b.w);
    client_sends(fd, "GET /git/a/b.git/info/refs HTTP/1.1\r\n" CLOSE);
    int end = server_end(&b, 1);

    for (size_t at = 0; at < lines->len;) {
        ssize_t sent = send(end, lines->str + at, lines->len - at, MSG_NOSIGNAL);

        if (sent < 0 && errno != EAGAIN)
            break;
        at += sent > 0 ? (size_t)sent : 0;
        fixture_turn();
    }
    g_autofree char *answer = g_string_free(client_read(fd, NULL), FALSE);
    g_assert_cmpint(answer_status(answer), ==, 502);
    check_alive(&b);
    bench_clear(&b);
}

/* ---- ends that go away, or stay and do nothing ---- */

static void
test_half_closed(void)
{
    Bench b;

    bench_init(&b);
    /* The server has said all it will before the body is there. */
    autofd fd = world_connect(&b.w);
    client_sends(fd, "POST /git/a/b.git/git-receive-pack HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"
                     "Content-Length: 100\r\n\r\nsome");
    int end = server_end(&b, 1);
    g_autoptr(GString) got = client_read(end, "some");

    client_sends(end, "HTTP/1.1 403 Forbidden\r\nContent-Length: 3\r\n\r\nno\n");
    g_assert_cmpint(shutdown(end, SHUT_WR), ==, 0);
    g_autoptr(GString) answer = client_read(fd, "no\n");
    g_assert_cmpint(answer_status(answer->str), ==, 403);
    server_close(&b, 1);
    check_alive(&b);
    bench_clear(&b);
}

static void
test_box_cut(void)
{
    Bench b;

    bench_init(&b);
    int fd = world_connect(&b.w);
    client_sends(fd,
                 "POST /git/a/b.git/git-receive-pack HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\nsome");
    int end = server_end(&b, 1);
    g_autoptr(GString) got = client_read(end, "some");

    close(fd);
    g_assert_true(client_sees_close(end));
    check_alive(&b);
    bench_clear(&b);
}

static void
test_door_ends(void)
{
    Bench b;

    bench_init(&b);
    autofd fd = world_connect(&b.w);
    client_sends(fd,
                 "POST /git/a/b.git/git-receive-pack HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\nsome");
    int end = server_end(&b, 1);
    g_autoptr(GString) got = client_read(end, "some");

    door_set_forward(b.w.door, NULL, NULL);
    client_sends(end, OK_ANSWER); /* on its way when the door goes */
    bench_clear(&b);
    char byte;
    while (recv(fd, &byte, 1, MSG_DONTWAIT) > 0)
        continue;
}

/* How much of LARGE goes in while the other end reads nothing. */
static size_t
push(int fd)
{
    static guint8 bytes[64 * 1024];
    size_t sent = 0;

    for (guint quiet = 0; sent < LARGE && quiet < QUIET_TURNS;) {
        ssize_t n = send(fd, bytes, sizeof bytes, MSG_NOSIGNAL | MSG_DONTWAIT);

        g_assert_true(n > 0 || errno == EAGAIN);
        quiet = n > 0 ? 0 : quiet + 1;
        sent += n > 0 ? (size_t)n : 0;
        fixture_turn();
    }
    return sent;
}

static void
test_slow_box(void)
{
    Bench b;

    bench_init(&b);
    autofd fd = world_connect(&b.w);
    client_sends(fd, "GET /git/a/b.git/x HTTP/1.1\r\nHost: x\r\n\r\n");
    int end = server_end(&b, 1);
    g_autoptr(GString) got = client_read(end, "\r\n\r\n");
    size_t before = fixture_rss();
    g_autofree char *head = g_strdup_printf("HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n", LARGE);

    client_sends(end, head);
    size_t sent = push(end);
    g_test_message("%zu bytes went in", sent);
    g_assert_cmpuint(sent, <, HELD_MAX);
    g_assert_cmpuint(fixture_rss(), <, before + HELD_MAX);
    check_alive(&b);
    /* It goes on where it stood. */
    g_autoptr(GByteArray) read = client_read_n(fd, sent / 2);
    g_assert_cmpuint(read->len, ==, sent / 2);
    g_assert_cmpuint(push(end), >, 0);
    bench_clear(&b);
}

static void
test_slow_server(void)
{
    Bench b;

    bench_init(&b);
    autofd fd = world_connect(&b.w);
    g_autofree char *head = g_strdup_printf(
        "POST /git/a/b.git/x HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n", LARGE);

    client_sends(fd, head);
    int end = server_end(&b, 1);
    g_autoptr(GString) got = client_read(end, "\r\n\r\n");
    size_t before = fixture_rss();
    size_t sent = push(fd);

    g_test_message("%zu bytes went in", sent);
    g_assert_cmpuint(sent, <, HELD_MAX);
    g_assert_cmpuint(fixture_rss(), <, before + HELD_MAX);
    check_alive(&b);
    /* It gives up in the middle of it. */
    server_close(&b, 1);
    g_autofree char *answer = g_string_free(client_read(fd, NULL), FALSE);
    g_assert_cmpint(answer_status(answer), ==, 502);
    bench_clear(&b);
}

/* ---- many ---- */

static void
test_many(void)
{
    int fds[MANY];
    Bench b;

    bench_init(&b);
    for (guint i = 0; i < MANY; i++) {
        g_autofree char *request = g_strdup_printf("GET /git/a/b.git/%u HTTP/1.1\r\n" CLOSE, i);

        fds[i] = world_connect(&b.w);
        client_sends(fds[i], request);
        (void)server_end(&b, i + 1);
    }
    for (guint i = MANY; i-- > 0;) {
        int end = g_array_index(b.ends, int, i);
        g_autoptr(GString) asked = client_read(end, "\r\n\r\n");
        g_autofree char *path = g_strdup_printf("/git/a/b.git/%u ", i);
        g_autofree char *text = g_strdup_printf("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n%03u", i);

        g_assert_nonnull(strstr(asked->str, path));
        client_sends(end, text);
    }
    for (guint i = 0; i < MANY; i++) {
        g_autofree char *answer = g_string_free(client_read(fds[i], NULL), FALSE);
        g_autofree char *body = g_strdup_printf("%03u", i);

        g_assert_cmpstr(answer_body(answer), ==, body);
        close(fds[i]);
    }
    bench_clear(&b);
}

static void
test_limits(void)
{
    Bench b;
    DoorLimits limits = DOOR_LIMITS_INIT;

    bench_init(&b);
    limits.requests_per_min = 1;
    door_set_limits(b.w.box, &limits);
    check_alive(&b);
    g_autofree char *answer = world_ask(&b.w, "GET /git/a/b.git/x HTTP/1.1\r\n" CLOSE, NULL);
    g_assert_cmpint(answer_status(answer), ==, 429);
    g_assert_cmpuint(b.ends->len, ==, 1);
    bench_clear(&b);
}

int
main(int argc, char **argv)
{
    if (!world_enter(&argc, &argv))
        return 0;
    g_test_add_func("/door/forward/request", test_request);
    g_test_add_func("/door/forward/not-the-servers", test_not_the_servers);
    g_test_add_func("/door/forward/away", test_away);
    g_test_add_func("/door/forward/bad-answers", test_bad_answers);
    g_test_add_func("/door/forward/endless-head", test_endless_head);
    g_test_add_func("/door/forward/half-closed", test_half_closed);
    g_test_add_func("/door/forward/box-cut", test_box_cut);
    g_test_add_func("/door/forward/door-ends", test_door_ends);
    g_test_add_func("/door/forward/slow-box", test_slow_box);
    g_test_add_func("/door/forward/slow-server", test_slow_server);
    g_test_add_func("/door/forward/many", test_many);
    g_test_add_func("/door/forward/limits", test_limits);
    return g_test_run();
}

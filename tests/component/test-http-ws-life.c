/* SPDX-License-Identifier: Apache-2.0 */
/* WebSockets whose clients are slow, mute or mad, and lives that end at the wrong moment. */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "support/ws-frames.h"
#include "ws-fixture.h"

/* ---- clients that are slow, mute or mad ---- */

static void
test_slow_reader(void)
{
    WsTest t;

    ws_test_init(&t);
    autofd fd = ws_test_connect(&t, WS_HANDSHAKE("/push"));
    fixture_until(&t.refused, 1);
    fixture_turn(); /* until the kernel's buffers are full as well */
    guint refused = t.refused;
    fixture_turn();
    g_assert_cmpuint(t.refused, ==, refused);
    size_t rss = fixture_rss();
    for (guint i = 0; i < 64 * MIB / PUSH_SIZE; i++) {
        guint8 first;
        g_autoptr(GByteArray) frame = ws_read_frame(fd, &first);

        g_assert_cmphex(first, ==, 0x82);
        g_assert_cmpuint(frame->len, ==, PUSH_SIZE);
    }
    g_assert_cmpuint(t.drained, >, 10);
    g_assert_cmpuint(t.queued_max, <=, QUEUE_MAX + 10); /* and one header */
    /* A quarter of what went through: the frames read here pass through ASan's quarantine. */
    g_assert_cmpuint(fixture_rss(), <, rss + 16 * MIB);
    ws_test_clear(&t);
}

static void
test_echo_is_held_back(void)
{
    g_autofree char *payload = g_malloc0(PUSH_SIZE);
    g_autoptr(GByteArray) frame = g_byte_array_new();
    guint sent = 0;
    WsTest t;

    ws_put_frame(frame, 0x82, payload, PUSH_SIZE);
    ws_test_init(&t);
    autofd fd = ws_test_connect(&t, WS_HANDSHAKE("/echo"));
    /* The client sends and does not read, until nothing moves any more. */
    for (size_t at = 0;;) {
        fixture_turn();
        ssize_t n = send(fd, frame->data + at, frame->len - at, MSG_NOSIGNAL);

        if (n < 0 && errno == EAGAIN && t.kept != NULL)
            break;
        at += n > 0 ? (size_t)n : 0;
        if (at == frame->len) {
            at = 0;
            sent++;
        }
        g_assert_cmpuint(sent, <, 64 * MIB / PUSH_SIZE); /* the server reads what it cannot send back */
    }
    g_assert_cmpuint(ws_queued(t.ws), <=, QUEUE_MAX + 10);
    for (guint i = 0; i < sent; i++)
        ws_expect_frame(fd, 0x82, payload, PUSH_SIZE);
    g_assert_cmpuint(t.drained, >, 0);
    ws_test_clear(&t);
}

/* Each ping asks for an answer that nobody takes. */
static void
test_ping_flood(void)
{
    g_autoptr(GByteArray) pings = g_byte_array_new();
    guint64 sent = 0;
    WsTest t;

    for (int i = 0; i < 1000; i++)
        ws_put_frame(pings, 0x89, "", 0);
    ws_test_init(&t);
    autofd fd = ws_test_connect(&t, WS_HANDSHAKE("/echo"));
    for (gint64 last = g_get_monotonic_time(); g_get_monotonic_time() - last < 50000;) {
        fixture_turn();
        size_t at = sent % pings->len;
        ssize_t n = send(fd, pings->data + at, pings->len - at, MSG_NOSIGNAL);

        if (n <= 0)
            continue;
        sent += (guint64)n;
        last = g_get_monotonic_time();
        g_assert_cmpuint(sent, <, 64 * MIB); /* the server reads on */
        g_assert_cmpuint(ws_queued(t.ws), <=, QUEUE_MAX + 8192);
    }
    g_autoptr(GByteArray) pongs = client_read_n(fd, sent / 6 * 2);
    g_assert_cmpuint(pongs->len, ==, sent / 6 * 2);
    for (guint i = 0; i < pongs->len; i += 2)
        g_assert_cmpmem(pongs->data + i, 2, "\x8a\0", 2);
    ws_test_clear(&t);
}

static void
test_mute_client(void)
{
    WsTest t;

    ws_test_init(&t);
    t.spec.ping_ms = 100;
    autofd fd = ws_test_connect(&t, WS_HANDSHAKE("/echo"));
    /* One that answers stays, for more pings than a mute one gets. */
    for (int i = 0; i < 5; i++) {
        ws_expect_frame(fd, 0x89, "", 0);
        ws_send_frame(fd, 0x8a, "", 0);
    }
    g_assert_cmpuint(t.closed, ==, 0);
    ws_expect_frame(fd, 0x89, "", 0);
    ws_expect_frame(fd, 0x89, "", 0);
    g_assert_true(client_sees_close(fd));
    fixture_until(&t.closed, 1);
    g_assert_cmpuint(t.code, ==, 1006);
    ws_test_clear(&t);
}

static void
test_pause(void)
{
    g_autoptr(GByteArray) bytes = g_byte_array_new();
    enum { MESSAGES = 20000 };
    WsTest t;

    for (int i = 0; i < MESSAGES; i++)
        ws_put_frame(bytes, 0x81, &(char){(char)('a' + i % 26)}, 1);
    ws_test_init(&t);
    t.spec.ping_ms = 20; /* who is not read is not called mute */
    autofd fd = ws_test_connect(&t, WS_HANDSHAKE("/pause"));
    client_send(fd, bytes->data, 7 * 5 + 3);
    fixture_until(&t.messages, 1);
    for (gint64 end = g_get_monotonic_time() + 100000; g_get_monotonic_time() < end;)
        fixture_turn();
    g_assert_cmpuint(t.messages, ==, 1);
    for (guint i = 1; i < 5; i++) {
        ws_resume(t.ws);
        g_assert_cmpuint(t.messages, ==, i);
        fixture_until(&t.messages, i + 1);
    }
    ws_resume(t.ws);
    client_send(fd, bytes->data + 7 * 5 + 3, bytes->len - (7 * 5 + 3));
    for (guint i = 6; i < MESSAGES; i++) {
        fixture_until(&t.messages, i);
        ws_resume(t.ws);
    }
    fixture_until(&t.messages, MESSAGES);
    ws_test_clear(&t);
}

/* ---- lives that cross ---- */

static void
answer_late(WsTest *t)
{
    g_autoptr(HttpRequest) request = g_steal_pointer(&t->late);

    g_assert_nonnull(request);
    ws_test_accept(t, request);
}

static void
test_late_answer(void)
{
    static const char handshake[] = WS_HANDSHAKE("/late");
    g_autoptr(GByteArray) bytes = g_byte_array_new();
    WsTest t;

    g_byte_array_append(bytes, (const guint8 *)handshake, sizeof handshake - 1);
    ws_put_conversation(bytes);
    ws_test_init(&t);
    autofd fd = fixture_connect(&t.f);
    client_send(fd, bytes->data, bytes->len); /* frames are there before the answer is */
    fixture_until(&t.f.handled, 1);
    answer_late(&t);
    g_autofree char *head = ws_read_head(fd);
    g_assert_cmpint(answer_status(head), ==, 101);
    ws_expect_conversation(fd);
    close(g_steal_fd(&fd));
    fixture_until(&t.closed, 1);
    ws_test_clear(&t);
}

static void
test_answer_to_nobody(void)
{
    WsTest t;

    ws_test_init(&t);
    int fd = fixture_connect(&t.f);
    client_sends(fd, WS_HANDSHAKE("/late"));
    fixture_until(&t.f.handled, 1);
    client_reset(fd);
    fixture_until(&t.f.over, 1);
    answer_late(&t);
    g_assert_null(t.ws);

    /* The server learns of it only by sending the answer. */
    fd = fixture_connect(&t.f);
    client_sends(fd, WS_HANDSHAKE("/late"));
    fixture_until(&t.f.handled, 2);
    client_reset(fd);
    answer_late(&t);
    g_assert_nonnull(t.ws);
    g_assert_false(ws_send(t.ws, WS_TEXT, "a", 1));
    fixture_until(&t.closed, 1);
    g_assert_cmpuint(t.code, ==, 1006);
    ws_test_clear(&t);
}

/* No call of ours ends the connection under us, even when it is the one that finds out. */
static void
test_call_to_nobody(void)
{
    for (int which = 0; which < 3; which++) {
        WsTest t;

        ws_test_init(&t);
        int fd = ws_test_connect(&t, WS_HANDSHAKE("/echo"));
        client_reset(fd);
        t.calling = true;
        if (which == 0)
            g_assert_true(ws_send(t.ws, WS_TEXT, "a", 1));
        else if (which == 1)
            ws_close(t.ws, 1000, NULL);
        else
            ws_resume(t.ws);
        t.calling = false;
        fixture_until(&t.closed, 1);
        g_assert_cmpuint(t.code, ==, 1006);
        ws_test_clear(&t);
    }
}

/* Whoever wants no messages can still close: the peer's answer is read. */
static void
test_close_while_paused(void)
{
    WsTest t;

    ws_test_init(&t);
    autofd fd = ws_test_connect(&t, WS_HANDSHAKE("/pause"));
    ws_send_frame(fd, 0x81, "a", 1);
    ws_send_frame(fd, 0x81, "b", 1);
    fixture_until(&t.messages, 1);
    ws_close(t.ws, 1000, NULL);
    ws_expect_close(fd, 1000);
    ws_send_frame(fd, 0x88, "\x03\xe8", 2);
    g_assert_true(client_sees_close(fd));
    close(g_steal_fd(&fd));
    fixture_until(&t.closed, 1);
    g_assert_cmpuint(t.code, ==, 1000);
    g_assert_cmpuint(t.messages, ==, 1);
    ws_test_clear(&t);
}

static void
test_ended_inside(void)
{
    static const struct {
        const char *handshake;
        guint end_at;
    } cases[] = {{WS_HANDSHAKE("/push"), 1}, {WS_HANDSHAKE("/pause"), 1}, {WS_HANDSHAKE("/pause"), 2}};
    g_autoptr(GByteArray) both = g_byte_array_new();

    ws_put_frame(both, 0x81, "a", 1);
    ws_put_frame(both, 0x81, "b", 1);

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        WsTest t;

        ws_test_init(&t);
        t.end_at = cases[i].end_at;
        autofd fd = ws_test_connect(&t, cases[i].handshake);
        client_send(fd, both->data, both->len);
        if (t.end_at == 2) {
            fixture_until(&t.messages, 1);
            ws_resume(t.ws);
        }
        fixture_until(&t.closed, 1);
        ws_test_clear(&t);
    }
}

static void
test_server_ends(void)
{
    WsTest t;

    ws_test_init(&t);
    autofd fd = ws_test_connect(&t, WS_HANDSHAKE("/echo"));
    autofd pushed = ws_test_connect(&t, WS_HANDSHAKE("/push"));
    g_assert_cmpuint(t.opened, ==, 2);
    ws_test_clear(&t);
    g_assert_cmpuint(t.closed, ==, 2);
    g_assert_cmpuint(t.code, ==, 1006);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/ws/slow-reader", test_slow_reader);
    g_test_add_func("/ws/echo-held-back", test_echo_is_held_back);
    g_test_add_func("/ws/ping-flood", test_ping_flood);
    g_test_add_func("/ws/mute", test_mute_client);
    g_test_add_func("/ws/pause", test_pause);
    g_test_add_func("/ws/close/paused", test_close_while_paused);
    g_test_add_func("/ws/late/good", test_late_answer);
    g_test_add_func("/ws/late/gone", test_answer_to_nobody);
    g_test_add_func("/ws/call-to-nobody", test_call_to_nobody);
    g_test_add_func("/ws/ended-inside", test_ended_inside);
    g_test_add_func("/ws/server-ends", test_server_ends);
    return g_test_run();
}

/* SPDX-License-Identifier: Apache-2.0 */
/* The WebSocket protocol: handshakes, messages, frames that break it, closing. */
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "support/ws-frames.h"
#include "ws-fixture.h"

/* ---- the handshake ---- */

static void
test_handshake(void)
{
    static const struct {
        const char *offered, *wanted;
        bool chosen;
    } cases[] = {
        {"", NULL, false},
        {"Sec-WebSocket-Protocol: a, b\r\n", NULL, false},
        {"Sec-WebSocket-Protocol: a, b\r\n", "b", true},
        {"Sec-WebSocket-Protocol: a\r\nSec-WebSocket-Protocol:b\r\n", "b", true},
        {"Sec-WebSocket-Protocol: ab, B\r\n", "b", false},
        {"", "b", false},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *request = g_strconcat(WS_REQUEST("/echo") WS_UPGRADE WS_KEY WS_VERSION,
                                               cases[i].offered, "\r\n", NULL);
        WsTest t;

        ws_test_init(&t);
        t.spec.subprotocol = cases[i].wanted;
        autofd fd = fixture_connect(&t.f);
        client_sends(fd, request);
        g_autofree char *head = ws_read_head(fd);
        g_assert_cmpint(answer_status(head), ==, 101);
        g_assert_nonnull(strstr(head, "Connection: Upgrade\r\n"));
        g_assert_nonnull(strstr(head, "Upgrade: websocket\r\n"));
        g_assert_nonnull(strstr(head, "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n"));
        g_assert_true((strstr(head, "Sec-WebSocket-Protocol: b\r\n") != NULL) == cases[i].chosen);
        g_assert_true((strstr(head, "Sec-WebSocket-Protocol") != NULL) == cases[i].chosen);
        ws_test_clear(&t);
    }
}

static void
test_bad_handshake(void)
{
    static const struct {
        const char *request;
        int status;
    } cases[] = {
        {WS_REQUEST("/echo") "Connection: close\r\n\r\n", 400},
        {WS_REQUEST("/echo") "Upgrade: websocket\r\n" WS_KEY WS_VERSION "Connection: close\r\n\r\n", 400},
        {WS_REQUEST("/echo") "Connection: close, Upgrade\r\nUpgrade: h2c\r\n" WS_KEY WS_VERSION "\r\n", 400},
        {"POST /echo HTTP/1.1\r\nHost: a\r\nConnection: close, Upgrade\r\nUpgrade: websocket\r\n" WS_KEY
             WS_VERSION "\r\n",
         400},
        {"GET /echo HTTP/1.0\r\nHost: a\r\n" WS_UPGRADE WS_KEY WS_VERSION "\r\n", 400},
        {WS_REQUEST("/echo") WS_UPGRADE WS_VERSION "\r\n", 400},
        {WS_REQUEST("/echo") WS_UPGRADE WS_KEY WS_KEY WS_VERSION "\r\n", 400},
        {WS_REQUEST("/echo") WS_UPGRADE WS_VERSION "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25j\r\n\r\n", 400},
        {WS_REQUEST("/echo") WS_UPGRADE WS_VERSION "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ=\r\n\r\n", 400},
        {WS_REQUEST("/echo") WS_UPGRADE WS_VERSION "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ===\r\n\r\n",
         400},
        {WS_REQUEST("/echo") WS_UPGRADE WS_VERSION "Sec-WebSocket-Key: dGhlIHNhbXBsZSB-b25jZQ==\r\n\r\n",
         400},
        {WS_REQUEST("/echo") WS_UPGRADE WS_KEY "\r\n", 426},
        {WS_REQUEST("/echo") WS_UPGRADE WS_KEY "Sec-WebSocket-Version: 8\r\n\r\n", 426},
        {WS_REQUEST("/echo") WS_UPGRADE WS_KEY "Sec-WebSocket-Version: 13, 8\r\n\r\n", 426},
        {WS_REQUEST("/echo") WS_UPGRADE WS_KEY WS_VERSION WS_VERSION "\r\n", 426},
    };
    WsTest t;

    ws_test_init(&t);
    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        autofd fd = fixture_connect(&t.f);

        g_test_message("case %zu", i);
        client_sends(fd, cases[i].request);
        g_autofree char *head = ws_read_head(fd);
        g_assert_cmpint(answer_status(head), ==, cases[i].status);
        g_assert_true((strstr(head, "Sec-WebSocket-Version: 13\r\n") != NULL) == (cases[i].status == 426));
    }
    g_assert_cmpuint(t.opened, ==, 0);
    ws_test_clear(&t);
}

/* ---- messages ---- */

static void
test_echo(void)
{
    static const size_t lengths[] = {0, 1, 125, 126, 65535, 65536, 200000};
    g_autofree char *payload = g_malloc(200000);
    WsTest t;

    for (size_t i = 0; i < 200000; i++)
        payload[i] = (char)(i * 7);
    ws_test_init(&t);
    int fd = ws_test_connect(&t, WS_HANDSHAKE("/echo"));
    for (size_t i = 0; i < G_N_ELEMENTS(lengths); i++) {
        ws_send_frame(fd, 0x82, payload, lengths[i]);
        ws_expect_frame(fd, 0x82, payload, lengths[i]);
    }
    ws_send_frame(fd, 0x81, "nul \0 and \xc3\xa9", 12);
    ws_expect_frame(fd, 0x81, "nul \0 and \xc3\xa9", 12);
    memset(payload, 't', 200000);
    ws_send_frame(fd, 0x81, payload, 200000);
    ws_expect_frame(fd, 0x81, payload, 200000);
    close(fd);
    fixture_until(&t.closed, 1);
    g_assert_cmpuint(t.code, ==, 1006);
    ws_test_clear(&t);
}

/* Cut at every byte, it is the same conversation. */
static void
test_split(void)
{
    g_autoptr(GByteArray) bytes = g_byte_array_new();
    WsTest t;

    ws_put_conversation(bytes);
    ws_test_init(&t);
    for (guint at = 1; at <= bytes->len; at++) {
        autofd fd = ws_test_connect(&t, WS_HANDSHAKE("/echo"));

        client_send(fd, bytes->data, at);
        fixture_turn();
        client_send(fd, bytes->data + at, bytes->len - at);
        ws_expect_conversation(fd);
        g_assert_true(client_sees_close(fd));
        fixture_turn();
        g_assert_cmpuint(t.closed, ==, at - 1); /* it waits for the client's side */
        close(g_steal_fd(&fd));
        fixture_until(&t.closed, at);
        g_assert_cmpuint(t.code, ==, 1000);
    }
    ws_test_clear(&t);
}

/* A client that goes away after every byte of it. */
static void
test_vanish(void)
{
    static const char handshake[] = WS_HANDSHAKE("/echo");
    g_autoptr(GByteArray) bytes = g_byte_array_new();
    WsTest t;

    g_byte_array_append(bytes, (const guint8 *)handshake, sizeof handshake - 1);
    ws_put_conversation(bytes);
    ws_test_init(&t);
    for (guint at = 0; at < bytes->len; at++) {
        int fd = fixture_connect(&t.f);

        client_send(fd, bytes->data, at);
        fixture_turn();
        close(fd);
        fixture_turn();
        if (at >= sizeof handshake - 1) {
            fixture_until(&t.closed, t.opened);
            g_assert_cmpuint(t.code, ==, 1006);
        }
    }
    g_assert_cmpuint(t.opened, ==, bytes->len - (sizeof handshake - 1));
    ws_test_clear(&t);
}

static void
test_bad_frames(void)
{
    WsTest t;

    ws_test_init(&t);
    t.spec.message_max = WS_ROW_MAX;
    for (const WsRow *row = ws_bad_rows; row->name != NULL; row++) {
        autofd fd = ws_test_connect(&t, WS_HANDSHAKE("/echo"));
        guint8 first;
        g_autoptr(GByteArray) frame = NULL;

        g_test_message("%s", row->name);
        client_send(fd, row->bytes, row->n);
        ws_send_frame(fd, 0x81, "ignored", 7);
        do {
            g_clear_pointer(&frame, g_byte_array_unref);
            frame = ws_read_frame(fd, &first);
        } while (first != 0x88);
        g_assert_cmpuint(frame->len, ==, 2);
        g_assert_cmpuint(frame->data[0] << 8 | frame->data[1], ==, row->code);
        g_assert_true(client_sees_close(fd));
        close(g_steal_fd(&fd));
        fixture_until(&t.closed, t.opened);
        g_assert_cmpuint(t.code, ==, row->code);
    }
    ws_test_clear(&t);
}

/* ---- closing ---- */

static void
test_peer_closes(void)
{
    static const guint16 codes[] = {1000, 1001, 1003, 1007, 1011, 1014, 3000, 4999, 1005};
    WsTest t;

    ws_test_init(&t);
    for (guint i = 0; i < G_N_ELEMENTS(codes); i++) {
        guint8 payload[2] = {(guint8)(codes[i] >> 8), (guint8)codes[i]};
        int fd = ws_test_connect(&t, WS_HANDSHAKE("/echo"));

        ws_send_frame(fd, 0x88, payload, codes[i] == 1005 ? 0 : 2);
        ws_expect_close(fd, codes[i]);
        g_assert_true(client_sees_close(fd));
        close(fd);
        fixture_until(&t.closed, i + 1);
        g_assert_cmpuint(t.code, ==, codes[i]);
    }
    ws_test_clear(&t);
}

static void
test_we_close(void)
{
    static const struct {
        bool answers, closes;
        guint16 code;
    } cases[] = {{true, true, 4001}, {false, true, 1006}, {true, false, 4001}, {false, false, 1006}};

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        WsTest t;

        ws_test_init(&t);
        t.spec.close_ms = 300;
        autofd fd = ws_test_connect(&t, WS_HANDSHAKE("/close"));
        ws_send_frame(fd, 0x81, "a", 1);
        ws_send_frame(fd, 0x81, "not delivered", 13);
        ws_expect_frame(fd, 0x81, "last", 4);
        ws_expect_frame(fd, 0x88,
                        "\x0f\xa1"
                        "bye",
                        5);
        if (cases[i].answers)
            ws_send_frame(fd, 0x88, "\x0f\xa1", 2);
        if (cases[i].closes)
            close(g_steal_fd(&fd));
        fixture_until(&t.closed, 1); /* a client that does nothing more is cut */
        g_assert_cmpuint(t.code, ==, cases[i].code);
        g_assert_cmpuint(t.messages, ==, 1);
        ws_test_clear(&t);
    }
}

/* Both at once: each side's frame is the other's answer. */
static void
test_close_crosses(void)
{
    WsTest t;

    ws_test_init(&t);
    autofd fd = ws_test_connect(&t, WS_HANDSHAKE("/echo"));
    ws_close(t.ws, 1001, NULL);
    ws_send_frame(fd, 0x88, "\x03\xe8", 2);
    ws_expect_close(fd, 1001);
    g_autoptr(GString) rest = client_read(fd, NULL);
    g_assert_cmpuint(rest->len, ==, 0);
    close(g_steal_fd(&fd));
    fixture_until(&t.closed, 1);
    g_assert_cmpuint(t.code, ==, 1000);
    ws_test_clear(&t);
}

static void
test_long_reason(void)
{
    g_autofree char *reason = g_strnfill(122, 'r');
    g_autofree char *longer = g_strconcat(reason, "\xc3\xa9\xc3\xa9",
                                          NULL); /* the bound is inside a letter */
    g_autofree char *sent = g_strconcat("\x03\xe9", reason, NULL);
    WsTest t;

    ws_test_init(&t);
    autofd fd = ws_test_connect(&t, WS_HANDSHAKE("/echo"));
    ws_close(t.ws, 1001, longer);
    ws_expect_frame(fd, 0x88, sent, 124);
    ws_test_clear(&t);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/ws/handshake/good", test_handshake);
    g_test_add_func("/ws/handshake/bad", test_bad_handshake);
    g_test_add_func("/ws/echo", test_echo);
    g_test_add_func("/ws/split", test_split);
    g_test_add_func("/ws/vanish", test_vanish);
    g_test_add_func("/ws/bad", test_bad_frames);
    g_test_add_func("/ws/close/peer", test_peer_closes);
    g_test_add_func("/ws/close/we", test_we_close);
    g_test_add_func("/ws/close/both", test_close_crosses);
    g_test_add_func("/ws/close/long-reason", test_long_reason);
    return g_test_run();
}

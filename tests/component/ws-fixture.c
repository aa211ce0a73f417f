/* SPDX-License-Identifier: Apache-2.0 */
#include "ws-fixture.h"

#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "support/ws-frames.h"

static void
push(WsTest *t)
{
    static const char piece[PUSH_SIZE] = {0};

    while (ws_send(t->ws, WS_BINARY, piece, sizeof piece))
        ;
    t->refused++;
    t->queued_max = MAX(t->queued_max, ws_queued(t->ws));
}

static void
end_inside(WsTest *t, guint count)
{
    if (count == t->end_at)
        http_server_unlisten(t->f.server, t->f.listener);
}

static bool
on_echo(WsConn *ws, WsKind kind, const guint8 *bytes, size_t n, void *ctx)
{
    WsTest *t = ctx;

    g_assert_false(t->calling);
    t->messages++;
    if (ws_send(ws, kind, bytes, n))
        return true;
    t->kept = g_bytes_new(bytes, n);
    t->kept_kind = kind;
    return false;
}

static void
on_echo_drained(WsConn *ws, void *ctx)
{
    WsTest *t = ctx;

    g_assert_false(t->calling);
    t->drained++;
    if (t->kept == NULL)
        return;
    g_autoptr(GBytes) kept = g_steal_pointer(&t->kept);
    g_assert_true(ws_send(ws, t->kept_kind, g_bytes_get_data(kept, NULL), g_bytes_get_size(kept)));
    ws_resume(ws);
}

static bool
on_pause(WsConn *ws, WsKind kind, const guint8 *bytes, size_t n, void *ctx)
{
    WsTest *t = ctx;

    g_assert_false(t->calling);
    g_assert_cmpint(kind, ==, WS_TEXT);
    g_assert_cmpuint(n, ==, 1);
    g_assert_cmpuint(bytes[0], ==, 'a' + t->messages % 26);
    t->messages++;
    end_inside(t, t->messages);
    return false;
}

static void
on_push_drained(WsConn *ws, void *ctx)
{
    WsTest *t = ctx;

    g_assert_false(t->calling);
    t->drained++;
    end_inside(t, t->drained);
    if (t->end_at == 0)
        push(t);
}

static bool
on_close(WsConn *ws, WsKind kind, const guint8 *bytes, size_t n, void *ctx)
{
    WsTest *t = ctx;

    g_assert_false(t->calling);
    t->messages++;
    g_assert_true(ws_send(ws, kind, "last", 4));
    ws_close(ws, 4001, "bye");
    ws_close(ws, 1000, "only the first counts");
    g_assert_false(ws_send(ws, kind, "too late", 8));
    return true;
}

static void
on_closed(WsConn *ws, guint16 code, void *ctx)
{
    WsTest *t = ctx;

    g_assert_false(t->calling);
    t->closed++;
    t->code = code;
    if (t->ws == ws)
        t->ws = NULL;
    g_clear_pointer(&t->kept, g_bytes_unref);
}

static const WsHandler echo = {on_echo, on_echo_drained, on_closed};
static const WsHandler pause_each = {on_pause, on_echo_drained, on_closed};
static const WsHandler pushing = {on_echo, on_push_drained, on_closed};
static const WsHandler closing = {on_close, on_echo_drained, on_closed};

void
ws_test_accept(WsTest *t, HttpRequest *request)
{
    const char *path = http_request_path(request);
    const WsHandler *handler = strcmp(path, "/pause") == 0   ? &pause_each
                               : strcmp(path, "/push") == 0  ? &pushing
                               : strcmp(path, "/close") == 0 ? &closing
                                                             : &echo;

    t->calling = true;
    t->ws = ws_accept(request, t->f.loop, &t->spec, handler, t);
    t->calling = false;
    if (t->ws == NULL)
        return;
    t->opened++;
    if (handler == &pushing)
        push(t);
}

static void
handle(HttpRequest *request, void *data)
{
    WsTest *t = data;

    if (strcmp(http_request_path(request), "/late") == 0)
        t->late = http_request_ref(request);
    else
        ws_test_accept(t, request);
}

void
ws_test_init(WsTest *t)
{
    *t = (WsTest){.spec = WS_SPEC_INIT};
    t->spec.queue_max = QUEUE_MAX;
    fixture_init_handler(&t->f, NULL, handle, t);
}

void
ws_test_clear(WsTest *t)
{
    fixture_clear(&t->f);
    g_assert_cmpuint(t->closed, ==, t->opened); /* exactly once each */
}

/* ---- the client ---- */

char *
ws_read_head(int fd)
{
    g_autoptr(GString) head = g_string_new(NULL);

    while (!g_str_has_suffix(head->str, "\r\n\r\n")) {
        g_autoptr(GByteArray) one = client_read_n(fd, 1);

        g_assert_cmpuint(one->len, ==, 1);
        g_string_append_c(head, (char)one->data[0]);
    }
    return g_strdup(head->str);
}

int
ws_test_connect(WsTest *t, const char *handshake)
{
    int fd = fixture_connect(&t->f);

    client_sends(fd, handshake);
    g_autofree char *head = ws_read_head(fd);
    g_assert_cmpint(answer_status(head), ==, 101);
    return fd;
}

void
client_reset(int fd)
{
    struct linger now = {.l_onoff = 1, .l_linger = 0};

    g_assert_cmpint(setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof now), ==, 0);
    close(fd);
}

void
ws_send_frame(int fd, guint8 first, const void *payload, size_t n)
{
    g_autoptr(GByteArray) bytes = g_byte_array_new();

    ws_put_frame(bytes, first, payload, n);
    client_send(fd, bytes->data, bytes->len);
}

GByteArray *
ws_read_frame(int fd, guint8 *ret_first)
{
    g_autoptr(GByteArray) head = client_read_n(fd, 2);

    g_assert_cmpuint(head->len, ==, 2);
    g_assert_cmpuint(head->data[1] & 0x80, ==, 0); /* a server does not mask */
    *ret_first = head->data[0];
    size_t n = head->data[1];
    size_t more = n == 127 ? 8 : n == 126 ? 2 : 0;
    if (more > 0) {
        g_autoptr(GByteArray) length = client_read_n(fd, more);

        n = 0;
        for (size_t i = 0; i < more; i++)
            n = n << 8 | length->data[i];
    }
    return client_read_n(fd, n);
}

void
ws_expect_frame(int fd, guint8 first, const void *payload, size_t n)
{
    guint8 got;
    g_autoptr(GByteArray) frame = ws_read_frame(fd, &got);

    g_assert_cmphex(got, ==, first);
    g_assert_cmpmem(frame->data, frame->len, payload, n);
}

void
ws_expect_close(int fd, guint16 code)
{
    guint8 payload[2] = {(guint8)(code >> 8), (guint8)code};

    ws_expect_frame(fd, 0x88, payload, code == 1005 ? 0 : 2);
}

void
ws_put_conversation(GByteArray *to)
{
    ws_put_frame(to, 0x01, "Hel", 3);
    ws_put_frame(to, 0x89, "are you there?", 14);
    ws_put_frame(to, 0x00, "lo \xc3", 4);
    ws_put_frame(to, 0x8a, "unasked", 7);
    ws_put_frame(to, 0x80, "\xa9", 1);
    ws_put_frame(to, 0x82, "\xff\xfe", 2);
    ws_put_frame(to, 0x88, "\x03\xe8 bye", 6);
}

void
ws_expect_conversation(int fd)
{
    ws_expect_frame(fd, 0x8a, "are you there?", 14);
    ws_expect_frame(fd, 0x81, "Hello \xc3\xa9", 8);
    ws_expect_frame(fd, 0x82, "\xff\xfe", 2);
    ws_expect_close(fd, 1000);
}

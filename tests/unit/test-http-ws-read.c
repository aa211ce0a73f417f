/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "http/ws-read.h"
#include "support/ws-frames.h"

#define KEY "\0\0\0\0"

/* However the bytes are cut, the same events come. */
static void
check(const void *bytes, size_t n, const char *expected)
{
    for (size_t at = 0; at <= n; at++) {
        g_autoptr(GString) got = ws_transcript(bytes, n, at);

        g_assert_cmpmem(got->str, got->len, expected, strlen(expected));
    }
}

static void
test_good(void)
{
    static const struct {
        const char *bytes;
        size_t n;
        const char *expected;
    } cases[] = {
#define CASE(bytes, expected) {bytes, sizeof(bytes) - 1, expected}
        CASE("\x81\x85" KEY "Hello", "text 5 Hello\n"),
        CASE("\x81\x80" KEY, "text 0 \n"),
        CASE("\x82\x80" KEY "\x82\x82" KEY "\xff\xfe", "binary 0 \nbinary 2 \xff\xfe\n"),
        CASE("\x01\x83" KEY "Hel\x89\x82" KEY "pi\x80\x82" KEY "lo", "ping 2 pi\ntext 5 Hello\n"),
        CASE("\x01\x80" KEY "\x00\x80" KEY "\x00\x81" KEY "a\x80\x80" KEY, "text 1 a\n"),
        CASE("\x01\x81" KEY "\xc3\x80\x81" KEY "\xa9\x81\x81" KEY "b", "text 2 \xc3\xa9\ntext 1 b\n"),
        CASE("\x02\x81" KEY "a\x8a\x80" KEY "\x80\x81" KEY "\xff", "pong 0 \nbinary 2 a\xff\n"),
        CASE("\x88\x80" KEY, "close 1005\n"),
        CASE("\x88\x82" KEY "\x03\xe8", "close 1000\n"),
        CASE("\x88\x82" KEY "\x03\xf6", "close 1014\n"),
        CASE("\x88\x82" KEY "\x0b\xb8", "close 3000\n"),
        CASE("\x88\x82" KEY "\x13\x87", "close 4999\n"),
        CASE("\x88\x84" KEY "\x03\xe9\xc3\xa9\x81\x81" KEY "x", "close 1001\n"), /* nothing after it */
#undef CASE
    };

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++)
        check(cases[i].bytes, cases[i].n, cases[i].expected);
}

static void
test_bad(void)
{
    for (const WsRow *row = ws_bad_rows; row->name != NULL; row++) {
        g_autofree char *expected = g_strdup_printf("fail %u\n", row->code);

        g_test_message("%s", row->name);
        for (size_t at = 0; at <= row->n; at++) {
            g_autoptr(GString) got = ws_transcript(row->bytes, row->n, at);

            g_assert_true(g_str_has_suffix(got->str, expected));
        }
    }
}

static void
test_lengths(void)
{
    static const size_t lengths[] = {1, 124, 125, 126, 127, 4096, 65535, 65536, 200000};

    for (size_t i = 0; i < G_N_ELEMENTS(lengths); i++) {
        g_autoptr(GByteArray) bytes = g_byte_array_new();
        g_autofree char *payload = g_malloc(lengths[i]);
        WsReader r;

        for (size_t k = 0; k < lengths[i]; k++)
            payload[k] = (char)(k * 7);
        ws_put_frame(bytes, 0x82, payload, lengths[i]);
        ws_put_frame(bytes, 0x89, "after", 5);
        ws_reader_init(&r, lengths[i]);
        WsInput in = {.bytes = bytes->data, .n = bytes->len};
        WsEvent e = ws_reader_next(&r, &in);
        g_assert_cmpint(e.kind, ==, WS_EVENT_MESSAGE);
        g_assert_cmpmem(e.bytes, e.n, payload, lengths[i]);
        e = ws_reader_next(&r, &in);
        g_assert_cmpint(e.kind, ==, WS_EVENT_PING);
        e = ws_reader_next(&r, &in);
        g_assert_cmpint(e.kind, ==, WS_EVENT_NONE);
        g_assert_null(r.frames);
        ws_reader_clear(&r);
    }
}

/* Ten thousand idle connections: between frames, even inside a message, nothing is held but
 * that message. */
static void
test_idle_holds_nothing(void)
{
    static const char frames[] = "\x89\x81" KEY "p\x01\x81" KEY "a\x80\x81" KEY "b";
    WsReader r;
    WsInput in;
    WsEvent e;

    ws_reader_init(&r, WS_ROW_MAX);
    for (size_t i = 0; i < sizeof frames - 1; i++) {
        in = (WsInput){.bytes = (const guint8 *)frames + i, .n = 1};
        do {
            e = ws_reader_next(&r, &in);
        } while (e.kind != WS_EVENT_NONE);
        bool between = i % 7 == 6;
        g_assert_true((r.frames == NULL) == between);
        g_assert_null(r.control.data);
        g_assert_true((r.message.data == NULL) == (i < 13 || i == 20));
    }
    ws_reader_clear(&r);
}

/* A frame that announces much is given memory as its bytes come, not before. */
static void
test_announced_is_not_allocated(void)
{
    static const guint8 head[] = "\x82\xff\0\0\0\0\x3f\xff\xff\xff" KEY "x";
    WsInput in = {.bytes = head, .n = sizeof head - 1};
    WsReader r;

    ws_reader_init(&r, 0x40000000);
    WsEvent e = ws_reader_next(&r, &in);
    g_assert_cmpint(e.kind, ==, WS_EVENT_NONE);
    g_assert_cmpuint(r.message.size, <, 1024);
    ws_reader_clear(&r);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/ws-read/good", test_good);
    g_test_add_func("/ws-read/bad", test_bad);
    g_test_add_func("/ws-read/lengths", test_lengths);
    g_test_add_func("/ws-read/idle", test_idle_holds_nothing);
    g_test_add_func("/ws-read/announced", test_announced_is_not_allocated);
    return g_test_run();
}

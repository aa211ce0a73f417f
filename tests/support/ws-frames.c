/* SPDX-License-Identifier: Apache-2.0 */
#include "support/ws-frames.h"

#include "http/ws-read.h"

#define KEY "\0\0\0\0"
#define X25 "xxxxxxxxxxxxxxxxxxxxxxxxx"
#define X125 X25 X25 X25 X25 X25
#define ROW(name, bytes, code)                                                                               \
    {                                                                                                        \
        name, bytes, sizeof(bytes) - 1, code                                                                 \
    }

const WsRow ws_bad_rows[] = {
    ROW("unmasked-text", "\x81\x05Hello", 1002),
    ROW("unmasked-empty", "\x81\x00", 1002),
    ROW("unmasked-ping", "\x89\x00", 1002),
    ROW("unmasked-second", "\x81\x80" KEY "\x81\x01x", 1002),
    ROW("rsv1", "\xc1\x80" KEY, 1002),
    ROW("rsv2", "\xa1\x80" KEY, 1002),
    ROW("rsv3", "\x91\x80" KEY, 1002),
    ROW("rsv1-ping", "\xc9\x80" KEY, 1002),
    ROW("rsv1-continuation", "\x01\x80" KEY "\xc0\x80" KEY, 1002),
    ROW("opcode-3", "\x83\x80" KEY, 1002),
    ROW("opcode-4", "\x84\x80" KEY, 1002),
    ROW("opcode-5", "\x85\x80" KEY, 1002),
    ROW("opcode-6", "\x86\x80" KEY, 1002),
    ROW("opcode-7", "\x87\x80" KEY, 1002),
    ROW("opcode-11", "\x8b\x80" KEY, 1002),
    ROW("opcode-12", "\x8c\x80" KEY, 1002),
    ROW("opcode-13", "\x8d\x80" KEY, 1002),
    ROW("opcode-14", "\x8e\x80" KEY, 1002),
    ROW("opcode-15", "\x8f\x80" KEY, 1002),
    ROW("continuation-of-nothing", "\x80\x80" KEY, 1002),
    ROW("continuation-after-the-end", "\x81\x80" KEY "\x80\x80" KEY, 1002),
    ROW("text-inside-text", "\x01\x81" KEY "a\x81\x81" KEY "b", 1002),
    ROW("ping-too-long", "\x89\xfe\x00\x7e" KEY, 1002),
    ROW("ping-in-fragments", "\x09\x81" KEY "a", 1002),
    ROW("close-in-fragments", "\x08\x82" KEY "\x03\xe8", 1002),
    ROW("length-16-not-shortest", "\x82\xfe\x00\x7d" KEY, 1002),
    ROW("length-64-not-shortest", "\x82\xff\0\0\0\0\0\0\xff\xff" KEY, 1002),
    ROW("length-64-negative", "\x82\xff\x80\0\0\0\0\0\0\0" KEY, 1002),
    ROW("too-long", "\x82\xfe\x00\xc9" KEY "x", 1009),
    ROW("too-long-64", "\x82\xff\x7f\xff\xff\xff\xff\xff\xff\xff" KEY "x", 1009),
    ROW("too-long-in-fragments", "\x02\xfd" KEY X125 "\x80\xfd" KEY X125, 1009),
    ROW("too-long-by-one", "\x02\xfd" KEY X125 "\x80\xcc" KEY X25 X25 X25 "x", 1009),
    ROW("utf8-bad-byte", "\x81\x81" KEY "\xff", 1007),
    ROW("utf8-overlong", "\x81\x82" KEY "\xc0\xaf", 1007),
    ROW("utf8-surrogate", "\x81\x83" KEY "\xed\xa0\x80", 1007),
    ROW("utf8-too-high", "\x81\x84" KEY "\xf4\x90\x80\x80", 1007),
    ROW("utf8-cut-at-the-end", "\x81\x82" KEY "a\xc3", 1007),
    ROW("utf8-bad-after-nul", "\x81\x82" KEY "\0\xff", 1007),
    ROW("utf8-bad-in-fragments", "\x01\x81" KEY "\xc3\x80\x81" KEY "x", 1007),
    ROW("close-one-byte", "\x88\x81" KEY "\x03", 1002),
    ROW("close-0", "\x88\x82" KEY "\x00\x00", 1002),
    ROW("close-999", "\x88\x82" KEY "\x03\xe7", 1002),
    ROW("close-1004", "\x88\x82" KEY "\x03\xec", 1002),
    ROW("close-1005", "\x88\x82" KEY "\x03\xed", 1002),
    ROW("close-1006", "\x88\x82" KEY "\x03\xee", 1002),
    ROW("close-1015", "\x88\x82" KEY "\x03\xf7", 1002),
    ROW("close-2999", "\x88\x82" KEY "\x0b\xb7", 1002),
    ROW("close-5000", "\x88\x82" KEY "\x13\x88", 1002),
    ROW("close-utf8",
        "\x88\x86" KEY "\x03\xe8"
        "ab\xc3x",
        1007),
    {0},
};

void
ws_put_frame(GByteArray *to, guint8 first, const void *payload, size_t n)
{
    static const guint8 key[4] = {0x37, 0xfa, 0x21, 0x3d};
    size_t length_len = n > G_MAXUINT16 ? 8 : n > 125 ? 2 : 0;
    guint8 head[2] = {first, (guint8)(0x80 | (length_len == 8 ? 127 : length_len == 2 ? 126 : n))};

    g_byte_array_append(to, head, 2);
    for (size_t i = length_len; i > 0; i--) {
        guint8 byte = (guint8)(n >> (8 * (i - 1)));

        g_byte_array_append(to, &byte, 1);
    }
    g_byte_array_append(to, key, 4);
    guint start = to->len;
    g_byte_array_append(to, payload, (guint)n);
    for (guint i = start; i < to->len; i++)
        to->data[i] ^= key[(i - start) % 4];
}

static bool
write_event(GString *out, const WsEvent *e)
{
    switch (e->kind) {
    case WS_EVENT_MESSAGE:
        g_string_append_printf(out, "%s %zu ", e->type == WS_TEXT ? "text" : "binary", e->n);
        break;
    case WS_EVENT_PING:
    case WS_EVENT_PONG:
        g_string_append_printf(out, "%s %zu ", e->kind == WS_EVENT_PING ? "ping" : "pong", e->n);
        break;
    case WS_EVENT_CLOSE:
    case WS_EVENT_FAIL:
        g_string_append_printf(out, "%s %u\n", e->kind == WS_EVENT_CLOSE ? "close" : "fail", e->code);
        return false;
    case WS_EVENT_NONE:
        return true;
    }
    g_string_append_len(out, (const char *)e->bytes, (gssize)e->n);
    g_string_append_c(out, '\n');
    return true;
}

/* False: nothing more may be read. */
static bool
feed(WsReader *r, GString *out, const guint8 *bytes, size_t n)
{
    /* Exactly as large as the piece, so that ASan sees a reader that goes past it. */
    g_autofree guint8 *piece = g_memdup2(bytes, n);
    WsInput in = {.bytes = piece, .n = n};
    WsEvent e;

    do {
        e = ws_reader_next(r, &in);
        if (!write_event(out, &e))
            return false;
    } while (e.kind != WS_EVENT_NONE);
    g_assert_cmpuint(in.n, ==, 0);
    return true;
}

GString *
ws_transcript(const void *bytes, size_t n, size_t at)
{
    const guint8 *p = bytes;
    GString *out = g_string_new(NULL);
    WsReader r;

    ws_reader_init(&r, WS_ROW_MAX);
    if (at > 0) {
        if (feed(&r, out, p, at) && at < n)
            feed(&r, out, p + at, n - at);
    } else {
        for (size_t i = 0; i < n && feed(&r, out, p + i, 1); i++)
            ;
    }
    ws_reader_clear(&r);
    return out;
}

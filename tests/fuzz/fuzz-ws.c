/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "fuzz.h"
#include "http/ws-read.h"
#include "support/ws-frames.h"

/* The input is what a WebSocket client sends.  It is also a message that is written here, in
 * fragments with a ping between them, and read back. */

/* One frame, read by the letter of RFC 6455 from bytes that are all there. */
typedef struct Frame {
    bool fin, masked;
    guint8 rsv, opcode;
    guint64 length;
    guint8 key[4];
    const guint8 *payload;
    size_t there; /* bytes of the payload that are there */
} Frame;

typedef enum Found { FOUND_FRAME, FOUND_PART, FOUND_BAD } Found;

static Found
find_frame(const guint8 *p, size_t n, Frame *ret_frame)
{
    if (n < 2)
        return FOUND_PART;
    Frame f = {.fin = p[0] >> 7, .rsv = (p[0] >> 4) & 7, .opcode = p[0] & 15, .masked = p[1] >> 7};
    size_t more = (p[1] & 127) == 127 ? 8 : (p[1] & 127) == 126 ? 2 : 0;
    size_t head = 2 + more + (f.masked ? 4 : 0);

    if (f.opcode >= 8 && (!f.fin || more > 0))
        return FOUND_BAD;
    if (n < 2 + more)
        return FOUND_PART;
    f.length = more == 0 ? p[1] & 127 : 0;
    for (size_t i = 0; i < more; i++)
        f.length = f.length << 8 | p[2 + i];
    if ((more == 2 && f.length < 126) || (more == 8 && (f.length < 65536 || f.length >> 63 != 0)))
        return FOUND_BAD;
    if (n < head)
        return FOUND_PART;
    if (f.masked)
        memcpy(f.key, p + head - 4, 4);
    f.payload = p + head;
    f.there = MIN(n - head, f.length);
    *ret_frame = f;
    return f.there == 0 && f.length > 0 ? FOUND_PART : FOUND_FRAME;
}

static guint16
judge(const Frame *f, bool in_message, size_t so_far)
{
    if (!f->masked || f->rsv != 0 || (f->opcode > 2 && f->opcode < 8) || f->opcode > 10)
        return 1002;
    if (f->opcode < 3 && in_message != (f->opcode == 0))
        return 1002;
    return f->opcode < 3 && so_far + f->length > WS_ROW_MAX ? 1009 : 0;
}

/* GLib's own reading of UTF-8, a character at a time. */
static bool
is_text(const char *p, size_t n)
{
    for (size_t i = 0; i < n;) {
        gunichar c = p[i] == '\0' ? 0 : g_utf8_get_char_validated(p + i, (gssize)(n - i));

        if (c >= 0x110000)
            return false;
        i += (size_t)g_unichar_to_utf8(c, NULL);
    }
    return true;
}

static void
put(GString *out, const char *what, const char *bytes, size_t n)
{
    g_string_append_printf(out, "%s %zu ", what, n);
    g_string_append_len(out, bytes, (gssize)n);
    g_string_append_c(out, '\n');
}

/* False: the last one. */
static bool
put_end(GString *out, const char *reason, size_t n)
{
    unsigned code = n == 0 ? 1005 : n == 1 ? 0 : (unsigned)(guint8)reason[0] << 8 | (guint8)reason[1];
    bool known = (code >= 1000 && code <= 1014 && code != 1004 && code != 1006) ||
                 (code >= 3000 && code < 5000);

    if (n > 0 && (!known || code == 1005))
        g_string_append(out, "fail 1002\n");
    else if (n > 2 && !is_text(reason + 2, n - 2))
        g_string_append(out, "fail 1007\n");
    else
        g_string_append_printf(out, "close %u\n", code);
    return false;
}

static bool
put_message(GString *out, bool text, GString *message)
{
    if (text && !is_text(message->str, message->len)) {
        g_string_append(out, "fail 1007\n");
        return false;
    }
    put(out, text ? "text" : "binary", message->str, message->len);
    g_string_truncate(message, 0);
    return true;
}

typedef struct Model {
    GString *out, *message;
    bool in_message, text;
} Model;

static bool
take_frame(Model *m, const Frame *f)
{
    GString *to = f->opcode >= 8 ? g_string_new(NULL) : m->message;
    bool goes_on = true;

    for (size_t i = 0; i < f->length; i++)
        g_string_append_c(to, (char)(f->payload[i] ^ f->key[i % 4]));
    if (f->opcode == 8)
        goes_on = put_end(m->out, to->str, to->len);
    else if (f->opcode > 8)
        put(m->out, f->opcode == 9 ? "ping" : "pong", to->str, to->len);
    else if (f->opcode > 0)
        m->text = f->opcode == 1;
    if (f->opcode < 8) {
        m->in_message = !f->fin;
        goes_on = !f->fin || put_message(m->out, m->text, to);
    } else {
        g_string_free(to, TRUE);
    }
    return goes_on;
}

static GString *
expected(const guint8 *data, size_t n)
{
    g_autoptr(GString) message = g_string_new(NULL);
    Model m = {.out = g_string_new(NULL), .message = message};

    for (size_t at = 0;;) {
        Frame f;
        Found found = find_frame(data + at, n - at, &f);
        guint16 code = found == FOUND_BAD     ? 1002
                       : found == FOUND_FRAME ? judge(&f, m.in_message, message->len)
                                              : 0;

        if (code != 0)
            g_string_append_printf(m.out, "fail %u\n", code);
        if (code != 0 || found == FOUND_PART || f.there < f.length || !take_frame(&m, &f))
            return m.out;
        at = (size_t)(f.payload - data) + f.there;
    }
}

static void
check_round_trip(const guint8 *data, size_t n, size_t cut)
{
    size_t half = MIN(cut, n);
    g_autoptr(GByteArray) bytes = g_byte_array_new();
    g_autoptr(GString) want = g_string_new("ping 1 p\n");

    if (n > WS_ROW_MAX)
        return;
    ws_put_frame(bytes, 0x02, data, half);
    ws_put_frame(bytes, 0x89, "p", 1);
    ws_put_frame(bytes, 0x80, data + half, n - half);
    put(want, "binary", (const char *)data, n);
    g_autoptr(GString) got = ws_transcript(bytes->data, bytes->len, bytes->len);
    g_assert(g_string_equal(got, want));
}

void
fuzz_input(const guint8 *data, size_t n, size_t cut)
{
    g_autoptr(GString) want = expected(data, n);
    g_autoptr(GString) got = ws_transcript(data, n, cut == FUZZ_EACH_BYTE ? 0 : cut == 0 ? n : cut);

    g_assert(g_string_equal(got, want));
    check_round_trip(data, n, cut);
}

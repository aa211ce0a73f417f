/* SPDX-License-Identifier: Apache-2.0 */
#include <glib.h>
#include <stdint.h>
#include <string.h>

#include "base/err.h"
#include "http/sse.h"

enum { EVENT_MAX = 1024 };

/* What a decoder said, one "event|id|data;" after the other. */
static void
on_event(const SseEvent *event, void *data)
{
    GString *log = data;

    g_assert_cmpuint(event->data[event->data_len], ==, 0);
    g_string_append_printf(log, "%s|%s|", event->event, event->last_id);
    for (size_t i = 0; i < event->data_len; i++) {
        if (event->data[i] == '\0')
            g_string_append(log, "<NUL>");
        else
            g_string_append_c(log, event->data[i]);
    }
    g_string_append_c(log, ';');
}

typedef struct Put {
    const char *id, *event, *data;
    const char *text;
} Put;

static const Put puts_cases[] = {
    {NULL, NULL, "x", "data: x\n\n"},
    {NULL, NULL, "", "data: \n\n"},
    {"7", "task", "{}", "id: 7\nevent: task\ndata: {}\n\n"},
    {"", "", "x", "id: \nevent: \ndata: x\n\n"},
    {NULL, NULL, " x", "data:  x\n\n"},
    {NULL, NULL, ":x", "data: :x\n\n"},
    {NULL, NULL, "a\nb", "data: a\ndata: b\n\n"},
    {NULL, NULL, "a\rb", "data: a\ndata: b\n\n"},
    {NULL, NULL, "a\r\nb", "data: a\ndata: b\n\n"},
    {NULL, NULL, "a\n\rb", "data: a\ndata: \ndata: b\n\n"},
    {NULL, NULL, "a\n\nb", "data: a\ndata: \ndata: b\n\n"},
    {NULL, NULL, "a\r\rb", "data: a\ndata: \ndata: b\n\n"},
    {NULL, NULL, "a\n", "data: a\ndata: \n\n"},
    {NULL, NULL, "a\r", "data: a\ndata: \n\n"},
    {NULL, NULL, "a\r\n", "data: a\ndata: \n\n"},
    {NULL, NULL, "\n", "data: \ndata: \n\n"},
    {NULL, NULL, "\r\n\r\n", "data: \ndata: \ndata: \n\n"},
    {NULL, NULL, "a\rid: 9\revent: x\r\rdata: y",
     "data: a\ndata: id: 9\ndata: event: x\ndata: \ndata: data: y\n\n"},
};

static void
test_put(void)
{
    for (size_t i = 0; i < G_N_ELEMENTS(puts_cases); i++) {
        const Put *c = &puts_cases[i];
        size_t want = strlen(c->text);
        g_auto(Buf) out;
        size_t n;

        g_test_message("case %zu", i);
        /* The exact room is enough, one byte less is not, and then nothing is written. */
        buf_init(&out, want);
        g_assert_true(sse_put(&out, c->id, c->event, c->data, strlen(c->data)));
        const guint8 *bytes = buf_peek(&out, &n);
        g_assert_cmpmem(bytes, n, c->text, want);

        g_auto(Buf) tight;
        buf_init(&tight, want - 1);
        g_assert_false(sse_put(&tight, c->id, c->event, c->data, strlen(c->data)));
        g_assert_cmpuint(buf_len(&tight), ==, 0);
    }
    g_auto(Buf) out;
    size_t n;

    buf_init(&out, 100);
    g_assert_true(sse_put(&out, NULL, NULL, NULL, 0));
    g_assert_true(sse_put(&out, NULL, NULL, "a\0b", 3));
    const guint8 *bytes = buf_peek(&out, &n);
    g_assert_cmpmem(bytes, n, "data: \n\ndata: a\0b\n\n", 19);
}

static void
test_put_refuses(gconstpointer text)
{
    if (g_test_subprocess()) {
        g_auto(Buf) out;

        buf_init(&out, 100);
        (void)!sse_put(&out, text, NULL, "x", 1);
        return;
    }
    g_test_trap_subprocess(NULL, 0, 0);
    g_test_trap_assert_failed();
    g_test_trap_assert_stderr("*assertion failed*");
}

typedef struct Read {
    const char *stream;
    const char *events;
    size_t n; /* 0: strlen */
} Read;

static const Read reads[] = {
    {"data: x\n\n", "message||x;"},
    {"data: x\r\n\r\n", "message||x;"},
    {"data: x\r\r", "message||x;"},
    {"data: x\r\n\n", "message||x;"},
    {"data: x\n\r\n", "message||x;"},
    {"data: x\r\n\r", "message||x;"},
    {"data: a\rdata: b\r\n\ndata: c\n\r", "message||a\nb;message||c;"},
    {"data:x\n\n", "message||x;"},
    {"data:  x\n\n", "message|| x;"},
    {"data:\tx\n\n", "message||\tx;"},
    {"data: a\ndata: b\n\n", "message||a\nb;"},
    {"data: a\n\ndata: b\n\n", "message||a;message||b;"},
    {"data: a\n\n\n\ndata: b\n\n", "message||a;message||b;"},
    {"data: a:b\n\n", "message||a:b;"},

    /* one empty data line is an event, none is not */
    {"data\n\n", "message||;"},
    {"data:\n\n", "message||;"},
    {"data\ndata\n\n", "message||\n;"},
    {"\n\n\n", ""},
    {"event: x\n\n", ""},
    {"event: x\n\ndata: y\n\n", "message||y;"},
    {"id: 1\n\ndata: y\n\n", "message|1|y;"},

    {"event: x\ndata: y\n\n", "x||y;"},
    {"event: x\nevent: z\ndata: y\n\n", "z||y;"},
    {"event: x\nevent\ndata: y\n\n", "message||y;"},
    {"event: x\ndata: y\n\ndata: z\n\n", "x||y;message||z;"},
    {"data: y\nevent: x\n\n", "x||y;"},

    {"id: 1\ndata: y\n\ndata: z\n\n", "message|1|y;message|1|z;"},
    {"id: 1\ndata: y\n\nid\ndata: z\n\n", "message|1|y;message||z;"},
    {"id: 1\nid: 2\ndata: y\n\n", "message|2|y;"},
    {"id: 1\ndata: y\n\nid: 2\0003\ndata: z\n\n", "message|1|y;message|1|z;", 32},
    {"data: a\0b\n\n", "message||a<NUL>b;", 11},

    /* comments, strange fields, case, spaces before the colon */
    {": hello\ndata: x\n\n", "message||x;"},
    {":\n:\n\ndata: x\n:c\ndata: y\n\n", "message||x\ny;"},
    {"foo: bar\nfoo\ndata: x\n\n", "message||x;"},
    {"Data: x\n\n", ""},
    {"DATA: x\ndata : y\n data: z\ndatax: z\ndat: z\n\n", ""},
    {"events: q\nids: 3\nretryx: 9\ndata: x\n\n", "message||x;"},

    /* no blank line, no event */
    {"data: x", ""},
    {"data: x\n", ""},
    {"data: x\r\n", ""},

    /* byte order mark: at the start, once */
    {"\xef\xbb\xbf"
     "data: x\n\n",
     "message||x;"},
    {"\xef\xbb\xbf:c\ndata: x\n\n", "message||x;"},
    {"\xef\xbb\xbf\n\ndata: x\n\n", "message||x;"},
    {"\xef\xbb\xbf\xef\xbb\xbf"
     "data: x\ndata: y\n\n",
     "message||y;"},
    {"data: w\n\xef\xbb\xbf"
     "data: x\n\n",
     "message||w;"},
    {"\xef\xbb"
     "data: x\ndata: y\n\n",
     "message||y;"},
    {"\xef\ndata: y\n\n", "message||y;"},
    {"\xef\xbb\xbb\xbf"
     "data: x\n\n",
     ""},
};

/* `cut` splits the stream in two; SIZE_MAX: each byte alone. */
static void
read_stream(const char *stream, size_t n, size_t cut, GString *log)
{
    g_autoptr(SseDecoder) decoder = sse_decoder_new(EVENT_MAX, on_event, log);

    for (size_t i = 0; i < n;) {
        size_t piece = cut == SIZE_MAX ? 1 : i < cut ? cut - i : n - i;
        g_autofree char *exact = g_memdup2(stream + i, piece);

        g_assert_true(sse_decoder_feed(decoder, exact, piece, NULL));
        g_assert_true(sse_decoder_feed(decoder, NULL, 0, NULL));
        i += piece;
    }
}

static void
test_read(void)
{
    for (size_t i = 0; i < G_N_ELEMENTS(reads); i++) {
        size_t n = reads[i].n > 0 ? reads[i].n : strlen(reads[i].stream);

        g_autofree char *shown = g_strescape(reads[i].stream, NULL);

        g_test_message("case %zu: %s", i, shown);
        for (size_t cut = 1; cut <= n + 1; cut++) {
            g_autoptr(GString) log = g_string_new(NULL);

            read_stream(reads[i].stream, n, cut <= n ? cut : SIZE_MAX, log);
            g_assert_cmpstr(log->str, ==, reads[i].events);
        }
    }
}

static void
test_retry(void)
{
    static const struct {
        const char *stream;
        gint64 ms;
    } cases[] = {
        {"data: x\n\n", -1},
        {"retry: 1500\n", 1500},
        {"retry:0\n", 0},
        {"retry: 1\nretry: 2\n", 2},
        {"retry: 5\nretry: x\n", 5},
        {"retry\n", -1},
        {"retry: \n", -1},
        {"retry: -1\n", -1},
        {"retry: +1\n", -1},
        {"retry: 1.5\n", -1},
        {"retry: 1 \n", -1},
        {"retry:  1\n", -1},
        {"retry: 9223372036854775807\n", G_MAXINT64},
        {"retry: 9223372036854775808\n", -1},
        {"retry: 99999999999999999999999\n", -1},
        {"retry: 1500", -1},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(GString) log = g_string_new(NULL);
        g_autoptr(SseDecoder) decoder = sse_decoder_new(EVENT_MAX, on_event, log);

        g_test_message("%s", cases[i].stream);
        g_assert_true(sse_decoder_feed(decoder, cases[i].stream, strlen(cases[i].stream), NULL));
        g_assert_cmpint(sse_decoder_retry_ms(decoder), ==, cases[i].ms);
    }
    g_autoptr(GString) log = g_string_new(NULL);
    g_autoptr(SseDecoder) decoder = sse_decoder_new(EVENT_MAX, on_event, log);

    g_assert_true(sse_decoder_feed(decoder, "retry: 1\0002\n", 11, NULL));
    g_assert_cmpint(sse_decoder_retry_ms(decoder), ==, -1);
}

static void
test_limit(void)
{
    static const struct {
        const char *stream;
        const char *events; /* before the end */
        bool ok;
    } cases[] = {
        {"data: 89\n\ndata: 89\n\n", "message||89;message||89;", true},
        {"data: 89\r\n\r\n", "message||89;", true},
        {"data:89\n:no bound for a comment, however long\n:x\nx\n\n", "message||89;", true},
        {"data: 8910\n\n", "message||8910;", true},
        {"data: 89101\n\n", "", false},
        {"data: 89101", "", false},
        {"data:9\ndata\n\n", "message||9\n;", true},
        {"data:9\ndata:\n\n", "", false},
        {"data: x\n\nnonsense is counted too", "message||x;", false},
        {"a\na\na\na\na\na\na\na\na\na\na\n", "", false},
        {"data: x\n\ndata: 89101\n\ndata: y\n\n", "message||x;", false},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        size_t n = strlen(cases[i].stream);

        g_test_message("%s", cases[i].stream);
        for (size_t cut = 0; cut <= n; cut++) {
            g_autoptr(GString) log = g_string_new(NULL);
            g_autoptr(SseDecoder) decoder = sse_decoder_new(10, on_event, log);
            g_autoptr(GError) error = NULL;
            bool ok = sse_decoder_feed(decoder, cases[i].stream, cut, &error);

            if (!ok) {
                g_assert_error(error, ERR_DOMAIN, ERR_LIMIT);
                g_clear_error(&error);
            }
            ok = sse_decoder_feed(decoder, cases[i].stream + cut, n - cut, &error) && ok;
            g_assert_cmpint(ok, ==, cases[i].ok);
            g_assert_cmpstr(log->str, ==, cases[i].events);
            if (!ok) {
                g_assert_error(error, ERR_DOMAIN, ERR_LIMIT);
                g_assert_false(sse_decoder_feed(decoder, "\n\ndata: z\n\n", 11, NULL));
                g_assert_cmpstr(log->str, ==, cases[i].events);
            }
        }
    }
}

static void
test_round_trip(void)
{
    g_auto(Buf) out;
    g_autoptr(GString) log = g_string_new(NULL);
    g_autoptr(SseDecoder) decoder = sse_decoder_new(EVENT_MAX, on_event, log);
    size_t n;

    buf_init(&out, 1000);
    g_assert_true(sse_put(&out, "1", "task", "a\r\nb\n\n c", 8));
    g_assert_true(sse_put(&out, NULL, NULL, "", 0));
    g_assert_true(sse_put(&out, "", NULL, "\r\revent: x", 10));
    const guint8 *bytes = buf_peek(&out, &n);
    g_assert_true(sse_decoder_feed(decoder, bytes, n, NULL));
    g_assert_cmpstr(log->str, ==, "task|1|a\nb\n\n c;message|1|;message||\n\nevent: x;");
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/http/sse/put", test_put);
    g_test_add_data_func("/http/sse/put-refuses/lf", "a\nb", test_put_refuses);
    g_test_add_data_func("/http/sse/put-refuses/cr", "a\rb", test_put_refuses);
    g_test_add_func("/http/sse/read", test_read);
    g_test_add_func("/http/sse/retry", test_retry);
    g_test_add_func("/http/sse/limit", test_limit);
    g_test_add_func("/http/sse/round-trip", test_round_trip);
    return g_test_run();
}

/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/err.h"
#include "brain/event-cut.h"
#include "brain/usage-private.h"

#define CHAT_CHUNK "data: {\"choices\":[{\"delta\":{\"content\":\"twelve bytes\"}}]}\n\n"

typedef struct Case {
    const char *name;
    Dialect dialect;
    bool stream;
    const char *text;
    Usage want;
    bool complete;
} Case;

/* 400 bytes were asked: 100 tokens, where the answer does not say. */
enum { ASKED = 400 };

static const Case cases[] = {
    {"chat",
     DIALECT_OPENAI,
     false,
     "{\"choices\":[],\"usage\":{\"prompt_tokens\":50,\"completion_tokens\":7,"
     "\"prompt_tokens_details\":{\"cached_tokens\":30}}}",
     {20, 7, 30, 0, false},
     false},
    {"embeddings",
     DIALECT_OPENAI,
     false,
     "{\"data\":[],\"usage\":{\"prompt_tokens\":8,\"total_tokens\":8}}",
     {8, 0, 0, 0, false},
     false},
    {"response",
     DIALECT_OPENAI,
     false,
     "{\"output\":[],\"usage\":{\"input_tokens\":9,\"output_tokens\":3,\"input_tokens_details\":{\"cached_"
     "tokens\":4}}}",
     {5, 3, 4, 0, false},
     false},
    {"message",
     DIALECT_ANTHROPIC,
     false,
     "{\"usage\":{\"input_tokens\":9,\"output_tokens\":3,\"cache_read_input_tokens\":100,"
     "\"cache_creation_input_tokens\":50}}",
     {9, 3, 100, 50, false},
     false},
    {"nothing said", DIALECT_OPENAI, false, "{\"choices\":1}", {100, 4, 0, 0, true}, false},
    {"not JSON", DIALECT_OPENAI, false, "hello, worl", {100, 3, 0, 0, true}, false},
    {"nonsense",
     DIALECT_OPENAI,
     false,
     "{\"usage\":{\"prompt_tokens\":-5,\"completion_tokens\":1e300,\"prompt_tokens_details\":{\"cached_"
     "tokens\":9}}}",
     {0, 1000000000, 0, 0, false},
     false},
    {"usage is null", DIALECT_ANTHROPIC, false, "{\"usage\":null}", {100, 4, 0, 0, true}, false},

    {"chat stream",
     DIALECT_OPENAI,
     true,
     CHAT_CHUNK
     "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":6,\"completion_tokens\":2}}\n\ndata: [DONE]\n\n",
     {6, 2, 0, 0, false},
     true},
    {"CRLF and comments",
     DIALECT_OPENAI,
     true,
     ": x\r\n\r\n: y\r\ndata: "
     "{\"choices\":[],\"usage\":{\"prompt_tokens\":6,\"completion_tokens\":2}}\r\n\r\n",
     {6, 2, 0, 0, false},
     false},
    {"usage beside the last choice",
     DIALECT_OPENAI,
     true,
     "data: "
     "{\"choices\":[{\"finish_reason\":\"stop\"}],\"usage\":{\"prompt_tokens\":6,\"completion_tokens\":2}}"
     "\n\n",
     {6, 2, 0, 0, false},
     true},
    {"cut", DIALECT_OPENAI, true, CHAT_CHUNK CHAT_CHUNK "data: {\"choi", {100, 6, 0, 0, true}, false},
    {"tool calls",
     DIALECT_OPENAI,
     true,
     "data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"function\":{\"arguments\":\"{\\\"a\\\": "
     "1}\"}}]}}]}\n\n",
     {100, 2, 0, 0, true},
     false},
    {"responses stream",
     DIALECT_OPENAI,
     true,
     "event: response.output_text.delta\ndata: "
     "{\"type\":\"response.output_text.delta\",\"delta\":\"hello\"}\n\n"
     "event: response.completed\ndata: "
     "{\"type\":\"response.completed\",\"response\":{\"usage\":{\"input_tokens\":5,"
     "\"output_tokens\":3}}}\n\n",
     {5, 3, 0, 0, false},
     true},
    {"responses failed",
     DIALECT_OPENAI,
     true,
     "data: {\"type\":\"response.failed\",\"response\":{\"usage\":null}}\n\n",
     {100, 0, 0, 0, true},
     true},
    {"messages stream",
     DIALECT_ANTHROPIC,
     true,
     "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"usage\":{\"input_tokens\":9,"
     "\"cache_read_input_tokens\":7,\"cache_creation_input_tokens\":5,\"output_tokens\":1}}}\n\n"
     "event: ping\ndata: {\"type\":\"ping\"}\n\n"
     "event: message_delta\ndata: {\"type\":\"message_delta\",\"usage\":{\"output_tokens\":4}}\n\n"
     "event: message_delta\ndata: {\"type\":\"message_delta\",\"usage\":{\"output_tokens\":15}}\n\n"
     "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n",
     {9, 15, 7, 5, false},
     true},
    {"messages cut",
     DIALECT_ANTHROPIC,
     true,
     "data: {\"type\":\"message_start\",\"message\":{\"usage\":{\"input_tokens\":9,\"output_tokens\":1}}}\n\n"
     "data: {\"type\":\"content_block_delta\",\"delta\":{\"type\":\"text_delta\",\"text\":\"twelve "
     "bytes\"}}\n\n"
     "data: {\"type\":\"content_block_delta\",\"delta\":{\"partial_json\":\"twelve bytes\"}}\n\n",
     {9, 6, 0, 0, true},
     false},
    {"messages corrected",
     DIALECT_ANTHROPIC,
     true,
     "data: {\"type\":\"message_start\",\"message\":{\"usage\":{\"input_tokens\":0,\"output_tokens\":0}}}\n\n"
     "data: {\"type\":\"message_delta\",\"usage\":{\"input_tokens\":11,\"output_tokens\":2}}\n\n",
     {11, 2, 0, 0, false},
     false},
    {"error event",
     DIALECT_ANTHROPIC,
     true,
     "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\"}}\n\n",
     {100, 0, 0, 0, true},
     true},
};

static void
check(const Case *c, const size_t *cuts, size_t n_cuts)
{
    g_autoptr(UsageReader) reader = usage_reader_new(c->dialect, c->stream);
    size_t n = strlen(c->text), from = 0;
    Usage got;

    for (size_t i = 0; i <= n_cuts; i++) {
        size_t to = i < n_cuts ? cuts[i] : n;
        g_autofree char *piece = g_strndup(c->text + from, to - from);

        g_assert_true(usage_reader_feed(reader, piece, to - from, NULL));
        from = to;
    }
    usage_reader_result(reader, ASKED, &got);
    g_test_message("%s", c->name);
    g_assert_cmpuint(got.input_tokens, ==, c->want.input_tokens);
    g_assert_cmpuint(got.output_tokens, ==, c->want.output_tokens);
    g_assert_cmpuint(got.cached_tokens, ==, c->want.cached_tokens);
    g_assert_cmpuint(got.cache_write_tokens, ==, c->want.cache_write_tokens);
    g_assert_cmpint(got.estimated, ==, c->want.estimated);
    g_assert_cmpint(usage_reader_is_complete(reader), ==, c->complete);
}

static void
test_cases(void)
{
    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        size_t n = strlen(cases[i].text);
        g_autofree size_t *all = g_new(size_t, n);

        check(&cases[i], NULL, 0);
        for (size_t cut = 0; cut <= n; cut++) {
            all[MIN(cut, n - 1)] = cut;
            check(&cases[i], &cut, 1);
        }
        for (size_t cut = 0; cut < n; cut++)
            all[cut] = cut;
        check(&cases[i], all, n);
    }
}

static void
test_malformed(void)
{
    static const char *const texts[] = {"data: {\n\n", "data: hello\n\n", "data: {\"a\":1,\"a\":2}\n\n",
                                        "data: \xff\n\n"};

    for (size_t i = 0; i < G_N_ELEMENTS(texts); i++) {
        g_autoptr(UsageReader) reader = usage_reader_new(DIALECT_OPENAI, true);
        g_autoptr(GError) error = NULL;

        g_assert_true(usage_reader_feed(reader, CHAT_CHUNK, strlen(CHAT_CHUNK), NULL));
        g_assert_false(usage_reader_feed(reader, texts[i], strlen(texts[i]), &error));
        g_assert_error(error, ERR_DOMAIN, ERR_INVALID);
        g_assert_false(usage_reader_feed(reader, "\n", 1, NULL));
        Usage got;
        usage_reader_result(reader, ASKED, &got);
        g_assert_cmpuint(got.output_tokens, ==, 3);
    }
}

static void
test_bounds(void)
{
    g_autofree char *filler = g_strnfill(64 * 1024, 'x');
    g_autoptr(UsageReader) stream = usage_reader_new(DIALECT_OPENAI, true);
    g_autoptr(UsageReader) body = usage_reader_new(DIALECT_OPENAI, false);
    g_autoptr(GError) error = NULL;
    size_t fed = 0;
    Usage got;

    while (usage_reader_feed(stream, filler, 64 * 1024, &error))
        g_assert_cmpuint(fed += 64 * 1024, <=, USAGE_LINE_MAX);
    g_assert_error(error, ERR_DOMAIN, ERR_LIMIT);
    for (guint i = 0; i < 2 * USAGE_BODY_MAX / (64 * 1024); i++)
        g_assert_true(usage_reader_feed(body, filler, 64 * 1024, NULL));
    usage_reader_result(body, ASKED, &got);
    g_assert_true(got.estimated);
    g_assert_cmpuint(got.output_tokens, ==, 2 * USAGE_BODY_MAX / 4);
}

/* ---- cutting after each event ---- */

static void
check_cut(const char *text, const char *const *want, size_t each)
{
    g_autoptr(GString) joined = g_string_new(NULL);
    EventCut cut;
    guint8 *event;
    size_t n;
    guint i = 0;

    event_cut_init(&cut, 1024);
    for (size_t from = 0; from < strlen(text); from += each) {
        g_assert_true(event_cut_put(&cut, text + from, MIN(each, strlen(text) - from)));
        while ((event = event_cut_next(&cut, &n)) != NULL) {
            g_string_append_len(joined, (char *)event, (gssize)n);
            if (each >= strlen(text))
                g_assert_cmpmem(event, n, want[i], strlen(want[i]));
            i++;
        }
    }
    event = event_cut_rest(&cut, &n);
    g_string_append_len(joined, (char *)event, (gssize)n);
    g_assert_cmpstr(joined->str, ==, text);
    event_cut_clear(&cut);
}

static void
test_cut(void)
{
    static const struct {
        const char *text, *want[6];
    } rows[] = {
        {"data: a\n\ndata: b\n\n", {"data: a\n\n", "data: b\n\n"}},
        {"data: a\r\n\r\ndata: b\r\n\r\nrest", {"data: a\r\n\r\n", "data: b\r\n\r\n"}},
        {"data: a\r\rdata: b\r\r", {"data: a\r\r", "data: b\r\r"}},
        {"a\nb\n\n\n: c\n\nd", {"a\nb\n\n", "\n", ": c\n\n"}},
        {"\r\n\n", {"\r\n", "\n"}},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(rows); i++) {
        for (size_t each = 1; each <= strlen(rows[i].text); each++)
            check_cut(rows[i].text, rows[i].want, each);
    }
    EventCut cut;
    event_cut_init(&cut, 8);
    g_assert_true(event_cut_put(&cut, "12345678", 8));
    g_assert_false(event_cut_put(&cut, "9", 1));
    event_cut_clear(&cut);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/brain/usage/cases", test_cases);
    g_test_add_func("/brain/usage/malformed", test_malformed);
    g_test_add_func("/brain/usage/bounds", test_bounds);
    g_test_add_func("/brain/event-cut", test_cut);
    return g_test_run();
}

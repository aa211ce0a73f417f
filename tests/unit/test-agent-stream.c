/* SPDX-License-Identifier: Apache-2.0 */
/* Both dialects: how a question is written, how an answer is put together from a stream. */
#include <glib.h>
#include <string.h>

#include "agent/dialect.h"
#include "base/err.h"

/* "text|thought|name(arguments);…|in/out/cached|flags" */
static char *
describe(const Answer *a)
{
    GString *out = g_string_new(NULL);

    g_string_append_printf(out, "%s|%s|", a->text->str, a->thought->str);
    for (guint i = 0; i < a->calls->len; i++) {
        const AnswerCall *call = g_ptr_array_index(a->calls, i);

        g_string_append_printf(out, "%s:%s(%s);", call->id != NULL ? call->id : "-",
                               call->name != NULL ? call->name : "-", call->arguments->str);
    }
    g_string_append_printf(out, "|%d/%d/%d|%s%s%s%s", (int)a->input_tokens, (int)a->output_tokens,
                           (int)a->cached_tokens, a->finished ? "F" : "", a->cut_short ? "C" : "",
                           a->error_text != NULL ? "E:" : "", a->error_text != NULL ? a->error_text : "");
    return g_string_free(out, FALSE);
}

/* Fed whole, and in pieces of each size: where a stream is cut must not matter. */
static void
check_stream(const Dialect *dialect, const char *bytes, const char *want)
{
    size_t n = strlen(bytes);

    for (size_t piece = 1; piece <= n; piece = piece < 8 ? piece + 1 : piece * 3) {
        g_auto(Answer) answer = {0};
        g_autoptr(GError) error = NULL;

        answer_init(&answer);
        g_autoptr(Stream) stream = stream_new(dialect, &answer);
        for (size_t at = 0; at < n; at += piece) {
            g_assert_true(stream_feed(stream, bytes + at, MIN(piece, n - at), &error));
            g_assert_no_error(error);
        }
        g_autofree char *got = describe(&answer);
        g_assert_cmpstr(got, ==, want);
    }
}

static void
test_openai(void)
{
    static const struct {
        const char *bytes, *want;
    } cases[] = {
        {"data: {\"choices\":[{\"delta\":{\"role\":\"assistant\",\"content\":\"Hel\"}}]}\n\n"
         "data: {\"choices\":[{\"delta\":{\"content\":\"lo\"}}]}\r\n\r\n"
         "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n"
         "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":9,\"completion_tokens\":2,"
         "\"prompt_tokens_details\":{\"cached_tokens\":4}}}\n\n"
         "data: [DONE]\n\n",
         "Hello|||9/2/4|F"},
        /* Two calls, whose pieces are mixed; the id comes once. */
        {"data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":0,\"id\":\"a\",\"function\":{\"name\":"
         "\"read\",\"arguments\":\"\"}}]}}]}\n\n"
         "data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":1,\"id\":\"b\",\"function\":{\"name\":"
         "\"shell\",\"arguments\":\"{\\\"com\"}}]}}]}\n\n"
         "data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":0,\"function\":{\"arguments\":\"{}\"}},"
         "{\"index\":1,\"function\":{\"arguments\":\"mand\\\":1}\"}}]}}]}\n\n"
         "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"tool_calls\"}]}\n\n",
         "||a:read({});b:shell({\"command\":1});|-1/-1/-1|F"},
        /* Without an index an id begins a call. */
        {"data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"id\":\"a\",\"function\":{\"name\":\"read\","
         "\"arguments\":\"{\"}}]}}]}\n\n"
         "data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"function\":{\"arguments\":\"}\"}}]}}]}\n\n"
         "data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"id\":\"b\",\"function\":{\"name\":\"test\","
         "\"arguments\":\"{}\"}}]}}]}\n\n",
         "||a:read({});b:test({});|-1/-1/-1|"},
        /* One that repeats its name. */
        {"data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":0,\"id\":\"a\",\"function\":{\"name\":"
         "\"read\"}}]}}]}\n\n"
         "data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":0,\"id\":\"a\",\"function\":{\"name\":"
         "\"read\",\"arguments\":\"{}\"}}]}}]}\n\n",
         "||a:read({});|-1/-1/-1|"},
        {"data: {\"choices\":[{\"delta\":{\"reasoning_content\":\"hm\"}}]}\n\n"
         "data: {\"choices\":[{\"delta\":{\"content\":\"x\"},\"finish_reason\":\"length\"}]}\n\n",
         "x|hm||-1/-1/-1|FC"},
        {": keep-alive\n\ndata: {\"error\":{\"message\":\"overloaded\",\"code\":\"upstream_failed\"}}\n\n",
         "|||-1/-1/-1|E:overloaded"},
        /* Broken off in the middle of an event: what was whole counts. */
        {"data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\ndata: {\"choi", "a|||-1/-1/-1|"},
        /* Members of other types are as good as missing. */
        {"data: {\"choices\":{\"delta\":1}}\n\ndata: 7\n\ndata: "
         "{\"choices\":[{\"delta\":{\"tool_calls\":[3]}}]}\n\n",
         "||-:-();|-1/-1/-1|"},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++)
        check_stream(&dialect_openai, cases[i].bytes, cases[i].want);
}

static void
test_anthropic(void)
{
    static const struct {
        const char *bytes, *want;
    } cases[] = {
        {"event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"usage\":{\"input_tokens\":5,"
         "\"cache_read_input_tokens\":7,\"cache_creation_input_tokens\":1,\"output_tokens\":1}}}\n\n"
         "event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{"
         "\"type\":\"text\",\"text\":\"\"}}\n\n"
         "event: ping\ndata: {\"type\":\"ping\"}\n\n"
         "event: content_block_delta\ndata: "
         "{\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":"
         "\"text_delta\",\"text\":\"Hello\"}}\n\n"
         "event: content_block_stop\ndata: {\"type\":\"content_block_stop\",\"index\":0}\n\n"
         "event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"},"
         "\"usage\":{\"output_tokens\":15}}\n\n"
         "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n",
         "Hello|||13/15/7|F"},
        {"data: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"thinking\","
         "\"thinking\":\"\"}}\n\n"
         "data: "
         "{\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"thinking_delta\",\"thinking\":"
         "\"hm\"}}\n\n"
         "data: "
         "{\"type\":\"content_block_start\",\"index\":1,\"content_block\":{\"type\":\"tool_use\",\"id\":"
         "\"t1\",\"name\":\"shell\",\"input\":{}}}\n\n"
         "data: {\"type\":\"content_block_delta\",\"index\":1,\"delta\":{\"type\":\"input_json_delta\","
         "\"partial_json\":\"{\\\"command\\\":\"}}\n\n"
         "data: {\"type\":\"content_block_delta\",\"index\":1,\"delta\":{\"type\":\"input_json_delta\","
         "\"partial_json\":\"\\\"ls\\\"}\"}}\n\n"
         "data: "
         "{\"type\":\"content_block_start\",\"index\":2,\"content_block\":{\"type\":\"tool_use\",\"id\":"
         "\"t2\",\"name\":\"test\",\"input\":{}}}\n\n"
         "data: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"max_tokens\"}}\n\n"
         "data: {\"type\":\"message_stop\"}\n\n",
         "|hm|t1:shell({\"command\":\"ls\"});t2:test();|-1/-1/-1|FC"},
        {"event: error\ndata: "
         "{\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"later\"}}\n\n",
         "|||-1/-1/-1|E:later"},
        {"event: error\ndata: {\"type\":\"error\"}\n\n", "|||-1/-1/-1|E:an error without words"},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++)
        check_stream(&dialect_anthropic, cases[i].bytes, cases[i].want);
}

static void
test_bad(void)
{
    static const struct {
        const char *bytes;
        ErrKind kind;
    } cases[] = {
        {"data: {\"choices\":\n\n", ERR_INVALID},
        {"data: nonsense\n\n", ERR_INVALID},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_auto(Answer) answer = {0};
        g_autoptr(GError) error = NULL;

        answer_init(&answer);
        g_autoptr(Stream) stream = stream_new(&dialect_openai, &answer);
        g_assert_false(stream_feed(stream, cases[i].bytes, strlen(cases[i].bytes), &error));
        g_assert_error(error, ERR_DOMAIN, (int)cases[i].kind);
    }
}

/* More than an answer may have, of everything that grows. */
static void
test_flood(void)
{
    static const char *const events[] = {
        "{\"choices\":[{\"delta\":{\"content\":\"%s\"}}]}",
        "{\"choices\":[{\"delta\":{\"reasoning\":\"%s\"}}]}",
        "{\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":0,\"function\":{\"arguments\":\"%s\"}}]}}]}",
        "{\"choices\":[{\"delta\":{\"tool_calls\":[{\"id\":\"%s\",\"function\":{}}]}}]}",
    };
    g_autofree char *filler = g_strnfill(64 * 1024, 'x');

    for (size_t i = 0; i < G_N_ELEMENTS(events); i++) {
        g_auto(GStrv) parts = g_strsplit(events[i], "%s", 2);
        g_autofree char *event = g_strconcat("data: ", parts[0], filler, parts[1], "\n\n", NULL);
        g_auto(Answer) answer = {0};
        g_autoptr(GError) error = NULL;

        answer_init(&answer);
        g_autoptr(Stream) stream = stream_new(&dialect_openai, &answer);
        for (guint n = 0; n < 100 && error == NULL; n++)
            (void)stream_feed(stream, event, strlen(event), &error);
        g_assert_error(error, ERR_DOMAIN, ERR_LIMIT);
        g_assert_cmpuint(answer.bytes, <=, ANSWER_BYTES_MAX);
        g_assert_cmpuint(answer.calls->len, <=, ANSWER_CALLS_MAX);
    }
}

/* ---- questions ---- */

static Json *
make_messages(void)
{
    return json_pack("[{s:s,s:s}, {s:s,s:s,s:[{s:s,s:s,s:s},{s:s,s:s,s:s}]}, {s:s,s:s,s:s,s:s}, "
                     "{s:s,s:s,s:s,s:s}, {s:s,s:s}]",
                     "role", "user", "text", "goal", "role", "assistant", "text", "", "calls", "id", "a",
                     "name", "read", "arguments", "{\"path\":\"x\"}", "id", "b", "name", "test", "arguments",
                     "{}", "role", "tool", "id", "a", "name", "read", "text", "one", "role", "tool", "id",
                     "b", "name", "test", "text", "two", "role", "user", "text", "go on");
}

static void
check_question(const Dialect *dialect, const char *want)
{
    g_autoptr(Json) messages = make_messages();
    g_autoptr(Json) tools = json_pack("[{s:s,s:s,s:{s:s}}]", "name", "read", "description", "d", "parameters",
                                      "type", "object");
    g_autoptr(Json) body = dialect->render(&(Question){
        .model = "p/m", .system = "sys", .messages = messages, .tools = tools, .output_tokens = 50});
    g_autofree char *text = json_encode(body);

    g_assert_cmpstr(text, ==, want);
}

static void
test_questions(void)
{
    check_question(
        &dialect_openai,
        "{\"model\":\"p/m\",\"stream\":true,\"stream_options\":{\"include_usage\":true},"
        "\"max_completion_tokens\":50,\"messages\":[{\"role\":\"system\",\"content\":\"sys\"},"
        "{\"role\":\"user\",\"content\":\"goal\"},{\"role\":\"assistant\",\"content\":null,\"tool_calls\":["
        "{\"id\":\"a\",\"type\":\"function\",\"function\":{\"name\":\"read\",\"arguments\":\"{\\\"path\\\":"
        "\\\"x\\\"}\"}},{\"id\":\"b\",\"type\":\"function\",\"function\":{\"name\":\"test\",\"arguments\":"
        "\"{}\"}}]},{\"role\":\"tool\",\"tool_call_id\":\"a\",\"content\":\"one\"},{\"role\":\"tool\","
        "\"tool_call_id\":\"b\",\"content\":\"two\"},{\"role\":\"user\",\"content\":\"go on\"}],\"tools\":["
        "{\"type\":\"function\",\"function\":{\"name\":\"read\",\"description\":\"d\",\"parameters\":{"
        "\"type\":"
        "\"object\"}}}]}");
    check_question(
        &dialect_anthropic,
        "{\"model\":\"p/"
        "m\",\"stream\":true,\"max_tokens\":50,\"system\":[{\"type\":\"text\",\"text\":\"sys\","
        "\"cache_control\":{\"type\":\"ephemeral\"}}],\"messages\":[{\"role\":\"user\",\"content\":[{"
        "\"type\":"
        "\"text\",\"text\":\"goal\"}]},{\"role\":\"assistant\",\"content\":[{\"type\":\"tool_use\",\"id\":"
        "\"a\","
        "\"name\":\"read\",\"input\":{\"path\":\"x\"}},{\"type\":\"tool_use\",\"id\":\"b\",\"name\":\"test\","
        "\"input\":{}}]},{\"role\":\"user\",\"content\":[{\"type\":\"tool_result\",\"tool_use_id\":\"a\","
        "\"content\":\"one\"},{\"type\":\"tool_result\",\"tool_use_id\":\"b\",\"content\":\"two\"},{\"type\":"
        "\"text\",\"text\":\"go "
        "on\",\"cache_control\":{\"type\":\"ephemeral\"}}]}],\"tools\":[{\"name\":\"read\","
        "\"description\":\"d\",\"input_schema\":{\"type\":\"object\"}}]}");
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/agent/stream/openai", test_openai);
    g_test_add_func("/agent/stream/anthropic", test_anthropic);
    g_test_add_func("/agent/stream/bad", test_bad);
    g_test_add_func("/agent/stream/flood", test_flood);
    g_test_add_func("/agent/questions", test_questions);
    return g_test_run();
}

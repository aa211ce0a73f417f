/* SPDX-License-Identifier: Apache-2.0 */
/* The gate between a client and a provider that behaves. */
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/err.h"
#include "gate-fixture.h"
#include "http/limits.h"

#define CHUNK(text)                                                                                          \
    "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"" text "\"},\"finish_reason\":null}]}\n\n"
#define FINISH                                                                                               \
    "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}],\"usage\":null}\r\n\r\n"
#define USAGE "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":7,\"completion_tokens\":3}}\n\n"
#define DONE "data: [DONE]\n\n"

static void
check_who(Json *fact, const char *dialect)
{
    g_assert_cmpstr(fact_text(fact, "box"), ==, FIXTURE_BOX);
    g_assert_cmpstr(fact_text(fact, "agent"), ==, "coder-1");
    g_assert_cmpstr(fact_text(fact, "task"), ==, "task-1");
    g_assert_cmpstr(fact_text(fact, "squad"), ==, "squad-1");
    g_assert_cmpstr(fact_text(fact, "provider"), ==, "up");
    g_assert_cmpstr(fact_text(fact, "dialect"), ==, dialect);
    g_assert_nonnull(fact_text(fact, "request"));
    g_assert_null(fact_text(fact, "brain"));
    g_assert_cmpint(fact_number(fact, "latency_ms"), >=, 0);
    g_assert_cmpint(fact_number(fact, "retries"), ==, 0);
}

static void
check_used(Json *fact, gint64 input, gint64 cached, gint64 output)
{
    g_assert_cmpint(fact_number(fact, "input_tokens"), ==, input);
    g_assert_cmpint(fact_number(fact, "cached_tokens"), ==, cached);
    g_assert_cmpint(fact_number(fact, "output_tokens"), ==, output);
}

static void
test_chat(void)
{
    GateWorld w;

    gate_world_init(&w, "openai");
    w.u.answer = GATE_CHAT_ANSWER;
    w.u.header = "x-request-id: req-1";
    g_autofree char *answer = gate_post(
        &w.g, GATE_CHAT, "", "{ \"model\": \"gpt-4o-mini\", \"messages\": [], \"temperature\": 0.1}");

    g_assert_cmpint(answer_status(answer), ==, 200);
    g_assert_cmpstr(answer_body(answer), ==, GATE_CHAT_ANSWER);
    g_assert_nonnull(strstr(answer, "x-request-id: req-1\r\n"));
    g_assert_null(strstr(answer, "X-Coop-Brain"));
    g_assert_cmpstr(w.u.method, ==, "POST");
    g_assert_cmpstr(w.u.target, ==, "/v1/chat/completions");
    g_assert_cmpstr(w.u.body, ==, "{\"model\":\"gpt-4o-mini\",\"messages\":[],\"temperature\":0.1}");
    g_assert_nonnull(strstr(w.u.headers->str, "authorization: Bearer " FIXTURE_KEY "\n"));
    Json *fact = gate_fixture_fact(&w.g, "model.called");
    check_who(fact, "openai");
    check_used(fact, 600, 400, 200);
    g_assert_cmpstr(fact_text(fact, "model"), ==, "gpt-4o-mini");
    g_assert_cmpint(fact_number(fact, "status"), ==, 200);
    /* 600 x 0.15 + 400 x 0.075 + 200 x 0.60 dollars per million */
    g_assert_cmpint(fact_number(fact, "microusd"), ==, 240);
    g_assert_true(json_is_true(json_object_get(fact, "price_known")));
    g_assert_true(json_is_false(json_object_get(fact, "estimated")));
    g_assert_true(json_is_false(json_object_get(fact, "stream")));
    gate_world_clear(&w);
}

/* Every byte but the chunk that the client did not ask for. */
static void
check_chat_stream(const char *ask, const char *want, const char *sent_options)
{
    static const char *const pieces[] = {": hello\n\n", CHUNK("h"), CHUNK("\\u0000i") FINISH,
                                         USAGE,         DONE,       NULL};
    GateWorld w;

    gate_world_init(&w, "openai");
    w.u.stream = pieces;
    g_autofree char *answer = gate_post(&w.g, GATE_CHAT, "", ask);
    g_autofree char *body = gate_body(answer);

    g_assert_cmpint(answer_status(answer), ==, 200);
    g_assert_nonnull(strstr(answer, "Content-Type: text/event-stream\r\n"));
    g_assert_cmpstr(body, ==, want);
    g_assert_nonnull(strstr(w.u.body, sent_options));
    Json *fact = gate_fixture_fact(&w.g, "model.called");
    check_used(fact, 7, 0, 3);
    g_assert_true(json_is_true(json_object_get(fact, "stream")));
    g_assert_cmpint(fact_number(fact, "first_byte_ms"), >=, 0);
    gate_world_clear(&w);
}

static void
test_chat_stream(void)
{
    check_chat_stream(GATE_ASK_STREAM, ": hello\n\n" CHUNK("h") CHUNK("\\u0000i") FINISH DONE,
                      "\"stream_options\":{\"include_usage\":true}");
    check_chat_stream("{\"model\":\"gpt-4o-mini\",\"stream\":true,\"messages\":[],"
                      "\"stream_options\":{\"include_usage\":true}}",
                      ": hello\n\n" CHUNK("h") CHUNK("\\u0000i") FINISH USAGE DONE,
                      "\"stream_options\":{\"include_usage\":true}");
    check_chat_stream("{\"model\":\"gpt-4o-mini\",\"stream\":true,\"messages\":[],"
                      "\"stream_options\":{\"include_usage\":false,\"x\":1}}",
                      ": hello\n\n" CHUNK("h") CHUNK("\\u0000i") FINISH DONE,
                      "\"stream_options\":{\"include_usage\":true,\"x\":1}");
}

static void
test_messages(void)
{
    static const char *const pieces[] = {
        "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"usage\":{\"input_tokens\":10,"
        "\"cache_read_input_tokens\":5,\"cache_creation_input_tokens\":2,\"output_tokens\":1}}}\n\n",
        "event: content_block_delta\ndata: "
        "{\"type\":\"content_block_delta\",\"delta\":{\"text\":\"hello\"}}\n\n",
        "event: message_delta\ndata: {\"type\":\"message_delta\",\"usage\":{\"output_tokens\":20}}\n\n",
        "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n", NULL};
    GateWorld w;

    gate_world_init(&w, "anthropic");
    w.u.stream = pieces;
    g_autofree char *whole = g_strjoinv("", (char **)(guintptr)pieces);
    g_autofree char *answer = gate_post(
        &w.g, GATE_MESSAGES "?beta=true",
        "x-api-key: placeholder\r\nanthropic-version: 2023-06-01\r\nanthropic-beta: a-1, b-2\r\n",
        "{\"model\":\"claude-haiku-4-5\",\"max_tokens\":10,\"stream\":true,\"messages\":[]}");
    g_autofree char *body = gate_body(answer);

    g_assert_cmpstr(body, ==, whole);
    g_assert_cmpstr(w.u.target, ==, "/v1/messages?beta=true");
    g_assert_nonnull(strstr(w.u.headers->str, "x-api-key: " FIXTURE_KEY "\n"));
    g_assert_nonnull(strstr(w.u.headers->str, "anthropic-version: 2023-06-01\n"));
    g_assert_nonnull(strstr(w.u.headers->str, "anthropic-beta: a-1, b-2\n"));
    g_assert_null(strstr(w.u.headers->str, "authorization:"));
    g_assert_null(strstr(w.u.body, "stream_options"));
    Json *fact = gate_fixture_fact(&w.g, "model.called");
    check_who(fact, "anthropic");
    check_used(fact, 10, 5, 20);
    g_assert_cmpint(fact_number(fact, "cache_write_tokens"), ==, 2);
    gate_world_clear(&w);
}

static void
test_responses(void)
{
    static const char *const pieces[] = {
        "event: response.created\ndata: {\"type\":\"response.created\",\"response\":{\"usage\":null}}\n\n",
        "event: response.output_text.delta\ndata: "
        "{\"type\":\"response.output_text.delta\",\"delta\":\"x\"}\n\n",
        "event: response.completed\ndata: {\"type\":\"response.completed\",\"response\":{\"usage\":"
        "{\"input_tokens\":30,\"input_tokens_details\":{\"cached_tokens\":10},\"output_tokens\":4}}}\n\n",
        NULL};
    GateWorld w;

    gate_world_init(&w, "openai");
    w.u.stream = pieces;
    g_autofree char *whole = g_strjoinv("", (char **)(guintptr)pieces);
    g_autofree char *answer = gate_post(&w.g, GATE_RESPONSES, "",
                                        "{\"model\":\"gpt-5-mini\",\"stream\":true,\"input\":\"hi\"}");
    g_autofree char *body = gate_body(answer);

    g_assert_cmpstr(body, ==, whole);
    g_assert_cmpstr(w.u.target, ==, "/v1/responses");
    /* What is left out means "keep it" there. */
    g_assert_nonnull(strstr(w.u.body, "\"store\":false"));
    check_used(gate_fixture_fact(&w.g, "model.called"), 20, 10, 4);
    gate_world_clear(&w);
}

static void
test_models(void)
{
    GateWorld w;

    gate_world_init(&w, "openai");
    w.u.answer = "{\"object\":\"list\",\"data\":[]}";
    g_autofree char *list = gate_get(&w.g, "/openai/v1/models");
    g_assert_cmpstr(answer_body(list), ==, w.u.answer);
    g_assert_cmpstr(w.u.target, ==, "/v1/models");
    g_autofree char *one = gate_get(&w.g, "/openai/v1/models/ft:gpt-4o%3Aacme");
    g_assert_cmpint(answer_status(one), ==, 200);
    g_assert_cmpstr(w.u.target, ==, "/v1/models/ft%3Agpt-4o%3Aacme");
    /* These cost nothing. */
    g_assert_cmpuint(gate_fixture_facts(&w.g, "model.called"), ==, 0);
    gate_world_clear(&w);
}

/* ---- which provider ---- */

static void
test_choice(void)
{
    static const struct {
        const char *model, *provider, *sent;
    } cases[] = {
        {"gpt-4o", "listed", "gpt-4o"},        {"other", "main", "other"},
        {"listed/gpt-4o", "listed", "gpt-4o"}, {"main/gpt-4o", "main", "gpt-4o"},
        {"second/x", "second", "x"},           {"maker/model", "main", "maker/model"},
        {"claude-x", "main", "claude-x"},
    };
    GateFixture g;
    Upstream u;

    gate_fixture_init(&g, NULL, NULL);
    upstream_init(&u);
    u.answer = GATE_CHAT_ANSWER;
    const char *providers[] = {
        "{\"name\":\"listed\",\"kind\":\"openai\",\"base_url\":\"http://"
        "127.0.0.1:%u\",\"models\":[\"gpt-*\"]}",
        "{\"name\":\"second\",\"kind\":\"compatible\",\"base_url\":\"http://127.0.0.1:%u/v1\"}",
        "{\"name\":\"main\",\"kind\":\"compatible\",\"base_url\":\"http://localhost:%u/v1/\","
        "\"default_for\":[\"openai\"]}",
        "{\"name\":\"claude\",\"kind\":\"anthropic\",\"base_url\":\"http://"
        "127.0.0.1:%u\",\"models\":[\"claude-*\"]}",
    };
    for (size_t i = 0; i < G_N_ELEMENTS(providers); i++) {
        g_auto(GStrv) halves = g_strsplit(providers[i], "%u", 2);
        g_autofree char *port = g_strdup_printf("%u", u.server.port);
        g_autofree char *json = g_strconcat(halves[0], port, halves[1], NULL);

        gate_fixture_provider(&g, json, NULL);
    }
    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *ask = g_strdup_printf("{\"model\":\"%s\",\"messages\":[]}", cases[i].model);
        g_autofree char *sent = g_strdup_printf("{\"model\":\"%s\",\"messages\":[]}", cases[i].sent);
        g_autofree char *answer = gate_post(&g, GATE_CHAT, "", ask);

        g_assert_cmpint(answer_status(answer), ==, 200);
        g_assert_cmpstr(fact_text(gate_fixture_fact(&g, "model.called"), "provider"), ==, cases[i].provider);
        g_assert_cmpstr(u.body, ==, sent);
    }
    g_autofree char *none = gate_post(&g, GATE_MESSAGES, "", "{\"model\":\"gpt-4o\",\"messages\":[]}");
    g_assert_cmpint(answer_status(none), ==, 404);
    g_assert_nonnull(strstr(none, "\"type\":\"error\""));
    gate_fixture_clear(&g);
    upstream_clear(&u);
}

/* ---- slow clients, and those that go ---- */

static void
test_backpressure(void)
{
    enum { PIECES = 1024, PIECE = 32 * 1024, ITERATIONS = 2000 };
    g_autoptr(GPtrArray) pieces = g_ptr_array_new();
    g_autofree char *filler = g_strnfill(PIECE, 'x');
    g_autofree char *piece = g_strdup_printf("data: {\"delta\":\"%s\"}\n\n", filler);
    GateWorld w;

    for (guint i = 0; i < PIECES; i++)
        g_ptr_array_add(pieces, piece);
    g_ptr_array_add(pieces, (char *)(guintptr)DONE);
    g_ptr_array_add(pieces, NULL);
    gate_world_init(&w, "openai");
    w.u.stream = (const char *const *)pieces->pdata;
    int fd = gate_post_begin(&w.g, GATE_RESPONSES, "{\"model\":\"m\",\"stream\":true,\"input\":\"x\"}");
    fixture_until(&w.u.calls, 1);
    for (guint i = 0; i < ITERATIONS; i++)
        g_main_context_iteration(NULL, FALSE);
    /* Of 32 MiB only what the sockets and the bounded buffers take has left the provider. */
    g_assert_cmpuint(w.u.sent, >, 0);
    g_assert_cmpuint(w.u.sent, <, PIECES * 3 / 4);
    g_assert_cmpuint(w.u.gone, ==, 0);
    g_autoptr(GString) answer = client_read(fd, NULL);
    g_autofree char *body = gate_body(answer->str);
    g_assert_cmpuint(strlen(body), ==, PIECES * strlen(piece) + strlen(DONE));
    close(fd);
    gate_world_clear(&w);
}

static void
test_forget_box(void)
{
    static const char *const pieces[] = {CHUNK("some words"), NULL};
    GateWorld w;

    gate_world_init(&w, "openai");
    w.u.stream = pieces;
    w.u.hold = true;
    int fd = gate_post_begin(&w.g, GATE_CHAT, GATE_ASK_STREAM);
    g_string_free(client_read(fd, "some words"), TRUE);
    gate_forget_box(w.g.gate, "another");
    g_assert_cmpuint(gate_fixture_facts(&w.g, "model.called"), ==, 0);
    gate_forget_box(w.g.gate, FIXTURE_BOX);
    g_assert_cmpstr(fact_text(gate_fixture_fact(&w.g, "model.called"), "error"), ==, "client_gone");
    fixture_until(&w.u.gone, 1);
    g_assert_true(client_sees_close(fd));
    close(fd);
    gate_world_clear(&w);
}

static void
on_tested(Json *result, const GError *error, void *data)
{
    GString *log = data;

    if (error != NULL)
        g_string_append_printf(log, "%s;", err_kind_name(err_kind(error)));
    else
        g_string_append_printf(log, "%d models;", (int)json_integer_value(json_object_get(result, "models")));
}

static void
test_test(void)
{
    static const struct {
        int status;
        const char *want;
    } cases[] = {{200, "2 models;"}, {401, "denied;"}, {500, "unavailable;"}};
    GateWorld w;

    gate_world_init(&w, "openai");
    w.u.answer = "{\"data\":[{},{}]}";
    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(GString) log = g_string_new(NULL);

        w.u.status = cases[i].status;
        gate_test_provider(w.g.gate, "up", on_tested, log);
        while (log->len == 0)
            g_main_context_iteration(NULL, TRUE);
        g_assert_cmpstr(log->str, ==, cases[i].want);
        g_assert_nonnull(strstr(w.u.headers->str, "authorization: Bearer " FIXTURE_KEY));
    }
    g_autoptr(GString) log = g_string_new(NULL);
    gate_test_provider(w.g.gate, "none", on_tested, log);
    g_assert_cmpstr(log->str, ==, "not_found;");
    /* The gate goes while one is under way. */
    gate_test_provider(w.g.gate, "up", on_tested, NULL);
    gate_world_clear(&w);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/gate/chat", test_chat);
    g_test_add_func("/gate/chat-stream", test_chat_stream);
    g_test_add_func("/gate/messages", test_messages);
    g_test_add_func("/gate/responses", test_responses);
    g_test_add_func("/gate/models", test_models);
    g_test_add_func("/gate/choice", test_choice);
    g_test_add_func("/gate/backpressure", test_backpressure);
    g_test_add_func("/gate/forget-box", test_forget_box);
    g_test_add_func("/gate/test-provider", test_test);
    return g_test_run();
}

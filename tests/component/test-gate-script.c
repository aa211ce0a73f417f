/* SPDX-License-Identifier: Apache-2.0 */
/* Scripts and recordings in the place of a provider. */
#include <glib/gstdio.h>
#include <string.h>
#include <unistd.h>

#include "gate-fixture.h"

#define SCRIPT_PROVIDER "{\"name\":\"demo\",\"kind\":\"script\"}"

static const char script[] = "conversations:\n"
                             "  - role: \"reviewer*\"\n"
                             "    turns: [{text: never}]\n"
                             "  - match: \"^add (\\\\d+) and (\\\\d+)$\"\n"
                             "    turns:\n"
                             "      - text: \"Let me add.\"\n"
                             "        tools: [{name: add, arguments: '{\"a\": \"{{match.1}}\", \"b\": 2}'}]\n"
                             "        usage: {input: 50, output: 9, cached: 20}\n"
                             "        chunk: 3\n"
                             "  - asked: \"^subtract\"\n"
                             "    turn: 2\n"
                             "    turns: [{text: \"No more than that: {{last}}\"}]\n"
                             "  - last: tool\n"
                             "    turn: 2\n"
                             "    turns: [{text: \"It is {{last_tool}}, {{agent}}.\"}]\n"
                             "  - match: slow\n"
                             "    turns: [{text: \"one two three\", delay_ms: 30, first_ms: 30, chunk: 4}]\n"
                             "  - match: cut\n"
                             "    turns: [{text: \"half of\", cut: true}]\n"
                             "  - match: busy\n"
                             "    turns: [{error: {status: 429, message: \"slowly, {{agent}}\"}}]\n"
                             "  - model: echo\n"
                             "    turns: [{text: \"{{model}} {{turn}} {{system}} {{last_user}}\"}]\n";

static void
demo_init(GateFixture *g)
{
    gate_fixture_init(g, NULL, NULL);
    gate_fixture_provider(g, SCRIPT_PROVIDER, script);
}

static Json *
ask(GateFixture *g, const char *path, const char *body, int status)
{
    g_autofree char *answer = gate_post(g, path, "", body);
    g_autofree char *text = gate_body(answer);
    g_autoptr(GError) error = NULL;

    g_assert_cmpint(answer_status(answer), ==, status);
    g_assert_nonnull(strstr(answer, "X-Coop-Brain: script\r\n"));
    Json *object = json_decode(text, strlen(text), &error);
    g_assert_no_error(error);
    return object;
}

static const char *
at(Json *object, const char *path)
{
    g_auto(GStrv) names = g_strsplit(path, "/", -1);

    for (char **n = names; *n != NULL; n++)
        object = g_ascii_isdigit(**n) ? json_array_get(object, g_ascii_strtoull(*n, NULL, 10))
                                      : json_object_get(object, *n);
    return json_string_value(object);
}

static void
test_chat(void)
{
    GateFixture g;

    demo_init(&g);
    g_autoptr(Json)
        first = ask(&g, GATE_CHAT,
                    "{\"model\":\"m\",\"messages\":[{\"role\":\"user\",\"content\":\"add 1 and 2\"}]}", 200);
    g_assert_cmpstr(at(first, "choices/0/message/content"), ==, "Let me add.");
    g_assert_cmpstr(at(first, "choices/0/finish_reason"), ==, "tool_calls");
    g_assert_cmpstr(at(first, "choices/0/message/tool_calls/0/function/name"), ==, "add");
    g_assert_cmpstr(at(first, "choices/0/message/tool_calls/0/function/arguments"), ==,
                    "{\"a\":\"1\",\"b\":2}");
    Json *fact = gate_fixture_fact(&g, "model.called");
    g_assert_cmpstr(fact_text(fact, "brain"), ==, "script");
    g_assert_cmpint(fact_number(fact, "input_tokens"), ==, 50);
    g_assert_cmpint(fact_number(fact, "cached_tokens"), ==, 20);
    g_assert_cmpint(fact_number(fact, "output_tokens"), ==, 9);
    g_autoptr(Json) second = ask(&g, GATE_CHAT,
                                 "{\"model\":\"m\",\"messages\":[{\"role\":\"user\",\"content\":\"add 1 and "
                                 "2\"},{\"role\":\"assistant\","
                                 "\"tool_calls\":[{\"id\":\"a\",\"type\":\"function\",\"function\":{\"name\":"
                                 "\"add\",\"arguments\":\"{}\"}}]},"
                                 "{\"role\":\"tool\",\"tool_call_id\":\"a\",\"content\":\"3\"}]}",
                                 200);
    g_assert_cmpstr(at(second, "choices/0/message/content"), ==, "It is 3, coder-1.");
    g_autoptr(Json) other = ask(&g, GATE_CHAT,
                                "{\"model\":\"m\",\"messages\":[{\"role\":\"user\",\"content\":\"subtract\"},"
                                "{\"role\":\"assistant\",\"content\":\"yes?\"},"
                                "{\"role\":\"user\",\"content\":\"add 1 and\"}]}",
                                200);
    g_assert_cmpstr(at(other, "choices/0/message/content"), ==, "No more than that: add 1 and");
    g_autoptr(Json)
        echo = ask(&g, GATE_CHAT,
                   "{\"model\":\"echo\",\"messages\":[{\"role\":\"system\",\"content\":\"be kind\"},"
                   "{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"hi\"}]}]}",
                   200);
    g_assert_cmpstr(at(echo, "choices/0/message/content"), ==, "echo 1 be kind hi");
    g_autoptr(Json) none = ask(&g, GATE_CHAT, GATE_ASK, 400);
    g_assert_nonnull(strstr(at(none, "error/message"), "the script has no answer for turn 1"));
    g_autoptr(Json) busy = ask(
        &g, GATE_CHAT, "{\"model\":\"m\",\"messages\":[{\"role\":\"user\",\"content\":\"busy\"}]}", 429);
    g_assert_cmpstr(at(busy, "error/message"), ==, "slowly, coder-1");
    gate_fixture_clear(&g);
}

static void
test_other_dialects(void)
{
    GateFixture g;

    demo_init(&g);
    g_autoptr(Json) message = ask(
        &g, GATE_MESSAGES,
        "{\"model\":\"m\",\"max_tokens\":9,\"messages\":[{\"role\":\"user\",\"content\":\"add 1 and 2\"}]}",
        200);
    g_assert_cmpstr(at(message, "content/0/text"), ==, "Let me add.");
    g_assert_cmpstr(at(message, "content/1/input/a"), ==, "1");
    g_assert_cmpstr(at(message, "stop_reason"), ==, "tool_use");
    g_autoptr(Json) result = ask(
        &g, GATE_MESSAGES,
        "{\"model\":\"m\",\"max_tokens\":9,\"messages\":[{\"role\":\"user\",\"content\":\"add 1 and 2\"},"
        "{\"role\":\"assistant\",\"content\":[{\"type\":\"tool_use\",\"id\":\"a\",\"name\":\"add\",\"input\":"
        "{}}]},"
        "{\"role\":\"user\",\"content\":[{\"type\":\"tool_result\",\"tool_use_id\":\"a\",\"content\":[{"
        "\"type\":"
        "\"text\",\"text\":\"3\"}]}]}]}",
        200);
    g_assert_cmpstr(at(result, "content/0/text"), ==, "It is 3, coder-1.");
    g_autoptr(Json) response = ask(&g, GATE_RESPONSES, "{\"model\":\"m\",\"input\":\"add 1 and 2\"}", 200);
    g_assert_cmpstr(at(response, "output/0/content/0/text"), ==, "Let me add.");
    g_assert_cmpstr(at(response, "output/1/name"), ==, "add");
    g_autoptr(Json) output = ask(&g, GATE_RESPONSES,
                                 "{\"model\":\"m\",\"input\":[{\"role\":\"user\",\"content\":\"add 1 and "
                                 "2\"},{\"type\":\"function_call\","
                                 "\"call_id\":\"a\",\"name\":\"add\",\"arguments\":\"{}\"},{\"type\":"
                                 "\"function_call_output\",\"call_id\":\"a\","
                                 "\"output\":\"3\"}]}",
                                 200);
    g_assert_cmpstr(at(output, "output/0/content/0/text"), ==, "It is 3, coder-1.");
    g_autoptr(Json) vectors = ask(&g, "/openai/v1/embeddings",
                                  "{\"model\":\"m\",\"input\":[\"a\",\"b\"],\"dimensions\":8}", 200);
    g_assert_cmpuint(json_array_size(json_object_get(vectors, "data")), ==, 2);
    g_autofree char *models = gate_get(&g, "/anthropic/v1/models");
    g_assert_nonnull(strstr(models, "\"id\":\"echo\""));
    gate_fixture_clear(&g);
}

static void
test_streams(void)
{
    static const char *const paths[] = {GATE_CHAT, GATE_RESPONSES, GATE_MESSAGES};
    static const char *const last[] = {"data: [DONE]\n\n", "\"type\":\"response.completed\"",
                                       "\"type\":\"message_stop\""};
    GateFixture g;

    demo_init(&g);
    for (size_t i = 0; i < G_N_ELEMENTS(paths); i++) {
        g_autofree char *answer = gate_post(
            &g, paths[i], "",
            "{\"model\":\"m\",\"stream\":true,\"max_tokens\":5,\"input\":\"slow\","
            "\"messages\":[{\"role\":\"user\",\"content\":\"slow\"}]}");
        g_autofree char *body = gate_body(answer);

        g_assert_nonnull(strstr(answer, "X-Coop-Brain: script\r\n"));
        g_assert_nonnull(strstr(body, "\"one \""));
        g_assert_nonnull(strstr(body, last[i]));
        g_assert_null(strstr(body, "\"prompt_tokens\""));
        Json *fact = gate_fixture_fact(&g, "model.called");
        g_assert_cmpint(fact_number(fact, "first_byte_ms"), >=, 29);
        g_assert_cmpint(fact_number(fact, "latency_ms"), >=, 29 * 4);
        g_assert_true(json_is_false(json_object_get(fact, "estimated")));
        g_autofree char *cut = gate_post(
            &g, paths[i], "",
            "{\"model\":\"m\",\"stream\":true,\"max_tokens\":5,\"input\":\"cut\","
            "\"messages\":[{\"role\":\"user\",\"content\":\"cut\"}]}");
        g_assert_nonnull(strstr(cut, "half of"));
        g_assert_nonnull(strstr(cut, "broke off"));
    }
    gate_fixture_clear(&g);
}

static void
test_gone_while_playing(void)
{
    GateFixture g;

    demo_init(&g);
    int fd = gate_post_begin(&g, GATE_CHAT,
                             "{\"model\":\"m\",\"stream\":true,\"messages\":[{\"role\":\"user\","
                             "\"content\":\"slow\"}]}");
    g_string_free(client_read(fd, "one"), TRUE);
    close(fd);
    fixture_until(&g.door.gone, 1);
    g_assert_cmpstr(fact_text(gate_fixture_fact(&g, "model.called"), "error"), ==, "client_gone");
    gate_fixture_clear(&g);
}

/* Pieces larger than what may wait for a client, who takes them at once or late. */
static void
test_large_pieces(void)
{
    enum { LETTERS = 300 * 1000 };
    static const char large[] = "conversations: [{turns: [{text: \"{{last_user}}\", chunk: 65536}]}]";
    g_autoptr(GString)
        ask_text = g_string_new("{\"model\":\"m\",\"stream\":true,\"messages\":[{\"role\":\"user\","
                                "\"content\":\"");
    GateFixture g;

    for (guint i = 0; i < LETTERS; i++)
        g_string_append(ask_text, "\xf0\x9f\x90\x93");
    g_string_append(ask_text, "\"}]}");
    gate_fixture_init(&g, NULL, NULL);
    gate_fixture_provider(&g, SCRIPT_PROVIDER, large);
    for (guint late = 0; late <= 1; late++) {
        int fd = gate_post_begin(&g, GATE_CHAT, ask_text->str);

        for (guint i = 0; i < late * 200; i++)
            g_main_context_iteration(NULL, FALSE);
        g_autoptr(GString) answer = client_read(fd, NULL);
        g_assert_nonnull(strstr(answer->str, "[DONE]"));
        g_assert_cmpuint(answer->len, >, 4 * LETTERS);
        close(fd);
    }
    gate_fixture_clear(&g);
}

/* ---- recordings ---- */

static void
remove_folder(const char *folder)
{
    g_autoptr(GDir) dir = g_dir_open(folder, 0, NULL);
    const char *name;

    while ((name = g_dir_read_name(dir)) != NULL) {
        g_autofree char *path = g_build_filename(folder, name, NULL);

        g_assert_cmpint(g_unlink(path), ==, 0);
    }
    g_assert_cmpint(g_rmdir(folder), ==, 0);
}

static void
wait_for_file(const char *folder, guint want)
{
    for (;;) {
        g_autoptr(GDir) dir = g_dir_open(folder, 0, NULL);
        const char *name;
        guint n = 0;

        while ((name = g_dir_read_name(dir)) != NULL)
            n += g_str_has_suffix(name, ".json");
        if (n >= want)
            return;
        g_main_context_iteration(NULL, FALSE);
    }
}

static void
check_replay(GateFixture *g, Upstream *u, const char *body, const char *want)
{
    guint calls = u->calls;
    g_autofree char *answer = gate_post(g, GATE_CHAT, "", body);
    g_autofree char *text = gate_body(answer);

    g_assert_cmpint(answer_status(answer), ==, 200);
    g_assert_cmpstr(text, ==, want);
    g_assert_nonnull(strstr(answer, "X-Coop-Brain: replay\r\n"));
    g_assert_cmpstr(fact_text(gate_fixture_fact(g, "model.called"), "brain"), ==, "replay");
    g_assert_cmpuint(u->calls, ==, calls);
}

static void
test_recordings(void)
{
    static const char *const pieces[] = {
        "data: {\"choices\":[{\"delta\":{\"content\":\"" FIXTURE_KEY "\"}}]}\n\n",
        "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: {\"choices\":[],\"usage\":"
        "{\"prompt_tokens\":4,\"completion_tokens\":2}}\n\n",
        "data: [DONE]\n\n", NULL};
    g_autofree char *folder = g_dir_make_tmp("recordings-XXXXXX", NULL);
    GateFixture g;
    Upstream u;

    gate_fixture_init(&g, NULL, folder);
    upstream_init(&u);
    g_autofree char *record = upstream_provider(&u, "openai", ",\"record\":\"record\"");
    g_autofree char *replay = upstream_provider(&u, "openai", ",\"record\":\"replay\"");
    gate_fixture_provider(&g, record, NULL);
    u.stream = pieces;
    g_autofree char *streamed = gate_post(&g, GATE_CHAT, "", GATE_ASK_STREAM);
    g_autofree char *stream_text = gate_body(streamed);
    u.stream = NULL;
    u.answer = GATE_CHAT_ANSWER;
    g_autofree char *whole = gate_post(&g, GATE_CHAT, "", GATE_ASK);
    g_assert_null(strstr(whole, "X-Coop-Brain"));
    /* What went wrong is not worth keeping. */
    u.status = 404;
    g_autofree char *bad = gate_post(&g, GATE_CHAT, "", "{\"model\":\"bad\",\"messages\":[]}");
    g_assert_cmpint(answer_status(bad), ==, 404);
    wait_for_file(folder, 2);
    gate_fixture_provider(&g, replay, NULL);
    check_replay(&g, &u, GATE_ASK, GATE_CHAT_ANSWER);
    check_replay(&g, &u, GATE_ASK_STREAM, stream_text);
    /* The same question in another form; and with what says who asks. */
    check_replay(&g, &u,
                 "{\"messages\":[{\"content\":\"hello\",\"role\":\"user\"}], "
                 "\"model\":\"up/gpt-4o-mini\",\"user\":\"x\"}",
                 GATE_CHAT_ANSWER);
    g_autofree char *missing = gate_post(&g, GATE_CHAT, "", "{\"model\":\"bad\",\"messages\":[]}");
    g_assert_cmpint(answer_status(missing), ==, 404);
    g_assert_nonnull(strstr(missing, "no_recording"));
    g_assert_nonnull(strstr(missing, "X-Coop-Brain: replay\r\n"));
    gate_fixture_clear(&g);
    upstream_clear(&u);
    g_autoptr(GDir) dir = g_dir_open(folder, 0, NULL);
    const char *name;
    while ((name = g_dir_read_name(dir)) != NULL) {
        g_autofree char *path = g_build_filename(folder, name, NULL);
        g_autofree char *text = NULL;

        g_assert_true(g_file_get_contents(path, &text, NULL, NULL));
        g_assert_null(strstr(text, FIXTURE_KEY));
    }
    remove_folder(folder);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/gate/script/chat", test_chat);
    g_test_add_func("/gate/script/other-dialects", test_other_dialects);
    g_test_add_func("/gate/script/streams", test_streams);
    g_test_add_func("/gate/script/gone-while-playing", test_gone_while_playing);
    g_test_add_func("/gate/script/large-pieces", test_large_pieces);
    g_test_add_func("/gate/recordings", test_recordings);
    return g_test_run();
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Whole sessions of coop-agent, with models and servers that do what they should, and others. */
#include <errno.h>
#include <signal.h>
#include <string.h>

#include "agent-world.h"
#include "base/clock.h"

#define REFUSAL(status, headers, code)                                                                       \
    "HTTP/1.1 " status "\r\nConnection: close\r\n" headers "\r\n{\"error\":{\"code\":\"" code                \
    "\",\"message\":\"no\"}}"
#define SHELL(command) OPENAI_CALL(0, "shell", "{\\\"command\\\": \\\"" command "\\\"}") OPENAI_END

MODEL_ANSWER(answer_done, OPENAI_DONE);

static void
check_end(const AgentWorld *w, const char *want)
{
    g_autofree char *got = agent_world_end(w);

    g_assert_cmpstr(got, ==, want);
}

/* ---- as it should be ---- */

static const char openai_work[] = MODEL_OK OPENAI_TEXT("let me see")
    OPENAI_CALL(0, "write", "{\\\"path\\\": \\\"src/a.txt\\\", \\\"text\\\": \\\"one\\\\n\\\"}")
        OPENAI_CALL(1, "shell", "{\\\"command\\\": \\\"cat src/a.txt; exit 3\\\"}") OPENAI_END;

#define ANTHROPIC_CALL(index, name, json)                                                                    \
    "event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":" #index                  \
    ",\"content_block\":{\"type\":\"tool_use\",\"id\":\"t" #index "\",\"name\":\"" name                      \
    "\",\"input\":{}}}\n\nevent: content_block_delta\ndata: "                                                \
    "{\"type\":\"content_block_delta\",\"index\":" #index                                                    \
    ",\"delta\":{\"type\":\"input_json_delta\",\"partial_json\":\"" json "\"}}\n\n"
#define ANTHROPIC_END "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n"

static const char anthropic_work[] = MODEL_OK
    "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":"
    "\"text_delta\",\"text\":\"let me see\"}}\n\n" ANTHROPIC_CALL(
        1, "write", "{\\\"path\\\": \\\"src/a.txt\\\", \\\"text\\\": \\\"one\\\\n\\\"}")
        ANTHROPIC_CALL(2, "shell", "{\\\"command\\\": \\\"cat src/a.txt; exit 3\\\"}") ANTHROPIC_END;
static const char anthropic_done[] = MODEL_OK ANTHROPIC_CALL(
    0, "done", "{\\\"summary\\\": \\\"all is well\\\"}") ANTHROPIC_END;

static void
test_work(void)
{
    static const struct {
        const char *dialect, *first, *second, *path;
    } cases[] = {
        {"openai", openai_work, MODEL_OK OPENAI_DONE, "POST /base/chat/completions HTTP/1.1\r\n"},
        {"anthropic", anthropic_work, anthropic_done, "POST /base/v1/messages HTTP/1.1\r\n"},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        const ScriptStep first[] = {{SCRIPT_REQUEST}, {SCRIPT_SEND, cases[i].first}, {SCRIPT_CLOSE}};
        const ScriptStep second[] = {{SCRIPT_REQUEST}, {SCRIPT_SEND, cases[i].second}, {SCRIPT_CLOSE}};
        const ScriptStep *const answers[] = {first, second};
        AgentWorld w;

        agent_world_init(&w);
        w.dialect = cases[i].dialect;
        agent_world_model(&w, answers, G_N_ELEMENTS(answers));
        g_assert_cmpint(agent_world_run(&w), ==, 0);
        check_end(&w, "done/-/all is well");
        g_autofree char *text = agent_world_file(&w, "src/a.txt");
        g_assert_cmpstr(text, ==, "one\n");
        g_autofree char *head = script_dup_head(w.model);
        g_assert_true(g_str_has_prefix(head, cases[i].path));
        Json *shell = agent_world_tool(&w, "shell");
        g_assert_cmpint(json_integer_value(json_object_get(shell, "exit_code")), ==, 3);
        g_assert_cmpstr(json_string_value(json_object_get(shell, "output")), ==, "one\n[exit code 3]");
        g_assert_cmpuint(agent_world_events(&w, "thought", NULL), ==, 1);
        g_assert_cmpuint(agent_world_events(&w, "usage", NULL), ==, 2);
        g_assert_cmpuint(agent_world_events(&w, "summary", NULL), ==, 1);
        agent_world_clear(&w);
    }
}

/* What commands print is printed as it comes, within bounds, and what follows begins a line. */
static void
test_echo(void)
{
    MODEL_ANSWER(speaks, SHELL("echo heard; printf rest"));
    MODEL_ANSWER(shouts, SHELL("yes | head -c 600000"));
    const ScriptStep *const answers[] = {speaks, shouts, answer_done};
    AgentWorld w;

    agent_world_init(&w);
    agent_world_model(&w, answers, G_N_ELEMENTS(answers));
    g_assert_cmpint(agent_world_run(&w), ==, 0);
    g_autofree char *out = agent_world_file(&w, "../out");

    g_assert_nonnull(strstr(out, "\nheard\nrest\n"));
    g_assert_nonnull(strstr(out, "y\n[… more is not shown]\n"));
    g_assert_cmpuint(strlen(out), >, 256 * 1024);
    g_assert_cmpuint(strlen(out), <, 300 * 1024);
    agent_world_clear(&w);
}

/* ---- what passes ---- */

static void
test_passing(void)
{
    static const struct {
        const char *name, *bytes;
        guint64 fill;
        ScriptOp end;
    } cases[] = {
        {"cut before the head", "HTTP/1.1 200 OK\r\nCont", 0, SCRIPT_CLOSE},
        {"cut in the stream", MODEL_OK OPENAI_TEXT("hel"), 0, SCRIPT_CLOSE},
        {"cut in a call", MODEL_OK OPENAI_CALL(0, "shell", "{\\\"command\\\": \\\"touch bad"), 0,
         SCRIPT_CLOSE},
        {"reset", MODEL_OK OPENAI_TEXT("hel"), 0, SCRIPT_RESET},
        {"error in the stream", MODEL_OK "data: {\"error\":{\"message\":\"overloaded\"}}\n\n", 0,
         SCRIPT_CLOSE},
        {"nonsense in the stream", MODEL_OK "data: }{\n\n", 0, SCRIPT_CLOSE},
        {"one event without end", MODEL_OK "data: ", 32 << 20, SCRIPT_CLOSE},
        {"no HTTP", "220 mail.example\r\n", 0, SCRIPT_CLOSE},
        {"rate", REFUSAL("429 Slow", "Retry-After: 0\r\n", "rate_exceeded"), 0, SCRIPT_CLOSE},
        {"broken", REFUSAL("500 No", "", "oops"), 0, SCRIPT_CLOSE},
        {"busy", REFUSAL("503 No", "Retry-After: 1\r\n", "oops"), 0, SCRIPT_CLOSE},
        {"another name for the bound",
         "HTTP/1.1 400 No\r\nConnection: close\r\n\r\n{\"error\":{\"message\":\"unknown "
         "max_completion_tokens\"}}",
         0, SCRIPT_CLOSE},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        const ScriptStep bad[] = {{SCRIPT_REQUEST},
                                  {SCRIPT_SEND, cases[i].bytes},
                                  {cases[i].fill > 0 ? SCRIPT_FILL : cases[i].end, NULL, cases[i].fill},
                                  {cases[i].end}};
        const ScriptStep *const answers[] = {bad, answer_done};
        AgentWorld w;

        g_test_message("%s", cases[i].name);
        agent_world_init(&w);
        agent_world_model(&w, answers, G_N_ELEMENTS(answers));
        g_assert_cmpint(agent_world_run(&w), ==, 0);
        check_end(&w, "done/-/all is well");
        g_autofree char *made = agent_world_file(&w, "bad");
        g_assert_null(made);
        /* What was not whole was no answer. */
        g_assert_cmpuint(agent_world_events(&w, "usage", NULL), ==, 1);
        agent_world_clear(&w);
    }
}

/* A door, or a server, that is away for a while at each moment. */
static void
test_away(void)
{
    static const struct {
        guint away, done_away;
        bool deaf, mute;
    } cases[] = {{3, 0, false, false}, {0, 2, false, false}, {0, 0, true, false}, {0, 0, false, true}};

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        MODEL_ANSWER(works, SHELL("true"));
        static const ScriptStep *const answers[] = {works, works, works, works, answer_done};
        AgentWorld w;

        agent_world_init(&w);
        w.away = cases[i].away;
        w.done_away = cases[i].done_away;
        w.deaf = cases[i].deaf;
        w.mute = cases[i].mute;
        agent_world_model(&w, answers, G_N_ELEMENTS(answers));
        g_assert_cmpint(agent_world_run(&w), ==, 0);
        check_end(&w, "done/-/all is well");
        /* One that does not hear is left alone for a while, and asked again at the end. */
        if (w.deaf || w.mute)
            g_assert_cmpuint(w.reports, <=, 4);
        agent_world_clear(&w);
    }
}

/* ---- what does not ---- */

static void
test_ends(void)
{
    static const struct {
        const char *bytes, *want;
    } cases[] = {
        {REFUSAL("402 Pay", "", "budget_exceeded"), "failed/budget_exceeded/the model's answer is 402: no"},
        {REFUSAL("403 No", "", "loop_broken"), "failed/loop_broken/the model's answer is 403: no"},
        {REFUSAL("401 Who", "", "x"), "failed/no_model/the model's answer is 401: no"},
        {REFUSAL("404 No", "", "model_not_found"), "failed/no_model/the model's answer is 404: no"},
        {REFUSAL("400 No", "", "invalid_request"), "failed/model_refused/the model's answer is 400: no"},
        {REFUSAL("502 No", "X-Should-Retry: false\r\n", "upstream_auth"),
         "failed/no_model/the model's answer is 502: no"},
        {MODEL_OK "data: {\"error\":{\"message\":\"no\",\"code\":\"budget_exceeded\"}}\n\n",
         "failed/budget_exceeded/the model broke off: no"},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        const ScriptStep steps[] = {{SCRIPT_REQUEST}, {SCRIPT_SEND, cases[i].bytes}, {SCRIPT_CLOSE}};
        const ScriptStep *const answers[] = {steps};
        AgentWorld w;

        agent_world_init(&w);
        agent_world_model(&w, answers, 1);
        g_assert_cmpint(agent_world_run(&w), ==, 1);
        check_end(&w, cases[i].want);
        g_assert_cmpuint(script_accepts(w.model), ==, 1);
        agent_world_clear(&w);
    }
}

/* The same answer again and again. */
static void
test_limits(void)
{
    MODEL_ANSWER(talks, OPENAI_TEXT("It is finished.") OPENAI_END);
    MODEL_ANSWER(nothing, OPENAI_END);
    MODEL_ANSWER(unknown, OPENAI_CALL(0, "fly", "{}") OPENAI_END);
    MODEL_ANSWER(broken, OPENAI_CALL(0, "shell", "{\\\"command\\\": ") OPENAI_END);
    MODEL_ANSWER(works, SHELL("true"));
    MODEL_ANSWER(waits, SHELL("sleep 1000"));
    static const ScriptStep silent[] = {{SCRIPT_REQUEST}, {SCRIPT_HOLD}, {SCRIPT_CLOSE}};
    static const struct {
        const ScriptStep *answer;
        const char *role, *want;
        guint calls; /* of the model; 0: as many as the time allows */
        int turns, seconds;
    } cases[] = {
        {talks, "coder", "done/-/It is finished.", 3, 10, 60},
        {talks, "reviewer", "failed/no_tool_call/*", 3, 10, 60},
        {nothing, "coder", "failed/no_tool_call/*", 3, 10, 60},
        {unknown, "coder", "failed/malformed_calls/*", 6, 10, 60},
        {broken, "coder", "failed/malformed_calls/*", 6, 10, 60},
        {works, "coder", "failed/turns/*", 4, 4, 60},
        {waits, "coder", "failed/time/*", 0, 10, 1},
        {silent, "coder", "failed/time/*", 0, 10, 1},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        const ScriptStep *const answers[] = {cases[i].answer};
        AgentWorld w;

        agent_world_init(&w);
        json_object_set_new(w.brief, "role", json_string(cases[i].role));
        json_object_set_new(w.brief, "limits",
                            json_pack("{s:i, s:i}", "turns", cases[i].turns, "seconds", cases[i].seconds));
        agent_world_model(&w, answers, 1);
        int code = agent_world_run(&w);
        g_autofree char *got = agent_world_end(&w);
        g_test_message("%s", got);
        g_assert_true(g_pattern_match_simple(cases[i].want, got));
        g_assert_cmpint(code, ==, got[0] == 'd' ? 0 : 1);
        if (cases[i].calls > 0)
            g_assert_cmpuint(script_accepts(w.model), ==, cases[i].calls);
        agent_world_clear(&w);
    }
}

static void
test_no_brief(void)
{
    AgentWorld w;

    agent_world_init(&w);
    w.brief_status = 404;
    g_assert_cmpint(agent_world_run(&w), ==, 4);
    g_assert_cmpuint(w.briefs, ==, 1);
    agent_world_clear(&w);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/agent/work", test_work);
    g_test_add_func("/agent/passing", test_passing);
    g_test_add_func("/agent/away", test_away);
    g_test_add_func("/agent/ends", test_ends);
    g_test_add_func("/agent/limits", test_limits);
    g_test_add_func("/agent/no-brief", test_no_brief);
    g_test_add_func("/agent/echo", test_echo);
    return g_test_run();
}

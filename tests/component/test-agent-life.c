/* SPDX-License-Identifier: Apache-2.0 */
/* coop-agent over its ends: killed, asked to end, started again, tried again; long conversations; its
 * commands. */
#include <errno.h>
#include <signal.h>
#include <string.h>

#include "agent-world.h"

#define SHELL(command) OPENAI_CALL(0, "shell", "{\\\"command\\\": \\\"" command "\\\"}") OPENAI_END
#define ASK OPENAI_CALL(0, "ask", "{\\\"question\\\": \\\"Which colour?\\\"}") OPENAI_END

MODEL_ANSWER(answer_done, OPENAI_DONE);

static void
check_end(const AgentWorld *w, const char *want)
{
    g_autofree char *got = agent_world_end(w);

    g_assert_cmpstr(got, ==, want);
}

static void
wait_for_file(const AgentWorld *w, const char *name)
{
    for (;;) {
        g_autofree char *text = agent_world_file(w, name);

        if (text != NULL && *text != '\0')
            return;
        fixture_turn();
    }
}

static pid_t
read_pid(const AgentWorld *w)
{
    g_autofree char *text = agent_world_file(w, "pid");
    gint64 pid;

    g_assert_true(g_ascii_string_to_signed(g_strstrip(text), 10, 2, G_MAXINT32, &pid, NULL));
    return (pid_t)pid;
}

static void
kill_it(AgentWorld *w, int signal)
{
    g_assert_true(child_signal(w->child, signal, NULL));
    agent_world_wait(w);
}

/* ---- killed ---- */

/* In the middle of a command: it goes on, and the command is not run again. */
static void
test_killed_in_shell(void)
{
    MODEL_ANSWER(waits, SHELL("echo x >> ran; echo $$ > pid; exec sleep 1000"));
    static const ScriptStep *const answers[] = {waits, answer_done};
    AgentWorld w;

    agent_world_init(&w);
    agent_world_model(&w, answers, G_N_ELEMENTS(answers));
    agent_world_start(&w, NULL);
    wait_for_file(&w, "pid");
    kill_it(&w, SIGKILL);
    /* Nobody is there to do it; in a box it would end with its run. */
    g_assert_cmpint(kill(read_pid(&w), SIGKILL), ==, 0);
    g_assert_cmpint(agent_world_run(&w), ==, 0);
    check_end(&w, "done/-/all is well");
    g_autofree char *ran = agent_world_file(&w, "ran");
    g_assert_cmpstr(ran, ==, "x\n");
    g_autofree char *talk = agent_world_file(&w, "../.coop/talk.jsonl");
    g_assert_nonnull(strstr(talk, "the program was started again"));
    g_assert_cmpuint(script_accepts(w.model), ==, 2);
    agent_world_clear(&w);
}

/* While the server does not take the report: the model is not asked again. */
static void
test_killed_in_done(void)
{
    static const ScriptStep *const answers[] = {answer_done};
    AgentWorld w;

    agent_world_init(&w);
    agent_world_model(&w, answers, 1);
    w.done_away = 1000;
    agent_world_start(&w, NULL);
    fixture_until(&w.dones, 2);
    kill_it(&w, SIGKILL);
    w.done_away = 0;
    g_assert_cmpint(agent_world_run(&w), ==, 0);
    check_end(&w, "done/-/all is well");
    g_assert_cmpuint(script_accepts(w.model), ==, 1);
    agent_world_clear(&w);
}

static void
test_killed_in_ask(void)
{
    MODEL_ANSWER(asks, ASK);
    static const ScriptStep *const answers[] = {asks, answer_done};
    AgentWorld w;

    agent_world_init(&w);
    agent_world_model(&w, answers, G_N_ELEMENTS(answers));
    w.answer_after = 1000;
    agent_world_start(&w, NULL);
    fixture_until(&w.looks, 2);
    kill_it(&w, SIGKILL);
    w.answer_after = 0;
    g_assert_cmpint(agent_world_run(&w), ==, 0);
    check_end(&w, "done/-/all is well");
    g_assert_cmpuint(json_array_size(w.questions), ==, 1);
    Json *event = agent_world_tool(&w, "ask");
    g_assert_cmpstr(json_string_value(json_object_get(event, "output")), ==, "blue");
    agent_world_clear(&w);
}

/* Asked to end it does, with what it runs, and says nothing of an end. */
static void
test_asked_to_end(void)
{
    MODEL_ANSWER(waits, SHELL("echo $$ > pid; exec sleep 1000"));
    static const ScriptStep silent[] = {{SCRIPT_REQUEST}, {SCRIPT_HOLD}, {SCRIPT_CLOSE}};
    static const ScriptStep *const cases[] = {waits, silent};

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        AgentWorld w;

        agent_world_init(&w);
        agent_world_model(&w, &cases[i], 1);
        agent_world_start(&w, NULL);
        if (i == 0)
            wait_for_file(&w, "pid");
        else
            while (script_accepts(w.model) == 0)
                fixture_turn();
        kill_it(&w, SIGTERM);
        g_assert_false(w.how.signalled);
        g_assert_cmpint(w.how.value, ==, 143);
        g_assert_cmpuint(w.dones, ==, 0);
        if (i == 0) {
            g_assert_cmpint(kill(read_pid(&w), 0), ==, -1);
            g_assert_cmpint(errno, ==, ESRCH);
        }
        agent_world_clear(&w);
    }
}

/* ---- tried again ---- */

static void
test_second_try(void)
{
    static const ScriptStep *const answers[] = {answer_done};
    AgentWorld w;

    agent_world_init(&w);
    agent_world_model(&w, answers, 1);
    json_object_set_new(w.brief, "limits", json_pack("{s:i}", "turns", 1));
    g_assert_cmpint(agent_world_run(&w), ==, 0);
    guint64 first = script_body_len(w.model);
    json_object_set_new(w.brief, "execution_id", json_string("e2"));
    json_object_set_new(w.brief, "feedback", json_string("two tests are red"));
    g_assert_cmpint(agent_world_run(&w), ==, 0);
    g_autofree char *talk = agent_world_file(&w, "../.coop/talk.jsonl");
    g_assert_nonnull(strstr(talk, "the session ended"));
    g_assert_nonnull(strstr(talk, "two tests are red"));
    g_assert_cmpuint(script_body_len(w.model), >, first);
    /* Another step does not see it. */
    json_object_set_new(w.brief, "step", json_pack("{s:s}", "name", "other"));
    json_object_set_new(w.brief, "feedback", json_null());
    g_assert_cmpint(agent_world_run(&w), ==, 0);
    g_assert_cmpuint(script_body_len(w.model), ==, first);
    agent_world_clear(&w);
}

/* ---- commits ---- */

static char *
sh(const AgentWorld *w, const char *command)
{
    const char *argv[] = {"sh", "-c", command, NULL};
    char *out = NULL;
    int status = -1;

    g_assert_true(g_spawn_sync(w->tree, (char **)(guintptr)argv, NULL, G_SPAWN_SEARCH_PATH, NULL, NULL, &out,
                               NULL, &status, NULL));
    g_assert_cmpint(status, ==, 0);
    return out;
}

/* What the box's hook says comes back; nothing new is pushed all the same. */
static void
test_commit(void)
{
    MODEL_ANSWER(badly, OPENAI_CALL(0, "write", "{\\\"path\\\": \\\"a\\\", \\\"text\\\": \\\"1\\\"}")
                            OPENAI_CALL(1, "commit", "{\\\"message\\\": \\\"stuff\\\"}") OPENAI_END);
    MODEL_ANSWER(well, OPENAI_CALL(0, "commit", "{\\\"message\\\": \\\"feat: add a\\\"}") OPENAI_END);
    static const ScriptStep *const answers[] = {badly, well, well, answer_done};
    AgentWorld w;

    agent_world_init(&w);
    g_autofree char *made = sh(
        &w, "git init -q --bare ../far && git init -q . && git remote add origin ../far && "
            "git config user.name N && git config user.email n@example.org && "
            "git config commit.gpgsign false && mkdir -p .git/hooks && "
            "printf '#!/bin/sh\\ngrep -q ^feat: \"$1\" || { echo say feat: >&2; exit 1; }\\n' "
            "> .git/hooks/commit-msg && chmod +x .git/hooks/commit-msg");
    agent_world_model(&w, answers, G_N_ELEMENTS(answers));
    g_assert_cmpint(agent_world_run(&w), ==, 0);
    check_end(&w, "done/-/all is well");
    g_autofree char *log = sh(&w, "git --git-dir ../far log --format=%s b");
    g_assert_cmpstr(log, ==, "feat: add a\n");
    g_autofree char *talk = agent_world_file(&w, "../.coop/talk.jsonl");
    g_assert_nonnull(strstr(talk, "say feat:\\n\\n[git commit: exit code 1]"));
    g_assert_nonnull(strstr(talk, "Nothing has changed since the last commit."));
    agent_world_clear(&w);
}

/* ---- long conversations ---- */

static void
test_long(void)
{
    MODEL_ANSWER(floods, OPENAI_TEXT("on and on") SHELL("seq 1 5000"));
    static const ScriptStep refuses[] = {
        {SCRIPT_REQUEST},
        {SCRIPT_SEND,
         "HTTP/1.1 400 No\r\nConnection: close\r\n\r\n{\"error\":{\"message\":\"maximum context length\"}}"},
        {SCRIPT_CLOSE}};
    static const ScriptStep *const answers[] = {floods, floods, floods, floods,  floods, floods,
                                                floods, floods, floods, refuses, floods, answer_done};
    AgentWorld w;

    agent_world_init(&w);
    json_object_set_new(
        w.brief, "limits",
        json_pack("{s:i, s:i, s:i}", "turns", 50, "context_tokens", 12000, "output_tokens", 1000));
    agent_world_model(&w, answers, G_N_ELEMENTS(answers));
    g_assert_cmpint(agent_world_run(&w), ==, 0);
    check_end(&w, "done/-/all is well");
    /* Sixteen thousand bytes of each of the results would be far more. */
    g_assert_cmpuint(script_body_len(w.model), <, 60 * 1000);
    g_autofree char *talk = agent_world_file(&w, "../.coop/talk.jsonl");
    g_assert_nonnull(strstr(talk, "# Goal\\nDo it."));
    g_assert_nonnull(strstr(talk, "# Summary of the work so far"));
    agent_world_clear(&w);
}

/* ---- commands ---- */

static void
test_commands(void)
{
    static const struct {
        const char *argv[8];
        int code;
        const char *out;
    } cases[] = {
        {{"--version"}, 0, "coop-agent "},
        {{"--help"}, 0, "usage: coop-agent"},
        {{"plan"}, 0, "the plan\n"},
        {{"room", "hello", "all"}, 0, ""},
        {{"room", "--read"}, 0, "Plan:\n- project (unknown): p\n\nMessages:\n- coder-2 (agent): hi\n"},
        {{"ask", "Which colour?"}, 0, "blue\n"},
        {{"done", "--verdict", "changes", "--summary", "no", "--finding", "a/b.c:7:wrong: very"}, 0, ""},
        {{"done", "--finding", "a"}, 2, ""},
        {{"done", "--summary"}, 2, ""},
        {{"room"}, 2, ""},
        {{"ask"}, 2, ""},
        {{"fly"}, 2, ""},
    };
    AgentWorld w;

    agent_world_init(&w);
    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        agent_world_start(&w, cases[i].argv);
        agent_world_wait(&w);
        g_test_message("%s", cases[i].argv[0]);
        g_assert_cmpint(w.how.value, ==, cases[i].code);
        g_autofree char *out = agent_world_file(&w, "../out");
        g_assert_true(g_str_has_prefix(out, cases[i].out));
    }
    g_autofree char *post = json_encode(json_array_get(w.posts, 0));
    g_assert_cmpstr(post, ==, "{\"text\":\"hello all\"}");
    g_autofree char *done = json_encode(w.done);
    g_assert_cmpstr(
        done, ==,
        "{\"outcome\":\"done\",\"summary\":\"no\",\"verdict\":\"changes\",\"findings\":[{\"path\":"
        "\"a/b.c\",\"line\":7,\"body\":\"wrong: very\"}]}");
    agent_world_clear(&w);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/agent/killed-in-shell", test_killed_in_shell);
    g_test_add_func("/agent/killed-in-done", test_killed_in_done);
    g_test_add_func("/agent/killed-in-ask", test_killed_in_ask);
    g_test_add_func("/agent/asked-to-end", test_asked_to_end);
    g_test_add_func("/agent/second-try", test_second_try);
    g_test_add_func("/agent/commit", test_commit);
    g_test_add_func("/agent/long", test_long);
    g_test_add_func("/agent/commands", test_commands);
    return g_test_run();
}

/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/err.h"
#include "team/adapter.h"

static const char whole[] = "description: An agent\n"
                            "dialect: anthropic\n"
                            "ready: command -v it\n"
                            "setup: install it\n"
                            "command: [it, -p, \"{prompt}\", \"--in={workdir}\", \"{nothing}\"]\n"
                            "env: {MODEL: \"{model}\"}\n"
                            "files:\n"
                            "  - path: it.json\n"
                            "    content: '{\"model\": \"{model}\", \"at\": {\"home\": \"{home}\"}}'\n"
                            "output: json\n"
                            "events:\n"
                            "  - where: {type: assistant}\n"
                            "    each: message.content\n"
                            "    of: {type: text}\n"
                            "    kind: said\n"
                            "    text: text\n"
                            "  - where: {type: assistant}\n"
                            "    each: message.content\n"
                            "    of: {type: tool_use}\n"
                            "    kind: tool\n"
                            "    name: name\n"
                            "    arguments: input\n"
                            "  - where: {type: result}\n"
                            "    kind: summary\n"
                            "    text: result\n";

static Adapter *
parse(const char *text)
{
    g_autoptr(GError) error = NULL;
    Adapter *a = adapter_parse("it", text, strlen(text), &error);

    g_assert_no_error(error);
    return a;
}

static void
test_words(void)
{
    g_autoptr(Adapter) a = parse(whole);
    const AdapterWords words = {.prompt = "say {model}",
                                .model = "p/m",
                                .workdir = "/w",
                                .home = "/h",
                                .system = "",
                                .goal = "",
                                .provider = "p",
                                .execution = "e"};
    g_auto(GStrv) argv = adapter_argv(a, &words);
    g_auto(GStrv) env = adapter_env(a, &words);
    const char *path;
    g_autofree char *content = NULL;

    g_assert_cmpuint(g_strv_length(argv), ==, 5);
    /* What a value says is not looked at again. */
    g_assert_cmpstr(argv[2], ==, "say {model}");
    g_assert_cmpstr(argv[3], ==, "--in=/w");
    g_assert_cmpstr(argv[4], ==, "{nothing}");
    g_assert_cmpstr(env[0], ==, "MODEL=p/m");
    g_assert_null(env[1]);
    g_assert_true(adapter_file(a, 0, &words, &path, &content));
    g_assert_cmpstr(path, ==, "it.json");
    g_assert_cmpstr(content, ==, "{\"model\": \"p/m\", \"at\": {\"home\": \"/h\"}}");
    g_assert_false(adapter_file(a, 1, &words, &path, &content));
    g_assert_cmpstr(adapter_dialect(a), ==, "anthropic");
    g_assert_cmpstr(adapter_ready(a), ==, "command -v it");
    g_assert_cmpstr(adapter_setup(a), ==, "install it");
}

static void
test_refused(void)
{
    static const struct {
        const char *text, *says;
    } cases[] = {
        {"", "it is empty"},
        {"description: x\n", "there is no command"},
        {"command: it\n", "list of words"},
        {"command: []\n", "list of words"},
        {"command: [[it]]\n", "text is wanted"},
        {"command: [it]\ncolour: red\n", "'colour' is not known"},
        {"command: [it]\ndialect: latin\n", "none of those"},
        {"command: [it]\noutput: xml\n", "none of those"},
        {"command: [it]\nenv: {\"A B\": x}\n", "no name of a variable"},
        {"command: [it]\nfiles: [{path: ../x, content: y}]\n", "one plain name"},
        {"command: [it]\nfiles: [{path: x}]\n", "a path and a content"},
        {"command: [it]\nevents: [{text: a}]\n", "a rule has a kind"},
        {"command: [it]\nevents: [{kind: shouted}]\n", "a kind is"},
        {"command: [it]\nevents: [{kind: said, colour: a}]\n", "'colour' is not known"},
        {"command: [it]\ncommand: [it]\n", "agents/it.yaml:2"},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(GError) error = NULL;

        g_test_message("%s", cases[i].text);
        g_assert_null(adapter_parse("it", cases[i].text, strlen(cases[i].text), &error));
        g_assert_error(error, ERR_DOMAIN, ERR_INVALID);
        g_assert_nonnull(strstr(error->message, cases[i].says));
    }
}

static char *
feed(const Adapter *a, const char *text, size_t step, char **ret_summary)
{
    g_autoptr(AdapterLines) lines = adapter_lines_new(a);
    g_autoptr(Json) events = json_array();
    size_t n = strlen(text);

    for (size_t at = 0; at < n; at += step)
        adapter_lines_feed(lines, text + at, MIN(step, n - at), events);
    adapter_lines_end(lines, events);
    g_assert_cmpuint(adapter_lines_rest(lines), ==, 0);
    *ret_summary = g_strdup(adapter_lines_summary(lines));
    return json_encode(events);
}

static const char said[] =
    "no object\n"
    "[1]\n"
    "{\"type\": \"assistant\", \"message\": {\"content\": [{\"type\": \"text\", \"text\": \"I look\"}, "
    "{\"type\": \"tool_use\", \"name\": \"Bash\", \"input\": {\"command\": \"ls\"}}, {\"type\": \"odd\"}, "
    "7]}}\n"
    "{\"type\": \"assistant\"}\n"
    "{\"type\": \"result\", \"result\": \"It is done\"}";
static const char told[] =
    "[{\"kind\":\"said\",\"text\":\"I look\"},{\"kind\":\"tool\",\"name\":\"Bash\",\"arguments\":"
    "{\"command\":\"ls\"}},{\"kind\":\"summary\",\"text\":\"It is done\"}]";

static void
test_json_lines(void)
{
    g_autoptr(Adapter) a = parse(whole);

    for (size_t step = 1; step < sizeof said; step += 7) {
        g_autofree char *summary = NULL;
        g_autofree char *events = feed(a, said, step, &summary);

        g_assert_cmpstr(events, ==, told);
        g_assert_cmpstr(summary, ==, "It is done");
    }
}

static void
test_text_lines(void)
{
    g_autoptr(Adapter) a = parse("command: [it]\n");
    g_autofree char *summary = NULL;
    g_autofree char *events = feed(a, "one\n\n  \ntwo\xff\n", 3, &summary);

    g_assert_cmpstr(
        events, ==,
        "[{\"kind\":\"said\",\"text\":\"one\"},{\"kind\":\"said\",\"text\":\"two\xef\xbf\xbd\"}]");
    g_assert_cmpstr(summary, ==, "two\xef\xbf\xbd");
}

/* A line without end takes no memory, and what follows it is read. */
static void
test_long_line(void)
{
    g_autoptr(Adapter) a = parse("command: [it]\n");
    g_autoptr(AdapterLines) lines = adapter_lines_new(a);
    g_autoptr(Json) events = json_array();
    g_autofree char *piece = g_strnfill(64 * 1024, 'x');

    for (int i = 0; i < 100; i++)
        adapter_lines_feed(lines, piece, 64 * 1024, events);
    g_assert_cmpuint(adapter_lines_rest(lines), ==, 100 * 64 * 1024);
    adapter_lines_feed(lines, "\nafter\n", 7, events);
    g_assert_cmpuint(json_array_size(events), ==, 1);
    g_assert_cmpstr(adapter_lines_summary(lines), ==, "after");
}

static void
test_gap(void)
{
    g_autoptr(Adapter) a = parse("command: [it]\n");
    g_autoptr(AdapterLines) lines = adapter_lines_new(a);
    g_autoptr(Json) events = json_array();

    adapter_lines_feed(lines, "half of", 7, events);
    adapter_lines_gap(lines);
    adapter_lines_feed(lines, " another\nwhole\n", 15, events);
    g_assert_cmpuint(json_array_size(events), ==, 1);
    g_assert_cmpstr(adapter_lines_summary(lines), ==, "whole");
}

static void
test_verdict(void)
{
    static const struct {
        const char *said, *verdict;
    } cases[] = {
        {"", NULL},
        {"approve", "approve"},
        {"It is broken.\n\n**Verdict: changes**\n\n", "changes"},
        {"Approve.", "approve"},
        {"I cannot approve", NULL},
        {"approve\nBut look at a.c first.", NULL},
        {"approve changes", NULL},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++)
        g_assert_cmpstr(adapter_verdict(cases[i].said), ==, cases[i].verdict);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/team/adapter/words", test_words);
    g_test_add_func("/team/adapter/refused", test_refused);
    g_test_add_func("/team/adapter/json-lines", test_json_lines);
    g_test_add_func("/team/adapter/text-lines", test_text_lines);
    g_test_add_func("/team/adapter/long-line", test_long_line);
    g_test_add_func("/team/adapter/gap", test_gap);
    g_test_add_func("/team/adapter/verdict", test_verdict);
    return g_test_run();
}

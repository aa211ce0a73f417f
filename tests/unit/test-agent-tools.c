/* SPDX-License-Identifier: Apache-2.0 */
/* The tools that need nobody else, in a work tree of the test's own. */
#include <errno.h>
#include <fcntl.h>
#include <glib.h>
#include <glib/gstdio.h>
#include <poll.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "agent/tool.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/tree.h"

enum { END_MS = 20 * 1000 };

typedef struct Bench {
    char *folder, *root;
    Brief brief;
    Work work;
    int cancel[2];
} Bench;

static void
bench_init(Bench *b, const char *tools)
{
    g_autoptr(GError) error = NULL;

    *b = (Bench){.folder = g_dir_make_tmp("coop-agent-XXXXXX", NULL)};
    b->root = g_build_filename(b->folder, "tree", NULL);
    g_assert_cmpint(g_mkdir(b->root, 0700), ==, 0);
    g_autofree char *text = g_strdup_printf("{\"goal\": \"g\", \"role\": \"coder\", \"model\": {\"name\": "
                                            "\"m\"}, \"workdir\": \"%s\", \"tools\": %s, "
                                            "\"checks\": [{\"name\": \"one\", \"run\": \"echo fine\"}, "
                                            "{\"name\": \"two\", \"run\": \"exit 3\"}]}",
                                            b->root, tools);
    g_assert_true(brief_read(&b->brief, json_decode(text, strlen(text), NULL), &error));
    g_assert_cmpint(pipe(b->cancel), ==, 0);
    b->work = (Work){.brief = &b->brief,
                     .root_fd = open(b->root, O_PATH | O_DIRECTORY | O_CLOEXEC),
                     .cancel_fd = b->cancel[0],
                     .deadline_us = clock_mono_us() + 60 * G_USEC_PER_SEC};
}

static void
bench_clear(Bench *b)
{
    ending_clear(&b->work.ending);
    close(b->work.root_fd);
    close(b->cancel[0]);
    close(b->cancel[1]);
    g_assert_true(tree_remove(AT_FDCWD, b->folder, NULL));
    brief_clear(&b->brief);
    g_free(b->folder);
    g_free(b->root);
}

#define ALL_TOOLS "null"

/* What a model would see. */
static char *
call(Bench *b, const char *name, const char *arguments, bool *ret_malformed)
{
    ToolResult result = {.text = g_string_new(NULL)};
    g_autoptr(GError) error = NULL;
    bool malformed;

    g_assert_true(tool_call(&b->work, name, arguments, &result, &malformed, &error));
    if (ret_malformed != NULL)
        *ret_malformed = malformed;
    return g_string_free(result.text, FALSE);
}

static void
put(Bench *b, const char *name, const char *text)
{
    g_autofree char *path = g_build_filename(b->root, name, NULL);
    g_autofree char *folder = g_path_get_dirname(path);

    g_assert_cmpint(g_mkdir_with_parents(folder, 0700), ==, 0);
    g_assert_true(g_file_set_contents(path, text, -1, NULL));
}

static void
check_file(Bench *b, const char *name, const char *want)
{
    g_autofree char *path = g_build_filename(b->root, name, NULL);
    g_autofree char *text = NULL;

    g_assert_true(g_file_get_contents(path, &text, NULL, NULL));
    g_assert_cmpstr(text, ==, want);
}

static void
test_calls(void)
{
    static const struct {
        const char *tools, *name, *arguments, *want; /* want: a part of the answer */
        bool malformed;
    } cases[] = {
        {ALL_TOOLS, "fly", "{}", "there is no tool 'fly'", true},
        {"[\"read\", \"done\"]", "write", "{\"path\": \"a\", \"text\": \"\"}", "Yours are: read done", true},
        {ALL_TOOLS, "read", "{\"path\": ", "arguments of read are not usable", true},
        {ALL_TOOLS, "read", "[1]", "not an object", true},
        {ALL_TOOLS, "read", "", "path", true},
        {ALL_TOOLS, "read", "{\"file\": \"a\"}", "file", true},
        {ALL_TOOLS, "read", "{\"path\": 3}", "path", true},
        {ALL_TOOLS, "read", "{\"path\": \"missing\"}", "missing", false},
        {ALL_TOOLS, "read", "{\"path\": \".\"}", "a folder", true},
        {ALL_TOOLS, "shell", "{\"command\": \"echo hello\"}", "hello\n[exit code 0]", false},
        {ALL_TOOLS, "shell", "{\"command\": \"printf x; exit 7\"}", "x\n[exit code 7]", false},
        {ALL_TOOLS, "shell", "{\"command\": \"kill -9 $$\"}", "[exit code 137]", false},
        {ALL_TOOLS, "shell", "{\"command\": \"cat\"}", "[exit code 0]", false},
        {ALL_TOOLS, "shell", "{\"command\": \"printf 'a\\\\000b\\\\377'\"}", "a b\xef\xbf\xbd\n[exit", false},
        {ALL_TOOLS, "test", "{}", "== 2 checks, 1 failed", false},
        {ALL_TOOLS, "done", "{}", "summary", true},
        {ALL_TOOLS, "done", "{\"summary\": \"s\", \"verdict\": \"maybe\"}", "approve or changes", true},
        {ALL_TOOLS, "done", "{\"summary\": \"s\", \"findings\": [{\"path\": \"a\"}]}", "a finding: ", true},
        {ALL_TOOLS, "done", "{\"summary\": \"s\", \"findings\": [{\"body\": \"b\", \"severity\": \"bad\"}]}",
         "error, warning or note", true},
        {ALL_TOOLS, "room", "{\"text\": \"x\"}", "no room", false},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        Bench b;
        bool malformed;

        bench_init(&b, cases[i].tools);
        g_autofree char *got = call(&b, cases[i].name, cases[i].arguments, &malformed);
        g_test_message("%s", got);
        g_assert_nonnull(strstr(got, cases[i].want));
        g_assert_cmpint(malformed, ==, cases[i].malformed);
        g_assert_false(b.work.ending.is_set);
        bench_clear(&b);
    }
}

static void
test_read(void)
{
    static const struct {
        const char *arguments, *want;
    } cases[] = {
        {"{\"path\": \"a\"}", "     1\tone\n     2\ttwo\n     3\tthree\n"},
        {"{\"path\": \"./a\", \"from\": 2, \"lines\": 1}", "     2\ttwo\n[lines 2 to 2 of 3]"},
        {"{\"path\": \"a\", \"from\": 3}", "     3\tthree\n[lines 3 to 3 of 3]"},
        {"{\"path\": \"a\", \"from\": 9}", "(no lines there: the file has 3)"},
        {"{\"path\": \"sub/../a\", \"lines\": 1}", "     1\tone\n[lines 1 to 1 of 3]"},
    };
    Bench b;

    bench_init(&b, ALL_TOOLS);
    put(&b, "a", "one\ntwo\nthree");
    put(&b, "sub/x", "");
    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *got = call(&b, "read", cases[i].arguments, NULL);

        g_assert_cmpstr(got, ==, cases[i].want);
    }
    g_autofree char *absolute = g_strdup_printf("{\"path\": \"%s/a\", \"lines\": 1}", b.root);
    g_autofree char *got = call(&b, "read", absolute, NULL);
    g_assert_cmpstr(got, ==, "     1\tone\n[lines 1 to 1 of 3]");
    bench_clear(&b);
}

/* None of these may touch anything outside the work tree. */
static void
test_outside(void)
{
    static const char *const paths[] = {"../secret",    "/etc/passwd", "sub/../../secret", "link",
                                        "links/secret", "/",           "new/../../x"};
    Bench b;

    bench_init(&b, ALL_TOOLS);
    g_autofree char *secret = g_build_filename(b.folder, "secret", NULL);
    g_autofree char *link = g_build_filename(b.root, "link", NULL);
    g_autofree char *links = g_build_filename(b.root, "links", NULL);
    g_assert_true(g_file_set_contents(secret, "secret", -1, NULL));
    g_assert_cmpint(symlink("../secret", link), ==, 0);
    g_assert_cmpint(symlink(b.folder, links), ==, 0);
    put(&b, "sub/x", "");
    for (size_t i = 0; i < G_N_ELEMENTS(paths); i++) {
        static const char *const tools[] = {"read", "write", "edit", "search"};
        static const char *const rest[] = {"", ", \"text\": \"gone\"",
                                           ", \"old\": \"secret\", \"new\": \"gone\"",
                                           ", \"pattern\": \"secret\""};

        for (size_t t = 0; t < G_N_ELEMENTS(tools); t++) {
            g_autofree char *arguments = g_strdup_printf("{\"path\": \"%s\"%s}", paths[i], rest[t]);
            g_autofree char *got = call(&b, tools[t], arguments, NULL);

            g_test_message("%s %s: %s", tools[t], arguments, got);
            g_assert_nonnull(strstr(got, "error: "));
        }
    }
    g_autofree char *text = NULL;
    g_assert_true(g_file_get_contents(secret, &text, NULL, NULL));
    g_assert_cmpstr(text, ==, "secret");
    bench_clear(&b);
}

static void
test_write_and_edit(void)
{
    static const struct {
        const char *old, *new, *answer, *text;
    } cases[] = {
        {"two", "2", "changed a", "one 2 three three\n"},
        {"three", "3", "error: 'old' is there 2 times; give more of what is around it", NULL},
        {"four", "4", "error: 'old' is not in the file", NULL},
        {" three three", "", "changed a", "one two\n"},
        {"one two three three\n", "", "changed a", ""},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        Bench b;

        bench_init(&b, ALL_TOOLS);
        g_autofree char *wrote = call(&b, "write", "{\"path\": \"a\", \"text\": \"one two three three\\n\"}",
                                      NULL);
        g_assert_cmpstr(wrote, ==, "wrote a (20 bytes)");
        g_autoptr(Json)
            arguments = json_pack("{s:s,s:s,s:s}", "path", "a", "old", cases[i].old, "new", cases[i].new);
        g_autofree char *text = json_encode(arguments);
        g_autofree char *got = call(&b, "edit", text, NULL);
        g_assert_true(g_str_has_prefix(got, cases[i].answer));
        check_file(&b, "a", cases[i].text != NULL ? cases[i].text : "one two three three\n");
        bench_clear(&b);
    }
}

static void
test_write_folders(void)
{
    Bench b;

    bench_init(&b, ALL_TOOLS);
    g_autofree char *deep = call(&b, "write", "{\"path\": \"x/y/z.txt\", \"text\": \"deep\"}", NULL);
    g_assert_cmpstr(deep, ==, "wrote x/y/z.txt (4 bytes)");
    check_file(&b, "x/y/z.txt", "deep");
    g_autofree char *shorter = call(&b, "write", "{\"path\": \"x/y/z.txt\", \"text\": \"d\"}", NULL);
    check_file(&b, "x/y/z.txt", "d");
    g_autofree char *through = call(&b, "write", "{\"path\": \"x/y/z.txt/w\", \"text\": \"d\"}", NULL);
    g_assert_nonnull(strstr(through, "error: "));
    bench_clear(&b);
}

static void
test_search(void)
{
    static const struct {
        const char *arguments, *want;
    } cases[] = {
        {"{\"pattern\": \"needle\"}", "a.py:2:a needle\nsub/b.txt:1:needle b\n"},
        {"{\"pattern\": \"^needle\"}", "sub/b.txt:1:needle b\n"},
        {"{\"pattern\": \"(?i)NEEDLE\", \"files\": \"*.py\"}", "a.py:2:a needle\n"},
        {"{\"pattern\": \"needle\", \"path\": \"sub\"}", "sub/b.txt:1:needle b\n"},
        {"{\"pattern\": \"needle\", \"path\": \"a.py\"}", "a.py:2:a needle\n"},
        {"{\"pattern\": \"nothing of it\"}", "No match."},
    };
    Bench b;

    bench_init(&b, ALL_TOOLS);
    put(&b, "a.py", "first\na needle\n");
    put(&b, "sub/b.txt", "needle b");
    put(&b, ".git/config", "needle");
    put(&b, "node_modules/x/y.js", "needle");
    g_autofree char *binary = g_build_filename(b.root, "bin", NULL);
    g_assert_true(g_file_set_contents(binary, "needle\0x", 8, NULL));
    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *got = call(&b, "search", cases[i].arguments, NULL);

        g_assert_cmpstr(got, ==, cases[i].want);
    }
    g_autofree char *bad = call(&b, "search", "{\"pattern\": \"(\"}", NULL);
    g_assert_true(g_str_has_prefix(bad, "error: 'pattern': "));
    bench_clear(&b);
}

/* A folder full of matches, and a pattern that takes for ever. */
static void
test_search_bounds(void)
{
    Bench b;
    g_autoptr(GString) many = g_string_new(NULL);

    bench_init(&b, ALL_TOOLS);
    for (guint i = 0; i < 1000; i++)
        g_string_append(many, "match\n");
    put(&b, "many", many->str);
    g_autofree char *got = call(&b, "search", "{\"pattern\": \"match\"}", NULL);
    g_assert_nonnull(strstr(got, "many:200:match\n"));
    g_assert_null(strstr(got, "many:201:"));
    g_assert_nonnull(strstr(got, "[ended early: there are more matches"));
    g_autofree char *line = g_strnfill(5000, 'a');
    put(&b, "evil", line);
    g_autofree char *evil = call(&b, "search", "{\"pattern\": \"(a+)+$x\", \"path\": \"evil\"}", NULL);
    g_assert_cmpstr(evil, ==, "No match.");
    bench_clear(&b);
}

static void
test_shell_bounds(void)
{
    Bench b;

    bench_init(&b, ALL_TOOLS);
    g_autofree char *flood = call(&b, "shell", "{\"command\": \"seq 1 200000\"}", NULL);
    g_assert_cmpuint(strlen(flood), <, TOOL_RESULT_MAX);
    g_assert_true(g_str_has_prefix(flood, "1\n2\n3\n"));
    g_assert_nonnull(strstr(flood, "bytes left out"));
    g_assert_true(g_str_has_suffix(flood, "199999\n200000\n[exit code 0]"));
    bench_clear(&b);
}

static void
test_shell_streams(void)
{
    static const char both[] = "{\"command\": \"echo fine; echo bad >&2; echo worse >&2; exit 3\"}";
    g_autoptr(GString) text = g_string_new(NULL), err = g_string_new(NULL);
    ToolResult result = {.text = text, .err = err};
    g_autoptr(GError) error = NULL;
    bool malformed;
    Bench b;

    bench_init(&b, ALL_TOOLS);
    g_assert_true(tool_call(&b.work, "shell", both, &result, &malformed, &error));
    g_assert_cmpstr(err->str, ==, "bad\nworse\n");
    g_assert_nonnull(strstr(text->str, "fine\n"));
    g_assert_nonnull(strstr(text->str, "bad\nworse\n"));
    bench_clear(&b);
}

/* Whatever a command leaves behind is gone with it. */
static void
test_shell_group(void)
{
    static const char *const commands[] = {
        "{\"command\": \"sleep 1000 & echo $! > pid\"}",
        "{\"command\": \"trap '' TERM HUP; sleep 1000 & echo $! > pid; while :; do sleep 1; done\", "
        "\"timeout\": 1}",
    };

    for (size_t i = 0; i < G_N_ELEMENTS(commands); i++) {
        Bench b;

        bench_init(&b, ALL_TOOLS);
        g_autofree char *got = call(&b, "shell", commands[i], NULL);
        g_assert_true(i == 0 ? strstr(got, "[exit code 0]") != NULL
                             : strstr(got, "took longer than 1 s") != NULL);
        g_autofree char *path = g_build_filename(b.root, "pid", NULL);
        g_autofree char *text = NULL;
        g_assert_true(g_file_get_contents(path, &text, NULL, NULL));
        gint64 pid;
        g_assert_true(g_ascii_string_to_signed(g_strstrip(text), 10, 2, G_MAXINT32, &pid, NULL));
        /* Killed it is, but its end may take a moment. */
        autofd pidfd = (int)syscall(SYS_pidfd_open, (pid_t)pid, 0);
        struct pollfd end = {.fd = pidfd, .events = POLLIN};
        g_assert_true(pidfd < 0 ? errno == ESRCH : poll(&end, 1, END_MS) == 1);
        bench_clear(&b);
    }
}

static void
test_shell_cancel(void)
{
    Bench b;
    ToolResult result = {.text = g_string_new(NULL)};
    g_autoptr(GError) error = NULL;
    bool malformed;

    bench_init(&b, ALL_TOOLS);
    g_assert_cmpint(write(b.cancel[1], "x", 1), ==, 1);
    g_assert_false(tool_call(&b.work, "shell", "{\"command\": \"sleep 1000\"}", &result, &malformed, &error));
    g_assert_error(error, ERR_DOMAIN, ERR_CANCELLED);
    g_string_free(result.text, TRUE);
    bench_clear(&b);
}

static void
test_done(void)
{
    Bench b;

    bench_init(&b, ALL_TOOLS);
    b.brief.role = "qa";
    b.brief.kind = "test";
    g_autofree char *untold = call(&b, "done", "{\"summary\": \"fine\"}", NULL);
    g_assert_nonnull(strstr(untold, "needs a verdict"));
    b.brief.role = "reviewer";
    b.brief.kind = "work";
    g_autofree char *without = call(&b, "done", "{\"summary\": \"fine\"}", NULL);
    g_assert_nonnull(strstr(without, "needs a verdict"));
    g_autofree char *with = call(
        &b, "done",
        "{\"summary\": \"fine\", \"verdict\": \"changes\", \"findings\": [{\"path\": \"a\", "
        "\"line\": 3, \"severity\": \"error\", \"body\": \"wrong\"}]}",
        NULL);
    g_assert_true(b.work.ending.is_set);
    g_autoptr(Json) report = ending_report(&b.work.ending);
    g_autofree char *text = json_encode(report);
    g_assert_cmpstr(
        text, ==,
        "{\"outcome\":\"done\",\"summary\":\"fine\",\"verdict\":\"changes\",\"findings\":[{\"path\":"
        "\"a\",\"line\":3,\"severity\":\"error\",\"body\":\"wrong\"}]}");
    bench_clear(&b);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/agent/tools/calls", test_calls);
    g_test_add_func("/agent/tools/read", test_read);
    g_test_add_func("/agent/tools/outside", test_outside);
    g_test_add_func("/agent/tools/write-and-edit", test_write_and_edit);
    g_test_add_func("/agent/tools/write-folders", test_write_folders);
    g_test_add_func("/agent/tools/search", test_search);
    g_test_add_func("/agent/tools/search-bounds", test_search_bounds);
    g_test_add_func("/agent/tools/shell-bounds", test_shell_bounds);
    g_test_add_func("/agent/tools/shell-streams", test_shell_streams);
    g_test_add_func("/agent/tools/shell-group", test_shell_group);
    g_test_add_func("/agent/tools/shell-cancel", test_shell_cancel);
    g_test_add_func("/agent/tools/done", test_done);
    return g_test_run();
}

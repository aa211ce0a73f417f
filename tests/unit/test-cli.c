/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <glib.h>
#include <glib/gstdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "base/nearest.h"
#include "cli/cli.h"
#include "cli/out.h"

/* A tree of its own: "t echo [WORD]... --tag T --loud", "t key [ls]", "t group show". */

static ExitCode
run_echo(Cli *cli)
{
    g_autoptr(GPtrArray) tags = cli_option_all(cli, "tag");

    for (guint i = 0; i < cli_n_args(cli); i++)
        out_text(cli_out(cli), OUT_PLAIN, "<%s>", cli_args(cli)[i]);
    for (guint i = 0; i < tags->len; i++)
        out_text(cli_out(cli), OUT_PLAIN, "#%s", (const char *)tags->pdata[i]);
    if (cli_option(cli, "loud") != NULL)
        out_text(cli_out(cli), OUT_PLAIN, "!");
    return EXIT_CODE_OK;
}

static ExitCode
run_name(Cli *cli)
{
    out_text(cli_out(cli), OUT_PLAIN, "%s", cli_command(cli)->name);
    return EXIT_CODE_OK;
}

static const CliOption echo_options[] = {
    {.name = "tag", .letter = 't', .value = "T", .help = "a tag"},
    {.name = "loud", .letter = 'l', .help = "louder"},
    {NULL},
};
static const Command cmd_echo = {.name = "echo",
                                 .summary = "Echo",
                                 .args = "WORD...",
                                 .args_min = 1,
                                 .args_max = 3,
                                 .options = echo_options,
                                 .run = run_echo};
static const Command cmd_ls = {.name = "ls", .summary = "List", .run = run_name};
static const Command cmd_secret = {.name = "__probe", .summary = "Hidden", .hidden = true, .run = run_name};
static const Command *const key_commands[] = {&cmd_ls, NULL};
static const Command cmd_key = {.name = "key", .summary = "Key", .commands = key_commands, .run = run_name};
static const Command cmd_group = {.name = "group", .summary = "Group", .commands = key_commands};
static const Command *const root_commands[] = {&cmd_echo, &cmd_key, &cmd_group, &cmd_secret, NULL};
static const Command root = {.name = "t", .summary = "Test", .commands = root_commands};

static char *
read_back(int fd)
{
    char text[8192];

    g_assert_cmpint(lseek(fd, 0, SEEK_SET), ==, 0);
    ssize_t n = io_read_full(fd, text, sizeof text);
    g_assert_cmpint(n, >=, 0);
    return g_strndup(text, (gsize)n);
}

static ExitCode
invoke(const char *line, char **ret_out, char **ret_error)
{
    autofd out = memfd_create("out", MFD_CLOEXEC);
    autofd error = memfd_create("error", MFD_CLOEXEC);
    g_autofree char *whole = g_strconcat("t", line[0] != '\0' ? "|" : NULL, line, NULL);
    g_auto(GStrv) argv = g_strsplit(whole, "|", -1);

    ExitCode code = cli_main(&root, (int)g_strv_length(argv), (const char *const *)argv, out, error);
    *ret_out = read_back(out);
    *ret_error = read_back(error);
    return code;
}

static void
test_parse(void)
{
    static const struct {
        const char *line; /* words separated by '|' */
        ExitCode code;
        const char *out;
        const char *error; /* a part of it */
    } cases[] = {
        {"echo|a", EXIT_CODE_OK, "<a>", ""},
        {"echo|a|--tag|x|b|--tag=y|-tz|-t|w", EXIT_CODE_OK, "<a><b>#x#y#z#w", ""},
        {"echo|-lt|x|a", EXIT_CODE_OK, "<a>#x!", ""},
        {"echo|--loud|--|--tag|-l", EXIT_CODE_OK, "<--tag><-l>!", ""},
        {"echo|-", EXIT_CODE_OK, "<->", ""},
        {"echo|--tag=|a", EXIT_CODE_OK, "<a>#", ""},
        {"key", EXIT_CODE_OK, "key", ""},
        {"key|ls", EXIT_CODE_OK, "ls", ""},
        {"-o|text|key|ls", EXIT_CODE_OK, "ls", ""},
        {"__probe", EXIT_CODE_OK, "__probe", ""},
        {"", EXIT_CODE_USAGE, "", "a command is missing"},
        {"group", EXIT_CODE_USAGE, "", "a command is missing\nTry 't group --help'."},
        {"echo", EXIT_CODE_USAGE, "", "an argument is missing: WORD..."},
        {"echo|a|b|c|d", EXIT_CODE_USAGE, "", "'d' is one argument too many"},
        {"ehco|a", EXIT_CODE_USAGE, "", "unknown command 'ehco': did you mean 'echo'?"},
        {"key|sl", EXIT_CODE_USAGE, "", "unknown command 'sl': did you mean 'ls'?"},
        {"__prob", EXIT_CODE_USAGE, "", "unknown command '__prob'\n"},
        {"zzzzzz", EXIT_CODE_USAGE, "", "unknown command 'zzzzzz'\n"},
        {"echo|a|--lod", EXIT_CODE_USAGE, "", "unknown option '--lod': did you mean '--loud'?"},
        {"echo|a|--tagg=x", EXIT_CODE_USAGE, "", "unknown option '--tagg': did you mean '--tag'?"},
        {"echo|a|-x", EXIT_CODE_USAGE, "", "unknown option '-x'"},
        {"echo|a|--loud=yes", EXIT_CODE_USAGE, "", "option '--loud' takes no value"},
        {"echo|a|--tag", EXIT_CODE_USAGE, "", "option '--tag' needs a value (T)"},
        {"echo|a|-t", EXIT_CODE_USAGE, "", "option '-t' needs a value (T)"},
        {"--tag|x|echo|a", EXIT_CODE_USAGE, "", "unknown option '--tag'"},
        {"key|-o|yaml", EXIT_CODE_USAGE, "", "'yaml' is not a value of --output: choose one of text, json"},
        {"key|nope|-o|json", EXIT_CODE_USAGE, "", "{\"error\":{\"code\":2,\"message\":\"unknown command"},
        {"key|\xff\x1b[31m|--output=json", EXIT_CODE_USAGE, "", "\\u001B[31m"},
        {"key|\xff\x1b[31m", EXIT_CODE_USAGE, "", "\\x1b[31m"},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *out = NULL, *error = NULL;

        g_test_message("case %zu", i);
        g_assert_cmpint(invoke(cases[i].line, &out, &error), ==, cases[i].code);
        g_assert_cmpstr(out, ==, cases[i].out);
        if (cases[i].error[0] == '\0')
            g_assert_cmpstr(error, ==, "");
        else if (strstr(error, cases[i].error) == NULL)
            g_error("'%s' is not in '%s'", cases[i].error, error);
    }
}

static void
test_help(void)
{
    g_autofree char *out = NULL, *error = NULL, *json_text = NULL, *none = NULL;

    g_assert_cmpint(invoke("echo|--help", &out, &error), ==, EXIT_CODE_OK);
    g_assert_cmpstr(out, ==,
                    "Usage: t echo WORD... [OPTIONS]\n\nEcho.\n\nOptions:\n"
                    "  -t, --tag T          a tag\n"
                    "  -l, --loud           louder\n"
                    "  -o, --output FORMAT  text or json\n"
                    "  -h, --help           show this help\n");
    g_assert_cmpstr(error, ==, "");
    g_assert_cmpint(invoke("-h|-o|json", &json_text, &none), ==, EXIT_CODE_OK);
    g_autoptr(Json) value = json_decode(json_text, strlen(json_text), NULL);
    g_assert_nonnull(value);
    g_assert_cmpuint(json_array_size(json_object_get(value, "commands")), ==, 3);
    g_assert_null(strstr(json_text, "__probe"));
}

static void
test_full_disk(void)
{
    autofd full = g_open("/dev/full", O_WRONLY | O_CLOEXEC);
    autofd error = memfd_create("error", MFD_CLOEXEC);
    const char *const argv[] = {"t", "key", NULL};

    g_assert_cmpint(cli_main(&root, 2, argv, full, error), ==, EXIT_CODE_FAILED);
    g_autofree char *text = read_back(error);
    g_assert_cmpstr(text, ==, "coop: could not write the result\n");
}

static OutStyle
style_state(const char *value)
{
    return strcmp(value, "ok") == 0 ? OUT_GOOD : OUT_BAD;
}

static const OutColumn columns[] = {{"name", "NAME"}, {"state", "STATE", style_state}, {"n", "N"}, {NULL}};

static Json *
sample_rows(void)
{
    return json_pack("[{s:s,s:s,s:i},{s:s,s:s,s:[s,s]},{s:s}]", "name", "one\n\x1b[2J", "state", "ok", "n", 7,
                     "name", "zw\u00f6lf", "state", "bad", "n", "a", "b", "name", "-");
}

static void
test_table(void)
{
    static const struct {
        OutFormat format;
        bool colour;
        const char *want;
    } cases[] = {
        {OUT_TEXT, false,
         "NAME            STATE  N\n"
         "one\\x0a\\x1b[2J  ok     7\n"
         "zw\u00f6lf           bad    a, b\n"
         "-               -      -\n"},
        {OUT_TEXT, true,
         "\033[1mNAME\033[0m            \033[1mSTATE\033[0m  \033[1mN\033[0m\n"
         "one\\x0a\\x1b[2J  \033[32mok\033[0m     7\n"
         "zw\u00f6lf           \033[31mbad\033[0m    a, b\n"
         "-               \033[31m-\033[0m      -\n"},
        {OUT_JSON, true,
         "[{\"name\":\"one\\n\\u001B[2J\",\"state\":\"ok\",\"n\":7},"
         "{\"name\":\"zw\u00f6lf\",\"state\":\"bad\",\"n\":[\"a\",\"b\"]},{\"name\":\"-\"}]\n"},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        autofd fd = memfd_create("out", MFD_CLOEXEC);
        g_autoptr(Out) out = out_new(fd, fd, cases[i].format, cases[i].colour);
        g_autoptr(Json) rows = sample_rows();

        out_table(out, columns, rows);
        g_autofree char *text = read_back(fd);
        g_assert_cmpstr(text, ==, cases[i].want);
    }
}

static void
test_fields_and_row(void)
{
    autofd fd = memfd_create("out", MFD_CLOEXEC);
    g_autoptr(Out) out = out_new(fd, fd, OUT_TEXT, false);
    g_autoptr(Json) one = json_pack("{s:s,s:b,s:n}", "name", "x", "n", 1, "other");

    out_fields(out, columns, one);
    out_row(out, columns, one);
    out_notice(out, "careful\x07");
    g_autofree char *text = read_back(fd);
    g_assert_cmpstr(text, ==, "NAME:  x\nN:     yes\nx - yes\ncoop: note: careful\\x07\n");
}

static void
test_clean(void)
{
    static const char *const cases[][2] = {
        {"plain \u00e4 \u4e2d", "plain \u00e4 \u4e2d"},
        {"a\tb\r\n", "a\\x09b\\x0d\\x0a"},
        {"\x1b]52;c;eA==\x07", "\\x1b]52;c;eA==\\x07"},
        {"\xc2\x9b"
         "31m",
         "\\x9b31m"},
        {"abc\u202etxt", "abc\\x202etxt"},
        {"\xff\xfe", "\ufffd\ufffd"},
        {"\x7f", "\\x7f"},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *clean = out_clean(cases[i][0]);

        g_assert_cmpstr(clean, ==, cases[i][1]);
    }
}

static void
test_nearest(void)
{
    static const char *const names[] = {"serve", "start", "status", "key", "http.listen", "http.body_limit"};
    static const char *const cases[][2] = {
        {"serv", "serve"},
        {"stat", "start"},
        {"satrt", "start"},
        {"statsu", "status"},
        {"kye", "key"},
        {"http.lsiten", "http.listen"},
        {"http.body-limit", "http.body_limit"},
        {"banana", NULL},
        {"", NULL},
    };
    g_autofree char *long_word = g_strnfill(NEAREST_WORD_MAX + 1, 's');

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_test_message("word '%s'", cases[i][0]);
        g_assert_cmpstr(nearest(cases[i][0], names, G_N_ELEMENTS(names)), ==, cases[i][1]);
    }
    g_assert_null(nearest(long_word, names, G_N_ELEMENTS(names)));
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/cli/parse", test_parse);
    g_test_add_func("/cli/help", test_help);
    g_test_add_func("/cli/full-disk", test_full_disk);
    g_test_add_func("/out/table", test_table);
    g_test_add_func("/out/fields", test_fields_and_row);
    g_test_add_func("/out/clean", test_clean);
    g_test_add_func("/nearest", test_nearest);
    return g_test_run();
}

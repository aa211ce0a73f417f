/* SPDX-License-Identifier: Apache-2.0 */
#include <glib.h>
#include <string.h>

#include "base/err.h"
#include "team/scan.h"

static const char *const paths[] = {"a.py", "web/c.js", "-rf.sh", "src/e.c", "README.md", NULL};

static char *
format_plan(const char *const *names)
{
    g_autoptr(GPtrArray) commands = scan_plan(names);
    g_autoptr(GString) text = g_string_new(NULL);

    for (guint i = 0; i < commands->len; i++) {
        const ScanCommand *c = commands->pdata[i];
        guint n = g_strv_length(c->argv);

        g_string_append_printf(text, "%s%s", text->len > 0 ? "; " : "", c->name);
        for (guint k = n - c->paths->len; k < n; k++)
            g_string_append_printf(text, " %s", c->argv[k]);
    }
    return g_strdup(text->str);
}

static void
test_plan(void)
{
    g_autofree char *text = format_plan(paths);

    g_assert_cmpstr(text, ==,
                    "bandit ./a.py; eslint ./web/c.js; shellcheck ./-rf.sh; cppcheck ./src/e.c; "
                    "secrets ./a.py ./web/c.js ./-rf.sh ./src/e.c ./README.md");
    g_autofree char *nothing = format_plan((const char *const[]){NULL});
    g_assert_cmpstr(nothing, ==, "");
}

/* The words of a command before its files. */
static char *
format_words(char **argv, guint files)
{
    g_auto(GStrv) words = g_strdupv(argv);
    guint n = g_strv_length(words) - files;

    g_clear_pointer(&words[n], g_free);
    for (guint i = n + 1; i < n + files; i++)
        g_free(words[i]);
    return g_strjoinv(" ", words);
}

/* Marks in the code do not count, unless it is asked what they would silence. */
static void
test_plan_deaf(void)
{
    static const char *const words[][2] = {/* with: what is said to be deaf, or to hear */
                                           {"--ignore-nosec", NULL},
                                           {"--no-inline-config", NULL},
                                           {"disable=SC9", NULL},
                                           {NULL, "--inline-suppr"},
                                           {"allowlist.is_line_allowlisted", NULL}};
    g_autoptr(GPtrArray) commands = scan_plan(paths);

    g_assert_cmpuint(commands->len, ==, G_N_ELEMENTS(words));
    for (guint i = 0; i < commands->len; i++) {
        const ScanCommand *c = commands->pdata[i];
        g_autofree char *deaf = format_words(c->argv, c->paths->len);
        g_autofree char *hears = format_words(c->marked, c->paths->len);

        g_assert_true(words[i][0] == NULL ||
                      (strstr(deaf, words[i][0]) != NULL && strstr(hears, words[i][0]) == NULL));
        g_assert_true(words[i][1] == NULL ||
                      (strstr(deaf, words[i][1]) == NULL && strstr(hears, words[i][1]) != NULL));
    }
}

static void
test_plan_bounds(void)
{
    g_autoptr(GPtrArray) names = g_ptr_array_new_with_free_func(g_free);

    for (guint i = 0; i < SCAN_PATHS_MAX + 2; i++)
        g_ptr_array_add(names, g_strdup_printf("f%u", i));
    g_ptr_array_add(names, NULL);
    g_autoptr(GPtrArray) commands = scan_plan((const char *const *)names->pdata);
    const ScanCommand *c = commands->pdata[0];
    g_assert_cmpuint(c->paths->len, ==, SCAN_PATHS_MAX);
    g_assert_true(c->truncated);
}

/* That of `name` for these files. */
static ScanCommand *
make_command(const char *name, const char *const *files)
{
    ScanCommand *command = g_new0(ScanCommand, 1);

    command->name = name;
    command->paths = g_ptr_array_new_with_free_func(g_free);
    for (; *files != NULL; files++)
        g_ptr_array_add(command->paths, g_strdup(*files));
    return command;
}

/* Of all files; those that tell which ones they have seen are asked about one. */
static ScanResult *
read_answer(const char *name, const char *output, GError **error)
{
    static const char *const py[] = {"a.py", NULL}, *const js[] = {"web/c.js", NULL};
    const char *const *files = strcmp(name, "bandit") == 0 ? py : strcmp(name, "eslint") == 0 ? js : paths;
    ScanCommand *command = make_command(name, files);
    ScanResult *result = scan_read(command, output, strlen(output), error);

    scan_command_free(command);
    return result;
}

/* Answers as the programs give them, and what is read from them: path:line severity rule. */
static const struct {
    const char *name, *output, *want;
} answers[] = {
    {"bandit",
     "{\"errors\": [], \"results\": [{\"filename\": \"./a.py\", \"issue_severity\": \"HIGH\", "
     "\"line_number\": 2, "
     "\"test_id\": \"B602\", \"issue_text\": \"shell=True\\u001b[31m\"}, {\"filename\": \"a.py\", "
     "\"issue_severity\": \"LOW\", \"line_number\": 1, \"test_id\": \"B404\", \"issue_text\": \"x\"}]}",
     "a.py:2 error B602; a.py:1 note B404"},
    {"bandit",
     "{\"errors\": [{\"filename\": \"./a.py\", \"reason\": \"syntax error while parsing AST\"}], "
     "\"results\": []}",
     "a.py:0 error unread"},
    {"eslint",
     "[{\"filePath\": \"/tree/of/a/box/web/c.js\", \"messages\": [{\"ruleId\": \"security/detect-eval\", "
     "\"severity\": 1, \"line\": 1, \"message\": \"m\"}, {\"ruleId\": null, \"severity\": 2, \"line\": 3, "
     "\"message\": \"does not parse\"}]}, {\"filePath\": \"/etc/other.js\", \"messages\": [{\"severity\": "
     "2}]}]",
     "web/c.js:1 warning security/detect-eval; web/c.js:3 error "},
    {"shellcheck",
     "[{\"file\": \"./-rf.sh\", \"line\": 3, \"level\": \"error\", \"code\": 2045, \"message\": \"m\"}, "
     "{\"file\": \"./-rf.sh\", \"line\": 2, \"level\": \"info\", \"code\": 2086, \"message\": \"m\"}]",
     "-rf.sh:3 error SC2045; -rf.sh:2 note SC2086"},
    {"cppcheck", "./src/e.c\t1\terror\tarrayIndexOutOfBounds\tout of\tbounds\n\nsrc/e.c\t-4\tstyle\tx\ty\n",
     "src/e.c:1 error arrayIndexOutOfBounds; src/e.c:0 note x"},
    {"secrets",
     "{\"results\": {\"./README.md\": [{\"type\": \"AWS Access Key\", \"line_number\": 7}], \"x\": [{}]}}",
     "README.md:7 error AWS Access Key"},
    {"eslint", "[{\"filePath\": \"/x/web/c.js\", \"messages\": []}]", ""},
    {"eslint", "[]", "web/c.js:0 error unread"},
    {"bandit", "{\"results\": [], \"metrics\": {\"_totals\": {}, \"./a.py\": {}}}", ""},
    {"bandit", "{\"results\": [], \"metrics\": {\"_totals\": {}}}", "a.py:0 error unread"},
    {"cppcheck", "", ""},
};

static void
test_read(void)
{
    for (size_t i = 0; i < G_N_ELEMENTS(answers); i++) {
        g_autoptr(GError) error = NULL;
        g_autoptr(GString) text = g_string_new(NULL);
        g_autoptr(ScanResult) r = read_answer(answers[i].name, answers[i].output, &error);

        g_assert_no_error(error);
        for (guint k = 0; k < r->findings->len; k++) {
            const ScanFinding *f = r->findings->pdata[k];

            g_string_append_printf(text, "%s%s:%" G_GINT64_FORMAT " %s %s", k > 0 ? "; " : "", f->path,
                                   f->line, scan_severity_name(f->severity), f->rule);
            g_assert_null(strchr(f->text, '\033'));
        }
        g_assert_cmpstr(text->str, ==, answers[i].want);
        g_assert_cmpint(scan_passed(r), ==, strstr(answers[i].want, " error ") == NULL);
        g_autoptr(Json) list = scan_findings_json(answers[i].name, r);
        g_assert_cmpuint(json_array_size(list), ==, r->findings->len);
    }
}

/* Nothing was found out: never taken for "nothing was found". */
static void
test_read_nonsense(void)
{
    static const char *const cases[][2] = {
        {"bandit", ""},      {"bandit", "{}"},
        {"bandit", "[]"},    {"eslint", "{}"},
        {"eslint", "Oops!"}, {"shellcheck", "{}"},
        {"secrets", "[]"},   {"cppcheck", "no such file or directory"},
        {"unheard", "[]"},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(GError) error = NULL;

        g_assert_null(read_answer(cases[i][0], cases[i][1], &error));
        g_assert_error(error, ERR_DOMAIN, ERR_INVALID);
    }
}

static void
test_read_bounds(void)
{
    g_autoptr(GString) output = g_string_new(NULL);

    for (guint i = 0; i < 3 * SCAN_FINDINGS_MAX; i++)
        g_string_append(output, "src/e.c\t1\terror\tx\ty\n");
    g_autoptr(ScanResult) r = read_answer("cppcheck", output->str, NULL);
    g_autoptr(Json) told = scan_findings_json("cppcheck", r);
    g_assert_cmpuint(json_array_size(told), ==, SCAN_FINDINGS_MAX);
    g_assert_cmpuint(r->counts[SCAN_ERROR], ==, 3 * SCAN_FINDINGS_MAX);
}

/* ---- marks ---- */

static void
add_patch(ScanLines *lines, const char *path, const char *patch)
{
    scan_lines_add(lines, path, patch, strlen(patch));
}

static void
test_lines(void)
{
    static const char patch[] = "@@ -1,3 +1,4 @@ head\n one\n-two\n+2\n+2b\n three\n"
                                "@@ -10 +11,2 @@\n-x\n+@@ -1 +99 @@\n+z\n\\ No newline at end of file\n";
    static const struct {
        gint64 first, last;
        bool written;
    } cases[] = {{1, 1, false}, {2, 2, true},   {3, 3, true},   {4, 4, false},   {4, 10, false},
                 {1, 2, true},  {11, 11, true}, {12, 12, true}, {13, 99, false}, {0, 0, true}};
    ScanLines *lines = scan_lines_new();

    add_patch(lines, "a.py", patch);
    add_patch(lines, "marked.py", "@@ -1 +1,2 @@\n one\n+x()  # nosec\n");
    add_patch(lines, "unmarked.py", "@@ -1,2 +1 @@\n one # nosec\n-x()  # nosec\n");
    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++)
        g_assert_cmpint(scan_lines_have(lines, "a.py", cases[i].first, cases[i].last), ==, cases[i].written);
    g_assert_true(scan_lines_have(lines, "other.py", 1, 1));
    g_assert_true(scan_lines_have(lines, "marked.py", 1, 1));
    g_assert_false(scan_lines_have(lines, "unmarked.py", 1, 1));
    scan_lines_free(lines);
}

/* Every way to write a mark makes the file one that the change answers for. */
static void
test_lines_marks(void)
{
    static const char *const marks[] = {
        "# nosec",
        "#nosec B602",
        "/* eslint-disable */",
        "eslint security/detect-eval: 0",
        "# shellcheck disable=SC2068",
        "#\tshellcheck\tdisable=all",
        "// cppcheck-suppress x",
        "# pragma: allowlist secret",
        "# pragma: whitelist nextline secret",
        "x\ry",
        "x\fy",
        "x\xe2\x80\xa8y",
    };

    for (size_t i = 0; i < G_N_ELEMENTS(marks); i++) {
        g_autofree char *patch = g_strdup_printf("@@ -1,2 +1,3 @@\n one\n+%s\n two\n", marks[i]);
        ScanLines *lines = scan_lines_new();

        add_patch(lines, "f", patch);
        g_assert_true(scan_lines_have(lines, "f", 3, 3));
        scan_lines_free(lines);
    }
    static const char nul[] = "@@ -1,2 +1,3 @@\n one\n+a\0b\n two\n",
                      crlf[] = "@@ -1,2 +1,3 @@\n one\r\n+a\r\n two\r\n";
    ScanLines *lines = scan_lines_new();

    scan_lines_add(lines, "nul", nul, sizeof nul - 1);
    scan_lines_add(lines, "crlf", crlf, sizeof crlf - 1);
    g_assert_true(scan_lines_have(lines, "nul", 3, 3));
    g_assert_true(scan_lines_have(lines, "crlf", 2, 2));
    g_assert_false(scan_lines_have(lines, "crlf", 3, 3));
    scan_lines_free(lines);
}

/* What a mark silences counts, unless it is where the change has not been. */
static void
test_forgive(void)
{
    static const char deaf[] = "src/e.c\t1\terror\told\tm\nsrc/e.c\t2\terror\tnew\tm\n"
                               "src/e.c\t3\terror\tloud\tm\nsrc/e.c\t3\twarning\tquiet\tm\n"
                               "README.md\t1\terror\told\tm\n";
    g_autoptr(ScanResult) r = read_answer("cppcheck", deaf, NULL);
    g_autoptr(ScanResult) marked = read_answer("cppcheck", "src/e.c\t3\terror\tloud\tm\n", NULL);
    g_autoptr(GString) left = g_string_new(NULL);
    ScanLines *lines = scan_lines_new();

    add_patch(lines, "src/e.c", "@@ -1,2 +1,3 @@\n one\n+two\n three\n");
    g_assert_true(scan_may_forgive(r));
    scan_forgive(r, marked, lines);
    for (guint i = 0; i < r->findings->len; i++) {
        const ScanFinding *f = r->findings->pdata[i];

        g_string_append_printf(left, "%s:%s ", f->path, f->rule);
    }
    g_assert_cmpstr(left->str, ==, "src/e.c:new src/e.c:loud README.md:old ");
    g_assert_cmpuint(r->counts[SCAN_ERROR], ==, 3);
    g_assert_cmpuint(r->counts[SCAN_WARNING], ==, 0);
    scan_lines_free(lines);
}

/* A statement of more lines is written when one of them is. */
static void
test_forgive_ranges(void)
{
    static const char deaf[] = "{\"results\": [{\"filename\": \"a.py\", \"issue_severity\": \"HIGH\", "
                               "\"line_number\": 1, \"line_range\": [1, 2], \"test_id\": \"B602\", "
                               "\"issue_text\": \"x\"}], \"metrics\": {\"a.py\": {}}}";
    static const struct {
        const char *patch;
        guint left;
    } cases[] = {{"@@ -1,2 +1,2 @@\n f(\n+2)\n", 1}, {"@@ -3 +3 @@\n+3\n", 0}};

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(ScanResult) r = read_answer("bandit", deaf, NULL);
        g_autoptr(ScanResult)
            marked = read_answer("bandit", "{\"results\": [], \"metrics\": {\"a.py\": {}}}", NULL);
        ScanLines *lines = scan_lines_new();

        add_patch(lines, "a.py", cases[i].patch);
        scan_forgive(r, marked, lines);
        g_assert_cmpuint(r->findings->len, ==, cases[i].left);
        g_assert_cmpint(scan_passed(r), ==, cases[i].left == 0);
        scan_lines_free(lines);
    }
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/scan/plan", test_plan);
    g_test_add_func("/scan/plan-bounds", test_plan_bounds);
    g_test_add_func("/scan/read", test_read);
    g_test_add_func("/scan/nonsense", test_read_nonsense);
    g_test_add_func("/scan/read-bounds", test_read_bounds);
    g_test_add_func("/scan/plan-deaf", test_plan_deaf);
    g_test_add_func("/scan/lines", test_lines);
    g_test_add_func("/scan/lines-marks", test_lines_marks);
    g_test_add_func("/scan/forgive", test_forgive);
    g_test_add_func("/scan/forgive-ranges", test_forgive_ranges);
    return g_test_run();
}

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
        for (guint k = n - c->files; k < n; k++)
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

static void
test_plan_bounds(void)
{
    g_autoptr(GPtrArray) names = g_ptr_array_new_with_free_func(g_free);

    for (guint i = 0; i < SCAN_PATHS_MAX + 2; i++)
        g_ptr_array_add(names, g_strdup_printf("f%u", i));
    g_ptr_array_add(names, NULL);
    g_autoptr(GPtrArray) commands = scan_plan((const char *const *)names->pdata);
    const ScanCommand *c = commands->pdata[0];
    g_assert_cmpuint(c->files, ==, SCAN_PATHS_MAX);
    g_assert_true(c->truncated);
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
    {"eslint", "[]", ""},
    {"cppcheck", "", ""},
};

static void
test_read(void)
{
    for (size_t i = 0; i < G_N_ELEMENTS(answers); i++) {
        g_autoptr(GError) error = NULL;
        g_autoptr(GString) text = g_string_new(NULL);
        g_autoptr(ScanResult)
            r = scan_read(answers[i].name, paths, answers[i].output, strlen(answers[i].output), &error);

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

        g_assert_null(scan_read(cases[i][0], paths, cases[i][1], strlen(cases[i][1]), &error));
        g_assert_error(error, ERR_DOMAIN, ERR_INVALID);
    }
}

static void
test_read_bounds(void)
{
    g_autoptr(GString) output = g_string_new(NULL);

    for (guint i = 0; i < 3 * SCAN_FINDINGS_MAX; i++)
        g_string_append(output, "src/e.c\t1\terror\tx\ty\n");
    g_autoptr(ScanResult) r = scan_read("cppcheck", paths, output->str, output->len, NULL);
    g_assert_cmpuint(r->findings->len, ==, SCAN_FINDINGS_MAX);
    g_assert_cmpuint(r->counts[SCAN_ERROR], ==, 3 * SCAN_FINDINGS_MAX);
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
    return g_test_run();
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "forge/hunk.h"

#include <string.h>

static const char patch[] = "@@ -1,3 +1,4 @@\n one\n-two\n+zwei\n+more\n three\n"
                            "@@ -10 +11 @@ int main(void)\n-ten\n\\ No newline at end of file\n+TEN\n"
                            "@@ -20,2 +20,0 @@\n-@@ -1 +1 @@\n---- x";

#define FIRST "@@ -1,3 +1,4 @@\n one\n"
#define SECOND "@@ -10 +11 @@ int main(void)\n-ten\n"
#define THIRD "@@ -20,2 +20,0 @@\n-@@ -1 +1 @@"

static void
test_cut(void)
{
    static const struct {
        bool left;
        gint64 line;
        const char *hunk; /* NULL: none */
    } cases[] = {
        {false, 1, "@@ -1,3 +1,4 @@\n one"},
        {false, 2, FIRST "-two\n+zwei"},
        {false, 3, FIRST "-two\n+zwei\n+more"},
        {false, 4, FIRST "-two\n+zwei\n+more\n three"},
        {false, 5, NULL},
        {true, 1, "@@ -1,3 +1,4 @@\n one"},
        {true, 2, FIRST "-two"},
        {true, 3, FIRST "-two\n+zwei\n+more\n three"},
        {true, 4, NULL},
        {true, 10, "@@ -10 +11 @@ int main(void)\n-ten"},
        {false, 11, SECOND "\\ No newline at end of file\n+TEN"},
        {true, 20, THIRD},
        {true, 21, THIRD "\n---- x"},
        {false, 20, NULL},
        {false, 0, NULL},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *hunk = hunk_cut(patch, strlen(patch), cases[i].left, cases[i].line);

        g_test_message("%s %" G_GINT64_FORMAT, cases[i].left ? "left" : "right", cases[i].line);
        g_assert_cmpstr(hunk, ==, cases[i].hunk);
    }
}

static void
test_no_patch(void)
{
    static const char *const texts[] = {"", "\n", "+one", "@@ nonsense\n+one", "@@ -x +1\n+one", "@"};

    for (size_t i = 0; i < G_N_ELEMENTS(texts); i++)
        g_assert_null(hunk_cut(texts[i], strlen(texts[i]), false, 1));
}

/* Of what is too long the head and the last lines, and always UTF-8. */
static void
test_bounds(void)
{
    g_autoptr(GString) text = g_string_new("@@ -0,0 +1,5000 @@\n");

    for (guint i = 1; i <= 5000; i++)
        g_string_append_printf(text, "+line %u \xff\n", i);
    g_autofree char *hunk = hunk_cut(text->str, text->len, false, 4999);

    g_assert_true(g_utf8_validate(hunk, -1, NULL));
    g_assert_true(g_str_has_prefix(hunk, "@@ -0,0 +1,5000 @@\n+line "));
    g_assert_true(g_str_has_suffix(hunk, "+line 4999 \xef\xbf\xbd"));
    g_assert_cmpuint(g_utf8_strlen(hunk, -1), <=, HUNK_MAX);
    g_assert_cmpuint(g_utf8_strlen(hunk, -1), >, HUNK_MAX - 20);

    g_string_assign(text, "@@ -0,0 +1 @@\n+");
    for (guint i = 0; i < HUNK_MAX; i++)
        g_string_append_c(text, 'x');
    g_autofree char *wide = hunk_cut(text->str, text->len, false, 1);

    g_assert_cmpstr(wide, ==, "@@ -0,0 +1 @@\n");
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/hunk/cut", test_cut);
    g_test_add_func("/hunk/no-patch", test_no_patch);
    g_test_add_func("/hunk/bounds", test_bounds);
    return g_test_run();
}

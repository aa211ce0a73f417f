/* SPDX-License-Identifier: Apache-2.0 */
#include <glib.h>

#include "report/coverage.h"

static const struct {
    const char *text;
    int want; /* per mille; -1: none */
} cases[] = {
    {"", -1},
    {"all tests passed, 100%\n", -1},
    {"Name      Stmts   Miss  Cover\n-----\ncalc.py      20      1    95%\n-----\nTOTAL        20      1    "
     "95%\n",
     950},
    {"TOTAL      120     10     34      4    88.96%\n", 890},
    {"TOTAL is 7\n", -1},
    {"TOTAL 3 errors, none of them 101%\n", -1},
    {"----------|---------|----------|\nFile      | % Stmts | % Branch |\nAll files |   95.24 |       90 |\n",
     952},
    {"# all files | 87.50 | 66.67 | 100.00 |\n", 875},
    {"\342\204\271 all files   | 100.00 | 100.00 |\n", 1000},
    {"ok  \tcalc\t0.002s\ncoverage: 81.3% of statements\n", 813},
    {"coverage: [no statements]\n", -1},
    {"Statements   : 75.5% ( 3/4 )\nBranches     : 100% ( 0/0 )\nLines        : 66.66% ( 2/3 )\n", 755},
    {"Statements   : Unknown% ( 0/0 )\n", -1},
    {"Summary coverage rate:\n  lines......: 72.7% (8 of 11 lines)\n  functions..: 50.0%\n", 727},
    {"coverage: 10.0% of statements\ncoverage: 20.0% of statements\n", 200},
    {"All files | nothing |\n", -1},
    {"\033[32mAll files\033[0m |  50 |\n", 500},
    {"coverage: 1e9% of it\n", -1},
    {"coverage: nan%\n", -1},
};

static void
test_texts(void)
{
    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        guint permille;
        bool found = coverage_find(cases[i].text, &permille);

        g_test_message("%s", cases[i].text);
        g_assert_cmpint(found ? (int)permille : -1, ==, cases[i].want);
    }
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/coverage/texts", test_texts);
    return g_test_run();
}

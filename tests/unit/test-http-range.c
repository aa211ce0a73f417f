/* SPDX-License-Identifier: Apache-2.0 */
#include <glib.h>

#include "http/range.h"

typedef struct Case {
    const char *header;
    guint64 size;
    RangeResult result;
    guint64 first, last;
} Case;

static const Case cases[] = {
    {"bytes=0-0", 10, RANGE_ONE, 0, 0},
    {"bytes=0-9", 10, RANGE_ONE, 0, 9},
    {"bytes=3-", 10, RANGE_ONE, 3, 9},
    {"bytes=9-", 10, RANGE_ONE, 9, 9},
    {"bytes=2-4", 10, RANGE_ONE, 2, 4},
    {"bytes=4-4", 10, RANGE_ONE, 4, 4},
    {"bytes=007-008", 10, RANGE_ONE, 7, 8},
    {"BYTES=2-4", 10, RANGE_ONE, 2, 4},
    {"bytes= 2-4\t", 10, RANGE_ONE, 2, 4},

    /* past the end: cut to it */
    {"bytes=5-10", 10, RANGE_ONE, 5, 9},
    {"bytes=5-18446744073709551615", 10, RANGE_ONE, 5, 9},
    {"bytes=5-18446744073709551616", 10, RANGE_ONE, 5, 9},
    {"bytes=5-99999999999999999999999999999999", 10, RANGE_ONE, 5, 9},
    {"bytes=0-", G_MAXUINT64, RANGE_ONE, 0, G_MAXUINT64 - 1},

    {"bytes=-1", 10, RANGE_ONE, 9, 9},
    {"bytes=-10", 10, RANGE_ONE, 0, 9},
    {"bytes=-11", 10, RANGE_ONE, 0, 9},
    {"bytes=-99999999999999999999999999999999", 10, RANGE_ONE, 0, 9},
    {"bytes=-1", G_MAXUINT64, RANGE_ONE, G_MAXUINT64 - 1, G_MAXUINT64 - 1},

    {"bytes=10-", 10, RANGE_UNSATISFIABLE, 0, 0},
    {"bytes=10-20", 10, RANGE_UNSATISFIABLE, 0, 0},
    {"bytes=18446744073709551615-", 10, RANGE_UNSATISFIABLE, 0, 0},
    {"bytes=18446744073709551616-", 10, RANGE_UNSATISFIABLE, 0, 0},
    {"bytes=18446744073709551616-", G_MAXUINT64, RANGE_UNSATISFIABLE, 0, 0},
    {"bytes=36893488147419103232-", 10, RANGE_UNSATISFIABLE, 0, 0},
    {"bytes=-0", 10, RANGE_UNSATISFIABLE, 0, 0},
    {"bytes=0-", 0, RANGE_UNSATISFIABLE, 0, 0},
    {"bytes=0-0", 0, RANGE_UNSATISFIABLE, 0, 0},
    {"bytes=-0", 0, RANGE_UNSATISFIABLE, 0, 0},

    {NULL, 10, RANGE_NONE, 0, 0},
    {"", 10, RANGE_NONE, 0, 0},
    {"bytes", 10, RANGE_NONE, 0, 0},
    {"bytes=", 10, RANGE_NONE, 0, 0},
    {"bytes=-", 10, RANGE_NONE, 0, 0},
    {"bytes=--1", 10, RANGE_NONE, 0, 0},
    {"bytes=5", 10, RANGE_NONE, 0, 0},
    {"bytes=5-3", 10, RANGE_NONE, 0, 0},
    {"bytes=15-13", 10, RANGE_NONE, 0, 0},
    {"bytes=0-1,3-4", 10, RANGE_NONE, 0, 0},
    {"bytes=0-1,", 10, RANGE_NONE, 0, 0},
    {"bytes=,0-1", 10, RANGE_NONE, 0, 0},
    {"bytes=0 -1", 10, RANGE_NONE, 0, 0},
    {"bytes=0- 1", 10, RANGE_NONE, 0, 0},
    {"bytes=+0-1", 10, RANGE_NONE, 0, 0},
    {"bytes=0-+1", 10, RANGE_NONE, 0, 0},
    {"bytes=0x1-2", 10, RANGE_NONE, 0, 0},
    {"bytes=1-2x", 10, RANGE_NONE, 0, 0},
    {"bytes 0-1", 10, RANGE_NONE, 0, 0},
    {"bytes =0-1", 10, RANGE_NONE, 0, 0},
    {" bytes=0-1", 10, RANGE_NONE, 0, 0},
    {"items=0-1", 10, RANGE_NONE, 0, 0},
    {"bytess=0-1", 10, RANGE_NONE, 0, 0},
    {"0-1", 10, RANGE_NONE, 0, 0},
    {"bytes=-5", 0, RANGE_NONE, 0, 0},
};

static void
test_cases(void)
{
    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        const Case *c = &cases[i];
        guint64 first = 77;
        guint64 last = 78;
        RangeResult result = range_parse(c->header, c->size, &first, &last);

        g_test_message("%s of %" G_GUINT64_FORMAT, c->header, c->size);
        g_assert_cmpint(result, ==, c->result);
        g_assert_cmpuint(first, ==, result == RANGE_ONE ? c->first : 77);
        g_assert_cmpuint(last, ==, result == RANGE_ONE ? c->last : 78);
    }
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/http/range/cases", test_cases);
    return g_test_run();
}

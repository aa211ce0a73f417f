/* SPDX-License-Identifier: Apache-2.0 */
#include <glib.h>

#include "http/negotiate.h"

static void
test_etag(void)
{
    static const struct {
        const char *list;
        bool listed;
    } cases[] = {
        {"\"abc\"", true},
        {"W/\"abc\"", true},
        {" \"abc\" ", true},
        {"\"x\", \"abc\"", true},
        {"\"x\",\"abc\",\"y\"", true},
        {"W/\"x\" , W/\"abc\"", true},
        {",, \"abc\"", true},
        {"\"\", \"abc\"", true},
        {"\"a,b\", \"abc\"", true},
        {"*", true},
        {" * ", true},

        {NULL, false},
        {"", false},
        {"abc", false},
        {"\"abc", false},
        {"abc\"", false},
        {"\"ab\"", false},
        {"\"abcd\"", false},
        {"\"ABC\"", false},
        {"\" abc\"", false},
        {"w/\"abc\"", false},
        {"W/ \"abc\"", false},
        {"\"x\", abc, \"abc\"", false},
        {"\"x, \"abc\"", false},
        {"\"x\", *", false},
        {"*, \"x\"", false},
        {"**", false},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_test_message("%s", cases[i].list);
        g_assert_cmpint(etag_is_listed(cases[i].list, "\"abc\""), ==, cases[i].listed);
        g_assert_cmpint(etag_is_listed(cases[i].list, "W/\"abc\""), ==, cases[i].listed);
    }
}

static void
test_gzip(void)
{
    static const struct {
        const char *header;
        bool takes;
    } cases[] = {
        {"gzip", true},
        {"GZIP", true},
        {"x-gzip", true},
        {"gzip, deflate, br, zstd", true},
        {"br,gzip", true},
        {"deflate , gzip ;q=0.001", true},
        {"gzip;q=1", true},
        {"gzip;q=1.000", true},
        {"gzip; Q=0.5 ", true},
        {"gzip\t;\tq=0.5\t, br", true},
        {"*", true},
        {"*;q=0.1", true},
        {"br;q=0, *", true},
        {"*;q=0, gzip", true},
        {"identity;q=0, gzip", true},

        {NULL, false},
        {"", false},
        {",", false},
        {"identity", false},
        {"br", false},
        {"gzipx", false},
        {"xgzip", false},
        {"gzi", false},
        {"gzip;q=0", false},
        {"gzip;q=0.", false},
        {"gzip;q=0.000", false},
        {"gzip; q=0 , br", false},
        {"gzip;q=0,br;q=1", false},
        {"gzip;q=0, *;q=1", false},
        {"*, gzip;q=0", false},
        {"*;q=0", false},
        {"br, *;q=0.0", false},
        {"gzip;q=", false},
        {"gzip;q=x", false},
        {"gzip;q=-1", false},
        {"gzip;q=.5", false},
        {"gzip;q=0.5x", false},
        {"gzip;level=9", false},
        {"gzip br", false},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_test_message("%s", cases[i].header);
        g_assert_cmpint(accepts_gzip(cases[i].header), ==, cases[i].takes);
    }
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/http/negotiate/etag", test_etag);
    g_test_add_func("/http/negotiate/gzip", test_gzip);
    return g_test_run();
}

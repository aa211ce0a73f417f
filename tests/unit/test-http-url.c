/* SPDX-License-Identifier: Apache-2.0 */
#include <glib.h>
#include <string.h>

#include "base/err.h"
#include "http/url.h"

static void
test_decode(void)
{
    static const struct {
        const char *text;
        bool plus;
        const char *decoded; /* NULL: refused */
    } cases[] = {
        {"", false, ""},
        {"abc", false, "abc"},
        {"a%20b", false, "a b"},
        {"a+b", false, "a+b"},
        {"a+b", true, "a b"},
        {"a%2Bb", true, "a+b"},
        {"%2f%2F", false, "//"},
        {"%41%7a", false, "Az"},
        {"%25", false, "%"},
        {"%2525", false, "%25"}, /* decoded once, never twice */
        {"%FF%ff", false, "\xff\xff"},
        {"%01", false, "\x01"},
        {"%", false, NULL},
        {"%4", false, NULL},
        {"a%4", false, NULL},
        {"%4g", false, NULL},
        {"%g4", false, NULL},
        {"%%41", false, NULL},
        {"% 1", false, NULL},
        {"%+1", false, NULL},
        {"%-1", false, NULL},
        {"%0x", false, NULL},
        {"%00", false, NULL},
        {"abc%00", false, NULL},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        /* An exact copy without the ending NUL: a read past it is seen. */
        size_t n = strlen(cases[i].text);
        g_autofree char *exact = g_memdup2(cases[i].text, MAX(n, 1));
        g_autofree char *decoded = url_decode(exact, n, cases[i].plus);

        g_test_message("%s", cases[i].text);
        g_assert_cmpstr(decoded, ==, cases[i].decoded);
    }
    g_assert_null(url_decode("a\0b", 3, false));
}

static void
test_get(void)
{
    static const struct {
        const char *query;
        const char *value;
    } cases[] = {
        {NULL, NULL},
        {"", NULL},
        {"&", NULL},
        {"=", NULL},
        {"=x", NULL},
        {"kind=a", "a"},
        {"kind=", ""},
        {"kind", ""},
        {"kind==", "="},
        {"kind=a=b", "a=b"},
        {"kind=a+b%2Bc", "a b+c"},
        {"kind=a;b", "a;b"},
        {"kind=%C3%A9", "é"},
        {"k%69nd=a", "a"},
        {"x=1&kind=a&y=2", "a"},
        {"x=1&&kind=a&", "a"},
        {"x&kind=a", "a"},
        {"x=%zz&kind=a", "a"}, /* another's value is another's business */
        {"kin=a", NULL},
        {"kinds=a", NULL},
        {"Kind=a", NULL},
        {"xkind=a", NULL},
        {"x=kind=a", NULL},
        {"kind+=a", NULL},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *value = NULL;
        g_autoptr(GError) error = NULL;
        bool ok = url_query_get(cases[i].query, "kind", &value, &error);

        g_test_message("%s", cases[i].query);
        g_assert_no_error(error);
        g_assert_true(ok);
        g_assert_cmpstr(value, ==, cases[i].value);
    }
}

static void
test_get_bytes(void)
{
    static const struct {
        const char *query;
        const char *value; /* NULL: refused */
    } cases[] = {
        {"path=a%FF%0Ab", "a\xff\nb"}, {"path=%C3%A9", "é"},      {"path=%C3", "\xc3"},
        {"path=a%00b", NULL},          {"path=a&path=%FF", NULL}, {"path=%F", NULL},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *value = NULL;
        g_autoptr(GError) error = NULL;
        bool ok = url_query_get_bytes(cases[i].query, "path", &value, &error);

        g_test_message("%s", cases[i].query);
        g_assert_true(ok == (error == NULL) && ok == (cases[i].value != NULL));
        g_assert_cmpstr(value, ==, cases[i].value);
    }
}

static void
test_encode_path(void)
{
    static const char *const cases[][2] = {
        {"", ""},
        {"/home/a-b_c.d~e", "/home/a-b_c.d~e"},
        {"a b+c%d", "a%20b%2Bc%25d"},
        {"\n\"\x7f\xff", "%0A%22%7F%FF"},
        {"é;?&=", "%C3%A9%3B%3F%26%3D"},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *encoded = url_encode_path(cases[i][0]);
        g_autofree char *decoded = url_decode(encoded, strlen(encoded), false);

        g_assert_cmpstr(encoded, ==, cases[i][1]);
        g_assert_cmpstr(decoded, ==, cases[i][0]);
    }
}

static void
test_get_refuses(void)
{
    static const struct {
        const char *query;
        const char *message;
    } cases[] = {
        {"kind=a&kind=b", "'kind' is given more than once"},
        {"kind=a&kind=a", "'kind' is given more than once"},
        {"kind=&kind=a", "'kind' is given more than once"},
        {"kind&kind", "'kind' is given more than once"},
        {"kind=a&x=1&k%69nd=b", "'kind' is given more than once"},
        {"kind=%", "'kind' has a broken escape"},
        {"kind=%4", "'kind' has a broken escape"},
        {"kind=%4&1", "'kind' has a broken escape"},
        {"kind=a%00", "'kind' has a broken escape"},
        {"kind=%FF", "'kind' is not valid UTF-8"},
        {"kind=%C3", "'kind' is not valid UTF-8"},
        {"kind=%ED%A0%80", "'kind' is not valid UTF-8"},
        {"kind=%C0%AF", "'kind' is not valid UTF-8"},
        {"kind=a&%zz=b", "the query has a parameter name with a broken escape"},
        {"kind%00=a", "the query has a parameter name with a broken escape"},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        char *value = GUINT_TO_POINTER(1);
        g_autoptr(GError) error = NULL;

        g_test_message("%s", cases[i].query);
        g_assert_false(url_query_get(cases[i].query, "kind", &value, &error));
        g_assert_error(error, ERR_DOMAIN, ERR_INVALID);
        g_assert_cmpstr(error->message, ==, cases[i].message);
        g_assert_true(value == GUINT_TO_POINTER(1));
    }
}

static void
test_get_int(void)
{
    static const struct {
        const char *query;
        gint64 min, max;
        bool ok;
        gint64 value;
    } cases[] = {
        {"n=5", 1, 10, true, 5},
        {"n=1", 1, 10, true, 1},
        {"n=10", 1, 10, true, 10},
        {"n=007", 1, 10, true, 7},
        {"n=-3", -5, 5, true, -3},
        {"n=9223372036854775807", 0, G_MAXINT64, true, G_MAXINT64},
        {"n=-9223372036854775808", G_MININT64, 0, true, G_MININT64},
        {"m=5", 1, 10, true, 77},
        {NULL, 1, 10, true, 77},
        {"n=0", 1, 10, false, 0},
        {"n=11", 1, 10, false, 0},
        {"n=-1", 0, 10, false, 0},
        {"n=9223372036854775808", 0, G_MAXINT64, false, 0},
        {"n=-9223372036854775809", G_MININT64, 0, false, 0},
        {"n=99999999999999999999999999", 0, G_MAXINT64, false, 0},
        {"n=", 0, 10, false, 0},
        {"n", 0, 10, false, 0},
        {"n=+5", 0, 10, false, 0},
        {"n=%2B5", 0, 10, false, 0},
        {"n=%205", 0, 10, false, 0},
        {"n=5%20", 0, 10, false, 0},
        {"n=5x", 0, 10, false, 0},
        {"n=0x5", 0, 10, false, 0},
        {"n=5.0", 0, 10, false, 0},
        {"n=5e0", 0, 10, false, 0},
        {"n=--5", -10, 10, false, 0},
        {"n=%D9%A5", 0, 10, false, 0}, /* a digit, but not one of ours */
        {"n=5&n=5", 0, 10, false, 0},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        gint64 value = 77;
        g_autoptr(GError) error = NULL;
        bool ok = url_query_get_int(cases[i].query, "n", cases[i].min, cases[i].max, &value, &error);

        g_test_message("%s", cases[i].query);
        g_assert_cmpint(ok, ==, cases[i].ok);
        g_assert_cmpint(value, ==, ok ? cases[i].value : 77);
        if (!ok)
            g_assert_error(error, ERR_DOMAIN, ERR_INVALID);
    }
    g_autoptr(GError) error = NULL;
    gint64 value;

    g_assert_false(url_query_get_int("n=0", "n", 1, 500, &value, &error));
    g_assert_cmpstr(error->message, ==, "'n' must be a whole number from 1 to 500");
}

static void
test_only(void)
{
    static const char *const names[] = {"after", "limit", "kind", NULL};
    static const struct {
        const char *query;
        const char *message; /* NULL: fine */
    } cases[] = {
        {NULL, NULL},
        {"", NULL},
        {"&&", NULL},
        {"after=1", NULL},
        {"kind=a&after=1&limit", NULL},
        {"k%69nd=a", NULL},
        {"kind=%zz", NULL}, /* the values are url_query_get()'s to judge */
        {"afte=1", "there is no parameter 'afte'"},
        {"afters=1", "there is no parameter 'afters'"},
        {"After=1", "there is no parameter 'After'"},
        {"kind=a&x%20y=1&z=2", "there is no parameter 'x y'"},
        {"=1", "there is no parameter ''"},
        {"%ff=1", "the query has a parameter name that cannot be read"},
        {"%zz=1", "the query has a parameter name with a broken escape"},
        {"%C3%A9%C3%A9%C3%A9%C3%A9%C3%A9%C3%A9%C3%A9%C3%A9%C3%A9%C3%A9aaaaaaaaaabbbbbbbbbbcccccccccc%C3%A9d",
         "there is no parameter 'ééééééééééaaaaaaaaaabbbbbbbbbbcccccccccc'"},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(GError) error = NULL;
        bool ok = url_query_only(cases[i].query, names, &error);

        g_test_message("%s", cases[i].query);
        g_assert_cmpint(ok, ==, cases[i].message == NULL);
        g_assert_cmpstr(ok ? NULL : error->message, ==, cases[i].message);
    }
    static const char *const none[] = {NULL};

    g_assert_true(url_query_only("", none, NULL));
    g_assert_false(url_query_only("a", none, NULL));
}

static void
test_cookie(void)
{
    static const struct {
        const char *header;
        const char *value;
    } cases[] = {
        {NULL, NULL},
        {"", NULL},
        {";", NULL},
        {"coop=1", "1"},
        {"coop=", ""},
        {"coop=\"\"", ""},
        {"coop=\"a b\"", "a b"},
        {"coop=\"", "\""},
        {"coop=\"a", "\"a"},
        {"coop=a\"", "a\""},
        {"coop=a=b==", "a=b=="},
        {"coop=a%20b", "a%20b"}, /* cookies know no escapes */
        {"a=1; coop=2; b=3", "2"},
        {"a=1;coop=2;b=3", "2"},
        {"  coop  =\t2  ", "2"},
        {"a=1;;coop=2", "2"},
        {"a=1; ; coop=2;", "2"},
        {"noise; coop=2", "2"},
        {"coop; coop=2", "2"},
        {"coop=1; coop=2", "1"},
        {"a=\"x; coop=2", "2"},
        {"a=\"; coop=2\"", "2\""},
        {"coo=1; coop=2", "2"},
        {"coops=1; coop=2", "2"},
        {"xcoop=1; coop=2", "2"},
        {"coo=1", NULL},
        {"coops=1", NULL},
        {"xcoop=1", NULL},
        {"Coop=1", NULL},
        {"coop", NULL},
        {"a=coop=1", NULL},
        {"a=1, coop=2", NULL},
        {"\"coop\"=1", NULL},
        {"=coop", NULL},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *value = http_cookie_get(cases[i].header, "coop");

        g_test_message("%s", cases[i].header);
        g_assert_cmpstr(value, ==, cases[i].value);
    }
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/http/url/decode", test_decode);
    g_test_add_func("/http/url/get", test_get);
    g_test_add_func("/http/url/get-refuses", test_get_refuses);
    g_test_add_func("/http/url/get-int", test_get_int);
    g_test_add_func("/http/url/only", test_only);
    g_test_add_func("/url/get-bytes", test_get_bytes);
    g_test_add_func("/url/encode-path", test_encode_path);
    g_test_add_func("/http/url/cookie", test_cookie);
    return g_test_run();
}

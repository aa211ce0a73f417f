/* SPDX-License-Identifier: Apache-2.0 */
#include <glib.h>
#include <string.h>

#include "base/err.h"
#include "json/json.h"

static void
check_bad(const char *text, size_t n)
{
    g_autoptr(GError) error = NULL;

    g_assert_null(json_decode(text, n, &error));
    g_assert_error(error, ERR_DOMAIN, ERR_INVALID);
    g_assert_true(g_utf8_validate(error->message, -1, NULL));
}

static void
test_decode_bad(void)
{
    static const char *const texts[] = {
        "", " ", "nul", "{", "}", "[1,]", "{\"a\":1,}", "{a:1}", "{'a':1}", "[1] [2]", "[1]x", "{\"a\" 1}",
        "01", "+1", "1.", ".5", "0x10", "NaN", "Infinity", "-Infinity", "[NaN]", "1e999",
        "99999999999999999999", "\"abc", "\"\t\"", "\"\n\"", "\"\\x41\"", "\"\\u12\"", "/* c */ 1",
        "\xef\xbb\xbf{}",
        /* twice the same key, also when it is spelled differently */
        "{\"a\":1,\"a\":1}", "{\"a\":1,\"\\u0061\":2}", "[{\"b\":{\"a\":1,\"a\":2}}]",
        /* surrogates without a partner */
        "\"\\ud800\"", "\"\\udc00\"", "\"\\ud800x\"", "\"\\ud800\\ud800\"", "\"\\udc00\\ud800\"",
        /* not UTF-8: a stray byte, an overlong slash, a surrogate, past the end, cut */
        "\"\x80\"", "\"\xff\"", "\"\xc0\xaf\"", "\"\xed\xa0\x80\"", "\"\xf4\x90\x80\x80\"", "\"\xe2\x82\"",
        "{\"\xff\":1}",
        /* NUL, spelled or as a byte */
        "\"\\u0000\"", "{\"a\\u0000b\":1}"};

    for (size_t i = 0; i < G_N_ELEMENTS(texts); i++) {
        g_test_message("%s", texts[i]);
        check_bad(texts[i], strlen(texts[i]));
    }
    check_bad("\"a\0b\"", 5);
    check_bad("{}\0", 3);
}

static void
test_decode_good(void)
{
    /* decoded and written again */
    static const char *const texts[][2] = {
        {"null", "null"},
        {" [ 1 , -2 , true ] \n", "[1,-2,true]"},
        {"\"\\u00e9\\ud83d\\ude00\\\"\\\\\\/\"", "\"\xc3\xa9\xf0\x9f\x98\x80\\\"\\\\/\""},
        {"{\"b\":{},\"a\":[]}", "{\"b\":{},\"a\":[]}"},
        {"9223372036854775807", "9223372036854775807"},
        {"-9223372036854775808", "-9223372036854775808"},
        {"\"\\u0001\"", "\"\\u0001\""},
        {"{\"\":\"\"}", "{\"\":\"\"}"},
        {"\"[[[{{{\"", "\"[[[{{{\""},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(texts); i++) {
        g_autoptr(GError) error = NULL;
        g_autoptr(Json) value = json_decode(texts[i][0], strlen(texts[i][0]), &error);

        g_assert_no_error(error);
        g_autofree char *again = json_encode(value);
        g_assert_cmpstr(again, ==, texts[i][1]);
    }
}

static void
check_depth(guint depth, const char *open, const char *close, bool is_good)
{
    g_autoptr(GString) text = g_string_new(NULL);
    g_autoptr(GError) error = NULL;

    for (guint i = 0; i < depth; i++)
        g_string_append(text, open);
    g_string_append(text, "0");
    for (guint i = 0; i < depth; i++)
        g_string_append(text, close);
    g_autoptr(Json) value = json_decode(text->str, text->len, &error);
    g_test_message("%u times '%s'", depth, open);
    g_assert_true((value != NULL) == is_good);
    g_assert_true((error == NULL) == is_good);
}

static void
test_depth(void)
{
    g_autofree char *brackets = g_strnfill(5000, '[');
    g_autofree char *in_string = g_strdup_printf("[\"\\\"%s\\\\\",\"%s\"]", brackets, brackets);
    g_autofree char *wide = g_strnfill(2 * 10001, ' ');
    g_autoptr(GError) error = NULL;

    check_depth(JSON_DEPTH_MAX, "[", "]", true);
    check_depth(JSON_DEPTH_MAX + 1, "[", "]", false);
    check_depth(JSON_DEPTH_MAX, "{\"a\":", "}", true);
    check_depth(JSON_DEPTH_MAX + 1, "{\"a\":", "}", false);
    check_depth(JSON_DEPTH_MAX / 2, "[{\"a\":", "}]", true);
    check_depth(JSON_DEPTH_MAX / 2 + 1, "[{\"a\":", "}]", false);
    check_depth(100000, "[", "]", false);

    G_GNUC_UNUSED g_autoptr(Json) strings = json_decode(in_string, strlen(in_string), &error);
    g_assert_no_error(error);
    /* Many beside each other are not deep. */
    wide[0] = '[';
    for (guint i = 0; i < 5000; i++)
        memcpy(wide + 1 + 4 * i, i < 4999 ? "[],\n" : "[]  ", 4);
    wide[2 * 10001 - 1] = ']';
    g_autoptr(Json) many = json_decode(wide, strlen(wide), &error);
    g_assert_no_error(error);
    g_assert_cmpuint(json_array_size(many), ==, 5000);
    check_bad(brackets, 5000);
}

/* What is only passed on: as many values as were said, and fewer levels. */
static void
test_foreign(void)
{
    static const struct {
        const char *text;
        size_t values; /* at most */
    } cases[] = {
        {"1", 1}, {"\"[,{,\"", 1}, {"[1,2]", 3}, {"{\"a\":{},\"b\":[]}", 5}, {"[\"\\\",\",[1,[2]]]", 6},
    };
    g_autofree char *deep = g_strnfill(2 * JSON_FOREIGN_DEPTH_MAX + 2, ']');

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        size_t n = strlen(cases[i].text), values = 0;
        g_autoptr(GError) error = NULL;
        g_autoptr(Json) fits = json_decode_foreign(cases[i].text, n, cases[i].values, &values, NULL);

        g_assert_nonnull(fits);
        g_assert_cmpuint(values, ==, cases[i].values);
        g_assert_null(json_decode_foreign(cases[i].text, n, cases[i].values - 1, NULL, &error));
        g_assert_error(error, ERR_DOMAIN, ERR_LIMIT);
    }
    memset(deep, '[', JSON_FOREIGN_DEPTH_MAX + 1);
    g_assert_null(json_decode_foreign(deep, strlen(deep), 1000, NULL, NULL));
    g_autoptr(Json) flatter = json_decode_foreign(deep + 1, strlen(deep) - 2, 1000, NULL, NULL);
    g_assert_nonnull(flatter);
}

/* Whatever is wrong with the text, the message can be put into an answer. */
static void
test_messages_are_text(void)
{
    static const char seed[] =
        "{\"caf\xc3\xa9 \xf0\x9f\x98\x80\":[1,2.5,true,null,\"\xe2\x82\xac\\u00e9\"],\"b\":{}}";
    guint bad = 0;

    for (guint i = 0; i < 20000; i++) {
        g_autofree char *text = g_strdup(seed);
        size_t n = (size_t)g_test_rand_int_range(1, sizeof seed);
        g_autoptr(GError) error = NULL;

        for (gint k = g_test_rand_int_range(1, 4); k > 0; k--)
            text[g_test_rand_int_range(0, (gint)n)] = (char)g_test_rand_int_range(0, 256);
        g_autoptr(Json) value = json_decode(text, n, &error);
        if (value != NULL)
            continue;
        bad++;
        g_assert_true(g_utf8_validate(error->message, -1, NULL));
    }
    g_assert_cmpuint(bad, >, 1000);
}

typedef struct Request {
    const char *name;
    gint64 count;
    bool flag;
    double share;
    Json *object, *array;
} Request;

static bool
read_request(const char *text, Request *ret_request, Json **ret_json, GError **error)
{
    const JsonField fields[] = {
        {"name", JSON_KIND_STRING, &ret_request->name, true, 2, 5},
        {"count", JSON_KIND_INT, &ret_request->count, false, -3, 10},
        {"flag", JSON_KIND_BOOL, &ret_request->flag, false, 0, 0},
        {"share", JSON_KIND_NUMBER, &ret_request->share, false, 0, 4},
        {"object", JSON_KIND_OBJECT, &ret_request->object, false, 0, 0},
        {"array", JSON_KIND_ARRAY, &ret_request->array, false, 0, 2},
        {NULL},
    };

    *ret_json = json_decode(text, strlen(text), error);
    return *ret_json != NULL && json_read(*ret_json, fields, error);
}

static void
test_read_good(void)
{
    Request r = {.count = 7, .flag = true};
    g_autoptr(Json) small = NULL;
    g_autoptr(Json) full = NULL;
    g_autoptr(GError) error = NULL;

    g_assert_true(read_request("{\"name\":\"ab\"}", &r, &small, &error));
    g_assert_no_error(error);
    g_assert_cmpstr(r.name, ==, "ab");
    g_assert_cmpint(r.count, ==, 7);
    g_assert_true(r.flag);
    g_assert_null(r.object);

    g_assert_true(
        read_request("{\"array\":[1,2],\"object\":{\"x\":1},\"flag\":false,\"count\":-3,\"share\":1.5,"
                     "\"name\":\"\\u00e9\\u00e9x\"}",
                     &r, &full, &error));
    g_assert_no_error(error);
    g_assert_cmpstr(r.name, ==, "\xc3\xa9\xc3\xa9x");
    g_assert_cmpint(r.count, ==, -3);
    g_assert_false(r.flag);
    g_assert_cmpfloat(r.share, ==, 1.5);
    g_assert_cmpuint(json_object_size(r.object), ==, 1);
    g_assert_cmpuint(json_array_size(r.array), ==, 2);
}

static void
test_read_bad(void)
{
    static const struct {
        const char *text, *message;
    } cases[] = {
        {"[]", "must be a JSON object"},
        {"\"x\"", "must be a JSON object"},
        {"null", "must be a JSON object"},
        {"{}", "field 'name' is missing"},
        {"{\"count\":1}", "field 'name' is missing"},
        {"{\"name\":\"ab\",\"nam\":1}", "unknown field 'nam'"},
        {"{\"name\":\"ab\",\"Name\":\"x\"}", "unknown field 'Name'"},
        {"{\"name\":1}", "'name' must be a string"},
        {"{\"name\":null}", "'name' must be a string"},
        {"{\"name\":\"\"}", "'name' is shorter than 2 bytes"},
        {"{\"name\":\"a\"}", "'name' is shorter than 2 bytes"},
        {"{\"name\":\"abcdef\"}", "'name' is longer than 5 bytes"},
        {"{\"name\":\"\\u00e9\\u00e9\\u00e9\"}", "'name' is longer than 5 bytes"},
        {"{\"name\":\"ab\",\"count\":\"1\"}", "'count' must be a whole number"},
        {"{\"name\":\"ab\",\"count\":1.0}", "'count' must be a whole number"},
        {"{\"name\":\"ab\",\"count\":true}", "'count' must be a whole number"},
        {"{\"name\":\"ab\",\"count\":11}", "'count' must be from -3 to 10"},
        {"{\"name\":\"ab\",\"count\":-4}", "'count' must be from -3 to 10"},
        {"{\"name\":\"ab\",\"flag\":1}", "'flag' must be true or false"},
        {"{\"name\":\"ab\",\"flag\":null}", "'flag' must be true or false"},
        {"{\"name\":\"ab\",\"share\":\"1\"}", "'share' must be a number"},
        {"{\"name\":\"ab\",\"share\":4.5}", "'share' must be from 0 to 4"},
        {"{\"name\":\"ab\",\"share\":-0.5}", "'share' must be from 0 to 4"},
        {"{\"name\":\"ab\",\"object\":[]}", "'object' must be an object"},
        {"{\"name\":\"ab\",\"array\":{}}", "'array' must be a list"},
        {"{\"name\":\"ab\",\"array\":[1,2,3]}", "'array' has more than 2 elements"},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        Request r = {0};
        g_autoptr(Json) json = NULL;
        g_autoptr(GError) error = NULL;

        g_test_message("%s", cases[i].text);
        g_assert_false(read_request(cases[i].text, &r, &json, &error));
        g_assert_error(error, ERR_DOMAIN, ERR_INVALID);
        g_assert_nonnull(strstr(error->message, cases[i].message));
    }
}

/* Not from json_decode(), which refuses it, but from a value that a program built. */
static void
test_read_nul(void)
{
    const char *name = "unset";
    const JsonField fields[] = {{"name", JSON_KIND_STRING, &name, true, 0, 0}, {NULL}};
    g_autoptr(Json) object = json_pack("{s:s#}", "name", "a\0b", 3);
    g_autoptr(Json) empty = json_pack("{s:s}", "name", "");
    g_autoptr(GError) error = NULL;

    g_assert_false(json_read(object, fields, &error));
    g_assert_error(error, ERR_DOMAIN, ERR_INVALID);
    g_assert_cmpstr(name, ==, "unset");
    g_assert_true(json_read(empty, fields, NULL));
    g_assert_cmpstr(name, ==, "");
}

static void
test_read_empty(void)
{
    const char *name = NULL;
    const JsonField fields[] = {{"name", JSON_KIND_STRING, &name, true, 1, 5}, {NULL}};
    g_autoptr(Json) object = json_pack("{s:s}", "name", "");
    g_autoptr(GError) error = NULL;

    g_assert_false(json_read(object, fields, &error));
    g_assert_cmpstr(error->message, ==, "'name' must not be empty");
}

static void
test_long_unknown_field(void)
{
    static const JsonField fields[] = {{NULL}};

    for (guint before = 60; before < 68; before++) {
        g_autofree char *fill = g_strnfill(before, 'a');
        g_autofree char *text = g_strdup_printf("{\"%s\xf0\x9f\x98\x80zzzz\":1}", fill);
        g_autoptr(Json) object = json_decode(text, strlen(text), NULL);
        g_autoptr(GError) error = NULL;

        g_assert_false(json_read(object, fields, &error));
        g_assert_true(g_utf8_validate(error->message, -1, NULL));
        g_assert_cmpuint(strlen(error->message), <, 100);
    }
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/json/decode/good", test_decode_good);
    g_test_add_func("/json/decode/bad", test_decode_bad);
    g_test_add_func("/json/decode/messages", test_messages_are_text);
    g_test_add_func("/json/depth", test_depth);
    g_test_add_func("/json/foreign", test_foreign);
    g_test_add_func("/json/read/good", test_read_good);
    g_test_add_func("/json/read/bad", test_read_bad);
    g_test_add_func("/json/read/nul", test_read_nul);
    g_test_add_func("/json/read/empty", test_read_empty);
    g_test_add_func("/json/read/long-unknown-field", test_long_unknown_field);
    return g_test_run();
}

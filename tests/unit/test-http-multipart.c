/* SPDX-License-Identifier: Apache-2.0 */
#include <glib.h>
#include <stdint.h>
#include <string.h>

#include "base/err.h"
#include "http/multipart.h"

#define TYPE "multipart/form-data; boundary=XX"
#define HEAD(name) "Content-Disposition: form-data; name=\"" name "\"\r\n\r\n"
#define END "\r\n--XX--\r\n"

/* What the reader said: "[name|filename|type]content." for each part that ended. */
static bool
on_part(const MultipartPart *part, void *ctx, GError **error)
{
    g_string_append_printf(ctx, "[%s|%s|%s]", part->name, part->filename != NULL ? part->filename : "-",
                           part->content_type != NULL ? part->content_type : "-");
    return true;
}

static bool
on_data(const guint8 *bytes, size_t n, void *ctx, GError **error)
{
    g_assert_cmpuint(n, >, 0);
    g_string_append_len(ctx, (const char *)bytes, (gssize)n);
    return true;
}

static bool
on_end(void *ctx, GError **error)
{
    g_string_append_c(ctx, '.');
    return true;
}

static const MultipartHandler handler = {.part = on_part, .data = on_data, .part_end = on_end};

/* Feeds `body` in two pieces, or, with SIZE_MAX, byte by byte; exact copies, so that a read past
 * a piece is seen. */
static bool
read_body(const char *type, const char *body, size_t n, size_t cut, GString *log, GError **error)
{
    g_autoptr(Multipart) mp = multipart_new(type, &handler, log, error);

    if (mp == NULL)
        return false;
    for (size_t i = 0; i < n;) {
        size_t piece = cut == SIZE_MAX ? 1 : i < cut ? cut - i : n - i;
        g_autofree guint8 *exact = g_memdup2(body + i, piece);

        if (!multipart_feed(mp, exact, piece, error)) {
            g_assert_false(multipart_feed(mp, (const guint8 *)"x", 1, NULL));
            g_assert_false(multipart_feed(mp, NULL, 0, NULL));
            g_assert_false(multipart_finish(mp, NULL));
            return false;
        }
        i += piece;
    }
    return multipart_finish(mp, error);
}

typedef struct Case {
    const char *body;
    const char *said;  /* NULL: refused */
    const char *error; /* then with this message */
} Case;

static const Case bodies[] = {
    {"--XX\r\n" HEAD("a") "1" END, "[a|-|-]1."},
    {"--XX\r\n" HEAD("a") "1\r\n--XX--", "[a|-|-]1."},
    {"--XX\r\n" HEAD("a") "1\r\n--XX\r\n" HEAD("b") "2" END, "[a|-|-]1.[b|-|-]2."},
    {"--XX--\r\n", ""},
    {"--XX--", ""},
    /* an empty part, with and without the line end that belongs to the delimiter */
    {"--XX\r\n" HEAD("a") END, "[a|-|-]."},
    {"--XX\r\n" HEAD("a") "--XX--\r\n", "[a|-|-]."},
    {"--XX\r\n" HEAD("a") "--XX\r\n" HEAD("b") END, "[a|-|-].[b|-|-]."},

    /* content that looks like a delimiter and is none */
    {"--XX\r\n" HEAD("a") "--X" END, "[a|-|-]--X."},
    {"--XX\r\n" HEAD("a") "-" END, "[a|-|-]-."},
    {"--XX\r\n" HEAD("a") "--" END, "[a|-|-]--."},
    {"--XX\r\n" HEAD("a") "x--XX--\r\n" END, "[a|-|-]x--XX--\r\n."},
    {"--XX\r\n" HEAD("a") "\n--XX--\n" END, "[a|-|-]\n--XX--\n."},
    {"--XX\r\n" HEAD("a") "\r--XX--" END, "[a|-|-]\r--XX--."},
    {"--XX\r\n" HEAD("a") "\r\n" END, "[a|-|-]\r\n."},
    {"--XX\r\n" HEAD("a") "\r\n\r\n" END, "[a|-|-]\r\n\r\n."},
    {"--XX\r\n" HEAD("a") "\r\r\n--X\r\r\n-" END, "[a|-|-]\r\r\n--X\r\r\n-."},
    {"--XX\r\n" HEAD("a") "\r\n--xx--" END, "[a|-|-]\r\n--xx--."},
    {"--XX\r\n" HEAD("a") "\r\n- -XX" END, "[a|-|-]\r\n- -XX."},
    {"--XX\r\n" HEAD("a") "\r\n--\r\n--X\r\n--XY" END, "[a|-|-]\r\n--\r\n--X\r\n--XY."},
    {"--XX\r\n" HEAD("a") "\r\n--X\r\r\n--XX--", "[a|-|-]\r\n--X\r."},

    {"hello\r\n--XX\r\n" HEAD("a") "1" END, "[a|-|-]1."},
    {"\r\n--XX\r\n" HEAD("a") "1" END, "[a|-|-]1."},
    {"--X\r\n--XX\r\n" HEAD("a") "1" END, "[a|-|-]1."},
    {"x--XX\r\n\r\n--XX\r\n" HEAD("a") "1" END, "[a|-|-]1."},
    {"--XX\r\n" HEAD("a") "1" END "bye\r\n--XX\r\nbye", "[a|-|-]1."},

    {"", NULL, "the body does not have the boundary that its Content-Type names"},
    {"--", NULL, "the body does not have the boundary that its Content-Type names"},
    {"hello", NULL, "the body does not have the boundary that its Content-Type names"},
    {"x--XX--\r\n", NULL, "the body does not have the boundary that its Content-Type names"},
    {"\n--XX--\n", NULL, "the body does not have the boundary that its Content-Type names"},
    {"--XY--\r\n", NULL, "the body does not have the boundary that its Content-Type names"},
    {"--XX", NULL, "the body ends before its closing boundary"},
    {"--XX\r\n", NULL, "the body ends before its closing boundary"},
    {"--XX-", NULL, "the body ends before its closing boundary"},
    {"--XX\r\n" HEAD("a") "1", NULL, "the body ends before its closing boundary"},
    {"--XX\r\n" HEAD("a") "1\r\n--XX", NULL, "the body ends before its closing boundary"},
    {"--XX\r\n" HEAD("a") "1\r\n--XX-", NULL, "the body ends before its closing boundary"},
    {"--XX\r\n" HEAD("a") "1\r\n--XX\r\n", NULL, "the body ends before its closing boundary"},
    {"--XX--\r", NULL, "the body ends before its closing boundary"},
    {"--XXY--\r\n", NULL, "a boundary is followed by neither CRLF nor '--'"},
    {"--XX \r\n" HEAD("a") "1" END, NULL, "a boundary is followed by neither CRLF nor '--'"},
    {"--XX\n" HEAD("a") "1" END, NULL, "a boundary is followed by neither CRLF nor '--'"},
    {"--XX\r" HEAD("a") "1" END, NULL, "a boundary is followed by neither CRLF nor '--'"},
    {"--XX-\r\n", NULL, "a boundary is followed by neither CRLF nor '--'"},
    {"--XX--\n", NULL, "a boundary is followed by neither CRLF nor '--'"},
    {"--XX---", NULL, "a boundary is followed by neither CRLF nor '--'"},
    {"--XX\r\n" HEAD("a") "1\r\n--XXY" END, NULL, "a boundary is followed by neither CRLF nor '--'"},
    {"--XX\r\n" HEAD("a") "1\r\n--XX\n" END, NULL, "a boundary is followed by neither CRLF nor '--'"},
};

static const Case heads[] = {
    {"Content-Disposition: form-data; name=a\r\n", "[a|-|-]1."},
    {"content-disposition:form-data;name=a\r\n", "[a|-|-]1."},
    {"CONTENT-DISPOSITION:\tFORM-DATA ;\tNAME=\"a\" ;\r\n", "[a|-|-]1."},
    {"Content-Disposition: form-data; name=\"\"\r\n", "[|-|-]1."},
    {"Content-Disposition: form-data; name=\"a\"; filename=\"f.txt\"\r\nContent-Type: text/plain\r\n",
     "[a|f.txt|text/plain]1."},
    {"Content-Type:   text/plain; charset=utf-8  \r\nContent-Disposition: form-data; name=a; filename=f\r\n",
     "[a|f|text/plain; charset=utf-8]1."},
    {"Content-Disposition: form-data; name=a; filename=\"\"\r\n", "[a||-]1."},
    {"Content-Disposition: form-data; filename=\"f\"; name=\"a\"\r\n", "[a|f|-]1."},
    {"Content-Disposition: form-data; name=\"a;b=\\\"c\\\"\"; filename=\"x; name=y\"\r\n",
     "[a;b=\"c\"|x; name=y|-]1."},
    {"Content-Disposition: form-data; name=\"a\\\\b\"; filename=\"C:\\dir\\f.txt\"\r\n",
     "[a\\b|C:\\dir\\f.txt|-]1."},
    {"Content-Disposition: form-data; name=\"a%22b\"; filename=\"../../etc/passwd\"\r\n",
     "[a%22b|../../etc/passwd|-]1."},
    {"Content-Disposition: form-data; name=\"é\"; filename=\"naïve.txt\"\r\n", "[é|naïve.txt|-]1."},
    {"Content-Disposition: form-data; name=a; filename*=UTF-8''x; size=3\r\n", "[a|-|-]1."},
    {"Content-Disposition: form-data;; name=a;;\r\n", "[a|-|-]1."},
    {"X-Other: 1\r\nContent-Disposition: form-data; name=a\r\nContent-Length: 99\r\n", "[a|-|-]1."},
    {"Content-Disposition: form-data; name=a\r\nContent-Transfer-Encoding: BINARY\r\n", "[a|-|-]1."},

    {"", NULL, "part 1: there is no Content-Disposition"},
    {"Content-Type: text/plain\r\n", NULL, "part 1: there is no Content-Disposition"},
    {"Content-Disposition: form-data\r\n", NULL, "part 1: the Content-Disposition has no name"},
    {"Content-Disposition: form-data; filename=f\r\n", NULL, "part 1: the Content-Disposition has no name"},
    {"Content-Disposition: attachment; name=a\r\n", NULL,
     "part 1: the Content-Disposition must be form-data"},
    {"Content-Disposition: form-datax; name=a\r\n", NULL,
     "part 1: the Content-Disposition must be form-data"},
    {"Content-Disposition: form-data name=a\r\n", NULL, "part 1: the Content-Disposition must be form-data"},
    {"Content-Disposition:\r\n", NULL, "part 1: the Content-Disposition must be form-data"},
    {"Content-Disposition: form-data; name\r\n", NULL,
     "part 1: the Content-Disposition's parameters are malformed"},
    {"Content-Disposition: form-data; name=\r\n", NULL,
     "part 1: the Content-Disposition's parameters are malformed"},
    {"Content-Disposition: form-data; name =a\r\n", NULL,
     "part 1: the Content-Disposition's parameters are malformed"},
    {"Content-Disposition: form-data; =a\r\n", NULL,
     "part 1: the Content-Disposition's parameters are malformed"},
    {"Content-Disposition: form-data; name=\"a\r\n", NULL,
     "part 1: the Content-Disposition's parameters are malformed"},
    {"Content-Disposition: form-data; name=\"a\\\"\r\n", NULL,
     "part 1: the Content-Disposition's parameters are malformed"},
    {"Content-Disposition: form-data; name=\"a\"b\r\n", NULL,
     "part 1: the Content-Disposition's parameters are malformed"},
    {"Content-Disposition: form-data; name=a\"b\"\r\n", NULL,
     "part 1: the Content-Disposition's parameters are malformed"},
    {"Content-Disposition: form-data; name=a b\r\n", NULL,
     "part 1: the Content-Disposition's parameters are malformed"},
    {"Content-Disposition: form-data; name=a; name=b\r\n", NULL, "part 1: name is given twice"},
    {"Content-Disposition: form-data; name=a; filename=b; Filename=c\r\n", NULL,
     "part 1: filename is given twice"},
    {"Content-Disposition: form-data; name=a\r\nContent-Disposition: form-data; name=b\r\n", NULL,
     "part 1: Content-Disposition is given twice"},
    {"Content-Disposition: form-data; name=a\r\nContent-Type: a/b\r\ncontent-type: c/d\r\n", NULL,
     "part 1: Content-Type is given twice"},
    {"Content-Disposition: form-data; name=a\r\nContent-Transfer-Encoding: base64\r\n", NULL,
     "part 1: its Content-Transfer-Encoding is not supported: send it as binary"},
    {"Content-Disposition: form-data;\r\n name=a\r\n", NULL, "part 1: the Content-Disposition has no name"},
    {"Content-Disposition: form-data; name=a\r\n fold: x\r\n", NULL,
     "part 1: a header line is not 'Name: value'"},
    {"Content-Disposition : form-data; name=a\r\n", NULL, "part 1: a header line is not 'Name: value'"},
    {"x\r\n", NULL, "part 1: a header line is not 'Name: value'"},
    {"no colon\r\n", NULL, "part 1: a header line is not 'Name: value'"},
    {": x\r\n", NULL, "part 1: a header line is not 'Name: value'"},
    {"Content-Disposition: form-data; name=a\n", NULL, "part 1: a header line does not end with CRLF"},
    {"Content-Disposition: form-data; name=a\rX: y\r\n", NULL,
     "part 1: a header line does not end with CRLF"},
    {"Content-Disposition: form-data; name=\"a\nb\"\r\n", NULL,
     "part 1: a header line does not end with CRLF"},
    {"Content-Disposition: form-data; name=\"a\x01\"\r\n", NULL, "part 1: a header has a control character"},
    {"Content-Disposition: form-data; name=\"a\x7f\"\r\n", NULL, "part 1: a header has a control character"},
    {"Content-Disposition: form-data; name=\"\xff\"\r\n", NULL, "part 1: a header is not valid UTF-8"},
};

static void
check_case(const char *body, size_t n, const Case *c)
{
    g_autofree char *shown = g_strescape(body, NULL);

    g_test_message("%s", shown);
    for (size_t cut = 0; cut <= n; cut++) {
        g_autoptr(GString) log = g_string_new(NULL);
        g_autoptr(GError) error = NULL;
        bool ok = read_body(TYPE, body, n, cut > 0 ? cut : SIZE_MAX, log, &error);

        if (c->said != NULL) {
            g_assert_no_error(error);
            g_assert_true(ok);
            g_assert_cmpstr(log->str, ==, c->said);
        } else {
            g_assert_false(ok);
            g_assert_error(error, ERR_DOMAIN, ERR_INVALID);
            g_assert_cmpstr(error->message, ==, c->error);
        }
    }
}

static void
test_bodies(void)
{
    for (size_t i = 0; i < G_N_ELEMENTS(bodies); i++)
        check_case(bodies[i].body, strlen(bodies[i].body), &bodies[i]);
}

static void
test_heads(void)
{
    for (size_t i = 0; i < G_N_ELEMENTS(heads); i++) {
        g_autofree char *body = g_strconcat("--XX\r\n", heads[i].body, "\r\n1" END, NULL);

        check_case(body, strlen(body), &heads[i]);
    }
    static const char nul[] = "--XX\r\nContent-Disposition: form-data; name=\"a\0\"\r\n\r\n1" END;
    static const Case refused = {.error = "part 1: a header has a NUL"};

    check_case(nul, sizeof nul - 1, &refused);
}

/* The end of a part is told only when what follows proves that it was one. */
static void
test_unfinished_part(void)
{
    static const struct {
        const char *body, *said;
    } cases[] = {
        {"--XX\r\n" HEAD("a") "1", "[a|-|-]1"},
        {"--XX\r\n" HEAD("a") "1\r\n--XX", "[a|-|-]1"},
        {"--XX\r\n" HEAD("a") "1\r\n--XX-", "[a|-|-]1"},
        {"--XX\r\n" HEAD("a") "1\r\n--XXY\r\n", "[a|-|-]1"},
        {"--XX\r\n" HEAD("a") "1\r\n--XX\r\nbad\r\n\r\n", "[a|-|-]1."},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(GString) log = g_string_new(NULL);

        g_assert_false(read_body(TYPE, cases[i].body, strlen(cases[i].body), SIZE_MAX, log, NULL));
        g_assert_cmpstr(log->str, ==, cases[i].said);
    }
}

static void
test_content_type(void)
{
    static const struct {
        const char *type;
        const char *boundary; /* NULL: refused */
    } cases[] = {
        {"multipart/form-data; boundary=XX", "XX"},
        {"Multipart/Form-Data;BOUNDARY=XX", "XX"},
        {"multipart/form-data; charset=utf-8; boundary=\"XX\"", "XX"},
        {"multipart/form-data; boundary=XX; charset=utf-8", "XX"},
        {"multipart/form-data ; boundary=\"a b:c\"", "a b:c"},
        {"multipart/form-data; boundary=----=_Part/1:2", "----=_Part/1:2"},
        {"multipart/form-data; "
         "boundary=1234567890123456789012345678901234567890123456789012345678901234567890",
         "1234567890123456789012345678901234567890123456789012345678901234567890"},
        {NULL, NULL},
        {"", NULL},
        {"multipart/form-data", NULL},
        {"multipart/form-data;", NULL},
        {"multipart/form-data; boundary", NULL},
        {"multipart/form-data; boundary=", NULL},
        {"multipart/form-data; boundary=\"\"", NULL},
        {"multipart/form-data; boundary=\"XX", NULL},
        {"multipart/form-data; boundary=\"XX \"", NULL},
        {"multipart/form-data; boundary=X\x01", NULL},
        {"multipart/form-data; boundary=\"X\tX\"", NULL},
        {"multipart/form-data; boundary=\"X\r\nX\"", NULL},
        {"multipart/form-data; boundary=X{}", NULL},
        {"multipart/form-data; boundary=é", NULL},
        {"multipart/form-data; boundary=XX; boundary=XX", NULL},
        {"multipart/form-data; "
         "boundary=12345678901234567890123456789012345678901234567890123456789012345678901",
         NULL},
        {"multipart/form-data boundary=XX", NULL},
        {"multipart/form-dat; boundary=XX", NULL},
        {"multipart/form-datas; boundary=XX", NULL},
        {"multipart/mixed; boundary=XX", NULL},
        {"application/x-www-form-urlencoded", NULL},
        {"xmultipart/form-data; boundary=XX", NULL},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(GString) log = g_string_new(NULL);
        g_autoptr(GError) error = NULL;
        g_autofree char *body = g_strdup_printf("--%s\r\n" HEAD("a") "1\r\n--%s--\r\n", cases[i].boundary,
                                                cases[i].boundary);
        bool ok = read_body(cases[i].type, body, strlen(body), SIZE_MAX, log, &error);

        g_test_message("%s", cases[i].type);
        g_assert_cmpint(ok, ==, cases[i].boundary != NULL);
        if (ok)
            g_assert_cmpstr(log->str, ==, "[a|-|-]1.");
        else
            g_assert_error(error, ERR_DOMAIN, ERR_INVALID);
    }
}

static char *
repeat(const char *before, const char *text, guint times, const char *after)
{
    GString *all = g_string_new(before);

    for (guint i = 0; i < times; i++)
        g_string_append(all, text);
    g_string_append(all, after);
    return g_string_free(all, FALSE);
}

/* `at_most` of the repeated text is accepted, one more is not. */
static void
check_bound(const char *before, const char *text, guint at_most, const char *after, const char *message)
{
    for (guint more = 0; more <= 1; more++) {
        g_autofree char *body = repeat(before, text, at_most + more, after);
        size_t cuts[] = {strlen(body), 4000, SIZE_MAX};

        for (size_t i = 0; i < G_N_ELEMENTS(cuts); i++) {
            g_autoptr(GString) log = g_string_new(NULL);
            g_autoptr(GError) error = NULL;
            bool ok = read_body(TYPE, body, strlen(body), cuts[i], log, &error);

            g_assert_cmpint(ok, ==, more == 0);
            g_assert_cmpstr(ok ? NULL : error->message, ==, more == 0 ? NULL : message);
        }
    }
}

static void
test_bounds(void)
{
    check_bound("--XX", "\r\n" HEAD("a") "1\r\n--XX", MULTIPART_PARTS_MAX, "--\r\n",
                "the body has more than 1000 parts");
    check_bound("--XX\r\nX: ", "x", MULTIPART_HEAD_MAX - (guint)strlen("X: \r\n" HEAD("a")),
                "\r\n" HEAD("a") END, "part 1: its headers are longer than 8192 bytes");
    check_bound("", "x", 8192, "\r\n--XX--", "more than 8192 bytes stand before the first boundary");
    check_bound("--XX--\r\n", "x", 8192, "", "more than 8192 bytes stand after the closing boundary");
}

static bool
refuse_part(const MultipartPart *part, void *ctx, GError **error)
{
    return err_set(error, ERR_DENIED, "no %s", part->name);
}

static bool
refuse_data(const guint8 *bytes, size_t n, void *ctx, GError **error)
{
    return err_set(error, ERR_FULL, "disk full");
}

static bool
refuse_end(void *ctx, GError **error)
{
    return err_set(error, ERR_CONFLICT, "end");
}

static void
test_handler_stops(void)
{
    static const struct {
        MultipartHandler handler;
        ErrKind kind;
    } cases[] = {
        {{refuse_part, on_data, on_end}, ERR_DENIED},
        {{on_part, refuse_data, on_end}, ERR_FULL},
        {{on_part, on_data, refuse_end}, ERR_CONFLICT},
    };
    static const char body[] = "--XX\r\n" HEAD("a") "1\r\n--XX\r\n" HEAD("b") "2" END;

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(GString) log = g_string_new(NULL);
        g_autoptr(GError) error = NULL;
        g_autoptr(Multipart) mp = multipart_new(TYPE, &cases[i].handler, log, &error);

        g_assert_false(multipart_feed(mp, (const guint8 *)body, strlen(body), &error));
        g_assert_error(error, ERR_DOMAIN, (int)cases[i].kind);
        g_assert_false(multipart_finish(mp, NULL));
        g_assert_null(strstr(log->str, "[b"));
    }
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/http/multipart/bodies", test_bodies);
    g_test_add_func("/http/multipart/heads", test_heads);
    g_test_add_func("/http/multipart/unfinished-part", test_unfinished_part);
    g_test_add_func("/http/multipart/content-type", test_content_type);
    g_test_add_func("/http/multipart/bounds", test_bounds);
    g_test_add_func("/http/multipart/handler-stops", test_handler_stops);
    return g_test_run();
}

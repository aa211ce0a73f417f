/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <glib.h>
#include <glib/gstdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/id.h"
#include "base/log.h"
#include "base/path.h"

static void
test_buf_refuses_past_max(void)
{
    g_auto(Buf) b;
    size_t n;

    buf_init(&b, 8);
    g_assert_true(buf_put(&b, "12345678", 8));
    g_assert_false(buf_put(&b, "9", 1));
    buf_skip(&b, 3);
    g_assert_cmpuint(buf_room(&b), ==, 3);
    g_assert_true(buf_put(&b, "abc", 3));
    const guint8 *p = buf_peek(&b, &n);
    g_assert_cmpmem(p, n, "45678abc", 8);
}

static void
test_path_is_normal(void)
{
    static const struct {
        const char *path;
        bool want;
    } cases[] = {
        {"/a", true},     {"/a/b.c/..d", true}, {"/...", true}, {"", false},        {"/", false},
        {"a", false},     {"/a/", false},       {"//a", false}, {"/a/../b", false}, {"/..", false},
        {"/a/..", false}, {"/./a", false},      {"/.", false},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_test_message("path '%s'", cases[i].path);
        g_assert_true(path_is_normal(cases[i].path) == cases[i].want);
    }
}

static void
test_log_escapes(void)
{
    const LogField fields[] = {log_str("path", "/a b\nlevel=error"), log_int("n", 7), {NULL}};
    g_autofree char *line = log_format(0, LOG_INFO, "http", "he\"y", fields);

    g_assert_cmpstr(line, ==,
                    "t=1970-01-01T00:00:00.000000Z level=info mod=http msg=\"he\\\"y\" "
                    "path=\"/a b\\nlevel=error\" n=7");
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/buf/max", test_buf_refuses_past_max);
    g_test_add_func("/path/normal", test_path_is_normal);
    g_test_add_func("/log/escapes", test_log_escapes);
    return g_test_run();
}

/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <glib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "base/log.h"

#define AT "t=1970-01-01T00:00:00.000000Z level=info mod=http msg="

static void
test_escapes(void)
{
    static const struct {
        const char *value, *written;
    } cases[] = {
        {"plain", "plain"},
        {"/a/b?c&d#~-_.:", "/a/b?c&d#~-_.:"},
        {"", "\"\""},
        {"two words", "\"two words\""},
        {"a=b", "\"a=b\""},
        {"say \"hi\"", "\"say \\\"hi\\\"\""},
        {"back\\slash", "\"back\\\\slash\""},
        {"x\nlevel=error", "\"x\\nlevel=error\""},
        {"\r\t\x1b[31m\x7f", "\"\\x0d\\x09\\x1b[31m\\x7f\""},
        {"caf\xc3\xa9", "\"caf\\xc3\\xa9\""},
        {"\xff\xfe", "\"\\xff\\xfe\""},
        {"\xe2\x80\xa8", "\"\\xe2\\x80\\xa8\""},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        const LogField fields[] = {log_str("key", cases[i].value), {NULL}};
        g_autofree char *line = log_format(0, LOG_INFO, "http", "hey", fields);
        g_autofree char *want = g_strconcat(AT "\"hey\" key=", cases[i].written, NULL);

        g_assert_cmpstr(line, ==, want);
    }
}

static void
test_fields(void)
{
    g_autoptr(GError) error = g_error_new(G_FILE_ERROR, 0, "no \"such\"\nthing");
    const LogField fields[] = {log_int("min", G_MININT64),
                               log_int("max", G_MAXINT64),
                               log_str("none", NULL),
                               log_gerror(error),
                               {NULL}};
    g_autofree char *line = log_format(1709164800123456, LOG_WARN, "store", "he\"y\n", fields);

    g_assert_cmpstr(line, ==,
                    "t=2024-02-29T00:00:00.123456Z level=warn mod=store msg=\"he\\\"y\\n\" "
                    "min=-9223372036854775808 max=9223372036854775807 none=\"\" "
                    "error=\"no \\\"such\\\"\\nthing\"");
}

/* A value is cut, and the line still ends where it should. */
static void
test_long_values(void)
{
    static const char fills[] = {'a', ' ', '"', '\x01', '\xc3'};

    for (size_t i = 0; i < G_N_ELEMENTS(fills); i++) {
        g_autofree char *value = g_strnfill(1 << 20, fills[i]);
        const LogField fields[] = {log_str("key", value), log_int("n", 1), {NULL}};
        g_autofree char *line = log_format(0, LOG_INFO, "http", value, fields);

        g_assert_cmpuint(strlen(line), <, 8192);
        g_assert_true(g_str_has_suffix(line, "…\" n=1"));
        g_assert_nonnull(strstr(line, "…\" key="));
        g_assert_null(strchr(line, '\n'));
        g_assert_true(g_utf8_validate(line, -1, NULL));
    }
}

static void
test_levels(void)
{
    static const struct {
        const char *spec, *module;
        LogLevel lowest;
    } cases[] = {
        {"", "http", LOG_INFO},
        {"debug", "http", LOG_DEBUG},
        {"error", "http", LOG_ERROR},
        {"http=debug", "http", LOG_DEBUG},
        {"http=debug", "https", LOG_INFO},
        {"http=debug", "htt", LOG_INFO},
        {"warn,http=debug", "http", LOG_DEBUG},
        {"http=debug,warn", "store", LOG_WARN},
        {" warn , http=error ", "http", LOG_ERROR},
        {"http=error,store=debug", "store", LOG_DEBUG},
        {"a-name-of-15-ch=debug", "a-name-of-15-ch", LOG_DEBUG},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_test_message("'%s' for %s", cases[i].spec, cases[i].module);
        g_assert_true(log_check_levels(cases[i].spec));
        g_assert_true(log_set_levels(cases[i].spec));
        for (LogLevel l = LOG_DEBUG; l < LOG_LEVEL_MAX; l++)
            g_assert_true(log_enabled(l, cases[i].module) == (l >= cases[i].lowest));
    }
    g_assert_true(log_set_levels("info"));
}

static void
test_malformed_levels(void)
{
    static const char *const specs[] = {"loud",
                                        "INFO",
                                        "info,",
                                        ",",
                                        "http=",
                                        "=debug",
                                        "http=loud",
                                        "http:debug",
                                        "info debug",
                                        "http=debug=info",
                                        "a-name-of-16-chr=debug"};
    g_autoptr(GString) many = g_string_new("info");

    g_assert_true(log_set_levels("error,http=debug"));
    for (size_t i = 0; i < G_N_ELEMENTS(specs); i++) {
        g_test_message("'%s'", specs[i]);
        g_assert_false(log_check_levels(specs[i]));
        g_assert_false(log_set_levels(specs[i]));
    }
    for (guint i = 0; i < 32; i++)
        g_string_append_printf(many, ",m%u=debug", i);
    g_assert_true(log_check_levels(many->str));
    g_string_append(many, ",one=debug");
    g_assert_false(log_set_levels(many->str));
    g_assert_false(log_set_levels(many->str + strlen("info,")));
    /* Nothing of them stuck. */
    g_assert_true(log_enabled(LOG_DEBUG, "http"));
    g_assert_false(log_enabled(LOG_WARN, "m1"));
    g_assert_true(log_set_levels("info"));
}

static char *
read_emitted(int fd)
{
    char text[4096];
    ssize_t n = read(fd, text, sizeof text);

    return n > 0 ? g_strndup(text, (gsize)n) : g_strdup("");
}

static void
test_emit(void)
{
    autofd saved = dup(STDERR_FILENO);
    int fds[2];

    g_assert_no_errno(pipe2(fds, O_NONBLOCK));
    g_assert_no_errno(dup2(fds[1], STDERR_FILENO));
    log_debug("http", "unheard");
    log_info("http", "heard", log_str("a", "b"), log_int("n", 2));
    log_error("http", "bare");
    g_assert_no_errno(dup2(saved, STDERR_FILENO));

    g_autofree char *text = read_emitted(fds[0]);
    g_auto(GStrv) lines = g_strsplit(text, "\n", -1);
    g_assert_cmpuint(g_strv_length(lines), ==, 3);
    g_assert_true(g_str_has_suffix(lines[0], " level=info mod=http msg=\"heard\" a=b n=2"));
    g_assert_true(g_str_has_suffix(lines[1], " level=error mod=http msg=\"bare\""));
    g_assert_cmpstr(lines[2], ==, "");
    close(fds[0]);
    close(fds[1]);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/log/escapes", test_escapes);
    g_test_add_func("/log/fields", test_fields);
    g_test_add_func("/log/long-values", test_long_values);
    g_test_add_func("/log/levels", test_levels);
    g_test_add_func("/log/malformed-levels", test_malformed_levels);
    g_test_add_func("/log/emit", test_emit);
    return g_test_run();
}

/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <glib.h>
#include <string.h>

#include "init/tar.h"
#include "wire/utf8.h"

static void
test_names(void)
{
    static const struct {
        const char *name;
        int error;
        const char *becomes;
    } cases[] = {
        {"a", 0, "a"},           {"a/b", 0, "a/b"},   {"./a", 0, "a"},       {"a/./b", 0, "a/b"},
        {"a//b/", 0, "a/b"},     {".", 0, ""},        {"./", 0, ""},         {"././.", 0, ""},
        {"...", 0, "..."},       {"..a", 0, "..a"},   {"", EINVAL, NULL},    {"/", EXDEV, NULL},
        {"/a", EXDEV, NULL},     {"..", EXDEV, NULL}, {"a/..", EXDEV, NULL}, {"../a", EXDEV, NULL},
        {"a/../b", EXDEV, NULL}, {"-rf", 0, "-rf"},   {" ", 0, " "},         {".//..", EXDEV, NULL},
    };

    for (guint i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *name = g_strdup(cases[i].name);

        g_test_message("'%s'", cases[i].name);
        g_assert_cmpint(tar_name_check(name), ==, cases[i].error);
        if (cases[i].error == 0)
            g_assert_cmpstr(name, ==, cases[i].becomes);
    }
    g_autofree char *part = g_strnfill(TAR_NAME_MAX + 1, 'n');
    g_assert_cmpint(tar_name_check(part), ==, ENAMETOOLONG);
    part[TAR_NAME_MAX] = '\0';
    g_assert_cmpint(tar_name_check(part), ==, 0);
    GString *deep = g_string_new("f");
    for (guint i = 1; i < TAR_DEPTH_MAX; i++)
        g_string_append(deep, "/f");
    g_assert_cmpint(tar_name_check(deep->str), ==, 0);
    g_string_append(deep, "/f");
    g_assert_cmpint(tar_name_check(deep->str), ==, ELOOP);
    g_string_free(deep, TRUE);
}

static void
test_targets(void)
{
    static const struct {
        const char *path, *target;
        int error;
    } cases[] = {
        {"l", "f", 0},
        {"l", "./f", 0},
        {"l", "a/../f", 0},
        {"l", "..", EXDEV},
        {"l", "../f", EXDEV},
        {"a/l", "../f", 0},
        {"a/l", "../../f", EXDEV},
        {"a/l", "b/../../f", 0},
        {"a/l", "b/../../../f", EXDEV},
        {"l", "/etc/passwd", 0},
        {"l", "", EINVAL},
        {"a/b/l", "..//..//c", 0},
        {"l", "a/../../a", EXDEV},
    };

    for (guint i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_test_message("%s -> %s", cases[i].path, cases[i].target);
        g_assert_cmpint(tar_target_check(cases[i].path, cases[i].target), ==, cases[i].error);
    }
}

static void
test_numbers(void)
{
    static const struct {
        const char *field;
        bool good;
        int64_t number;
    } cases[] = {
        {"00000000017\0", true, 15},
        {"          17", true, 15},
        {"17          ", true, 15},
        {"17\0xxxxxxxxx", true, 15},
        {"\0\0\0\0\0\0\0\0\0\0\0\0", true, 0},
        {"            ", true, 0},
        {"777777777777", true, 68719476735},
        {"00000000018\0", false, 0},
        {"-0000000001\0", false, 0},
        {"0x000000001\0", false, 0},
        {"1 2         ", false, 0},
        {"\x80\0\0\0\0\0\0\0\0\0\x01\0", true, 256},
        {"\x80\0\0\0\x7f\xff\xff\xff\xff\xff\xff\xff", true, INT64_MAX},
        {"\x80\0\0\0\x80\0\0\0\0\0\0\0", false, 0},
        {"\x80\x01\0\0\0\0\0\0\0\0\0\0", false, 0},
        {"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xfb", true, -5},
        {"\xff\xff\xff\xff\x80\0\0\0\0\0\0\0", true, INT64_MIN},
        {"\xff\xff\xff\xff\x7f\xff\xff\xff\xff\xff\xff\xff", false, 0},
    };
    guint8 field[12];

    for (guint i = 0; i < G_N_ELEMENTS(cases); i++) {
        int64_t number = 0;

        g_test_message("case %u", i);
        memcpy(field, cases[i].field, sizeof field);
        g_assert_cmpint(tar_number_parse(field, sizeof field, &number), ==, cases[i].good);
        g_assert_cmpint(number, ==, cases[i].number);
    }
    g_assert_true(tar_number_format(field, sizeof field, 077777777777));
    g_assert_cmpmem(field, 12, "77777777777\0", 12);
    g_assert_false(tar_number_format(field, sizeof field, 0100000000000));
    g_assert_false(tar_number_format(field, sizeof field, -1));
}

static void
test_pax(void)
{
    static const struct {
        const char *text;
        int error;
        const char *path;
        time_t seconds;
        long nanos;
    } cases[] = {
        {"12 path=abc\n", 0, "abc", 0, 0},
        {"12 path=abc\n9 path=\n", EBADMSG, NULL, 0, 0},
        {"12 path=abc\n8 path=\n", 0, "", 0, 0},
        {"13 path=a=bc\n", 0, "a=bc", 0, 0},
        {"13 path=a\nbc\n", 0, "a\nbc", 0, 0},
        {"9 a=b123\n", 0, "", 0, 0},
        {"13 mtime=1.5\n", 0, "", 1, 500000000},
        {"14 mtime=-1.5\n", 0, "", -2, 500000000},
        {"22 mtime=1.1234567891\n", 0, "", 1, 123456789},
        {"13 mtime=1x5\n", EBADMSG, NULL, 0, 0},
        {"13 mtime=1.x\n", EBADMSG, NULL, 0, 0},
        {"11 path=abc\n", EBADMSG, NULL, 0, 0},
        {"13 path=abc\n", EBADMSG, NULL, 0, 0},
        {"path=abc\n", EBADMSG, NULL, 0, 0},
        {" 12 path=abc\n", EBADMSG, NULL, 0, 0},
        {"6 abc\n", EBADMSG, NULL, 0, 0},
        {"5 =a\n", EBADMSG, NULL, 0, 0},
        {"0 \n", EBADMSG, NULL, 0, 0},
        {"11 size=-1\n", EBADMSG, NULL, 0, 0},
        {"99999999999999999999 path=a\n", EBADMSG, NULL, 0, 0},
    };

    for (guint i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree TarExtra *extra = g_new0(TarExtra, 1);

        g_test_message("'%s'", cases[i].text);
        g_assert_cmpint(tar_pax_parse(cases[i].text, strlen(cases[i].text), extra), ==, cases[i].error);
        if (cases[i].error != 0)
            continue;
        g_assert_cmpstr(extra->path, ==, cases[i].path);
        g_assert_cmpint(extra->mtime.tv_sec, ==, cases[i].seconds);
        g_assert_cmpint(extra->mtime.tv_nsec, ==, cases[i].nanos);
    }
    g_autofree TarExtra *extra = g_new0(TarExtra, 1);
    g_autofree char *name = g_strnfill(TAR_PATH_MAX, 'n');
    g_autofree char *text = g_strdup_printf("%d path=%s\n", TAR_PATH_MAX + 11, name);
    g_assert_cmpint(tar_pax_parse(text, strlen(text), extra), ==, ENAMETOOLONG);
    g_assert_cmpint(tar_pax_parse("10 path=\0\n", 10, extra), ==, EBADMSG);
}

static void
test_utf8(void)
{
    static const char *const texts[] = {
        "",
        "a",
        "\xc3\xa9",
        "\xe4\xbd\xa0",
        "\xf0\x9f\x90\x94",
        "\xf4\x8f\xbf\xbf",
        "\xff",
        "\xc3",
        "\xc0\xaf",
        "\xe0\x80\x80",
        "\xed\xa0\x80",
        "\xf4\x90\x80\x80",
        "\xf8\x88\x80\x80\x80",
        "a\x80",
        "\xe4\xbd",
        "\xf0\x8f\xbf\xbf",
    };

    for (guint i = 0; i < G_N_ELEMENTS(texts); i++)
        g_assert_cmpint(utf8_is_valid(texts[i], strlen(texts[i])), ==, g_utf8_validate(texts[i], -1, NULL));
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/init/tar/names", test_names);
    g_test_add_func("/init/tar/targets", test_targets);
    g_test_add_func("/init/tar/numbers", test_numbers);
    g_test_add_func("/init/tar/pax", test_pax);
    g_test_add_func("/init/tar/utf8", test_utf8);
    return g_test_run();
}

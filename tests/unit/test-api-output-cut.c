/* SPDX-License-Identifier: Apache-2.0 */
#include <glib.h>
#include <string.h>

#include "api/output-cut.h"

#define SMILE "\xf0\x9f\x98\x80"

static void
test_cases(void)
{
    static const struct {
        const char *bytes;
        size_t n, max;
        bool more;
        size_t want;
        bool is_text;
    } cases[] = {
        {"abc", 3, 10, true, 3, true},
        {"abcdef", 6, 4, true, 4, true},
        {"a" SMILE, 5, 10, true, 5, true},
        /* the beginning of a character waits for the rest, behind text and alone */
        {"a" SMILE, 4, 10, true, 1, true},
        {"a" SMILE, 2, 10, true, 1, true},
        {SMILE, 3, 10, true, 0, false},
        {SMILE, 1, 10, true, 0, false},
        /* unless nothing follows */
        {"a" SMILE, 3, 10, false, 1, true},
        {SMILE, 3, 10, false, 3, false},
        /* a piece that is full is cut before the character */
        {"abc" SMILE, 7, 4, true, 3, true},
        {"abc" SMILE, 7, 6, true, 3, true},
        /* no text */
        {"a\xff", 2, 10, true, 2, false},
        {"\xff", 1, 10, true, 1, false},
        {"\xc0\xaf", 2, 10, true, 2, false},
        {"a\0b", 3, 10, true, 3, false},
        {"\0", 1, 10, true, 1, false},
        {"\xe2\0", 2, 10, true, 2, false},
        {"\xe2\x28", 2, 10, true, 2, false},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        OutputCut cut = output_cut((const guint8 *)cases[i].bytes, cases[i].n, cases[i].max, cases[i].more);

        g_test_message("%zu", i);
        g_assert_cmpuint(cut.n, ==, cases[i].want);
        g_assert_true(cut.is_text == cases[i].is_text);
    }
}

/* Whatever comes, in whatever pieces: all of it goes out, text is text, and a text that was one
 * stays one. */
static void
check_stream(const guint8 *bytes, size_t n, bool all_text)
{
    g_autoptr(GByteArray) held = g_byte_array_new();
    size_t came = 0, sent = 0;

    while (sent < n) {
        size_t more = (size_t)g_test_rand_int_range(1, 12);

        more = MIN(more, n - came);
        g_byte_array_append(held, bytes + came, (guint)more);
        came += more;
        while (held->len > 0) {
            OutputCut cut = output_cut(held->data, held->len, 8, came < n);

            if (cut.n == 0)
                break;
            g_assert_cmpuint(cut.n, <=, 8);
            g_assert_cmpmem(held->data, cut.n, bytes + sent, cut.n);
            g_assert_true(cut.is_text == g_utf8_validate((const char *)held->data, (gssize)cut.n, NULL));
            g_assert_true(cut.is_text || !all_text);
            g_byte_array_remove_range(held, 0, (guint)cut.n);
            sent += cut.n;
        }
        g_assert_cmpuint(held->len, <, 4);
    }
    g_assert_cmpuint(held->len, ==, 0);
}

static void
test_random(void)
{
    for (guint round = 0; round < 2000; round++) {
        g_autoptr(GString) text = g_string_new(NULL);
        guint8 noise[64];

        for (guint i = 0; i < 16; i++)
            g_string_append_unichar(text, (gunichar)g_test_rand_int_range(1, 0xd7ff));
        check_stream((const guint8 *)text->str, text->len, true);
        for (guint i = 0; i < sizeof noise; i++)
            noise[i] = (guint8)g_test_rand_int_range(0, 256);
        check_stream(noise, sizeof noise, false);
    }
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/output-cut/cases", test_cases);
    g_test_add_func("/output-cut/random", test_random);
    return g_test_run();
}

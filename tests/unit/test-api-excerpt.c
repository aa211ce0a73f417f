/* SPDX-License-Identifier: Apache-2.0 */
#include <glib.h>
#include <string.h>

#include "api/excerpt.h"

/* Fed in pieces of every size up to its own. */
static void
check(const char *text, size_t n, size_t max, const char *want, bool cut)
{
    for (size_t piece = 1; piece <= n; piece++) {
        Excerpt e;

        excerpt_init(&e, max);
        for (size_t at = 0; at < n; at += piece) {
            excerpt_add(&e, (const guint8 *)text + at, MIN(piece, n - at));
            g_assert_cmpuint(excerpt_size(&e), <=, max + max / 2);
        }
        g_autofree char *got = excerpt_dup_text(&e);
        g_assert_cmpstr(got, ==, want);
        g_assert_true(excerpt_is_cut(&e) == cut);
        excerpt_clear(&e);
    }
}

static void
test_cut(void)
{
    static const struct {
        const char *text, *want;
        size_t max;
        bool cut;
    } cases[] = {
        {"abcdefgh", "abcdefgh", 8, false},
        {"abcdefghi", "abcd\n[1 bytes left out]\nfghi", 8, true},
        {"abcdefghijklmnopqrstuvwxyz", "abcd\n[18 bytes left out]\nwxyz", 8, true},
        {"abcdefgh", "abcdefgh", 800, false},
        /* not in the middle of a character, and what is cut away with it is counted */
        {"abc\xc3\xa9xxxxxx\xc3\xa9xyz", "abc\n[10 bytes left out]\nxyz", 8, true},
        {"\xf0\x9f\x98\x80zzzz\xf0\x9f\x98\x80", "\xf0\x9f\x98\x80\n[4 bytes left out]\n\xf0\x9f\x98\x80", 8,
         true},
        /* a character across head and tail stays whole when nothing was left out */
        {"abc\xc3\xa9xyz", "abc\xc3\xa9xyz", 8, false},
        /* what is no text */
        {"a\xff\xfe", "a\xef\xbf\xbd\xef\xbf\xbd", 8, false},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_test_message("%s", cases[i].want);
        check(cases[i].text, strlen(cases[i].text), cases[i].max, cases[i].want, cases[i].cut);
    }
    check("a\0b", 3, 8,
          "a\xef\xbf\xbd"
          "b",
          false);
}

static void
test_empty(void)
{
    Excerpt e;

    excerpt_init(&e, 8);
    g_autofree char *text = excerpt_dup_text(&e);
    g_assert_cmpstr(text, ==, "");
    g_assert_false(excerpt_is_cut(&e));
    excerpt_clear(&e);
}

static void
test_gap(void)
{
    Excerpt e;

    excerpt_init(&e, 8);
    excerpt_add(&e, (const guint8 *)"abcdef", 6);
    excerpt_skip(&e, 100);
    excerpt_add(&e, (const guint8 *)"uvwxyz", 6);
    g_autofree char *text = excerpt_dup_text(&e);
    g_assert_cmpstr(text, ==, "abcd\n[104 bytes left out]\nwxyz");
    g_assert_true(excerpt_is_cut(&e));
    excerpt_clear(&e);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/excerpt/cut", test_cut);
    g_test_add_func("/excerpt/empty", test_empty);
    g_test_add_func("/excerpt/gap", test_gap);
    return g_test_run();
}

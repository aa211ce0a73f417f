/* SPDX-License-Identifier: Apache-2.0 */
#include "forge/markdown.h"

#define Z "\xe2\x80\x8b"

static void
test_tame(void)
{
    static const struct {
        const char *text, *tame;
    } cases[] = {
        {"", ""},
        {"plain, **bold** and a [link](u)", "plain, **bold** and a [link](u)"},
        {"ask @everyone", "ask @" Z "everyone"},
        {"![x](http://a/b.png)", "!" Z "[x](http://a/b.png)"},
        {"done <!-- hidden", "done &lt;!-- hidden"},
        {"<img src=x>", "&lt;img src=x>"},
        {"`@app` and a < b", "`@app` and a &lt; b"},
        {"`` ` @x `` @y", "`` ` @x `` @" Z "y"},
        /* Nothing ends it: it is no code. */
        {"a ` @x", "a ` @" Z "x"},
        {"a ` @x\n\n@y `", "a ` @" Z "x\n\n@" Z "y `"},
        {"\\` @x `", "\\` @" Z "x `"},
        {"\\@x \\<b>", "\\@" Z "x \\&lt;b>"},
        {"```c\n@x <b>\n```\n@y", "```c\n@x <b>\n```\n@" Z "y"},
        {"~~~\n@x\n```\n@y", "~~~\n@x\n```\n@y"},
        {"``` @x ``` @y", "``` @x ``` @" Z "y"},
        {"text ```\n@x", "text ```\n@" Z "x"},
        {"    ```\n@x", "    ```\n@" Z "x"},
        {"\xff@", "\xef\xbf\xbd@" Z},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *tame = markdown_tame(cases[i].text);

        g_assert_cmpstr(tame, ==, cases[i].tame);
    }
}

static void
test_fence(void)
{
    g_autofree char *plain = markdown_fence("a\n"), *inside = markdown_fence("x ```` y");

    g_assert_cmpstr(plain, ==, "```\na\n```");
    g_assert_cmpstr(inside, ==, "`````\nx ```` y\n`````");
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/forge/markdown/tame", test_tame);
    g_test_add_func("/forge/markdown/fence", test_fence);
    return g_test_run();
}

/* SPDX-License-Identifier: Apache-2.0 */
#include <glib.h>
#include <string.h>

#include "base/buf.h"

static void
check_buf(const Buf *b, const char *want)
{
    size_t n;
    const guint8 *p = buf_peek(b, &n);

    g_assert_nonnull(p);
    g_assert_cmpmem(p, n, want, strlen(want));
    g_assert_cmpuint(buf_len(b), ==, n);
    g_assert_cmpuint(buf_room(b), ==, b->max - n);
}

static void
test_buf_max(void)
{
    g_auto(Buf) b;

    buf_init(&b, 8);
    check_buf(&b, "");
    g_assert_true(buf_put(&b, "12345678", 8));
    g_assert_false(buf_put(&b, "9", 1));
    g_assert_null(buf_reserve(&b, 1));
    check_buf(&b, "12345678");
    buf_skip(&b, 3);
    g_assert_false(buf_put(&b, "abcd", 4));
    g_assert_true(buf_put(&b, "abc", 3));
    check_buf(&b, "45678abc");
    buf_clear(&b);
    check_buf(&b, "");
    g_assert_false(buf_puts(&b, "123456789"));
    g_assert_false(buf_printf(&b, "%09d", 1));
    g_assert_true(buf_printf(&b, "%s-%d", "ab", 12));
    g_assert_true(buf_puts(&b, ""));
    check_buf(&b, "ab-12");
}

static void
test_buf_storage(void)
{
    g_auto(Buf) b;

    buf_init(&b, 1 << 20);
    g_assert_null(b.data);
    g_assert_true(buf_put(&b, NULL, 0));
    g_assert_null(b.data);
    g_assert_true(buf_puts(&b, "abc"));
    g_assert_nonnull(b.data);
    buf_skip(&b, 2);
    buf_skip(&b, 0);
    g_assert_nonnull(b.data);
    buf_skip(&b, 1);
    g_assert_null(b.data);
    g_assert_cmpuint(b.size, ==, 0);
    buf_skip(&b, 0);

    /* A maximum is no allocation. */
    g_assert_true(buf_puts(&b, "abc"));
    g_assert_cmpuint(b.size, <=, 4096);
}

static void
test_buf_in_place(void)
{
    g_auto(Buf) b;

    buf_init(&b, 1000);
    g_assert_nonnull(buf_reserve(&b, 0));
    guint8 *to = buf_reserve(&b, 600);
    memset(to, 'x', 600);
    check_buf(&b, "");
    buf_grow(&b, 0);
    buf_grow(&b, 600);
    g_assert_cmpuint(buf_len(&b), ==, 600);
    g_assert_null(buf_reserve(&b, 401));
    buf_skip(&b, 590);
    /* More than the space behind the tail: the rest moves to the front, and stays. */
    to = buf_reserve(&b, 990);
    g_assert_nonnull(to);
    g_assert_cmpuint(b.size, <=, 1000);
    memset(to, 'y', 4);
    buf_grow(&b, 4);
    check_buf(&b, "xxxxxxxxxxyyyy");
}

/* Against a queue that cannot be wrong. */
static void
test_buf_model(void)
{
    enum { MAX_LEN = 2000, ROUNDS = 20000 };
    g_autoptr(GByteArray) model = g_byte_array_new();
    g_auto(Buf) b;
    guint8 piece[700];

    buf_init(&b, MAX_LEN);
    for (guint i = 0; i < ROUNDS; i++) {
        size_t n = (size_t)g_test_rand_int_range(0, sizeof piece);

        if (g_test_rand_bit()) {
            memset(piece, (int)i, n);
            bool fits = model->len + n <= MAX_LEN;
            g_assert_true(buf_put(&b, piece, n) == fits);
            if (fits)
                g_byte_array_append(model, piece, (guint)n);
        } else {
            n = MIN(n, model->len);
            buf_skip(&b, n);
            g_byte_array_remove_range(model, 0, (guint)n);
        }
        size_t len;
        const guint8 *p = buf_peek(&b, &len);
        g_assert_cmpmem(p, len, model->data, model->len);
        g_assert_cmpuint(b.size, <=, MAX_LEN);
    }
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/buf/max", test_buf_max);
    g_test_add_func("/buf/storage", test_buf_storage);
    g_test_add_func("/buf/in-place", test_buf_in_place);
    g_test_add_func("/buf/model", test_buf_model);
    return g_test_run();
}

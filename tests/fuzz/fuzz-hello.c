/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "door/sni.h"
#include "fuzz.h"

/* The input is what a client sends first.  However it is cut, the outcome is that of the whole,
 * and it never comes before the bytes that were asked for. */

typedef struct Feed {
    GByteArray *got;
    size_t need;
    SniResult result;
    char name[DOOR_NAME_MAX + 1];
} Feed;

static bool
on_piece(void *ctx, const guint8 *bytes, size_t n)
{
    Feed *f = ctx;

    g_byte_array_append(f->got, bytes, (guint)n);
    g_autofree guint8 *exact = g_memdup2(f->got->data, f->got->len);
    size_t need = 0;

    f->result = sni_read(exact, f->got->len, f->name, &need);
    if (f->got->len < f->need)
        g_assert_true(f->result == SNI_MORE || f->result == SNI_BAD || f->result == SNI_NOT_TLS);
    if (f->result != SNI_MORE)
        return false;
    g_assert_cmpuint(need, >, f->got->len);
    g_assert_cmpuint(need, <=, SNI_HELLO_MAX);
    f->need = need;
    return true;
}

void
fuzz_input(const guint8 *data, size_t n, size_t cut)
{
    Feed f = {.got = g_byte_array_new(), .result = SNI_MORE};
    char name[DOOR_NAME_MAX + 1] = "";
    size_t need = 0;

    (void)fuzz_feed(data, n, cut, on_piece, &f);
    SniResult whole = sni_read(data, n, name, &need);
    if (f.result == SNI_NAME)
        g_assert_cmpuint(strlen(f.name), >, 0);
    /* Cut short, a second hello behind the first is not there to be seen. */
    if (f.got->len == n) {
        g_assert_cmpint(f.result, ==, n > 0 ? whole : SNI_MORE);
        if (whole == SNI_NAME)
            g_assert_cmpstr(f.name, ==, name);
    }
    g_byte_array_unref(f.got);
}

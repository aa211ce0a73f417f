/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "door/sni.h"

static void
put(GByteArray *to, guint bytes, size_t n)
{
    while (bytes-- > 0) {
        guint8 b = (guint8)(n >> (8 * bytes));

        g_byte_array_append(to, &b, 1);
    }
}

static void
put_extension(GByteArray *to, guint16 type, const void *body, size_t n)
{
    put(to, 2, type);
    put(to, 2, n);
    g_byte_array_append(to, body, (guint)n);
}

static void
put_name(GByteArray *to, const char *name)
{
    g_autoptr(GByteArray) body = g_byte_array_new();
    size_t n = strlen(name);

    put(body, 2, n + 3);
    put(body, 1, 0);
    put(body, 2, n);
    g_byte_array_append(body, (const guint8 *)name, (guint)n);
    put_extension(to, 0, body->data, body->len);
}

/* A handshake message, not yet in a record. */
static GByteArray *
message(const GByteArray *extensions)
{
    GByteArray *m = g_byte_array_new();
    guint8 random[32] = {1};

    put(m, 4, 0x01000000);
    put(m, 2, 0x0303);
    g_byte_array_append(m, random, sizeof random);
    put(m, 1, 0);
    put(m, 4, 0x00021301);
    put(m, 2, 0x0100);
    if (extensions != NULL) {
        put(m, 2, extensions->len);
        g_byte_array_append(m, extensions->data, extensions->len);
    }
    m->data[1] = (guint8)((m->len - 4) >> 16);
    m->data[2] = (guint8)((m->len - 4) >> 8);
    m->data[3] = (guint8)(m->len - 4);
    return m;
}

static GByteArray *
records(const GByteArray *m, size_t piece)
{
    GByteArray *out = g_byte_array_new();

    for (size_t at = 0; at < m->len; at += piece) {
        size_t n = MIN(piece, m->len - at);

        put(out, 3, 0x160301);
        put(out, 2, n);
        g_byte_array_append(out, m->data + at, (guint)n);
    }
    return out;
}

static SniResult
read_exact(const void *bytes, size_t n, char name[DOOR_NAME_MAX + 1], size_t *need)
{
    g_autofree guint8 *exact = n > 0 ? g_memdup2(bytes, n) : NULL; /* a read past it is seen */

    return sni_read(exact, n, name, need);
}

static GByteArray *
hello_for(const char *name)
{
    g_autoptr(GByteArray) extensions = g_byte_array_new();

    put_extension(extensions, 0x2a2a, "grease", 6);
    if (name != NULL)
        put_name(extensions, name);
    put_extension(extensions, 43, "\x02\x03\x04", 3);
    return message(extensions);
}

static void
test_pieces(void)
{
    static const size_t pieces[] = {1, 2, 5, 7, 40, 16384};
    g_autoptr(GByteArray) m = hello_for("Some.Example.org");

    for (size_t i = 0; i < G_N_ELEMENTS(pieces); i++) {
        g_autoptr(GByteArray) bytes = records(m, pieces[i]);
        char name[DOOR_NAME_MAX + 1];
        size_t need = 1;

        for (size_t n = 0; n < bytes->len; n++) {
            size_t next = 0;

            g_assert_cmpint(read_exact(bytes->data, n, name, &next), ==, SNI_MORE);
            g_assert_cmpuint(next, >, n);
            need = next;
        }
        g_assert_cmpuint(need, ==, bytes->len);
        g_assert_cmpint(read_exact(bytes->data, bytes->len, name, &need), ==, SNI_NAME);
        g_assert_cmpstr(name, ==, "Some.Example.org");
    }
}

static void
test_none(void)
{
    g_autoptr(GByteArray) without = hello_for(NULL);
    g_autoptr(GByteArray) bare = message(NULL);
    g_autoptr(GByteArray) a = records(without, 16384);
    g_autoptr(GByteArray) b = records(bare, 16384);
    char name[DOOR_NAME_MAX + 1];
    size_t need;

    g_assert_cmpint(read_exact(a->data, a->len, name, &need), ==, SNI_NONE);
    g_assert_cmpint(read_exact(b->data, b->len, name, &need), ==, SNI_NONE);
}

static void
test_not_tls(void)
{
    static const char *const texts[] = {"G",
                                        "GET / HTTP/1.1\r\n",
                                        "SSH-2.0-x",
                                        "\x80\x2e\x01\x03\x01",
                                        "\x17\x03\x03",
                                        "\x16\x02\x01",
                                        "\x15\x03\x01"};
    char name[DOOR_NAME_MAX + 1];
    size_t need;

    for (size_t i = 0; i < G_N_ELEMENTS(texts); i++)
        g_assert_cmpint(read_exact(texts[i], strlen(texts[i]), name, &need), ==, SNI_NOT_TLS);
}

static void
check_bad(const GByteArray *bytes, const char *what)
{
    char name[DOOR_NAME_MAX + 1];
    size_t need;

    g_test_message("%s", what);
    g_assert_cmpint(read_exact(bytes->data, bytes->len, name, &need), ==, SNI_BAD);
}

static void
check_bad_extensions(void (*make)(GByteArray *extensions), const char *what)
{
    g_autoptr(GByteArray) extensions = g_byte_array_new();

    make(extensions);
    g_autoptr(GByteArray) m = message(extensions);
    g_autoptr(GByteArray) bytes = records(m, 16384);
    check_bad(bytes, what);
}

static void
two_extensions(GByteArray *e)
{
    put_name(e, "a.test");
    put_name(e, "b.test");
}

static void
two_names(GByteArray *e)
{
    put_extension(e, 0, "\0\x0c\0\0\3abc\0\0\3def", 14);
}

static void
other_type(GByteArray *e)
{
    put_extension(e, 0, "\0\6\1\0\3abc", 8);
}

static void
empty_name(GByteArray *e)
{
    put_name(e, "");
}

static void
name_with_nul(GByteArray *e)
{
    put_extension(e, 0, "\0\x08\0\0\5a.b\0c", 10);
}

static void
name_with_slash(GByteArray *e)
{
    put_name(e, "a/b");
}

static void
long_name(GByteArray *e)
{
    g_autofree char *name = g_strnfill(DOOR_NAME_MAX + 1, 'a');

    put_name(e, name);
}

static void
rest_in_list(GByteArray *e)
{
    put_extension(e, 0, "\0\7\0\0\3abcx", 9);
}

static void
rest_after_list(GByteArray *e)
{
    put_extension(e, 0, "\0\6\0\0\3abcx", 9);
}

static void
short_extension(GByteArray *e)
{
    put(e, 2, 5);
    put(e, 2, 9);
}

static void
half_extension(GByteArray *e)
{
    put(e, 1, 0);
}

static void
test_bad_extensions(void)
{
    check_bad_extensions(two_extensions, "two extensions");
    check_bad_extensions(two_names, "two names");
    check_bad_extensions(other_type, "another type of name");
    check_bad_extensions(empty_name, "an empty name");
    check_bad_extensions(name_with_nul, "a NUL");
    check_bad_extensions(name_with_slash, "a slash");
    check_bad_extensions(long_name, "a long name");
    check_bad_extensions(rest_in_list, "bytes after the name");
    check_bad_extensions(rest_after_list, "bytes after the list");
    check_bad_extensions(short_extension, "an extension that is not there");
    check_bad_extensions(half_extension, "half an extension");
}

static void
test_bad_records(void)
{
    g_autoptr(GByteArray) m = hello_for("a.test");
    g_autoptr(GByteArray) twice = records(m, 16384);
    g_autoptr(GByteArray) again = records(m, 16384);
    g_autoptr(GByteArray) empty = g_byte_array_new();
    g_autoptr(GByteArray) other = records(m, 16384);
    g_autoptr(GByteArray) split = records(m, 10);
    g_autoptr(GByteArray) huge = g_byte_array_new();

    g_byte_array_append(twice, again->data, again->len);
    check_bad(twice, "two hellos");
    put(empty, 5, 0x1603010000);
    check_bad(empty, "an empty record");
    other->data[5] = 2;
    check_bad(other, "a ServerHello");
    split->data[15] = 23;
    check_bad(split, "application data in the middle");
    put(huge, 5, 0x1603014001);
    check_bad(huge, "a record that is too long");
    g_byte_array_set_size(huge, 0);
    put(huge, 5, 0x1603010004);
    put(huge, 4, 0x01010000);
    check_bad(huge, "a hello of 64 KiB");
    g_byte_array_append(m, (const guint8 *)"\1\0\0\0", 4);
    g_autoptr(GByteArray) longer = records(m, 16384);
    check_bad(longer, "a second message in the record");
}

/* Early data after the hello is what TLS 1.3 has. */
static void
test_early_data(void)
{
    g_autoptr(GByteArray) m = hello_for("a.test");
    g_autoptr(GByteArray) bytes = records(m, 16384);
    char name[DOOR_NAME_MAX + 1];
    size_t need;

    put(bytes, 6, 0x140303000101);
    put(bytes, 6, 0x1703030001aa);
    g_assert_cmpint(read_exact(bytes->data, bytes->len, name, &need), ==, SNI_NAME);
    g_assert_cmpstr(name, ==, "a.test");
}

/* Every byte of a hello, wrong: nothing worse than a refusal, and never another name. */
static void
test_each_byte(void)
{
    g_autoptr(GByteArray) m = hello_for("a.test");
    g_autoptr(GByteArray) bytes = records(m, 50);

    for (guint i = 0; i < bytes->len; i++) {
        for (guint flip = 1; flip < 256; flip <<= 1) {
            g_autofree guint8 *copy = g_memdup2(bytes->data, bytes->len);
            char name[DOOR_NAME_MAX + 1];
            size_t need;

            copy[i] ^= (guint8)flip;
            (void)read_exact(copy, bytes->len, name, &need);
        }
    }
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/door/sni/E12-pieces", test_pieces);
    g_test_add_func("/door/sni/none", test_none);
    g_test_add_func("/door/sni/not-tls", test_not_tls);
    g_test_add_func("/door/sni/E12-bad-extensions", test_bad_extensions);
    g_test_add_func("/door/sni/E12-bad-records", test_bad_records);
    g_test_add_func("/door/sni/early-data", test_early_data);
    g_test_add_func("/door/sni/each-byte", test_each_byte);
    return g_test_run();
}

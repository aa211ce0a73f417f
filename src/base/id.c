/* SPDX-License-Identifier: Apache-2.0 */
#include "base/id.h"

#include <errno.h>
#include <string.h>
#include <sys/random.h>

static const char hex[] = "0123456789abcdef";
static const char alnum[] = "abcdefghijklmnopqrstuvwxyz0123456789";

void
id_random_bytes(void *ret_bytes, size_t n)
{
    guint8 *p = ret_bytes;

    while (n > 0) {
        ssize_t got = getrandom(p, n, 0);

        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            g_error("getrandom: %s", g_strerror(errno));
        p += got;
        n -= (size_t)got;
    }
}

static void
put_hex(char *to, const guint8 *bytes, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        to[2 * i] = hex[bytes[i] >> 4];
        to[2 * i + 1] = hex[bytes[i] & 15];
    }
}

void
id_random_hex(char *ret_text, size_t n)
{
    g_autofree guint8 *bytes = g_malloc(n);

    id_random_bytes(bytes, n);
    put_hex(ret_text, bytes, n);
    ret_text[2 * n] = '\0';
}

void
id_new_uuid(char ret_text[ID_UUID_LEN + 1])
{
    guint8 b[16];

    id_random_bytes(b, sizeof b);
    b[6] = (guint8)((b[6] & 0x0f) | 0x40);
    b[8] = (guint8)((b[8] & 0x3f) | 0x80);
    put_hex(ret_text, b, 4);
    put_hex(ret_text + 9, b + 4, 2);
    put_hex(ret_text + 14, b + 6, 2);
    put_hex(ret_text + 19, b + 8, 2);
    put_hex(ret_text + 24, b + 10, 6);
    ret_text[8] = ret_text[13] = ret_text[18] = ret_text[23] = '-';
    ret_text[ID_UUID_LEN] = '\0';
}

bool
id_is_uuid(const char *text)
{
    for (size_t i = 0; i < ID_UUID_LEN; i++) {
        bool dash = i == 8 || i == 13 || i == 18 || i == 23;

        if (dash ? text[i] != '-' : !g_ascii_isxdigit(text[i]) || g_ascii_isupper(text[i]))
            return false;
    }
    return text[ID_UUID_LEN] == '\0';
}

void
id_new_box(char ret_text[ID_BOX_LEN + 1])
{
    /* Bytes past the largest multiple of 36 are thrown away: a plain modulo would favour the
     * first letters. */
    guint8 bytes[ID_BOX_LEN];
    size_t n = 0;

    while (n < ID_BOX_LEN) {
        id_random_bytes(bytes, sizeof bytes);
        for (size_t i = 0; i < sizeof bytes && n < ID_BOX_LEN; i++) {
            if (bytes[i] < 252)
                ret_text[n++] = alnum[bytes[i] % 36];
        }
    }
    ret_text[ID_BOX_LEN] = '\0';
}

bool
id_is_box(const char *text)
{
    return strlen(text) == ID_BOX_LEN && strspn(text, alnum) == ID_BOX_LEN;
}

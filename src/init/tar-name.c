/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <string.h>

#include "init/tar.h"

static bool
part_is(const char *part, size_t n, const char *text)
{
    return n == strlen(text) && memcmp(part, text, n) == 0;
}

int
tar_name_check(char *path)
{
    char *out = path;
    unsigned depth = 0;

    if (*path == '\0')
        return EINVAL;
    if (*path == '/')
        return EXDEV;
    for (const char *at = path; *at != '\0';) {
        size_t n = strcspn(at, "/");
        const char *next = at + n + strspn(at + n, "/");

        if (part_is(at, n, ".."))
            return EXDEV;
        if (n > TAR_NAME_MAX)
            return ENAMETOOLONG;
        if (!part_is(at, n, ".")) {
            if (++depth > TAR_DEPTH_MAX)
                return ELOOP;
            if (out != path)
                *out++ = '/';
            memmove(out, at, n);
            out += n;
        }
        at = next;
    }
    *out = '\0';
    return 0;
}

int
tar_target_check(const char *path, const char *target)
{
    long level = 0;

    if (*target == '\0')
        return EINVAL;
    if (*target == '/')
        return 0;
    for (; *path != '\0'; path++)
        level += *path == '/';
    for (const char *at = target; *at != '\0';) {
        size_t n = strcspn(at, "/");

        if (part_is(at, n, ".."))
            level--;
        else if (!part_is(at, n, ".") && n > 0)
            level++;
        if (level < 0)
            return EXDEV;
        at += n + strspn(at + n, "/");
    }
    return 0;
}

/* How many bytes follow a first byte; -1: it is none. */
static int
utf8_tail(uint8_t first)
{
    if (first < 0x80)
        return 0;
    if (first >= 0xc2 && first <= 0xdf)
        return 1;
    if (first >= 0xe0 && first <= 0xef)
        return 2;
    return first >= 0xf0 && first <= 0xf4 ? 3 : -1;
}

bool
tar_is_utf8(const char *text)
{
    const uint8_t *at = (const uint8_t *)text;

    while (*at != '\0') {
        uint8_t first = *at++;
        int tail = utf8_tail(first);

        /* Overlong forms, surrogates, and what lies beyond the last character. */
        if (tail < 0 || (first == 0xe0 && *at < 0xa0) || (first == 0xed && *at > 0x9f) ||
            (first == 0xf0 && *at < 0x90) || (first == 0xf4 && *at > 0x8f))
            return false;
        for (; tail > 0; tail--) {
            if ((*at & 0xc0) != 0x80)
                return false;
            at++;
        }
    }
    return true;
}

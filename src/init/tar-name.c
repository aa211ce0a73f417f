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

/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/input.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/io.h"

char *
input_read(const char *path, size_t max, size_t *ret_len, GError **error)
{
    autofd fd = strcmp(path, "-") == 0 ? dup(STDIN_FILENO) : open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    g_autofree char *text = g_malloc(max + 2);
    ssize_t n = fd >= 0 ? io_read_full(fd, text, max + 1) : -1;

    if (n < 0) {
        err_errno(error, "read '%s'", path);
        return NULL;
    }
    if ((size_t)n > max) {
        err_set(error, ERR_LIMIT, "'%s' has more than %zu bytes", path, max);
        return NULL;
    }
    text[n] = '\0';
    *ret_len = (size_t)n;
    return g_steal_pointer(&text);
}

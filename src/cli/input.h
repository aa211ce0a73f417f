/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <glib.h>

/* A file, or with "-" the standard input, of at most `max` bytes (ERR_LIMIT); a NUL is put behind it. */
char *input_read(const char *path, size_t max, size_t *ret_len, GError **error);

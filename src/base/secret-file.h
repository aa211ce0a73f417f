/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <glib.h>
#include <stdbool.h>

/* A secret of a fixed length in a file that is ours alone (0600).  Reads it, or, when there is no
 * such file, lets `make` fill the bytes and writes them.  ERR_DENIED: others may read it or it is
 * another's; ERR_INTERNAL: it has another length.  Blocks: start-up. */
bool secret_file_open(const char *path, void (*make)(guint8 *ret_secret), guint8 *ret_secret, size_t len,
                      GError **error);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include "cli/cli.h"

enum { SECRET_MAX = 512 };

/* One line from a file ("-": standard input), or, with `path` NULL, from the terminal, which does
 * not show it.  Without its line feed; to be wiped by the caller (door_wipe_text).  NULL with
 * ERR_INVALID (empty, too long, no terminal to ask at) or what the file gave. */
char *secret_read(const char *path, const char *prompt, GError **error);

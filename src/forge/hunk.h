/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <glib.h>
#include <stdbool.h>

#include "forge/git.h"
#include "json/json.h"

/* What a comment on a line is shown with: the hunk of the patch that the line is in, from its "@@" to that
 * line, as it was when the comment was made. */

enum { HUNK_MAX = 16 << 10 }; /* bytes; of a longer one the head and the last lines */

/* UTF-8, whatever the patch is.  NULL: the line is not in it. */
char *hunk_cut(const char *patch, size_t len, bool left, gint64 line);

/* Blocks.  Sets `diff_hunk` of each of `lines` ({"path", "side", "line"}) whose line is in what `commit` has
 * changed since it left `base`, and of no other. */
bool hunks_fill(GitRepo *git, const char *base, const char *commit, Json *lines, GError **error);

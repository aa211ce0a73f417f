/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include "forge/merge.h"

enum { MERGE_PATH_MAX = 4096, MERGE_NOTE_MAX = 2048, MERGE_NOTES_MAX = 1000 };

/* What `git merge-tree --write-tree -z` wrote; NULL: it is none. */
MergeResult *merge_result_parse(const guint8 *bytes, size_t n, bool clean, GError **error);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include "forge/contents.h"

enum { TREE_MODE_FOLDER = 0040000, TREE_MODE_LINK = 0120000, TREE_MODE_SUBMODULE = 0160000 };

/* A record of `git ls-tree -z -l`: "MODE TYPE OID SIZE\tPATH", the path below `below` ("": the top).  NULL:
 * it is none. */
TreeEntry *tree_entry_parse(const char *record, const char *below);
/* Which of them a mode is; false: none. */
bool tree_mode_kind(guint mode, EntryKind *ret_kind);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <glib.h>
#include <stdbool.h>

#include "forge/git.h"

/* base...head: what `head` has that `base` has not.  Its commits are commit_list() of `head` without
 * `base`, oldest first; its files are diff_files() of `merge_base` and `head`. */
typedef struct Comparison {
    char *merge_base; /* NULL: no history in common; then files are compared with base itself */
    guint ahead, behind;
    const char *status; /* identical, ahead, behind, diverged */
} Comparison;
void comparison_clear(Comparison *comparison);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Comparison, comparison_clear)

bool compare_commits(GitRepo *repo, const char *base, const char *head, Comparison *ret_comparison,
                     GError **error);

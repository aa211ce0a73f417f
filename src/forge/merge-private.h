/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include "forge/merge.h"

/* merge.c: `head` into `base`: done->tree, or done->conflict. */
bool merge_tree(GitRepo *repo, const char *base, const char *head, MergeDone *done, GError **error);
void merge_text_free(void *text); /* a GString */

/* merge-rebase.c */
bool merge_rebase(GitRepo *repo, const MergeSpec *spec, MergeDone *done, GError **error);

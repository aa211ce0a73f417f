/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <glib.h>
#include <stdbool.h>

#include "forge/git.h"

/* Base + patch, and nothing else: the tree that a clean box gets, byte for byte as git has it.
 * `git archive` would obey the tree's own attributes (export-ignore, export-subst, line ends), so
 * the change under check could choose what is checked; this reads objects and writes the archive. */

enum {
    PATCH_FILES_MAX = 200 * 1000,
    PATCH_PATHS_MAX = 32 << 20,  /* bytes of all names */
    PATCH_BYTES_MAX = 2LL << 30, /* of all contents */
    PATCH_TIMEOUT_MS = 5 * 60 * 1000,
};

typedef bool (*PatchTake)(const guint8 *bytes, size_t n, void *ctx);

typedef struct PatchSum {
    guint files;
    guint64 bytes; /* of contents */
} PatchSum;

/* A tar of `tree`: files (0644 or 0755), links, folders; a submodule is an empty folder.  Every time in it is
 * `time_s`, and all belongs to user 0, so that the same tree is the same archive.  `take`
 * returns false to end it, which is ERR_CANCELLED. */
bool patch_tar(GitRepo *repo, const char *tree, gint64 time_s, PatchTake take, void *ctx, PatchSum *ret_sum,
               GError **error);

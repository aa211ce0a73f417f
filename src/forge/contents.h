/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <glib.h>
#include <stdbool.h>

#include "forge/git.h"

/* Folders and files of a commit, as they are stored: no filter, no line ends, no links followed.
 * All of it blocks (git.h). */

enum {
    CONTENTS_PATH_MAX = 4096,
    CONTENTS_PAGE_MAX = 1000,
    CONTENTS_BLOB_MAX = 8 << 20, /* of one that is read into memory */
};

typedef enum EntryKind { ENTRY_FILE, ENTRY_PROGRAM, ENTRY_LINK, ENTRY_FOLDER, ENTRY_SUBMODULE } EntryKind;

typedef struct TreeEntry {
    EntryKind kind;
    guint mode;
    char oid[GIT_OID_LEN + 1];
    gint64 size; /* of files and links; else -1 */
    char *path;  /* from the top of the tree; bytes, which need not be UTF-8 */
} TreeEntry;
void tree_entry_free(TreeEntry *entry);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(TreeEntry, tree_entry_free)

/* Whether it may be asked for: relative, no empty, "." or ".." part. */
bool contents_path_is_valid(const char *path, GError **error);

/* `tree` is a commit's or a tree's object name.  `path` "" is the top.  ERR_NOT_FOUND. */
TreeEntry *contents_entry(GitRepo *repo, const char *tree, const char *path, GError **error);

typedef struct ContentsPage {
    const char *tree;
    const char *path; /* of a folder; "": the top */
    bool recursive;   /* all files below, no folders */
    guint skip, max;  /* max at most CONTENTS_PAGE_MAX */
} ContentsPage;
/* TreeEntry, in git's order.  `*ret_more` may be NULL. */
GPtrArray *contents_list(GitRepo *repo, const ContentsPage *page, bool *ret_more, GError **error);

/* ERR_LIMIT where it is larger than `max` (0: CONTENTS_BLOB_MAX). */
bool contents_blob(GitRepo *repo, const char *oid, size_t max, GByteArray **ret_bytes, GError **error);
/* The file at `path`, and what it is (`ret_entry` may be NULL); a folder or a submodule is ERR_INVALID. */
bool contents_file(GitRepo *repo, const char *tree, const char *path, TreeEntry **ret_entry,
                   GByteArray **ret_bytes, GError **error);
/* Any size; `take` returns false to end it. */
bool contents_stream(GitRepo *repo, const char *oid, bool (*take)(const guint8 *bytes, size_t n, void *ctx),
                     void *ctx, GError **error);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include "forge/git.h"

/* A tree that is made of another one by writing and removing single files, without an index and without a
 * checkout: only the folders on the way are read, and only those that changed are written anew.  Blocks. */
typedef struct TreeEditor TreeEditor;

enum {
    TREE_EDIT_DEPTH_MAX = 100,      /* folders one in the other */
    TREE_EDIT_FOLDERS_MAX = 1000,   /* that are on the way to any of the files */
    TREE_EDIT_BYTES_MAX = 64 << 20, /* of all folders that are read */
};

/* `tree` is a tree's or a commit's object name; NULL: the empty one. */
TreeEditor *tree_editor_new(GitRepo *repo, const char *tree);
void tree_editor_free(TreeEditor *editor);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(TreeEditor, tree_editor_free)

/* Reads the folders on the way to these by one child; else each is read when it is needed, by its own.
 * What is no path, or leads nowhere, is left out. */
void tree_editor_read_ahead(TreeEditor *editor, const GPtrArray *paths);

/* `mode` as git's.  ERR_INVALID: a path that may not be, a file where a folder is needed, or the other way
 * round, or more than TREE_EDIT_FOLDERS_MAX in all. */
bool tree_editor_put(TreeEditor *editor, const char *path, guint mode, const char *oid, GError **error);
/* A file, a link or a submodule; folders that become empty go too.  ERR_NOT_FOUND. */
bool tree_editor_remove(TreeEditor *editor, const char *path, GError **error);

/* Adds the trees that are to be written, the top one last, to `objects` (NewObject of object-write.h). */
bool tree_editor_end(TreeEditor *editor, GPtrArray *objects, char ret_oid[GIT_OID_LEN + 1], GError **error);

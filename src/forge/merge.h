/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <glib.h>
#include <stdbool.h>

#include "forge/commit.h"
#include "forge/git.h"
#include "json/json.h"

/* Merges in a bare repository: objects are made, no ref is moved, no tree is checked out.  The
 * branch is moved afterwards, by git_branch_move() with the value it had.
 *
 * The same spec gives the same object names, so what a crash interrupted may be done again.  Each
 * only adds objects, so it may run beside other work on the repository (forge_read).
 *
 * Children of git: a merge or a squash takes 2 (1 where the tree is known already); a rebase of n
 * commits takes 3, and up to 2n - 1 more where the target has moved. */

enum {
    MERGE_REBASE_MAX = 100, /* commits */
    MERGE_RENAMES_MAX = 1000,
    MERGE_TIMEOUT_MS = 30 * 1000,
    MERGE_MESSAGE_MAX = 64 << 10,
    MERGE_CONFLICTS_MAX = 1000, /* paths that are listed */
    BUNDLE_FILES_MAX = 100,     /* whose contents are given */
    BUNDLE_TEXT_MAX = 64 << 10, /* of one version of a file */
    BUNDLE_TOTAL_MAX = 4 << 20,
};

typedef enum MergeMethod { MERGE_COMMIT, MERGE_SQUASH, MERGE_REBASE, MERGE_METHOD_MAX } MergeMethod;
const char *merge_method_name(MergeMethod method); /* merge, squash, rebase */
bool merge_method_parse(const char *name, MergeMethod *ret_method);

/* One of the up to three versions of a path that does not merge. */
typedef struct MergeSide {
    guint mode; /* 0: not there */
    char oid[GIT_OID_LEN + 1];
} MergeSide;

typedef struct MergeConflict {
    char *path; /* bytes */
    MergeSide base, ours, theirs;
} MergeConflict;

/* What git says of paths: kind is its word for it, such as "CONFLICT (contents)". */
typedef struct MergeNote {
    char **paths;
    char *kind, *text; /* UTF-8, no control characters */
} MergeNote;

typedef struct MergeResult {
    char tree[GIT_OID_LEN + 1]; /* with conflicts: markers and all, not for use */
    bool clean;
    bool truncated;       /* there are more conflicts than listed */
    GPtrArray *conflicts; /* MergeConflict, by path */
    GPtrArray *notes;     /* MergeNote; of conflicts only */
} MergeResult;
void merge_result_free(MergeResult *result);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(MergeResult, merge_result_free)

/* `head` into `base`, both commits.  Conflicts are a result, no error. */
MergeResult *merge_try(GitRepo *repo, const char *base, const char *head, GError **error);

/* Who and when; the time is given, so that the result does not depend on the moment. */
typedef struct MergePerson {
    const char *name, *email;
    gint64 time_s;
    int zone_min;
} MergePerson;

typedef struct MergeSpec {
    MergeMethod method;
    const char *base, *head; /* commits: the target's tip and what is merged into it */
    const char *tree;        /* of a merge that was found clean and checked: not merged again; NULL: merge.
                                Not of rebases */
    MergePerson author;      /* of merge commits and squashes; a rebase keeps each commit's own */
    MergePerson committer;   /* Coop */
    const char *message;     /* not of rebases */
} MergeSpec;

typedef struct MergeDone {
    char oid[GIT_OID_LEN + 1]; /* the new commit; of a rebase that adds nothing: base */
    char tree[GIT_OID_LEN + 1];
    guint commits;         /* that were made */
    MergeResult *conflict; /* not NULL: it does not merge, and `oid` is "" */
    char *conflict_commit; /* of rebases: the commit that does not apply */
    guint children;        /* of git that it took */
} MergeDone;
void merge_done_clear(MergeDone *done);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(MergeDone, merge_done_clear)

/* True with conflicts too: they are an answer. */
bool merge_make(GitRepo *repo, const MergeSpec *spec, MergeDone *ret_done, GError **error);

/* The other direction: brings `base` into the branch at `head` by a merge commit, whose first parent is
 * head.  `oid` is head itself where it has all of base. */
bool merge_update_branch(GitRepo *repo, const MergeSpec *spec, MergeDone *ret_done, GError **error);

/* What each side wanted: a pull request's title and body. */
typedef struct MergeIntent {
    const char *name; /* of the branch */
    const char *oid;
    const char *title, *body;
} MergeIntent;

/* For whoever resolves it:
 *   {merge_base, ours: {name, oid, title, body}, theirs: {...}, truncated,
 *    files: [{path, base, ours, theirs, merged}], notes: [{kind, paths, text}]}
 * where a version is null or {oid, mode, size, binary, text}; text is null for what is binary or too
 * long.  `merged` has git's conflict markers in it. */
Json *merge_bundle(GitRepo *repo, const MergeResult *result, const MergeIntent *ours,
                   const MergeIntent *theirs, GError **error);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <glib.h>
#include <stdbool.h>

#include "forge/git.h"

/* Commits, branches and how they hang together.  All of it blocks (git.h).
 *
 * What comes from outside to name a commit goes through commit_resolve() first; every other call
 * takes object names only, so nothing of a request is ever read as a revision or an option. */

enum {
    COMMIT_NAME_MAX = 255,         /* of a branch, a tag or a ref to be resolved */
    COMMIT_MESSAGE_MAX = 64 << 10, /* of what is given on; longer ones are cut */
    COMMIT_PERSON_MAX = 1024,
    COMMIT_PARENTS_MAX = 64,
    COMMIT_OBJECT_MAX = 1 << 20, /* of one that is read at all: ERR_LIMIT beyond */
    COMMIT_PAGE_MAX = 250,
    COMMIT_COUNT_MAX = 10000, /* what is counted stops there */
    BRANCH_PAGE_MAX = 1000,
};

typedef struct GitPerson {
    char *name, *email; /* UTF-8 without control characters */
    gint64 time_s;
    int zone_min; /* east of Greenwich */
} GitPerson;

typedef struct GitCommit {
    char *oid, *tree;
    char **parents;
    GitPerson author, committer;
    char *message; /* UTF-8 */
    bool is_signed;
} GitCommit;

/* "NAME <EMAIL> SECONDS ZONE" up to `end`; what is not there is empty. */
void git_person_parse(const char *text, const char *end, GitPerson *ret_person);

void git_commit_free(GitCommit *commit);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(GitCommit, git_commit_free)
/* The text of the object behind `oid`.  Any bytes are refused or give a commit. */
GitCommit *git_commit_parse(const char *oid, const guint8 *bytes, size_t n, GError **error);

/* A commit by its full object name, a branch, a tag, or a full ref below refs/heads/, refs/tags/ or
 * refs/pull/.  A branch goes before a tag of the same name.  ERR_NOT_FOUND, ERR_INVALID. */
char *commit_resolve(GitRepo *repo, const char *name, GError **error);

GitCommit *commit_read(GitRepo *repo, const char *oid, GError **error);
/* GitCommit, in the order of `oids`. */
GPtrArray *commit_read_many(GitRepo *repo, const char *const *oids, GError **error);

typedef struct CommitRange {
    const char *head;    /* newest */
    const char *without; /* leaves out what this one has; NULL: nothing */
    const char *path;    /* only what changed this file or folder; NULL: all */
    bool oldest_first;
    guint skip, max; /* max at most COMMIT_PAGE_MAX */
} CommitRange;
/* GitCommit.  `*ret_more` (may be NULL): there are others behind them. */
GPtrArray *commit_list(GitRepo *repo, const CommitRange *range, bool *ret_more, GError **error);
/* At most `max`, or COMMIT_COUNT_MAX if that is 0. */
bool
commit_count(GitRepo *repo, const char *head, const char *without, guint max, guint *ret_n, GError **error);

/* The best common ancestor; `*ret_oid` is NULL where there is none. */
bool commit_merge_base(GitRepo *repo, const char *a, const char *b, char **ret_oid, GError **error);
/* Whether `old` is `new` or one of its ancestors. */
bool commit_is_ancestor(GitRepo *repo, const char *old, const char *new, bool *ret_is, GError **error);
bool commit_ahead_behind(GitRepo *repo, const char *base, const char *head, guint *ret_ahead,
                         guint *ret_behind, GError **error);

typedef struct BranchTip {
    char *name; /* without refs/heads/ */
    char *oid;
} BranchTip;
void branch_tip_free(BranchTip *tip);

typedef struct BranchPage {
    const char *prefix; /* of the name; NULL or "": all */
    guint skip, max;    /* max at most BRANCH_PAGE_MAX */
    bool tags;          /* tags in the place of branches */
} BranchPage;
/* BranchTip, by name. */
GPtrArray *branch_list(GitRepo *repo, const BranchPage *page, bool *ret_more, GError **error);

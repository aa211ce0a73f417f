/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <glib.h>
#include <stdbool.h>

#include "forge/git.h"

/* What lies between two trees, in pages.
 *
 * One child lists the changes and then writes their patches, in the same order; it is ended when the page
 * is full.  So a page costs what is on it, and ten thousand changed files are never held at once.
 * Renames are found among all files, up to DIFF_RENAMES_MAX on each side; beyond, only files that were
 * moved without a change count as renamed.  Nothing that a repository says of its files (attributes,
 * filters, external programs) is looked at. */

enum {
    DIFF_PAGE_MAX = 300,
    DIFF_RENAMES_MAX = 1000,
    DIFF_PATH_MAX = 4096,
    DIFF_PATCH_MAX = 256 << 10, /* of one file: a longer one is left out, its lines are counted */
    DIFF_LINE_MAX = 32 << 10,   /* a longer line makes the patch one that is left out */
    DIFF_TEXT_MAX = 4 << 20,    /* patches of one page together */
    DIFF_READ_MAX = 128 << 20,  /* read from git for one page: counts end there */
    DIFF_BLOB_MAX_MIB = 8,      /* larger files are binary to it */
    DIFF_STREAM_MAX = 64 << 20, /* of diff_stream() */
    DIFF_TIMEOUT_MS = 20 * 1000,
};

typedef enum DiffStatus {
    DIFF_ADDED,
    DIFF_REMOVED,
    DIFF_MODIFIED,
    DIFF_RENAMED,
    DIFF_TYPE_CHANGED, /* a file became a link, a submodule, or the other way round */
    DIFF_STATUS_MAX,
} DiffStatus;
const char *diff_status_name(DiffStatus status); /* added, removed, modified, renamed, changed */

typedef struct DiffFile {
    char *path;     /* bytes as git has them, which need not be UTF-8 */
    char *old_path; /* of renamed ones; else NULL */
    DiffStatus status;
    guint similarity;         /* of renamed ones: percent */
    guint old_mode, new_mode; /* as git's: 0100644, 0100755, 0120000, 0160000; 0: not there */
    char old_oid[GIT_OID_LEN + 1], new_oid[GIT_OID_LEN + 1];
    guint additions, deletions;
    bool counted; /* false: the page ended before its lines were counted */
    bool binary;
    bool too_large; /* there is a patch, and it is not given */
    GString *patch; /* from the first "@@"; bytes; NULL: none */
} DiffFile;
void diff_file_free(DiffFile *file);

typedef struct DiffSpec {
    const char *old, *new; /* commits or trees; old NULL: the empty tree */
    const char *from;      /* `next` of the page before; NULL: from the start */
    guint skip;            /* files before the page, for who counts pages; with `from` NULL */
    guint max;             /* 0 or more than DIFF_PAGE_MAX: DIFF_PAGE_MAX */
    const char *path;      /* only this file or folder; NULL: all */
    bool names_only;       /* no patches, no counts */
    const gint *cancel;    /* as of GitCall */
} DiffSpec;

typedef struct DiffPage {
    GPtrArray *files; /* DiffFile */
    char *next;       /* where the next page begins; NULL: this was the last */
} DiffPage;
void diff_page_free(DiffPage *page);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(DiffPage, diff_page_free)

DiffPage *diff_files(GitRepo *repo, const DiffSpec *spec, GError **error);

typedef struct DiffTotals {
    guint files;
    guint64 additions, deletions;
} DiffTotals;
bool diff_totals(GitRepo *repo, const char *old, const char *new, DiffTotals *ret_totals, GError **error);

/* The whole as a patch.  `*ret_cut`: it was longer than DIFF_STREAM_MAX and ends early, at a line's
 * end.  `take` returns false to end it. */
typedef bool (*DiffTake)(const guint8 *bytes, size_t n, void *ctx);
bool
diff_stream(GitRepo *repo, const DiffSpec *spec, DiffTake take, void *ctx, bool *ret_cut, GError **error);

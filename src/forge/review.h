/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include "forge/thread.h"

/* Reviews of pull requests and comments on their lines.
 *
 * A review is pending until it is submitted: only its author sees it, and he has one at a time.  An
 * author cannot approve or refuse his own pull request.  What counts for a merge is the last of
 * APPROVED, CHANGES_REQUESTED and DISMISSED of each person; a later push leaves it standing, and
 * commit_oid says what was looked at.
 *
 * JSON: the rows' columns, `author` as people.h shows it, `number` of the pull request. */

enum {
    REVIEW_LINES_MAX = 100, /* comments given with one review */
    REVIEW_PATH_MAX = 4096,
    REVIEW_LINE_MAX = 10 * 1000 * 1000,
};

typedef enum ReviewVerdict {
    REVIEW_PENDING,
    REVIEW_COMMENT,
    REVIEW_APPROVE,
    REVIEW_REFUSE, /* CHANGES_REQUESTED */
} ReviewVerdict;

typedef struct ReviewSpec {
    const char *actor;
    gint64 number;
    ReviewVerdict verdict;
    const char *body;       /* NULL: none; REVIEW_REFUSE needs one, REVIEW_COMMENT one or lines */
    const char *commit_oid; /* NULL: the head */
    /* [{"path", "body", "line", "side": "RIGHT" | "LEFT", "start_line"}]; borrowed; NULL: none */
    Json *lines;
} ReviewSpec;
void review_create(Forge *forge, Repo *repo, const ReviewSpec *spec, ForgeJsonFunc done, void *data);

typedef enum ReviewAct {
    REVIEW_ACT_SUBMIT,  /* a pending one of the actor's; with `verdict` */
    REVIEW_ACT_EDIT,    /* its body, by its author */
    REVIEW_ACT_DISMISS, /* `body` says why */
    REVIEW_ACT_DELETE,  /* a pending one; answers with it as it was */
} ReviewAct;

typedef struct ReviewChange {
    const char *actor;
    gint64 number, id;
    ReviewAct act;
    ReviewVerdict verdict;
    bool is_admin;    /* may dismiss another's */
    const char *body; /* NULL: as it is */
} ReviewChange;
void review_change(Forge *forge, Repo *repo, const ReviewChange *change, ForgeJsonFunc done, void *data);

/* `actor` sees his own pending one too. */
typedef struct ReviewFilter {
    const char *actor;
    gint64 number;
    gint64 id; /* 0: all, as a list; else that one alone */
    ForgePage page;
} ReviewFilter;
void review_list(Forge *forge, Repo *repo, const ReviewFilter *filter, ForgeJsonFunc done, void *data);

/* ---- comments on lines ---- */

typedef struct LineSpec {
    const char *actor;
    gint64 number;
    const char *body;
    gint64 in_reply_to; /* 0: begins a thread; else path, side and lines are those of that one */
    const char *path;
    const char *side;        /* "RIGHT" (the new text), "LEFT"; NULL: RIGHT */
    gint64 line, start_line; /* start_line 0: one line */
    const char *commit_oid;  /* NULL: the head */
    const char *diff_hunk;   /* of one from elsewhere; else it is found, and NULL */
} LineSpec;
/* One alone is a review of its own (COMMENTED), as is a reply. */
void line_comment_add(Forge *forge, Repo *repo, const LineSpec *spec, ForgeJsonFunc done, void *data);

typedef enum LineAct { LINE_EDIT, LINE_DELETE, LINE_RESOLVE, LINE_UNRESOLVE } LineAct;

typedef struct LineChange {
    const char *actor;
    bool is_admin; /* may change another's */
    gint64 id;
    LineAct act;      /* resolving is of the whole thread, by any of its comments */
    const char *body; /* of LINE_EDIT */
} LineChange;
void line_comment_change(Forge *forge, Repo *repo, const LineChange *change, ForgeJsonFunc done, void *data);

typedef struct LineFilter {
    const char *actor;
    gint64 number;    /* 0: of the whole repository */
    gint64 review_id; /* 0: any */
    gint64 id;        /* 0: a list; else that one alone */
    gint64 since_us;
    bool by_updated, descending;
    ForgePage page;
} LineFilter;
void line_comment_list(Forge *forge, Repo *repo, const LineFilter *filter, ForgeJsonFunc done, void *data);

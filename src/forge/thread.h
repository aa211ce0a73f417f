/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include "forge/forge.h"

/* Issues, and what they share with pull requests (pull.h): number, title, body, state, labels.
 *
 * Every function here and in the headers beside it runs on the loop, copies its spec, does one
 * transaction in which the rows and their event are written together, and answers on the loop.
 * Texts in specs are UTF-8; ERR_INVALID names the one that is empty or too long.  Reads see what is
 * committed.
 *
 * A thread as JSON: every column of its row by the column's name, times as `…_us`, absent as null;
 * `author` and `merged_by` as people.h shows them, `reviewers` a list of such, `labels` a list of
 * label.h's objects, and the counts `comments` and `review_comments`.
 * A list as JSON: {"items": […], "total": how many there are on all pages}. */

enum {
    THREAD_TITLE_MAX = 256, /* characters */
    THREAD_BODY_MAX = 65536,
    THREAD_LABELS_MAX = 100,
    THREAD_REVIEWERS_MAX = 15,
    THREAD_PAGE_MAX = 100,
    THREAD_PAGE = 30,
    ACTOR_MAX = 128,
};

typedef struct ForgePage {
    guint page;     /* from 1; 0: the first */
    guint per_page; /* 0: THREAD_PAGE; more than THREAD_PAGE_MAX is taken for that */
} ForgePage;

typedef struct IssueSpec {
    const char *actor;
    const char *title;
    const char *body;          /* NULL: none */
    const char *task_id;       /* NULL: none */
    const char *const *labels; /* made when they are not there; NULL: none */
} IssueSpec;
void issue_open(Forge *forge, Repo *repo, const IssueSpec *spec, ForgeJsonFunc done, void *data);

typedef enum DraftChange { DRAFT_AS_IS, DRAFT_SET, DRAFT_READY } DraftChange;

/* NULL members stay as they are. */
typedef struct ThreadEdit {
    const char *actor;
    gint64 number;
    const char *kind; /* "issue" or "pull": only if it is one; NULL: either */
    const char *title, *body;
    const char *state;        /* "open" or "closed"; a merged pull request is never opened again */
    const char *state_reason; /* of closed issues: "completed" or "not_planned" */
    const char *base;         /* of open pull requests */
    DraftChange draft;        /* of open pull requests */
    const char *const *labels;
} ThreadEdit;
void thread_edit(Forge *forge, Repo *repo, const ThreadEdit *edit, ForgeJsonFunc done, void *data);

typedef enum ListChange { LIST_ADD, LIST_SET, LIST_REMOVE } ListChange;

typedef struct ThreadNames {
    const char *actor;
    gint64 number;
    ListChange how;
    const char *const *names; /* LIST_REMOVE of a label that is not there: ERR_NOT_FOUND */
} ThreadNames;
/* Answers with the thread. */
void thread_label(Forge *forge, Repo *repo, const ThreadNames *names, ForgeJsonFunc done, void *data);

void thread_get(Forge *forge, Repo *repo, gint64 number, const char *kind, ForgeJsonFunc done, void *data);

typedef enum ThreadSort { THREAD_BY_CREATED, THREAD_BY_UPDATED, THREAD_BY_COMMENTS } ThreadSort;

/* NULL and 0: any. */
typedef struct ThreadFilter {
    const char *kind;  /* "issue", "pull" */
    const char *state; /* "open", "closed"; NULL: both */
    const char *head, *base;
    const char *author; /* actor or login */
    const char *task_id;
    const char *const *labels; /* all of them */
    gint64 since_us;           /* changed at or after */
    ThreadSort sort;
    bool ascending;
    ForgePage page;
} ThreadFilter;
void thread_list(Forge *forge, Repo *repo, const ThreadFilter *filter, ForgeJsonFunc done, void *data);

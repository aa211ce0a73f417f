/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include "forge/thread.h"

/* Comments under an issue or a pull request (those on lines are review.h's).  As JSON: the row's
 * columns, `author` as people.h shows it, and `number` of the thread. */

enum { COMMENT_MARKER_MAX = 64 };

typedef struct CommentSpec {
    const char *actor;
    gint64 number;
    const char *body;
    /* The one comment of this name in the thread is written anew in its place, and made when there
     * is none; NULL: one more comment. */
    const char *marker;
} CommentSpec;
void comment_put(Forge *forge, Repo *repo, const CommentSpec *spec, ForgeJsonFunc done, void *data);

/* ERR_DENIED: it is another's, and `is_admin` is not set. */
typedef struct CommentEdit {
    const char *actor;
    bool is_admin;
    gint64 id;
    const char *body; /* NULL: the comment is removed, and the answer is {} */
} CommentEdit;
void comment_edit(Forge *forge, Repo *repo, const CommentEdit *edit, ForgeJsonFunc done, void *data);

void comment_get(Forge *forge, Repo *repo, gint64 id, ForgeJsonFunc done, void *data);

typedef struct CommentFilter {
    gint64 number; /* 0: of the whole repository */
    gint64 since_us;
    bool by_updated; /* else by when they were made */
    bool descending;
    ForgePage page;
} CommentFilter;
void comment_list(Forge *forge, Repo *repo, const CommentFilter *filter, ForgeJsonFunc done, void *data);

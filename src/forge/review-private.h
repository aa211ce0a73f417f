/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include "forge/review.h"
#include "forge/row.h"

/* Reviews inside a job. */

/* `actor` sees his own pending ones too. */
Json *review_load(RowJob *job, gint64 number, gint64 id, const char *actor, GError **error);
Json *line_comment_load(RowJob *job, gint64 id, const char *actor, GError **error);

/* How many people approve and how many ask for changes; the author does not count. */
bool review_count(RowJob *job, const Json *pull, guint *ret_approvals, guint *ret_refusals, GError **error);

typedef struct ReviewNew {
    const char *actor;
    ReviewVerdict verdict;
    const char *body; /* NULL: none */
    const char *commit_oid;
} ReviewNew;
/* The row alone. */
bool review_insert(RowJob *job, const Json *pull, const ReviewNew *new, gint64 *ret_id, GError **error);
/* What follows when it becomes seen: events, and the request for it is done. */
bool review_tell(RowJob *job, const Json *pull, gint64 review_id, const char *actor, ReviewVerdict verdict,
                 GError **error);

/* review_create(), review_change() and the two of lines inside a job. */
bool review_create_row(RowJob *job, const ReviewSpec *spec, Json **ret_value, GError **error);
bool review_change_row(RowJob *job, const ReviewChange *change, Json **ret_value, GError **error);
bool line_comment_add_row(RowJob *job, const LineSpec *spec, Json **ret_value, GError **error);
bool line_comment_change_row(RowJob *job, const LineChange *change, Json **ret_value, GError **error);
/* One that a line may be in. */
bool line_path_is_plain(const char *path);

/* Lines given with a review: see ReviewSpec. */
bool review_add_lines(RowJob *job, const Json *pull, gint64 review_id, const char *actor, Json *lines,
                      const char *commit_oid, GError **error);
/* `commit_oid` or, for NULL, the head; NULL with ERR_INVALID. */
const char *review_commit(const Json *pull, const char *commit_oid, GError **error);

/* SQL: the row of alias `rc` or `r` is shown to the actor, who is the one argument. */
#define REVIEW_IS_SHOWN "(r.state <> 'PENDING' OR r.author = ?)"

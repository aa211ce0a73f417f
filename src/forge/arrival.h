/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include "forge/review.h"
#include "store/db.h"

/* What happened to a pull request of ours in the place that its repository mirrors, as rows with their
 * events, inside the caller's transaction.  The actor is "github:LOGIN", which nobody here can be: such
 * rows are shown as theirs, and their approvals count for nothing.
 *
 * `ret_changed` may say that nothing was to be done: it was so already, or it makes no sense here. */
typedef struct Arrival {
    const char *repository_id, *actor;
    gint64 number;
} Arrival;

typedef struct ArrivalState {
    bool is_closed, is_draft;
    const char *merge_oid; /* NULL: it was not merged */
} ArrivalState;
bool
arrival_state(DbTx *tx, const Arrival *arrival, const ArrivalState *state, bool *ret_changed, GError **error);

/* Arrays of texts; borrowed; NULL: none. */
typedef struct ArrivalNames {
    const Json *labels_added, *labels_removed;
    const Json *reviewers_added, *reviewers_removed; /* logins there */
} ArrivalNames;
/* `*ret_pull` is the pull request then; `*ret_changed` is set to true or stays as it is. */
bool arrival_names(DbTx *tx, const Arrival *arrival, const ArrivalNames *names, Json **ret_pull,
                   bool *ret_changed, GError **error);
/* After the transaction: git is asked again about pull requests. */
void arrival_settle(Forge *forge, Repo *repo);

/* In what follows `*id` is our row's; 0: there is none yet, and it is set.  One that is gone here stays
 * so, and one of our own is never changed. */

/* NULL `body`: it was removed. */
bool arrival_comment(DbTx *tx, const Arrival *arrival, const char *body, gint64 *id, bool *ret_changed,
                     GError **error);

typedef struct ArrivalReview {
    const char *state; /* as GitHub has it: "APPROVED" */
    const char *body, *commit_oid;
    bool may_refuse; /* a request for changes of somebody who has a say there */
} ArrivalReview;
bool arrival_review(DbTx *tx, const Arrival *arrival, const ArrivalReview *review, gint64 *id,
                    bool *ret_changed, GError **error);

/* `line` as LineSpec, without its actor and number; NULL: it was removed. */
bool arrival_line(DbTx *tx, const Arrival *arrival, const LineSpec *line, gint64 *id, bool *ret_changed,
                  GError **error);

/* The thread of a comment on a line, which must be there. */
bool arrival_resolve(DbTx *tx, const Arrival *arrival, gint64 id, bool is_resolved, bool *ret_changed,
                     GError **error);

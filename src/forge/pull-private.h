/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include "forge/pull.h"
#include "forge/push.h"
#include "forge/row.h"

/* Pull requests inside a job, and what is asked of git about them. */

/* ERR_CONFLICT: it was merged, its branch is gone, or another one is open for the same branches.
 * Takes the tips as they are now. */
bool pull_may_reopen(RowJob *job, const Json *pull, GError **error);
bool pull_change_draft(RowJob *job, const PullDraft *draft, GError **error);
/* pull_reviewers() inside a job. */
bool pull_reviewers_row(RowJob *job, const ThreadNames *names, Json **ret_value, GError **error);
bool pull_retarget(RowJob *job, const Json *pull, const char *base, GError **error);

typedef struct PullLook PullLook;
/* The row, its event and the requests for reviews. */
bool pull_insert(RowJob *job, const PullSpec *spec, const PullLook *look, Json **ret_pull, GError **error);

/* What git says of two commits. */
struct PullLook {
    char head_oid[GIT_OID_LEN + 1], base_oid[GIT_OID_LEN + 1];
    guint ahead, behind;
    bool conflicts;
    char from_oid[GIT_OID_LEN + 1]; /* its files are compared with this; "": not known yet */
    gint64 files;                   /* below 0: git could not tell, as with the next two */
    gint64 additions, deletions;
    gint64 commits;                 /* as `ahead`; where that is 0, what it was */
    char was_base[GIT_OID_LEN + 1]; /* the tip of the base when it was last compared; "": none */
    bool brought;                   /* the base has got the head since then */
};
/* Blocks.  The first two oids are given, and was_base; from_oid too where it is known with what follows it,
 * which is then asked for only if it has changed. */
bool pull_look(GitRepo *git, PullLook *look, GError **error);
/* Writes it down if the tips are still these.  No event, for nobody did anything; but where somebody has
 * pushed the head into the base, it is merged. */
bool pull_put_look(RowJob *job, gint64 number, const PullLook *look, GError **error);

/* As pull_get() answers: the member `merge`. */
bool pull_add_merge(RowJob *job, Json *pull, GError **error);

/* In the transaction of a push: the tips of its pull requests, and their events; then git is asked. */
extern const ForgePushListener pulls_listener;

/* The look-ups of a repository's pull requests go on behind what is under way. */
void pulls_look_at(Forge *forge, Repo *repo);

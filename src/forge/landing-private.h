/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include "base/loop.h"
#include "forge/landing.h"
#include "forge/merge.h"
#include "forge/push-private.h"
#include "forge/row.h"

/* What the files of the merge queue share. */

enum { LANDING_REST_MS = 5000 }; /* before a lane whose step could not be written down is looked at again */

/* Bits of merges.leftover. */
enum { LEFT_REF = 1, LEFT_BRANCH = 2 };

/* ---- rows, landing-rows.c and landing-add.c ---- */

extern const char landing_active_sql[]; /* the states that have not ended, as a list */

/* For faces; the second has the bundle of a conflict, the third what is for the queue alone. */
typedef enum LandingView { LANDING_SHOWN, LANDING_WHOLE, LANDING_INSIDE } LandingView;
Json *landing_row_get(RowJob *job, LandingView view, gint64 id, GError **error);
Json *landing_row_list(RowJob *job, const RowWhere *where, const char *order, ForgePage page, GError **error);

typedef struct LandingEnd {
    gint64 id;
    const char *state; /* failed, conflict, cancelled */
    LandingReason reason;
    const char *problem;
    const char *actor;    /* who ended it; NULL: Coop */
    const char *conflict; /* JSON of the bundle; NULL: none */
} LandingEnd;
extern const RowMember landing_end_members[];
/* With event and comment; `entry` is LANDING_INSIDE. */
bool landing_row_end(RowJob *job, const Json *entry, const LandingEnd *end, GError **error);
/* The comment of the queue under the pull request: made, or only written anew where there is one. */
typedef enum CommentNeed { COMMENT_NEEDED, COMMENT_IF_THERE } CommentNeed;
bool landing_comment(RowJob *job, gint64 number, const char *body, CommentNeed need, GError **error);

/* Steps.  Each answers with {"outcome", "entry"}, where `entry` is LANDING_INSIDE; an entry that is not in
 * the state that the step begins from is `lost`: somebody took it out. */
typedef struct LandingStep {
    const char *target;                     /* of take */
    gint64 id;                              /* of the others */
    const char *target_oid, *candidate_oid; /* of checking */
    const char *suite_id;                   /* of checking */
} LandingStep;

/* What is under way for this target, else the oldest that is queued, whose building begins:
 *   none; ended (a rule has refused it); lost (nothing was there to go on with);
 *   build, with `pull`, `ours` (what was merged last) and `up_to_date`; check; land */
extern const RowOp landing_take;
extern const RowOp landing_checking; /* building -> checking: ok, lost */
/* checking -> landing: land; wait (the suite is under way); ended; requeued; lost */
extern const RowOp landing_decide;
extern const RowOp landing_requeue; /* another candidate: requeued, ended, lost */
extern const RowOp landing_finish;  /* of LandingEnd: ended, lost */
extern const RowOp landing_add_op;  /* of LandingSpec; answers with the entry as shown */

/* In the transaction that tells of the moved branch. */
typedef struct LandingLanded {
    char *repository_id;
    gint64 id;
    gint64 leftover; /* more of it may be found */
    /* set */
    bool written; /* it was not before */
} LandingLanded;
bool landing_write_landed(DbTx *tx, void *data, GError **error);

/* Whether an outcome is this one. */
bool landing_outcome_is(const Json *value, const char *outcome);

/* ---- git, in a thread, landing-git.c ---- */

typedef struct LandingBuild {
    MergeMethod method;
    char *target, *head; /* branches */
    char *head_oid, *message, *author_name, *author_email, *ref;
    char *ours_title, *ours_body, *title, *body; /* may be NULL */
    gint64 time_s;
    bool up_to_date;
    /* what came of it */
    char target_oid[GIT_OID_LEN + 1], candidate[GIT_OID_LEN + 1];
    bool behind, nothing;
    char *bundle; /* it conflicts */
} LandingBuild;
LandingBuild *landing_build_new(const Json *taken, const char *ref);
void landing_build_free(LandingBuild *build);
bool landing_build_work(GitRepo *git, void *data, GError **error);

typedef struct LandingMove {
    char *target, *ref, *target_oid, *landing_oid, *why;
    bool landed;   /* else the target has moved */
    bool ref_left; /* git was killed between the two */
} LandingMove;
void landing_move_free(LandingMove *move);
bool landing_move_work(GitRepo *git, void *data, GError **error);

char *landing_ref(gint64 id);

/* ---- the queue ---- */

typedef struct Lane Lane;

struct Landings {
    guint refs;   /* the owner, each lane, each piece of work of its own */
    Forge *forge; /* NULL: the owner has let go */
    LandingCheck check;
    GHashTable *lanes;   /* "id of the repository, target" -> Lane, borrowed */
    GHashTable *queued;  /* id of an entry -> id of its repository */
    GHashTable *waiters; /* id of an entry -> GPtrArray of LandingWaiter */
    guint n_waiters;
    LandingStats stats; /* the counters */
};
Landings *landings_ref(Landings *all);
void landings_unref(Landings *all);

/* landing.c */
void landings_note_queued(Landings *all, Repo *repo, gint64 id);
/* An entry that has ended, as a step gave it: counters, whoever waits, what is left over. */
void landings_note_ended(Landings *all, Repo *repo, const Json *entry);
void landings_repo_gone(Landings *all, const char *repository_id);

/* landing-lane.c */
void lane_wake(Landings *all, Repo *repo, const char *target);
void lane_free(Lane *lane);
void lane_drop(Lane *lane);
bool lane_is_of(const Lane *lane, const char *repository_id);
/* Somebody took the entry out: a lane that waits for its checks goes on.  True: git may still be at work on
 * it, and the lane tidies up behind that. */
bool lane_removed(Landings *all, Repo *repo, const char *target, gint64 id);
void lane_suite_ended(Lane *lane, const char *suite_id);
/* A branch moved: what is being checked is not what it would become. */
void lane_branch_moved(Lane *lane, const char *branch, const char *oid);
bool lane_is_busy(const Lane *lane);

/* landing-wait.c */
void landing_tell(Landings *all, gint64 id);
void landing_waiters_repo_gone(Landings *all, const char *repository_id);
void landing_waiters_end(Landings *all);

/* landing-tidy.c: the entry's own ref and, where the setting says so, the branch that was merged. */
void landing_tidy(Landings *all, Repo *repo, const Json *entry);

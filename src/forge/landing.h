/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include "forge/thread.h"

/* The merge queue: pull requests that are to be merged, one after the other for each target branch;
 * different targets and repositories side by side.
 *
 *     queued -> building -> checking -> landing -> landed
 *                  |  ^________|___________|            the target has moved: built anew
 *                  +-> conflict, failed, cancelled
 *
 * An entry is a row in `merges`.  It is merged onto the newest tip of its target (merge.h), the result is
 * checked in a clean box, then the row says what the branch is about to become, then the branch is
 * moved with its old value named, then row, pull request, ref and their events are one transaction.
 * Time and people of the commits come from the row, so that building it again after a crash gives the
 * same objects; they are held by refs/coop/landing/ID, which nobody can fetch or push.
 *
 * Rules (pull_merge_state()) are asked when an entry is added, when it is built, and in the
 * transaction that decides to move the branch.  Two of them are the queue's own to find out, by
 * merging: `unknown` and `conflicts` keep nobody from being added.
 *
 * An entry with an expected head (LandingSpec.head_oid) ends as failed with the reason `head_moved` when
 * the pull request gets another one.  An entry without one takes the head that it finds when it is
 * built, as far as the rules hold for that; a push while it is checked has it built anew.
 *
 * As JSON: {id, number, target, method, title, message, actor (people.h), state, reason, problem,
 * head_oid, target_oid, landing_oid, suite_id, tries, created_us, ended_us}; landing_get() adds
 * `conflict`, the bundle of merge.h or null.  `problem` is a sentence for people, `reason` one of the
 * words below; both null unless it has failed, conflicted or was cancelled.  landing_oid is what the
 * target became, once it is `landed`. */
typedef struct Landings Landings;

enum {
    LANDING_TRIES = 8,          /* candidates of one entry */
    LANDING_QUEUE_MAX = 500,    /* entries that have not ended, of one repository */
    LANDING_MESSAGE_MAX = 8192, /* characters of a commit's message below its title */
    LANDING_METHOD_MAX = 16,
    LANDING_WAIT_MAX_MS = 120 * 1000,
    LANDING_WAITERS_MAX = 1000,
    LANDING_BUNDLE_MAX = 4 << 20, /* bytes of JSON; a larger one is kept without the contents */
};

/* Why an entry has ended without landing. */
typedef enum LandingReason {
    LANDING_RULES,        /* a rule of the pull request's; `problem` says which */
    LANDING_HEAD_MOVED,   /* it is not the expected one any more */
    LANDING_CHECKS,       /* Coop saw the checks of the candidate fail */
    LANDING_TARGET_MOVED, /* faster than it could be checked, LANDING_TRIES times */
    LANDING_CONFLICT,
    LANDING_NOTHING, /* the target has all of it */
    LANDING_REMOVED, /* somebody took it out */
    LANDING_FAILED,  /* git, the checks or the disk could not do their work */
    LANDING_REASON_MAX,
} LandingReason;
const char *landing_reason_name(LandingReason reason); /* rules, head_moved, checks, target_moved, … */

/* How a candidate is checked.  Of Coop's own checks (checks.h) in the server, of a fake in tests. */
typedef struct LandingCheck {
    /* Base is the target's tip, head the candidate.  `done` gets an object with the suite's `id`. */
    void (*add)(void *ctx, Repo *repo, const char *base_oid, const char *head_oid, gint64 number,
                const char *actor, ForgeJsonFunc done, void *data);
    /* It is not needed any more; nothing is said of it from then on. */
    void (*cancel)(void *ctx, Repo *repo, const char *suite_id);
    void *ctx;
} LandingCheck;

typedef struct LandingsSpec {
    Forge *forge; /* borrowed; freed after the queue */
    LandingCheck check;
} LandingsSpec;
Landings *landings_new(const LandingsSpec *spec); /* before forge_load() */
/* After forge_load(), once the checks go on: takes up what was under way. */
void landings_start(Landings *landings);
void landings_free(Landings *landings); /* whoever waits hears ERR_CANCELLED */
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Landings, landings_free)

/* A suite has ended and its row is committed (passed, failed, error): any suite, also those of others. */
void landings_suite_ended(Landings *landings, Repo *repo, const char *suite_id, const char *state);

typedef struct LandingSpec {
    const char *actor;
    gint64 number;
    const char *method;   /* merge, squash, rebase; NULL: the first that the repository allows */
    const char *title;    /* of the commit; NULL: made of the pull request.  Not of rebases */
    const char *message;  /* below the title; NULL: as usual, "": none */
    const char *head_oid; /* expected; NULL: as it is */
} LandingSpec;
/* Answers with the entry.  ERR_DENIED: a rule, with its words, or a method that is not allowed here;
 * ERR_CONFLICT: the head is another one, or the pull request is in the queue already; ERR_LIMIT: the queue
 * is full. */
void landing_add(Landings *landings, Repo *repo, const LandingSpec *spec, ForgeJsonFunc done, void *data);

/* The entry as landing_get() gives it, as soon as it has ended or the time is over; its state tells which.  A
 * missing one is ERR_NOT_FOUND at once. */
void landing_wait(Landings *landings, Repo *repo, gint64 id, guint ms, ForgeJsonFunc done, void *data);

void landing_get(Landings *landings, Repo *repo, gint64 id, ForgeJsonFunc done, void *data);

typedef struct LandingFilter {
    const char *target; /* NULL: any */
    gint64 number;      /* 0: any */
    bool ended;         /* those that have ended, newest first; else what is left, in its order */
    ForgePage page;
} LandingFilter;
/* {"items", "total"} */
void
landing_list(Landings *landings, Repo *repo, const LandingFilter *filter, ForgeJsonFunc done, void *data);

/* Answers with the entry, cancelled.  ERR_CONFLICT: it has ended, or its branch is being moved. */
void
landing_remove(Landings *landings, Repo *repo, const char *actor, gint64 id, ForgeJsonFunc done, void *data);

/* Of all repositories, for /api/v1/queue: what has not ended, {"items", "total"}, each with `repository`. */
void landing_list_all(Landings *landings, ForgeJsonFunc done, void *data);

typedef struct LandingStats {
    guint waiting, running;                       /* entries */
    guint64 landed, failed, conflicts, cancelled; /* since the start */
    guint64 rebuilt;                              /* candidates whose target moved */
} LandingStats;
void landing_stats(Landings *landings, LandingStats *ret_stats);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include "forge/forge.h"

/* What follows when branches and tags move.
 *
 * The table repository_refs says where each was when its move was last told of; the row, the event
 * (commit.pushed, branch.created) and whatever listeners write are one transaction.  A server that was
 * killed between the move and the row finds the difference at its next start and tells of it then. */

enum {
    PUSH_LISTENERS_MAX = 16,
    PUSH_SETTLE_MAX = 200 * 1000 /* refs of one repository that are compared */
};

typedef struct ForgePush {
    const char *actor; /* who: "key:…", "local", "agent:…", "box:…"; "coop" where nobody knows any more */
    const char *box_id;    /* NULL: it came from no box */
    const char *ref;       /* in full: "refs/heads/main" */
    const char *old, *new; /* git_oid_zero: there was none, is none any more */
} ForgePush;

/* On the loop, after a ref has moved: by a push, a merge, the API.  The first thing that happens is
 * that the row is written; listeners hear of it behind that.  To say the same twice is no matter. */
void forge_pushed(Forge *forge, Repo *repo, const ForgePush *push);
/* The same for who waits until it is on the disk. */
void forge_pushed_then(Forge *forge, Repo *repo, const ForgePush *push, DbDone done, void *data);

typedef struct ForgePushListener {
    /* In the transaction that writes the row, in the writer's thread; NULL: nothing. */
    bool (*write)(DbTx *tx, const char *repository_id, const ForgePush *push, void *ctx, GError **error);
    /* On the loop, once that is on the disk; NULL: nothing. */
    void (*pushed)(Repo *repo, const ForgePush *push, void *ctx);
    void *ctx;
} ForgePushListener;
/* Before forge_load(). */
void forge_on_push(Forge *forge, const ForgePushListener *listener);

/* Compares refs and rows and tells of what differs, as forge_pushed() does, in the name of `actor`: after
 * a start, a fetch of a mirror.  A repository without any row is written down without a word: it has
 * just been imported.  `done` may be NULL. */
void forge_settle_refs(Forge *forge, Repo *repo, const char *actor, DbDone done, void *data);

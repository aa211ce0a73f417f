/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include "forge/push.h"

/* forge_settle_refs() of every repository, one after the other, in the background. */
void forge_settle_all(Forge *forge);

/* What comes first in the transaction that tells of moves; fails, and nothing of it is written. */
typedef struct PushFirst {
    DbWork write;
    void *ctx; /* until `done` */
} PushFirst;

/* Several at once: one transaction.  All is copied; `done` (may be NULL) when it is on the disk. */
void forge_push_all(Forge *forge, Repo *repo, const ForgePush *pushes, size_t n, DbDone done, void *data);
/* The same with something else in it. */
void forge_push_with(Forge *forge, Repo *repo, const ForgePush *pushes, size_t n, PushFirst first,
                     DbDone done, void *data);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include "forge/push.h"

/* forge_settle_refs() of every repository, one after the other, in the background. */
void forge_settle_all(Forge *forge);

/* Several at once: one transaction.  All is copied; `done` (may be NULL) when it is on the disk. */
void forge_push_all(Forge *forge, Repo *repo, const ForgePush *pushes, size_t n, DbDone done, void *data);

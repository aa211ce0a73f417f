/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include "forge/identity.h"
#include "forge/seal.h"

/* What the files identity*.c share. */
typedef struct IdentityFull {
    Identity shown;
    GBytes *sealed;     /* the secret half of its key */
    GHashTable *rights; /* repository id or "*" -> IdentityAccess */
} IdentityFull;
IdentityFull *identity_full_new(void);
void identity_full_free(IdentityFull *full);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(IdentityFull, identity_full_free)
void identities_add(Identities *all, IdentityFull *full); /* takes it */

/* ---- identity-rows.c ---- */

void identity_row_add(Forge *forge, const IdentityFull *full, DbDone done, void *data);
void identity_row_revoke(Forge *forge, const IdentityFull *full, DbDone done, void *data);
void identity_rows_load(Forge *forge, DbDone done, void *data);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <glib.h>
#include <stdbool.h>

/* The door's key pair.  Whoever has the public half can seal a provider's key; only the door,
 * which made the pair in its own folder and never lets the secret half out, can open it. */
typedef struct DoorVault DoorVault;

enum {
    VAULT_PUBLIC_HEX = 64, /* digits of the public key */
    VAULT_TEXT_MAX = 1024, /* of what is sealed */
};

/* Makes the pair when the folder has none. */
DoorVault *door_vault_open(const char *folder, GError **error);
void door_vault_free(DoorVault *vault);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(DoorVault, door_vault_free)

const char *door_vault_public(const DoorVault *vault); /* hex */
/* The text, to be wiped by the caller (door_wipe_text); NULL with ERR_DENIED: sealed for another
 * door, or changed. */
char *door_vault_unseal(const DoorVault *vault, const char *sealed_hex, GError **error);

/* For `coop serve`: hex; NULL with ERR_INVALID: that is no public key, or the text is too long. */
char *door_seal(const char *public_hex, const char *text, GError **error);

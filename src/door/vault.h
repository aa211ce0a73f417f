/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <glib.h>
#include <stdbool.h>

/* The door's key pair.  Whoever has the public half can seal a provider's key; only the door,
 * which made the pair in its own folder and never lets the secret half out, can open it. */
typedef struct DoorVault DoorVault;

enum {
    VAULT_PUBLIC_HEX = 64, /* digits of the public key */
    VAULT_TEXT_MAX = 1600, /* of what is sealed: a base URL, a line feed, a key */
};

/* Makes the pair when the folder has none. */
DoorVault *door_vault_open(const char *folder, GError **error);
void door_vault_free(DoorVault *vault);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(DoorVault, door_vault_free)

const char *door_vault_public(const DoorVault *vault); /* hex */
/* The key, to be wiped by the caller (door_wipe_text); NULL with ERR_DENIED: sealed for another
 * door or another base URL than `base_url`, or changed. */
char *door_vault_unseal(const DoorVault *vault, const char *sealed_hex, const char *base_url, GError **error);

/* For whoever has a key: hex of "BASE_URL\nKEY" sealed, so that who has only the sealed text cannot
 * have the key sent elsewhere.  NULL with ERR_INVALID: that is no public key, or it is too long. */
char *door_seal(const char *public_hex, const char *base_url, const char *key, GError **error);

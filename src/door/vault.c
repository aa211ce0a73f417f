/* SPDX-License-Identifier: Apache-2.0 */
#include "door/vault.h"

#include <sodium.h>
#include <string.h>

#include "base/err.h"
#include "base/secret-file.h"
#include "door/takeover.h"

static const char file_name[] = "key";

enum {
    SECRET_BYTES = crypto_box_SECRETKEYBYTES,
    PUBLIC_BYTES = crypto_box_PUBLICKEYBYTES,
    SEALED_MAX = VAULT_TEXT_MAX + crypto_box_SEALBYTES,
};
G_STATIC_ASSERT(VAULT_PUBLIC_HEX == 2 * PUBLIC_BYTES);

struct DoorVault {
    guint8 *secret; /* in locked memory that no dump shows */
    guint8 public_key[PUBLIC_BYTES];
    char hex[VAULT_PUBLIC_HEX + 1];
};

void
door_vault_free(DoorVault *vault)
{
    if (vault == NULL)
        return;
    sodium_free(vault->secret);
    g_free(vault);
}

static void
make_secret(guint8 *ret_secret)
{
    guint8 unused[PUBLIC_BYTES];

    crypto_box_keypair(unused, ret_secret);
}

DoorVault *
door_vault_open(const char *folder, GError **error)
{
    g_autofree char *path = g_build_filename(folder, file_name, NULL);
    g_autoptr(DoorVault) vault = g_new0(DoorVault, 1);

    if (sodium_init() < 0) {
        err_set(error, ERR_INTERNAL, "the cryptographic library cannot be used");
        return NULL;
    }
    vault->secret = sodium_malloc(SECRET_BYTES);
    if (vault->secret == NULL) {
        err_set(error, ERR_FULL, "there is no locked memory for the door's key");
        return NULL;
    }
    if (!secret_file_open(path, make_secret, vault->secret, SECRET_BYTES, error))
        return NULL;
    crypto_scalarmult_base(vault->public_key, vault->secret);
    sodium_bin2hex(vault->hex, sizeof vault->hex, vault->public_key, sizeof vault->public_key);
    return g_steal_pointer(&vault);
}

const char *
door_vault_public(const DoorVault *vault)
{
    return vault->hex;
}

static char *
open_sealed(const DoorVault *vault, const char *sealed_hex, GError **error)
{
    guint8 sealed[SEALED_MAX];
    size_t n = 0;

    if (sodium_hex2bin(sealed, sizeof sealed, sealed_hex, strlen(sealed_hex), NULL, &n, NULL) != 0 ||
        n <= crypto_box_SEALBYTES) {
        err_set(error, ERR_INVALID, "this is no sealed key");
        return NULL;
    }
    char *text = g_malloc0(n - crypto_box_SEALBYTES + 1);

    if (crypto_box_seal_open((guint8 *)text, sealed, n, vault->public_key, vault->secret) != 0) {
        g_free(text);
        err_set(error, ERR_DENIED, "the key was sealed for another door: give it again");
        return NULL;
    }
    return text;
}

char *
door_vault_unseal(const DoorVault *vault, const char *sealed_hex, const char *base_url, GError **error)
{
    char *text = open_sealed(vault, sealed_hex, error), *key = NULL;
    size_t n = strlen(base_url);

    if (text == NULL)
        return NULL;
    if (strncmp(text, base_url, n) == 0 && text[n] == '\n')
        key = g_strdup(text + n + 1);
    else
        err_set(error, ERR_DENIED, "the key was sealed for another base URL than '%s': give it again",
                base_url);
    door_wipe_text(text);
    return key;
}

static char *
seal_text(const char *public_hex, const char *text, GError **error)
{
    guint8 public_key[PUBLIC_BYTES], sealed[SEALED_MAX];
    size_t n = strlen(text), got = 0;

    if (n > VAULT_TEXT_MAX) {
        err_set(error, ERR_INVALID, "a key and its base URL have at most %d bytes", VAULT_TEXT_MAX);
        return NULL;
    }
    if (sodium_hex2bin(public_key, sizeof public_key, public_hex, strlen(public_hex), NULL, &got, NULL) !=
            0 ||
        got != PUBLIC_BYTES || crypto_box_seal(sealed, (const guint8 *)text, n, public_key) != 0) {
        err_set(error, ERR_INVALID, "this is no public key of a door");
        return NULL;
    }
    size_t size = 2 * (n + crypto_box_SEALBYTES) + 1;
    char *hex = g_malloc(size);

    sodium_bin2hex(hex, size, sealed, n + crypto_box_SEALBYTES);
    return hex;
}

char *
door_seal(const char *public_hex, const char *base_url, const char *key, GError **error)
{
    if (*key == '\0') {
        err_set(error, ERR_INVALID, "the key is empty");
        return NULL;
    }
    char *text = g_strconcat(base_url, "\n", key, NULL);
    char *hex = seal_text(public_hex, text, error);

    door_wipe_text(text);
    return hex;
}

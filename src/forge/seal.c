/* SPDX-License-Identifier: Apache-2.0 */
#include "forge/seal.h"

#include <sodium.h>
#include <string.h>

#include "base/err.h"
#include "base/secret-file.h"

/* Sealed bytes: a random nonce, then the text with its tag (XChaCha20-Poly1305, the purpose as the
 * data beside it).  The nonce is long enough to be drawn at random for every one. */
enum {
    KEY_BYTES = crypto_aead_xchacha20poly1305_ietf_KEYBYTES,
    NONCE_BYTES = crypto_aead_xchacha20poly1305_ietf_NPUBBYTES,
    TAG_BYTES = crypto_aead_xchacha20poly1305_ietf_ABYTES,
};

static const char file_name[] = "forge-key";

struct Seal {
    guint8 *key; /* in locked memory that no dump shows */
};

void
seal_free(Seal *seal)
{
    if (seal == NULL)
        return;
    sodium_free(seal->key);
    g_free(seal);
}

Seal *
seal_open(const char *home, GError **error)
{
    g_autofree char *path = g_build_filename(home, file_name, NULL);
    g_autoptr(Seal) seal = g_new0(Seal, 1);

    if (sodium_init() < 0) {
        err_set(error, ERR_INTERNAL, "the cryptographic library cannot be used");
        return NULL;
    }
    seal->key = sodium_malloc(KEY_BYTES);
    if (seal->key == NULL) {
        err_set(error, ERR_FULL, "there is no locked memory for the forge's key");
        return NULL;
    }
    if (!secret_file_open(path, crypto_aead_xchacha20poly1305_ietf_keygen, seal->key, KEY_BYTES, error))
        return NULL;
    return g_steal_pointer(&seal);
}

GBytes *
seal_close_over(const Seal *seal, const char *purpose, const void *secret, size_t len)
{
    size_t n = NONCE_BYTES + len + TAG_BYTES;
    guint8 *sealed = g_malloc(n);

    g_assert(len <= SEAL_TEXT_MAX);
    randombytes_buf(sealed, NONCE_BYTES);
    crypto_aead_xchacha20poly1305_ietf_encrypt(sealed + NONCE_BYTES, NULL, secret, len,
                                               (const guint8 *)purpose, strlen(purpose), NULL, sealed,
                                               seal->key);
    return g_bytes_new_take(sealed, n);
}

char *
seal_unseal(const Seal *seal, const char *purpose, const void *sealed, size_t len, size_t *ret_len,
            GError **error)
{
    const guint8 *bytes = sealed;

    if (len < NONCE_BYTES + TAG_BYTES || len > NONCE_BYTES + TAG_BYTES + SEAL_TEXT_MAX) {
        err_set(error, ERR_DENIED, "this was not sealed here");
        return NULL;
    }
    size_t n = len - NONCE_BYTES - TAG_BYTES;
    char *secret = g_malloc0(n + 1);

    if (crypto_aead_xchacha20poly1305_ietf_decrypt((guint8 *)secret, NULL, NULL, bytes + NONCE_BYTES,
                                                   len - NONCE_BYTES, (const guint8 *)purpose,
                                                   strlen(purpose), bytes, seal->key) != 0) {
        g_free(secret);
        err_set(error, ERR_DENIED, "this was sealed with another key or for another purpose");
        return NULL;
    }
    if (ret_len != NULL)
        *ret_len = n;
    return secret;
}

void
seal_wipe(char *secret, size_t len)
{
    if (secret != NULL)
        sodium_memzero(secret, len);
    g_free(secret);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "forge/identity-key.h"

#include <sodium.h>
#include <string.h>

static const char algorithm[] = "ssh-ed25519";
static const char magic[] = "SSHSIG";
static const char name_space[] = "git";
static const char hash_name[] = "sha512";

enum { SIGNATURE_VERSION = 1, ARMOUR_WIDTH = 70 };

G_STATIC_ASSERT(KEY_PUBLIC_LEN == crypto_sign_ed25519_PUBLICKEYBYTES);
G_STATIC_ASSERT(KEY_SECRET_LEN == crypto_sign_ed25519_SECRETKEYBYTES);

static void
put_number(GByteArray *into, guint32 value)
{
    guint32 big = GUINT32_TO_BE(value);

    g_byte_array_append(into, (const guint8 *)&big, sizeof big);
}

static void
put_bytes(GByteArray *into, const void *bytes, size_t n)
{
    put_number(into, (guint32)n);
    g_byte_array_append(into, bytes, (guint)n);
}

static void
put_text(GByteArray *into, const char *text)
{
    put_bytes(into, text, strlen(text));
}

static GByteArray *
public_blob(const guint8 public_key[KEY_PUBLIC_LEN])
{
    GByteArray *blob = g_byte_array_new();

    put_text(blob, algorithm);
    put_bytes(blob, public_key, KEY_PUBLIC_LEN);
    return blob;
}

void
key_make(guint8 ret_public[KEY_PUBLIC_LEN], guint8 ret_secret[KEY_SECRET_LEN])
{
    crypto_sign_ed25519_keypair(ret_public, ret_secret);
}

char *
key_format(const guint8 public_key[KEY_PUBLIC_LEN])
{
    g_autoptr(GByteArray) blob = public_blob(public_key);
    g_autofree char *text = g_base64_encode(blob->data, blob->len);

    return g_strdup_printf("%s %s", algorithm, text);
}

/* What both the signed bytes and the signature have behind their beginnings. */
static void
put_terms(GByteArray *into)
{
    put_text(into, name_space);
    put_text(into, ""); /* reserved */
    put_text(into, hash_name);
}

static void
sign_hash(const guint8 *secret, const void *bytes, size_t n, guint8 *ret_signature)
{
    g_autoptr(GByteArray) signed_bytes = g_byte_array_new();
    guint8 hash[crypto_hash_sha512_BYTES];

    crypto_hash_sha512(hash, bytes, n);
    g_byte_array_append(signed_bytes, (const guint8 *)magic, strlen(magic));
    put_terms(signed_bytes);
    put_bytes(signed_bytes, hash, sizeof hash);
    crypto_sign_ed25519_detached(ret_signature, NULL, signed_bytes->data, signed_bytes->len, secret);
}

static char *
armour(const GByteArray *blob)
{
    g_autofree char *text = g_base64_encode(blob->data, blob->len);
    GString *lines = g_string_new("-----BEGIN SSH SIGNATURE-----\n");

    for (size_t at = 0, n = strlen(text); at < n; at += ARMOUR_WIDTH)
        g_string_append_printf(lines, "%.*s\n", ARMOUR_WIDTH, text + at);
    g_string_append(lines, "-----END SSH SIGNATURE-----\n");
    return g_string_free(lines, FALSE);
}

char *
key_sign(const guint8 secret[KEY_SECRET_LEN], const void *bytes, size_t n)
{
    guint8 public_key[KEY_PUBLIC_LEN];
    guint8 signature[crypto_sign_ed25519_BYTES];
    g_autoptr(GByteArray) inner = g_byte_array_new();
    g_autoptr(GByteArray) blob = g_byte_array_new();

    crypto_sign_ed25519_sk_to_pk(public_key, secret);
    g_autoptr(GByteArray) key = public_blob(public_key);

    sign_hash(secret, bytes, n, signature);
    put_text(inner, algorithm);
    put_bytes(inner, signature, sizeof signature);
    g_byte_array_append(blob, (const guint8 *)magic, strlen(magic));
    put_number(blob, SIGNATURE_VERSION);
    put_bytes(blob, key->data, key->len);
    put_terms(blob);
    put_bytes(blob, inner->data, inner->len);
    return armour(blob);
}

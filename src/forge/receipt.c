/* SPDX-License-Identifier: Apache-2.0 */
#include "forge/receipt.h"

#include <sodium.h>
#include <string.h>

#include "base/err.h"
#include "base/secret-file.h"

enum { SEED_LEN = crypto_sign_SEEDBYTES, HEX_PER_BYTE = 2 };
G_STATIC_ASSERT(RECEIPT_KEY_LEN == crypto_sign_PUBLICKEYBYTES);
G_STATIC_ASSERT(RECEIPT_SIGNATURE_LEN == crypto_sign_BYTES);

static const char file_name[] = "receipt-key";
/* In front of what is signed, so that no signature of this key means anything else. */
static const char context[] = "coop receipt 1\n";

struct ReceiptKey {
    guint8 *secret; /* in locked memory that no dump shows */
    char hex[RECEIPT_KEY_LEN * HEX_PER_BYTE + 1];
};

void
receipt_key_free(ReceiptKey *key)
{
    if (key == NULL)
        return;
    sodium_free(key->secret);
    g_free(key);
}

static void
make_seed(guint8 *ret_seed)
{
    randombytes_buf(ret_seed, SEED_LEN);
}

ReceiptKey *
receipt_key_open(const char *home, GError **error)
{
    g_autofree char *path = g_build_filename(home, file_name, NULL);
    g_autoptr(ReceiptKey) key = g_new0(ReceiptKey, 1);
    guint8 seed[SEED_LEN], public[RECEIPT_KEY_LEN];

    if (sodium_init() < 0) {
        err_set(error, ERR_INTERNAL, "the cryptographic library cannot be used");
        return NULL;
    }
    key->secret = sodium_malloc(crypto_sign_SECRETKEYBYTES);
    if (key->secret == NULL) {
        err_set(error, ERR_FULL, "there is no locked memory for the key of receipts");
        return NULL;
    }
    if (!secret_file_open(path, make_seed, seed, sizeof seed, error))
        return NULL;
    crypto_sign_seed_keypair(public, key->secret, seed);
    sodium_memzero(seed, sizeof seed);
    sodium_bin2hex(key->hex, sizeof key->hex, public, sizeof public);
    return g_steal_pointer(&key);
}

const char *
receipt_key_hex(const ReceiptKey *key)
{
    return key->hex;
}

/* ---- the text ---- */

static bool
is_whole(const Json *value)
{
    const char *name;
    Json *member;
    size_t i;

    json_object_foreach((Json *)(guintptr)value, name, member)
    {
        if (!is_whole(member))
            return false;
    }
    json_array_foreach(value, i, member)
    {
        if (!is_whole(member))
            return false;
    }
    return !json_is_real(value);
}

/* How a fraction is written is nobody's agreement: there are none. */
static char *
canonical(const Json *value, GError **error)
{
    if (!is_whole(value)) {
        err_set(error, ERR_INVALID, "a receipt has whole numbers only");
        return NULL;
    }
    char *text = json_dumps(value, JSON_COMPACT | JSON_SORT_KEYS);

    if (text == NULL)
        err_set(error, ERR_INTERNAL, "the receipt cannot be written");
    return text;
}

static char *
signed_text(const Json *receipt, GError **error)
{
    g_autofree char *text = canonical(receipt, error);

    return text != NULL ? g_strconcat(context, text, NULL) : NULL;
}

char *
receipt_sign(const ReceiptKey *key, const Json *receipt, GError **error)
{
    guint8 signature[RECEIPT_SIGNATURE_LEN];
    char hex[RECEIPT_SIGNATURE_LEN * HEX_PER_BYTE + 1];
    g_autofree char *text = signed_text(receipt, error);

    if (text == NULL)
        return NULL;
    crypto_sign_detached(signature, NULL, (const guint8 *)text, strlen(text), key->secret);
    sodium_bin2hex(hex, sizeof hex, signature, sizeof signature);
    g_autoptr(Json)
        whole = json_pack("{s:s, s:O, s:s}", "key", key->hex, "receipt", receipt, "signature", hex);
    g_autofree char *line = canonical(whole, error);

    if (line != NULL && strlen(line) > RECEIPT_TEXT_MAX) {
        err_set(error, ERR_LIMIT, "the receipt is longer than %d bytes", RECEIPT_TEXT_MAX);
        return NULL;
    }
    return g_steal_pointer(&line);
}

/* ---- verifying ---- */

static bool
read_hex(const char *what, const char *hex, guint8 *ret_bytes, size_t len, GError **error)
{
    size_t n = 0;

    if (hex != NULL && strlen(hex) == len * HEX_PER_BYTE &&
        sodium_hex2bin(ret_bytes, len, hex, strlen(hex), NULL, &n, NULL) == 0 && n == len)
        return true;
    return err_set(error, ERR_INVALID, "%s must be %zu hex digits", what, len * HEX_PER_BYTE);
}

static bool
check_key(const guint8 *given, const char *wanted_hex, GError **error)
{
    guint8 wanted[RECEIPT_KEY_LEN];

    if (wanted_hex == NULL)
        return true;
    if (!read_hex("the key", wanted_hex, wanted, sizeof wanted, error))
        return false;
    return memcmp(given, wanted, sizeof wanted) == 0 ||
           err_set(error, ERR_DENIED, "it is signed with another key");
}

static bool
check_signature(const Json *receipt, const guint8 *signature, const guint8 *public, GError **error)
{
    g_autofree char *text = signed_text(receipt, error);

    if (text == NULL)
        return false;
    return crypto_sign_verify_detached(signature, (const guint8 *)text, strlen(text), public) == 0 ||
           err_set(error, ERR_DENIED, "the signature does not hold: the receipt was changed");
}

static bool
check_version(Json *receipt, GError **error)
{
    const Json *version = json_object_get(receipt, "version");

    return (json_is_integer(version) && json_integer_value(version) == RECEIPT_VERSION) ||
           err_set(error, ERR_INVALID, "this program knows receipts of version %d only", RECEIPT_VERSION);
}

Json *
receipt_verify(const char *text, size_t len, const char *key_hex, GError **error)
{
    guint8 public[RECEIPT_KEY_LEN], signature[RECEIPT_SIGNATURE_LEN];
    const char *given_key = NULL, *given_signature = NULL;
    Json *receipt = NULL;
    const JsonField fields[] = {
        {"key", JSON_KIND_STRING, &given_key, true, 0, RECEIPT_TEXT_MAX},
        {"receipt", JSON_KIND_OBJECT, &receipt, true},
        {"signature", JSON_KIND_STRING, &given_signature, true, 0, RECEIPT_TEXT_MAX},
        {NULL},
    };

    if (len > RECEIPT_TEXT_MAX) {
        err_set(error, ERR_INVALID, "it is longer than any receipt");
        return NULL;
    }
    g_autoptr(Json) whole = json_decode(text, len, error);

    if (whole == NULL || !json_read(whole, fields, error) ||
        !read_hex("the key in it", given_key, public, sizeof public, error) ||
        !read_hex("the signature", given_signature, signature, sizeof signature, error) ||
        !check_key(public, key_hex, error) || !check_signature(receipt, signature, public, error) ||
        !check_version(receipt, error))
        return NULL;
    return json_incref(receipt);
}

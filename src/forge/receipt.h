/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <glib.h>
#include <stdbool.h>

#include "json/json.h"

/* What Coop saw, signed.
 *
 * A receipt is one line of JSON: {"key", "receipt", "signature"}.  Signed (Ed25519) is the text of the
 * member `receipt` in its canonical form, behind a line that says what it is: members sorted by the
 * bytes of their names, no spaces, UTF-8, whole numbers only.  `key` is the public key in hex; who
 * verifies compares it with one that he has from elsewhere, else he learns only that nothing was
 * changed since. */

enum {
    RECEIPT_VERSION = 1,
    RECEIPT_KEY_LEN = 32,
    RECEIPT_SIGNATURE_LEN = 64,
    RECEIPT_TEXT_MAX = 1 << 20,
};

typedef struct ReceiptKey ReceiptKey;
/* HOME/receipt-key, 0600; made when it is not there.  Blocks: start-up.  A file of its own: who can
 * open sealed secrets (HOME/forge-key) cannot sign, and either can be changed without the other. */
ReceiptKey *receipt_key_open(const char *home, GError **error);
void receipt_key_free(ReceiptKey *key);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(ReceiptKey, receipt_key_free)
const char *receipt_key_hex(const ReceiptKey *key); /* the public half */

/* The signed text; NULL where it would be longer than RECEIPT_TEXT_MAX.  Any thread. */
char *receipt_sign(const ReceiptKey *key, const Json *receipt, GError **error);

/* The member `receipt`; NULL with ERR_INVALID (this is no receipt) or ERR_DENIED (the signature does
 * not hold, or it is of another key than `key_hex`; NULL: any). */
Json *receipt_verify(const char *text, size_t len, const char *key_hex, GError **error);

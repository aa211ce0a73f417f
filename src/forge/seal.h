/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <glib.h>
#include <stdbool.h>

/* Secrets as they lie in rows: sealed with a key that is in a file of its own, so that a copy of the
 * database alone gives nothing away.  `purpose` is part of the seal: what was sealed for one thing
 * ("hook:12") opens for no other. */
typedef struct Seal Seal;

enum { SEAL_TEXT_MAX = 64 * 1024 };

/* HOME/forge-key, 0600; made when it is not there.  Blocks: start-up. */
Seal *seal_open(const char *home, GError **error);
void seal_free(Seal *seal);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Seal, seal_free)

/* Any thread. */
GBytes *seal_close_over(const Seal *seal, const char *purpose, const void *secret, size_t len);
/* NUL behind its end; to be wiped with seal_wipe().  ERR_DENIED: sealed with another key, for another
 * purpose, or changed. */
char *seal_unseal(const Seal *seal, const char *purpose, const void *sealed, size_t len, size_t *ret_len,
                  GError **error);
void seal_wipe(char *secret, size_t len); /* and frees; NULL is fine */

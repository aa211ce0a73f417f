/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <glib.h>
#include <stdbool.h>

#include "base/id.h"

/* Who may look at which port of which box without a key: a browser that opened a link.  The
 * token of the link works once and becomes a cookie of that port's own host.  All of it is in
 * memory: after a restart links are asked for anew. */
enum {
    GRANT_SECRET_LEN = 48,
    GRANTS_MAX = 4096, /* beyond either the oldest goes */
    GRANTS_PER_KEY = 256,
    GRANT_LINK_S = 600,  /* to open the link */
    GRANT_LIFE_S = 3600, /* of the cookie, unless asked for otherwise */
    GRANT_LIFE_MAX_S = 24 * 3600,
};

typedef struct GrantBook GrantBook;

GrantBook *grant_book_new(void);
void grant_book_free(GrantBook *book);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(GrantBook, grant_book_free)

typedef struct GrantFor {
    const char *box; /* its id */
    guint16 port;
} GrantFor;

/* `key_id` "": the owner of the server, over the control socket. */
void grant_new(GrantBook *book, const GrantFor *what, const char *key_id, gint64 life_s,
               char ret_token[GRANT_SECRET_LEN + 1]);
/* Uses the token up.  False: unknown, used, too late, or of another port or box. */
bool grant_redeem(GrantBook *book, const GrantFor *what, const char *token,
                  char ret_cookie[GRANT_SECRET_LEN + 1], gint64 *ret_left_s);
/* The key it came from; NULL: the cookie is not valid here. */
const char *grant_find(GrantBook *book, const GrantFor *what, const char *cookie);

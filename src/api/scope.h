/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <glib.h>
#include <stdbool.h>

/* What a key may do.  `admin` includes the others. */
typedef enum Scope {
    SCOPE_READ = 1 << 0,
    SCOPE_BOX = 1 << 1, /* make and use boxes */
    SCOPE_ADMIN = 1 << 2,
} Scope;

typedef unsigned Scopes; /* of Scope */

/* "read,box"; the form in the database and the API. */
char *scopes_format(Scopes scopes);
bool scopes_parse(const char *text, Scopes *ret_scopes, GError **error);

/* May somebody with `have` do what needs one of `need`? */
static inline bool
scopes_allow(Scopes have, Scopes need)
{
    return (have & SCOPE_ADMIN) != 0 || (have & need) != 0;
}

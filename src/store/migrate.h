/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include "store/backend.h"

/* Numbered steps from an empty database to this program's schema; one file each in
 * migrations/, compiled in, never edited once released. */
typedef struct Migration {
    gint64 version; /* 1, 2, 3, … */
    const char *name;
    const char *sql; /* the common dialect */
} Migration;

typedef struct MigrationList {
    const Migration *items;
    size_t len;
} MigrationList;

extern const MigrationList migrations_builtin;

static inline gint64
migrations_newest(const MigrationList *list)
{
    return (gint64)list->len;
}

/* Applies what is missing, each step in a transaction of its own.  ERR_INVALID: the content
 * was written by a newer program. */
bool migrate(const Backend *backend, BackendConn *conn, const MigrationList *list, GError **error);

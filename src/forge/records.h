/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <glib.h>
#include <stdbool.h>

#include "forge/git.h"

/* A page of what git lists, one record after the other, as it comes: what is before the page is
 * dropped, and the child is ended behind it. */

enum { RECORD_MAX = 8192 }; /* bytes of one */

typedef struct RecordsSpec {
    const char *const *args;
    char separator;
    guint skip, max;
    bool (*keep)(const char *record, const void *ctx); /* NULL: all; the others are not counted */
    const void *keep_ctx;
    size_t bytes_max;   /* of the page; 0: no bound but theirs */
    guint timeout_ms;   /* 0: GIT_TIMEOUT_MS */
    const gint *cancel; /* may be NULL */
} RecordsSpec;

/* char *.  `*ret_more` (may be NULL): there are others behind them. */
GPtrArray *records_read(GitRepo *repo, const RecordsSpec *spec, bool *ret_more, GError **error);

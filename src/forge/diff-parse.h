/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include "forge/diff.h"

/* Reads what `git diff-tree -r -z --raw [-p] --full-index` writes, as it comes: all changes as records,
 * an empty record, then the patches in the same order.  It keeps one page of it. */
typedef struct DiffParser DiffParser;

typedef struct DiffParserSpec {
    guint skip, max; /* changes before the page, and on it */
    bool patches;    /* they are asked for */
    size_t patch_max, line_max, text_max;
    guint64 read_max;
} DiffParserSpec;

DiffParser *diff_parser_new(const DiffParserSpec *spec);
void diff_parser_free(DiffParser *p);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(DiffParser, diff_parser_free)

/* False: the page is there, a bound was reached, or this is no such text. */
bool diff_parser_feed(DiffParser *p, const guint8 *bytes, size_t n);
/* Whether all changes of the page are known, so that what is there can be shown. */
bool diff_parser_is_listed(const DiffParser *p);
/* At the end of the text; `stopped` where it was cut by another's bound.  NULL: it was no such text. */
DiffPage *diff_parser_end(DiffParser *p, bool stopped, GError **error);

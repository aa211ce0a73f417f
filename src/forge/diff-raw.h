/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include "forge/diff.h"

/* ":OLDMODE NEWMODE OLDOID NEWOID STATUS", without the names; NULL: it is none. */
DiffFile *diff_raw_parse(const char *record);
/* "@@ -FROM[,COUNT] +FROM[,COUNT] @@": how many lines of either side follow. */
bool diff_piece_parse(const char *line, guint64 *ret_old, guint64 *ret_new);
/* " 3 files changed, 4 insertions(+), 1 deletion(-)"; "" is nothing. */
bool diff_totals_parse(const char *text, DiffTotals *ret_totals);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include "cli/cli.h"
#include "cli/remote.h"
#include "json/json.h"

/* One row for each box with what it uses now, for tables: cpu is since `before`, the rows of an
 * earlier call (NULL: none).  Boxes that end meanwhile are left out. */
typedef struct BoxSample {
    Json *rows; /* array of objects, as they are shown */
    gint64 at_us;
} BoxSample;
void box_sample_clear(BoxSample *sample);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(BoxSample, box_sample_clear)

/* `only`: ids, or none for all. */
ExitCode
box_sample(Remote *remote, const char *const *only, guint n, const BoxSample *before, BoxSample *ret_sample);
extern const OutColumn box_stats_columns[];

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <glib.h>

#include "json/json.h"

/* What the builder says on its standard output, a line of JSON each:
 *
 *     {"step":"packages","percent":12,"line":"Setting up git ..."}
 *     {"done":{"layer":"…","size":…,"versions":{…}}}
 *     {"error":"…","kind":"unavailable"}
 *
 * A step has its share of the whole, and the percentage only grows. */
typedef struct Report {
    const char *step;
    guint from, to; /* of the whole, in percent */
    guint percent, told;
} Report;

enum { REPORT_LINE_MAX = 400 };

void report_step(Report *report, const char *step, guint from, guint to);
/* `part` of 0 to 1 of the step is done. */
void report_part(Report *report, double part);
/* Something a program said; control characters are taken out. */
void report_line(Report *report, const char *line);
void report_done(Json *result); /* takes it */
void report_error(const GError *error);

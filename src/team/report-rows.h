/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include "forge/row.h"

/* The parts of a report, each read inside a job of the database. */

typedef struct ReportRange {
    const char *owner, *squad, *repository_id; /* NULL: any */
    gint64 since_us, until_us;
    ForgePage page;
} ReportRange;

enum {
    REPORT_DAYS_MAX = 401,   /* a range of 400 days touches so many */
    REPORT_GROUPS_MAX = 200, /* models, roles */
};

/* ---- report-rates.c: of facts ---- */

/* `rates`, `errors`, `box_ms` */
bool report_add_rates(RowJob *job, const ReportRange *range, Json *report, GError **error);
Json *report_days(RowJob *job, const ReportRange *range, GError **error);

/* ---- report-rows.c: of tasks ---- */

Json *report_models(RowJob *job, const ReportRange *range, GError **error);
Json *report_agents(RowJob *job, const ReportRange *range, GError **error);
Json *report_states(RowJob *job, const ReportRange *range, GError **error);
bool report_add_tasks(RowJob *job, const ReportRange *range, Json *report, GError **error);
/* `task` as task_row() gives it. */
Json *report_of_task(RowJob *job, Json *task, GError **error);

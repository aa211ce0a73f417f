/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include "team/task.h"

/* What tasks came to, and how well things go. */

typedef struct ReportSpec {
    const char *owner;      /* whose; NULL: everybody's */
    const char *squad;      /* id or name; NULL: any */
    const char *repository; /* "owner/name"; NULL: any */
    gint64 since_us, until_us;
    ForgePage page; /* of tasks */
} ReportSpec;

/* {"since_us", "until_us", "rates": as rate_json(), "errors": [{"class", "total"}], "days": [{"day", "tasks",
 *  "executions", "errors"}], "models": usage by provider and model, in whole hours, "agents": by role,
 * provider and model, "states": how many tasks are in which, "tasks": a page of those that were under way
 * meanwhile, each with its report, "total": of them, "box_ms": how long boxes lived that ended meanwhile,
 * "seq": of the newest event that is counted} */
void team_report(Team *team, const ReportSpec *spec, TeamJsonFunc done, void *data);

/* {"id", "number", "title", "state", …, "report"}: of one that goes on, as of now. */
void task_report(Team *team, const TaskRef *ref, TeamJsonFunc done, void *data);

/* For /metrics: of everything that is counted, as of the last wave. */
typedef struct TeamRate {
    const char *name; /* of the rate, or the class of an error */
    gint64 n, good, sum, values;
    gint64 target; /* thousandths */
    gint64 limit;  /* in the rate's unit */
    const char *unit;
} TeamRate;
typedef void (*TeamRateFunc)(const TeamRate *rate, void *data);
void team_each_rate(Team *team, TeamRateFunc func, void *data);
void team_each_error(Team *team, TeamRateFunc func, void *data);

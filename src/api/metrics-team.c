/* SPDX-License-Identifier: Apache-2.0 */
#include "api/metrics.h"

void
metrics_put_team(GString *out, Team *team)
{
    TeamStats s;

    team_stats(team, &s);
    metric_put_number(out, METRIC_GAUGE, "coop_tasks_queued", "Tasks that wait for a place", s.tasks_queued);
    metric_put_number(out, METRIC_GAUGE, "coop_tasks_running", "Tasks that have a place", s.tasks_running);
    metric_put_number(out, METRIC_COUNTER, "coop_tasks_completed_total", "Tasks that were done", s.completed);
    metric_put_number(out, METRIC_COUNTER, "coop_tasks_failed_total", "Tasks that failed", s.failed);
    metric_put_number(out, METRIC_COUNTER, "coop_tasks_cancelled_total", "Tasks that were stopped",
                      s.cancelled);
}

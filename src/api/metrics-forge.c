/* SPDX-License-Identifier: Apache-2.0 */
#include "api/metrics.h"

void
metrics_put_landings(GString *out, Landings *landings)
{
    LandingStats s;

    landing_stats(landings, &s);
    metric_put_number(out, METRIC_GAUGE, "coop_merges_waiting", "Entries of merge queues that wait",
                      s.waiting);
    metric_put_number(out, METRIC_GAUGE, "coop_merges_running", "Entries of merge queues under way",
                      s.running);
    metric_put_number(out, METRIC_COUNTER, "coop_merges_landed_total", "Pull requests that landed", s.landed);
    metric_put_number(out, METRIC_COUNTER, "coop_merges_failed_total", "Merges that failed", s.failed);
    metric_put_number(out, METRIC_COUNTER, "coop_merges_conflicts_total", "Merges that met a conflict",
                      s.conflicts);
    metric_put_number(out, METRIC_COUNTER, "coop_merges_cancelled_total", "Merges that were taken out",
                      s.cancelled);
    metric_put_number(out, METRIC_COUNTER, "coop_merges_rebuilt_total",
                      "Candidates that were made anew, because a branch moved", s.rebuilt);
}

void
metrics_put_forge(GString *out, Forge *forge)
{
    ForgeStats s;

    forge_stats(forge, &s);
    metric_put_number(out, METRIC_GAUGE, "coop_repositories", "Repositories of the forge", s.repositories);
    metric_put_number(out, METRIC_GAUGE, "coop_git_work_waiting", "Pieces of git work that wait", s.waiting);
    metric_put_number(out, METRIC_GAUGE, "coop_git_work_running", "Pieces of git work under way", s.running);
    metric_put_number(out, METRIC_COUNTER, "coop_git_work_done_total", "Pieces of git work that were done",
                      s.done);
    metric_put_number(out, METRIC_COUNTER, "coop_git_work_failed_total", "Pieces of git work that failed",
                      s.failed);
    metric_put_number(out, METRIC_COUNTER, "coop_git_work_retries_total",
                      "Times that git work was tried again", s.tried_again);
}

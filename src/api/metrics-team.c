/* SPDX-License-Identifier: Apache-2.0 */
#include "api/metrics.h"
#include "team/report.h"

enum { THOUSAND = 1000 };

/* ---- how well things go ---- */

/* A family of lines, one for each rate that has it. */
typedef struct Family {
    GString *out;
    const char *name;
    double (*value)(const TeamRate *rate); /* below 0: it has none */
} Family;

static double
counted(const TeamRate *r)
{
    return (double)r->n;
}

static double
good(const TeamRate *r)
{
    return (double)r->good;
}

static double
target(const TeamRate *r)
{
    return r->target > 0 ? (double)r->target / THOUSAND : -1;
}

static double
sum(const TeamRate *r)
{
    return r->unit != NULL ? (double)r->sum : -1;
}

static double
values(const TeamRate *r)
{
    return r->unit != NULL ? (double)r->values : -1;
}

static double
limit(const TeamRate *r)
{
    return r->limit > 0 ? (double)r->limit : -1;
}

static void
put_rate(const TeamRate *rate, void *data)
{
    const Family *f = data;
    double value = f->value(rate);

    if (value >= 0)
        g_string_append_printf(f->out, "%s{rate=\"%s\"} %.15g\n", f->name, rate->name, value);
}

static void
put_error(const TeamRate *error, void *data)
{
    g_string_append_printf(data, "coop_errors_total{class=\"%s\"} %" G_GINT64_FORMAT "\n", error->name,
                           error->n);
}

static void
put_rates(GString *out, Team *team)
{
    static const struct {
        MetricType type;
        const char *name, *help;
        double (*value)(const TeamRate *rate);
    } families[] = {
        {METRIC_COUNTER, "coop_rate_counted_total", "How many there were, by rate", counted},
        {METRIC_COUNTER, "coop_rate_good_total", "How many of them were as they should be", good},
        {METRIC_GAUGE, "coop_rate_target", "The share that has to be exceeded", target},
        {METRIC_COUNTER, "coop_rate_value_sum", "Values together, in milliseconds or bytes", sum},
        {METRIC_COUNTER, "coop_rate_value_count", "How many values", values},
        {METRIC_GAUGE, "coop_rate_limit", "What values have to stay below", limit},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(families); i++) {
        Family family = {out, families[i].name, families[i].value};

        metric_put_meta(out, families[i].type, families[i].name, families[i].help);
        team_each_rate(team, put_rate, &family);
    }
    metric_put_meta(out, METRIC_COUNTER, "coop_errors_total", "What went wrong, by class");
    team_each_error(team, put_error, out);
}

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
    put_rates(out, team);
}

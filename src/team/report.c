/* SPDX-License-Identifier: Apache-2.0 */
#include "team/report.h"

#include <string.h>

#include "base/err.h"
#include "team/fact.h"
#include "team/flow-private.h"
#include "team/report-rows.h"
#include "team/tally.h"
#include "team/task-private.h"

/* ---- the whole ---- */

static const RowMember members[] = {
    ROW_AT_TEXT(ReportRange, owner),
    ROW_AT_TEXT(ReportRange, squad),
    ROW_AT_TEXT(ReportRange, repository_id),
    ROW_AT_END,
};

static bool
add(Json *o, const char *name, Json *value)
{
    return value != NULL && json_object_set_new(o, name, value) == 0;
}

static bool
run_report(RowJob *job, const void *data, Json **ret_value, GError **error)
{
    const ReportRange *r = data;
    g_autoptr(Json)
        o = json_pack("{s:I, s:I}", "since_us", (json_int_t)r->since_us, "until_us", (json_int_t)r->until_us);

    if (!report_add_rates(job, r, o, error) || !add(o, "days", report_days(job, r, error)) ||
        !add(o, "models", report_models(job, r, error)) || !add(o, "agents", report_agents(job, r, error)) ||
        !add(o, "states", report_states(job, r, error)) || !report_add_tasks(job, r, o, error))
        return false;
    *ret_value = g_steal_pointer(&o);
    return true;
}

static const RowOp report_op = {ROW_READS, sizeof(ReportRange), members, run_report};

typedef struct Ask {
    Team *team;
    ReportRange *range;
    TeamJsonFunc done;
    void *data;
} Ask;

static void
ask_end(Json *value, const GError *error, void *data)
{
    Ask *ask = data;

    ask->done(value, error, ask->data);
    team_unref(ask->team);
    row_spec_free(&report_op, ask->range);
    g_free(ask);
}

static void
on_counted(void *data, const GError *error)
{
    Ask *ask = data;

    if (error != NULL)
        ask_end(NULL, error, ask);
    else
        team_run(ask->team, &report_op, ask->range, ask_end, ask);
}

void
team_report(Team *team, const ReportSpec *spec, TeamJsonFunc done, void *data)
{
    ReportRange range = {.owner = spec->owner,
                         .squad = spec->squad,
                         .since_us = spec->since_us,
                         .until_us = spec->until_us,
                         .page = spec->page};
    g_autoptr(GError) error = NULL;

    if (!team_find_repository(team, spec->repository, &range.repository_id, &error)) {
        done(NULL, error, data);
        return;
    }
    Ask *ask = g_new0(Ask, 1);

    *ask = (Ask){team_ref(team), row_spec_dup(&report_op, &range), done, data};
    tally_catch_up(team->tally, on_counted, ask);
}

/* ---- one task ---- */

static bool
run_task(RowJob *job, const void *data, Json **ret_value, GError **error)
{
    g_autoptr(Json) task = task_row(job, data, error);

    if (task == NULL)
        return false;
    *ret_value = report_of_task(job, task, error);
    return *ret_value != NULL;
}

void
task_report(Team *team, const TaskRef *ref, TeamJsonFunc done, void *data)
{
    static const RowOp op = {ROW_READS, sizeof(TaskRef), task_ref_members, run_task};

    team_run(team, &op, ref, done, data);
}

/* ---- for machines ---- */

void
team_each_rate(Team *team, TeamRateFunc func, void *data)
{
    const Rate *rates = tally_rates(team->tally);

    for (guint i = 0; i < FACT_MAX; i++) {
        const RateSpec *spec = &rate_specs[i];
        const TeamRate rate = {.name = spec->name,
                               .n = rates[i].n,
                               .good = rates[i].good,
                               .sum = rates[i].sum,
                               .values = rates[i].values,
                               .target = spec->kind == RATE_SHARE ? spec->target : 0,
                               .limit = spec->kind == RATE_BELOW ? spec->target : 0,
                               .unit = spec->unit};

        if (spec->kind != RATE_COUNT)
            func(&rate, data);
    }
}

typedef struct Each {
    TeamRateFunc func;
    void *data;
} Each;

static void
on_class(const char *class, gint64 n, void *data)
{
    const Each *each = data;

    each->func(&(TeamRate){.name = class, .n = n}, each->data);
}

void
team_each_error(Team *team, TeamRateFunc func, void *data)
{
    tally_errors(team->tally, on_class, &(Each){func, data});
}

/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "team/fact.h"

enum { THOUSAND = 1000, SECOND_MS = 1000, MEGABYTE = 1000 * 1000 };

const RateSpec rate_specs[FACT_MAX] = {
    [FACT_PULLS] = {"pull_requests", "GH-21", "tasks that got a pull request", RATE_SHARE, NULL, 950},
    [FACT_REVIEWS] = {"reviews", "GH-22", "reviews that were completed", RATE_SHARE, NULL, 900},
    [FACT_MERGES] = {"merges", "GH-23", "pull requests that were merged", RATE_SHARE, NULL, 850},
    [FACT_APPROVALS] = {"approvals", "GH-24", "reviews that approved", RATE_SHARE, NULL, 800},
    [FACT_FEATURES] = {"tests_passed", "MC-15", "features whose tests pass", RATE_SHARE, NULL, 950},
    [FACT_SCANS] = {"scans_passed", "MC-16", "security scans that passed", RATE_SHARE, NULL, 900},
    [FACT_SPAWN] = {"spawn", "AG-13", "an agent's start, lease to first model call", RATE_BELOW, "ms",
                    30 * SECOND_MS},
    [FACT_SIMPLE] = {"simple_task", "AG-14", "a task with one step", RATE_BELOW, "ms", 300 * SECOND_MS},
    [FACT_CLONE] = {"clone", "GW-02", "a clone into a box", RATE_BELOW, "ms", 5 * SECOND_MS},
    [FACT_MEMORY] = {"memory", "LM-15", "memory of an agent and its box, at most", RATE_BELOW, "bytes",
                     500 * MEGABYTE},
    [FACT_TASKS] = {"tasks", "MC-12", "tasks that were done", RATE_SHARE, "ms", 0},
    [FACT_AGENTS] = {"agents", "AG-15", "agents that came to their end", RATE_SHARE, "ms", 0},
    [FACT_COMMANDS] = {"executions", "MC-01", "commands that ended well", RATE_SHARE, "ms", 0},
    [FACT_FIRST] = {"first_tries", "MC-12", "first tries that passed", RATE_SHARE, NULL, 0},
    [FACT_CHECKS] = {"checks", "EX-02", "Coop's own checks that passed", RATE_SHARE, NULL, 0},
    [FACT_TESTS] = {"tests", "EX-19", "single tests that passed", RATE_SHARE, NULL, 0},
    [FACT_BOXES] = {"sandboxes", "MC-03", "sandboxes that ended as asked", RATE_SHARE, "ms", 0},
    [FACT_USE] = {"utilisation", "MC-03", "of a sandbox's life a command runs", RATE_SHARE, NULL, 0},
    [FACT_ERROR] = {"errors", "MC-04", "errors", RATE_COUNT, NULL, 0},
};

FactName
fact_name_of(const char *text)
{
    FactName name = 0;

    while (name < FACT_MAX && strcmp(rate_specs[name].name, text) != 0)
        name++;
    return name;
}

void
rate_add(Rate *sum, const Rate *more)
{
    sum->n += more->n;
    sum->good += more->good;
    sum->sum += more->sum;
    sum->values += more->values;
    sum->max = MAX(sum->max, more->max);
}

gint64
rate_share(const Rate *rate)
{
    return rate->n > 0 ? rate->good * THOUSAND / rate->n : -1;
}

static gint64
mean(const Rate *rate)
{
    return rate->values > 0 ? rate->sum / rate->values : -1;
}

/* What must be below the limit. */
static gint64
judged(const Rate *rate)
{
    return rate->percentile >= 0 ? rate->percentile : mean(rate);
}

RateMet
rate_met(const RateSpec *spec, const Rate *rate)
{
    if (spec->target == 0 || rate->n == 0)
        return RATE_UNKNOWN;
    if (spec->kind == RATE_SHARE) /* without rounding */
        return rate->good * THOUSAND > spec->target * rate->n ? RATE_MET : RATE_MISSED;
    if (rate->values == 0)
        return RATE_UNKNOWN;
    return judged(rate) < spec->target ? RATE_MET : RATE_MISSED;
}

static Json *
known(gint64 value)
{
    return value >= 0 ? json_integer(value) : json_null();
}

static void
add_values(Json *o, const RateSpec *spec, const Rate *rate)
{
    json_object_set_new(o, "unit", json_string(spec->unit));
    json_object_set_new(o, "average", known(mean(rate)));
    json_object_set_new(o, "max", known(rate->values > 0 ? rate->max : -1));
    if (spec->kind != RATE_BELOW)
        return;
    json_object_set_new(o, "median", known(rate->median));
    json_object_set_new(o, "p95", known(rate->percentile));
    json_object_set_new(o, "limit", json_integer(spec->target));
}

Json *
rate_json(FactName name, const Rate *rate)
{
    const RateSpec *spec = &rate_specs[name];
    gint64 share = rate_share(rate);
    RateMet met = rate_met(spec, rate);
    Json *o = json_pack("{s:s, s:s, s:s, s:I, s:I}", "name", spec->name, "row", spec->row, "title",
                        spec->title, "good", (json_int_t)rate->good, "total", (json_int_t)rate->n);

    json_object_set_new(o, "rate",
                        share >= 0 ? json_real((double)rate->good / (double)rate->n) : json_null());
    json_object_set_new(o, "target",
                        spec->kind == RATE_SHARE && spec->target > 0
                            ? json_real((double)spec->target / THOUSAND)
                            : json_null());
    if (spec->unit != NULL)
        add_values(o, spec, rate);
    json_object_set_new(o, "met", met != RATE_UNKNOWN ? json_boolean(met == RATE_MET) : json_null());
    return o;
}

static int
compare(const void *a, const void *b)
{
    const FactSpan *x = a, *y = b;

    return (x->from > y->from) - (x->from < y->from);
}

gint64
fact_covered(FactSpan *spans, guint len, gint64 from, gint64 to)
{
    gint64 covered = 0, reached = from;

    if (len > 0)
        qsort(spans, len, sizeof spans[0], compare);
    for (guint i = 0; i < len; i++) {
        gint64 begin = MAX(spans[i].from, reached), end = MIN(spans[i].to, to);

        covered += MAX(end - begin, 0);
        reached = MAX(reached, end);
    }
    return covered;
}

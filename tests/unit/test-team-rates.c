/* SPDX-License-Identifier: Apache-2.0 */
/* What single events say, and the arithmetic of rates. */
#include <string.h>

#include "store/events.h"
#include "team/fact.h"

/* ---- events ---- */

static char *
describe(const FactList *list)
{
    GString *text = g_string_new(NULL);

    for (guint i = 0; i < list->len; i++) {
        const Fact *f = &list->items[i];

        g_string_append_printf(text, "%s%s%s%s %d/%d", i > 0 ? "; " : "", rate_specs[f->name].name,
                               f->class[0] != '\0' ? ":" : "", f->class, (int)f->good, (int)f->n);
        if (f->value != 0)
            g_string_append_printf(text, " %" G_GINT64_FORMAT, f->value);
    }
    return g_string_free(text, FALSE);
}

/* `task`, `box`: whether the event has one. */
static const struct {
    const char *kind, *data;
    bool task, box;
    const char *want;
} events[] = {
    {"task.completed", "{'duration_ms': 1500, 'steps': 2, 'repository_id': 'r', 'pull_number': 3}", true,
     false, "tasks 1/1 1500"},
    {"task.completed", "{'duration_ms': 1500, 'steps': 1}", true, false,
     "tasks 1/1 1500; simple_task 1/1 1500"},
    {"task.completed", "{'duration_ms': 300000, 'steps': 1}", true, false,
     "tasks 1/1 300000; simple_task 0/1 300000"},
    {"task.failed", "{'duration_ms': 9, 'repository_id': 'r', 'pull_number': 0}", true, false,
     "tasks 0/1 9; errors:task 0/1; pull_requests 0/1"},
    {"task.failed", "{'duration_ms': 9, 'repository_id': 'r', 'pull_number': 4}", true, false,
     "tasks 0/1 9; errors:task 0/1"},
    {"task.cancelled", "{'duration_ms': 9, 'repository_id': 'r'}", true, false, ""},
    {"task.moved", "{'from': 'planning', 'to': 'preparing'}", true, false, ""},
    {"task.moved", "{'from': 'planning', 'to': 'blocked'}", true, false, "errors:plan 0/1"},
    {"task.moved", "{'from': 'preparing', 'to': 'blocked'}", true, false,
     "errors:blocked 0/1; pull_requests 0/1"},
    {"task.moved", "{'from': 'working', 'to': 'blocked'}", true, false, "errors:blocked 0/1"},
    {"step.ended", "{'state': 'done', 'try': 1, 'last': true, 'passed': true}", true, false,
     "tests_passed 1/1; first_tries 1/1"},
    {"step.ended", "{'state': 'done', 'try': 2, 'last': true, 'passed': true}", true, false,
     "tests_passed 1/1"},
    {"step.ended", "{'state': 'failed', 'try': 1, 'last': false, 'passed': false}", true, false,
     "errors:tests 0/1; first_tries 0/1"},
    {"step.ended", "{'state': 'failed', 'try': 3, 'last': true, 'passed': false}", true, false,
     "errors:tests 0/1; tests_passed 0/1"},
    {"step.ended", "{'state': 'failed', 'try': 2, 'last': false, 'passed': null}", true, false,
     "errors:work 0/1"},
    {"step.ended", "{'state': 'lost', 'try': 1, 'last': false}", true, false, ""},
    {"agent.left",
     "{'state': 'done', 'kind': 'work', 'duration_ms': 10, 'spawn_ms': 29999, 'memory_bytes': 499999999}",
     true, true, "spawn 1/1 29999; memory 1/1 499999999; agents 1/1 10"},
    {"agent.left",
     "{'state': 'done', 'kind': 'work', 'duration_ms': 10, 'spawn_ms': 30000, 'memory_bytes': 500000000}",
     true, true, "spawn 0/1 30000; memory 0/1 500000000; agents 1/1 10"},
    {"agent.left", "{'state': 'done', 'kind': 'review', 'scans': {'total': 5, 'passed': 4}}", true, true,
     "scans_passed 4/5; agents 1/1; reviews 1/1"},
    {"agent.left", "{'state': 'failed', 'kind': 'review'}", true, true,
     "agents 0/1; reviews 0/1; errors:agent 0/1"},
    {"agent.left", "{'state': 'lost', 'kind': 'review'}", true, true, "agents 0/1; errors:agent_lost 0/1"},
    {"agent.left", "{'state': 'stopped', 'kind': 'review', 'spawn_ms': 5}", true, true, "spawn 1/1 5"},
    {"agent.left", "{'name': 'ann', 'room_id': 'x'}", true, false, ""},
    {"model.called", "{'status': 200}", true, true, ""},
    {"model.called", "{'status': 503, 'error': 'overloaded'}", true, true, "errors:model 0/1"},
    {"model.called", "{'status': 499, 'error': 'client_gone'}", true, true, ""},
    {"budget.exceeded", "{}", true, true, "errors:budget 0/1"},
    {"loop.broken", "{}", true, true, "errors:loop 0/1"},
    {"pr.opened", "{}", true, false, "pull_requests 1/1"},
    {"pr.opened", "{}", false, false, ""},
    {"pr.merged", "{}", true, false, "merges 1/1"},
    {"pr.merged", "{}", false, false, ""},
    {"pr.closed", "{}", true, false, "merges 0/1"},
    {"pr.closed", "{}", false, false, ""},
    {"review.submitted", "{'state': 'APPROVED'}", true, false, "approvals 1/1"},
    {"review.submitted", "{'state': 'CHANGES_REQUESTED'}", true, false, "approvals 0/1"},
    {"review.submitted", "{'state': 'COMMENTED'}", true, false, ""},
    {"review.submitted", "{'state': 'APPROVED'}", false, false, ""},
    {"checks.ended", "{'state': 'passed'}", false, false, "checks 1/1"},
    {"checks.ended", "{'state': 'failed'}", false, false, "checks 0/1"},
    {"checks.ended", "{'state': 'error'}", false, false, "errors:checks 0/1"},
    {"checks.ended", "{'state': 'cancelled'}", false, false, ""},
    {"merge.conflicted", "{}", true, false, "errors:conflict 0/1"},
    {"merge.failed", "{}", true, false, "errors:merge 0/1"},
    {"command.ended", "{'reason': 'exit', 'exit_code': 0, 'duration_ms': 7}", false, true,
     "executions 1/1 7"},
    {"command.ended", "{'reason': 'exit', 'exit_code': 1, 'duration_ms': 7}", false, true,
     "executions 0/1 7; errors:command 0/1"},
    {"command.ended", "{'reason': 'timeout', 'exit_code': 124, 'duration_ms': 7}", false, true,
     "executions 0/1 7; errors:timeout 0/1"},
    {"command.ended", "{'reason': 'oom', 'exit_code': 137, 'duration_ms': 7}", false, true,
     "executions 0/1 7; errors:memory 0/1"},
    {"command.ended", "{'reason': 'stopped', 'exit_code': 137}", false, true, ""},
    {"command.ended", "{}", false, true, "executions 0/1; errors:command 0/1"},
    {"tests.reported", "{'total': 4, 'passed': 3, 'failed': 1}", true, true, "tests 3/4"},
    {"tests.reported", "{'total': 0}", true, true, ""},
    {"git.cloned", "{'duration_ms': 4999}", false, true, "clone 1/1 4999"},
    {"git.cloned", "{'duration_ms': 5000}", false, true, "clone 0/1 5000"},
    {"git.cloned", "{'operation': 'import'}", false, false, ""},
    {"git.failed", "{'operation': 'clone'}", false, true, "errors:git 0/1; clone 0/1"},
    {"git.failed", "{'operation': 'push'}", false, true, "errors:git 0/1"},
    {"box.killed", "{'lived_ms': 60}", false, true, "sandboxes 1/1 60"},
    {"box.expired", "{'lived_ms': 60}", false, true, "sandboxes 1/1 60"},
    {"box.expired", "{'kept': true}", false, true, ""},
    {"box.failed", "{'lived_ms': 60}", false, true, "sandboxes 0/1 60; errors:box 0/1"},
    {"tool.used", "{'exit_code': 1}", true, true, ""},
};

static void
test_events(void)
{
    for (size_t i = 0; i < G_N_ELEMENTS(events); i++) {
        g_autofree char *text = g_strdelimit(g_strdup(events[i].data), "'", '"');
        g_autoptr(Json) data = json_decode(text, strlen(text), NULL);
        const FactEvent event = {events[i].kind, events[i].task, events[i].box, data};
        FactList list;

        g_test_message("%s %s", events[i].kind, events[i].data);
        g_assert_nonnull(data);
        fact_read(&event, &list);
        g_autofree char *found = describe(&list);

        g_assert_cmpstr(found, ==, events[i].want);
    }
}

/* A kind that nobody writes would never be counted. */
static void
test_kinds(void)
{
    for (const char *const *kind = fact_kinds(); *kind != NULL; kind++)
        g_assert_true(event_kind_is_known(*kind));
    for (guint i = 0; i < FACT_MAX; i++) {
        g_assert_nonnull(rate_specs[i].name);
        g_assert_cmpint(fact_name_of(rate_specs[i].name), ==, i);
    }
    g_assert_cmpint(fact_name_of("nonsense"), ==, FACT_MAX);
}

/* ---- rates ---- */

static const struct {
    FactName name;
    gint64 good, n, values, sum, percentile;
    gint64 share; /* thousandths */
    RateMet met;
} rates[] = {
    {FACT_PULLS, 0, 0, 0, 0, -1, -1, RATE_UNKNOWN},
    {FACT_PULLS, 95, 100, 0, 0, -1, 950, RATE_MISSED}, /* above, not at */
    {FACT_PULLS, 96, 100, 0, 0, -1, 960, RATE_MET},
    {FACT_PULLS, 19001, 20000, 0, 0, -1, 950, RATE_MET}, /* the share is rounded, the judgement is not */
    {FACT_REVIEWS, 9, 10, 0, 0, -1, 900, RATE_MISSED},
    {FACT_MERGES, 86, 100, 0, 0, -1, 860, RATE_MET},
    {FACT_MERGES, 85, 100, 0, 0, -1, 850, RATE_MISSED},
    {FACT_APPROVALS, 81, 100, 0, 0, -1, 810, RATE_MET},
    {FACT_APPROVALS, 4, 5, 0, 0, -1, 800, RATE_MISSED},
    {FACT_FEATURES, 19, 20, 0, 0, -1, 950, RATE_MISSED},
    {FACT_SCANS, 91, 100, 0, 0, -1, 910, RATE_MET},
    {FACT_TASKS, 1, 3, 3, 30, -1, 333, RATE_UNKNOWN}, /* nobody wants anything of it */
    {FACT_SPAWN, 3, 3, 3, 900, 29999, 1000, RATE_MET},
    {FACT_SPAWN, 2, 3, 3, 900, 30000, 666, RATE_MISSED},
    {FACT_SPAWN, 1, 1, 1, 29999, -1, 1000, RATE_MET}, /* by the mean where nothing else is known */
    {FACT_CLONE, 0, 2, 0, 0, -1, 0, RATE_UNKNOWN},
    {FACT_SIMPLE, 1, 1, 1, 299999, 299999, 1000, RATE_MET},
    {FACT_MEMORY, 1, 1, 1, 500000000, 500000000, 1000, RATE_MISSED},
};

static void
test_rates(void)
{
    for (size_t i = 0; i < G_N_ELEMENTS(rates); i++) {
        const Rate rate = {.good = rates[i].good,
                           .n = rates[i].n,
                           .values = rates[i].values,
                           .sum = rates[i].sum,
                           .median = -1,
                           .percentile = rates[i].percentile};

        g_test_message("%zu: %s", i, rate_specs[rates[i].name].name);
        g_assert_cmpint(rate_share(&rate), ==, rates[i].share);
        g_assert_cmpint(rate_met(&rate_specs[rates[i].name], &rate), ==, rates[i].met);
    }
}

static void
test_json(void)
{
    static const struct {
        FactName name;
        Rate rate;
        const char *want;
    } cases[] = {
        {FACT_MERGES,
         {.n = 4, .good = 3, .median = -1, .percentile = -1},
         "{'name':'merges','row':'GH-23','title':'pull requests that were "
         "merged','good':3,'total':4,'rate':0.75,"
         "'target':0.85,'met':false}"},
        {FACT_MERGES,
         {.median = -1, .percentile = -1},
         "{'name':'merges','row':'GH-23','title':'pull requests that were "
         "merged','good':0,'total':0,'rate':null,"
         "'target':0.85,'met':null}"},
        {FACT_CLONE,
         {.n = 2, .good = 2, .sum = 500, .values = 2, .max = 300, .median = 200, .percentile = 300},
         "{'name':'clone','row':'GW-02','title':'a clone into a "
         "box','good':2,'total':2,'rate':1.0,'target':null,"
         "'unit':'ms','average':250,'max':300,'median':200,'p95':300,'limit':5000,'met':true}"},
        {FACT_COMMANDS,
         {.n = 2, .good = 1, .sum = 9, .values = 2, .max = 5, .median = -1, .percentile = -1},
         "{'name':'executions','row':'MC-01','title':'commands that ended "
         "well','good':1,'total':2,'rate':0.5,"
         "'target':null,'unit':'ms','average':4,'max':5,'met':null}"},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(Json) o = rate_json(cases[i].name, &cases[i].rate);
        g_autofree char *text = g_strdelimit(json_encode(o), "\"", '\'');

        g_assert_cmpstr(text, ==, cases[i].want);
    }
}

static void
test_covered(void)
{
    static const struct {
        FactSpan spans[4];
        guint len;
        gint64 want; /* of 10..20 */
    } cases[] = {
        {{{0, 0}}, 0, 0},
        {{{12, 15}}, 1, 3},
        {{{5, 12}, {18, 30}}, 2, 4},
        {{{18, 19}, {11, 12}, {14, 15}}, 3, 3},
        {{{11, 16}, {12, 14}, {15, 18}}, 3, 7},
        {{{0, 100}, {12, 13}}, 2, 10},
        {{{1, 5}, {25, 30}}, 2, 0},
        {{{15, 15}, {15, 12}}, 2, 0},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        FactSpan spans[G_N_ELEMENTS(cases[0].spans)];

        memcpy(spans, cases[i].spans, sizeof spans);
        g_assert_cmpint(fact_covered(spans, cases[i].len, 10, 20), ==, cases[i].want);
    }
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/rates/events", test_events);
    g_test_add_func("/rates/kinds", test_kinds);
    g_test_add_func("/rates/arithmetic", test_rates);
    g_test_add_func("/rates/json", test_json);
    g_test_add_func("/rates/covered", test_covered);
    return g_test_run();
}

/* SPDX-License-Identifier: Apache-2.0 */
/* A task's budget: what of it the door is told, when, and what an answer makes of it. */
#include <string.h>

#include "base/err.h"
#include "team/flow-private.h"

static Json *
decode(const char *text)
{
    g_autoptr(GError) error = NULL;
    Json *value = json_decode(text, strlen(text), &error);

    g_assert_no_error(error);
    return value;
}

static void
test_bounds(void)
{
    static const struct {
        const char *task, *bounds;
    } cases[] = {
        {"{\"policy\": {}}", NULL},
        {"{\"policy\": {\"budget\": {}}}", NULL},
        {"{\"policy\": {\"budget\": {\"tokens\": 7}}}", "{\"tokens\":7}"},
        {"{\"policy\": {\"budget\": {\"usd\": 0.5, \"calls\": 2}}}", "{\"calls\":2,\"microusd\":500000}"},
        {"{\"policy\": {\"budget\": {\"usd\": 3}}}", "{\"microusd\":3000000}"},
        {"{\"policy\": {\"budget\": {\"usd\": 0}}}", "{\"microusd\":1}"},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(Json) task = decode(cases[i].task);
        g_autofree char *bounds = flow_bounds(task);

        g_assert_cmpstr(bounds, ==, cases[i].bounds);
    }
}

static void
test_raised(void)
{
    static const struct {
        const char *budget, *answer, *raised; /* NULL: refused */
    } cases[] = {
        {"{\"calls\": 3}", "raise", "{\"calls\":6}"},
        {"{\"calls\": 3, \"usd\": 0.25}", " Raise\n", "{\"calls\":6,\"usd\":0.5}"},
        {"{\"calls\": 3}", "calls 4", "{\"calls\":4}"},
        {"{\"usd\": 1}", "usd: 1.5", "{\"usd\":1.5}"},
        {"{\"usd\": 1, \"tokens\": 5}", "USD=2, tokens 6", "{\"usd\":2,\"tokens\":6}"},
        {"{\"calls\": 9000000000000000000}", "raise", "{\"calls\":9223372036854775807}"},
        {"{\"calls\": 3}", "raise to calls 9", "{\"calls\":9}"},
        {"{\"calls\": 3}", "calls 3", NULL},
        {"{\"calls\": 3}", "calls -9", NULL},
        {"{\"calls\": 3}", "calls nan", NULL},
        {"{\"usd\": 3}", "usd nan", NULL},
        {"{\"calls\": 3}", "tokens 9", NULL},
        {"{\"calls\": 3}", "calls", NULL},
        {"{\"calls\": 3}", "9", NULL},
        {"{\"calls\": 3}", "please go on", NULL},
        {"{\"calls\": 3}", "calls 9 please", NULL},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(Json) budget = decode(cases[i].budget);
        g_autoptr(GError) error = NULL;
        g_autoptr(Json) raised = flow_raised(budget, cases[i].answer, &error);
        g_autofree char *text = raised != NULL ? json_encode(raised) : NULL;

        g_test_message("%s: %s", cases[i].budget, cases[i].answer);
        g_assert_cmpstr(text, ==, cases[i].raised);
        if (raised == NULL)
            g_assert_error(error, ERR_DOMAIN, ERR_INVALID);
    }
}

/* Before anybody asks a model, and again when it was raised. */
static void
test_when(void)
{
    static const struct {
        const char *state, *bound;
        bool binds;
    } cases[] = {
        {"planning", NULL, true},
        {"working", NULL, true},
        {"working", "{\"calls\":2}", true},
        {"working", "{\"calls\":3}", false},
        {"queued", NULL, false},
        {"blocked", NULL, false},
        {"planning", "", false},
    };
    const TeamLimits limits = {.agents_per_task = 1};

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(Json) rows = json_pack("{s:{s:s, s:n, s:{s:{s:i}}}, s:[], s:[], s:[], s:n}", "task",
                                         "state", cases[i].state, "ending", "policy", "budget", "calls", 3,
                                         "steps", "agents", "members", "plan");
        const FlowView view = {.rows = rows, .limits = &limits, .now_us = 1, .bound = cases[i].bound};

        g_assert_cmpint(flow_decide(&view).what == FLOW_BIND, ==, cases[i].binds);
    }
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/team/budget/bounds", test_bounds);
    g_test_add_func("/team/budget/raised", test_raised);
    g_test_add_func("/team/budget/when", test_when);
    return g_test_run();
}

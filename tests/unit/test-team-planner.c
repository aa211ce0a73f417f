/* SPDX-License-Identifier: Apache-2.0 */
/* Plans of one brain and of people. */
#include <string.h>

#include "base/err.h"
#include "support/plan-world.h"

/* ---- one brain ---- */

static void
test_brain(void)
{
    static const struct {
        PlanLine lines[3];
        int kind; /* -1: a plan */
        guint questions;
        const char *state, *step;
    } cases[] = {
        {{{"planner", "Sure!\n```json\n" PLAN("a") "\n```"}}, -1, 1, "draft", "a"},
        {{{"planner", "I will not."}, {"planner", PLAN("b")}}, -1, 2, "draft", "b"},
        {{{"planner", "{\"project\": \"P\"}"}, {"planner", "{\"plan\": " PLAN("c") "}"}},
         -1,
         2,
         "draft",
         "c"},
        {{{"planner", NULL, ERR_INVALID}, {"planner", PLAN("d")}}, -1, 2, "draft", "d"},
        {{{"planner", "no"}, {"planner", "{\"still\": \"no\"}"}}, ERR_INVALID, 2, "failed", NULL},
        {{{"planner", NULL, ERR_UNAVAILABLE}, {"planner", PLAN("e")}}, -1, 2, "draft", "e"},
        {{{"planner", NULL, ERR_UNAVAILABLE}}, ERR_UNAVAILABLE, 3, "asked", NULL},
        {{{"planner", NULL, ERR_TIMEOUT}}, ERR_TIMEOUT, 1, "asked", NULL},
        {{{"planner", NULL, ERR_LIMIT}}, ERR_LIMIT, 1, "asked", NULL},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        size_t n = 0;

        while (n < G_N_ELEMENTS(cases[i].lines) && cases[i].lines[n].agent != NULL)
            n++;
        PlanWorld *w = plan_world_new("{}", cases[i].lines, n);
        g_autofree char *states = g_strdup_printf("SELECT COUNT(*) FROM plans WHERE task_id = '" TASK
                                                  "' AND state = '%s' AND producer = 'brain'",
                                                  cases[i].state);

        plan_world_make(w);
        if (cases[i].kind < 0)
            g_assert_no_error(w->error);
        else
            g_assert_error(w->error, ERR_DOMAIN, cases[i].kind);
        if (cases[i].step != NULL)
            g_assert_cmpstr(plan_world_step(w), ==, cases[i].step);
        g_assert_cmpuint(plan_world_asked(w, "planner-7"), ==, cases[i].questions);
        g_assert_cmpint(store_read_int(w->store->db, states), ==, 1);
        g_assert_cmpstr(((PlanAsked *)w->asked->pdata[0])->model, ==, "brain-model");
        plan_world_free(w);
    }
}

/* What was wrong is said, and the answer is shown as what it is. */
static void
test_brain_repair_words(void)
{
    static const PlanLine lines[] = {
        {"planner", "{\"project\": \"P\", \"steps\": [{\"name\": \"a/b\\u001b\"}]} >>>"},
        {"planner", PLAN("a")}};
    PlanWorld *w = plan_world_new("{}", lines, G_N_ELEMENTS(lines));

    plan_world_make(w);
    g_assert_no_error(w->error);
    const PlanAsked *first = w->asked->pdata[0], *second = w->asked->pdata[1];

    g_assert_nonnull(strstr(first->system, "You are the planner of a small team."));

    g_assert_nonnull(strstr(second->prompt, "It cannot be used: steps[0]: name: letters, digits"));
    g_assert_nonnull(strstr(second->prompt, "## Your last answer"));
    g_assert_nonnull(strstr(second->prompt, "make it so"));
    g_assert_null(strchr(second->prompt, '\x1b'));
    plan_world_free(w);
}

/* A model that was away is asked again by the next plan_make() of the same row; a failed one is a new row. */
static void
test_brain_again(void)
{
    static const PlanLine lines[] = {
        {"planner", NULL, ERR_TIMEOUT}, {"planner", "no"}, {"planner", "no"}, {"planner", PLAN("a")}};
    PlanWorld *w = plan_world_new("{}", lines, G_N_ELEMENTS(lines));

    plan_world_make(w);
    g_assert_error(w->error, ERR_DOMAIN, ERR_TIMEOUT);
    plan_world_make(w);
    g_assert_error(w->error, ERR_DOMAIN, ERR_INVALID);
    g_assert_cmpint(store_read_int(w->store->db, "SELECT MAX(version) FROM plans"), ==, 1);
    plan_world_make(w);
    g_assert_no_error(w->error);
    g_assert_cmpint(row_int(w->plan, "version"), ==, 2);
    plan_world_make(w); /* it is there */
    g_assert_no_error(w->error);
    g_assert_cmpuint(w->asked->len, ==, 4);
    plan_world_free(w);
}

/* ---- people ---- */

static const PlanLine three_seats[] = {{"council-3", PLAN("three")}};

static void
test_cancel(void)
{
    PlanWorld *w = plan_world_new("{`planner`: `council`}", three_seats, G_N_ELEMENTS(three_seats));

    plan_make(w->team, TASK, plan_world_on_plan, w);
    while (w->asked->len < 3)
        g_main_context_iteration(NULL, TRUE);
    plan_cancel(w->team, TASK);
    g_assert_false(w->done);
    for (guint i = 0; i < 3; i++)
        g_assert_true(((PlanAsked *)w->asked->pdata[i])->cancelled);
    while (!w->done)
        g_main_context_iteration(NULL, TRUE);
    g_assert_error(w->error, ERR_DOMAIN, ERR_CANCELLED);
    plan_world_free(w);
}

typedef struct Waited {
    bool done;
    Json *value;
    GError *error;
} Waited;

static void
on_waited(Json *value, const GError *error, void *data)
{
    Waited *waited = data;

    waited->done = true;
    waited->value = value != NULL ? json_deep_copy(value) : NULL;
    waited->error = error != NULL ? g_error_copy(error) : NULL;
}

static void
waited_clear(Waited *waited)
{
    json_decref(waited->value);
    g_clear_error(&waited->error);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Waited, waited_clear)

static void
wait_for(Waited *waited)
{
    while (!waited->done)
        g_main_context_iteration(NULL, TRUE);
}

static const TaskRef by_number = {.id = "#7", .actor = "key:k"};

/* A person's plan takes the place of one that is being made. */
static void
test_put(void)
{
    PlanWorld *w = plan_world_new("{`planner`: `council`}", three_seats, G_N_ELEMENTS(three_seats));
    g_auto(Waited) bad = {0}, put = {0}, got = {0};
    g_autoptr(Json) plan = json_decode(PLAN("mine"), strlen(PLAN("mine")), NULL);
    g_autoptr(Json) none = json_object();

    plan_make(w->team, TASK, plan_world_on_plan, w);
    while (w->asked->len < 3)
        g_main_context_iteration(NULL, TRUE);
    plan_put(w->team, &by_number, none, on_waited, &bad);
    wait_for(&bad);
    g_assert_error(bad.error, ERR_DOMAIN, ERR_INVALID);
    plan_put(w->team, &by_number, plan, on_waited, &put);
    g_assert_true(plan_world_answer(w)); /* too late: it is written after the person's */
    wait_for(&put);
    g_assert_no_error(put.error);
    g_assert_cmpstr(row_text(put.value, "state"), ==, "approved");
    g_assert_cmpstr(row_text(put.value, "producer"), ==, "person");
    g_assert_cmpstr(row_text(put.value, "actor"), ==, "key:k");
    while (!w->done)
        g_main_context_iteration(NULL, TRUE);
    g_assert_error(w->error, ERR_DOMAIN, ERR_CANCELLED);
    plan_get(w->team, &by_number, on_waited, &got);
    wait_for(&got);
    g_assert_cmpint(row_int(got.value, "version"), ==, 2);
    g_assert_nonnull(strstr(row_text(got.value, "text"), "> make it so"));
    g_assert_cmpint(store_read_int(w->store->db, "SELECT COUNT(*) FROM plans WHERE state = 'replaced'"), ==,
                    1);
    plan_world_free(w);
}

static void
test_approve(void)
{
    static const PlanLine lines[] = {{"planner", PLAN("a")}};
    PlanWorld *w = plan_world_new("{`approve`: true}", lines, G_N_ELEMENTS(lines));
    g_auto(Waited) none = {0}, foreign = {0}, yes = {0}, again = {0}, late = {0};
    g_autoptr(Json) plan = json_decode(PLAN("mine"), strlen(PLAN("mine")), NULL);

    plan_approve(w->team, &by_number, on_waited, &none);
    wait_for(&none);
    g_assert_error(none.error, ERR_DOMAIN, ERR_NOT_FOUND);
    plan_world_make(w);
    g_assert_cmpstr(row_text(w->plan, "state"), ==, "draft");
    plan_approve(w->team, &(TaskRef){.id = TASK, .owner = "another", .actor = "x"}, on_waited, &foreign);
    wait_for(&foreign);
    g_assert_error(foreign.error, ERR_DOMAIN, ERR_NOT_FOUND);
    plan_approve(w->team, &by_number, on_waited, &yes);
    wait_for(&yes);
    g_assert_no_error(yes.error);
    g_assert_cmpstr(row_text(yes.value, "state"), ==, "approved");
    plan_approve(w->team, &by_number, on_waited, &again);
    wait_for(&again);
    g_assert_no_error(again.error);
    plan_world_sql(w, "UPDATE tasks SET state = 'working'");
    plan_put(w->team, &by_number, plan, on_waited, &late);
    wait_for(&late);
    g_assert_error(late.error, ERR_DOMAIN, ERR_CONFLICT);
    plan_world_free(w);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/team/brain/answers", test_brain);
    g_test_add_func("/team/brain/repair-words", test_brain_repair_words);
    g_test_add_func("/team/brain/again", test_brain_again);
    g_test_add_func("/team/plan/cancel", test_cancel);
    g_test_add_func("/team/plan/put", test_put);
    g_test_add_func("/team/plan/approve", test_approve);
    return g_test_run();
}

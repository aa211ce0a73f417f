/* SPDX-License-Identifier: Apache-2.0 */
/* The workflow over a real repository and merge queue; agents are played. */
#include <string.h>

#include "forge/commit.h"
#include "team-world.h"

static const char one_step[] =
    "{\"project\": \"calc\", \"summary\": \"s\", \"features\": [{\"name\": \"multiply\", \"title\": "
    "\"Multiply\", \"acceptance\": "
    "[{\"name\": \"tests\", \"run\": \"make test\"}]}], \"steps\": [{\"name\": \"multiply\", \"title\": "
    "\"Write multiply\", \"feature\": \"multiply\", \"role\": \"coder\", \"depends\": [], \"files\": []}]}";

#define STEP(name, depends)                                                                                  \
    "{\"name\": \"" name "\", \"title\": \"Write " name "\", \"role\": \"coder\", \"depends\": [" depends    \
    "], \"files\": []}"
static const char two_steps[] =
    "{\"project\": \"calc\", \"summary\": \"s\", \"features\": [], \"steps\": [" STEP("add", "") ", " STEP(
        "sub", "") "]}";
static const char chain[] = "{\"project\": \"calc\", \"summary\": \"s\", \"features\": [], \"steps\": [" STEP(
    "add", "") ", " STEP("sub", "\"add\"") "]}";

static void
look(TeamWorld *world, const char *tester, const char *reviewer)
{
    g_autoptr(Json) test = team_world_agent(world, "test");
    g_autoptr(Json) review = team_world_agent(world, "review");

    team_world_looked(world, test, tester, "[]");
    team_world_looked(
        world, review, reviewer,
        strcmp(reviewer, "changes") == 0
            ? "[{\"path\": \"m.js\", \"line\": 1, \"severity\": \"major\", \"body\": \"wrong\"}, "
              "{\"path\": \"other\", \"line\": 9, \"body\": \"elsewhere\"}]"
            : "[]");
}

static void
land(TeamWorld *world, const char *id)
{
    team_world_until(world, TEAM_WORLD_STATE, "landing");
    team_world_pass(world);
    flow_wake(world->team->flow, id);
    team_world_until(world, TEAM_WORLD_STATE, "done");
}

/* ---- all the way ---- */

static void
test_happy(void)
{
    g_autoptr(TeamWorld) world = team_world_new(NULL);
    g_autofree char *id = team_world_task(world, one_step, NULL);

    team_world_code(world, "work", "m.js", "ok\n", 1);
    look(world, "approve", "approve");
    land(world, id);
    g_assert_true(team_world_main_has(world, "m.js"));
    g_assert_false(team_world_main_has(world, ".coop/plans/task-1.md"));
    team_world_expect(world, "SELECT rung FROM tasks", "merged");
    team_world_expect(world, "SELECT title FROM threads", "Multiply");
    team_world_expect(world, "SELECT COUNT(*) FROM threads", "1");
    team_world_expect(world, "SELECT COUNT(*) FROM reviews WHERE state = 'APPROVED'", "2");
    team_world_expect(world, "SELECT COUNT(*) FROM events WHERE kind = 'task.completed'", "1");
    team_world_expect(world, "SELECT json_extract(report, '$.tests.total') FROM tasks", "6");
    team_world_expect(world, "SELECT json_extract(report, '$.final_tests.total') FROM tasks", "2");
    /* Nothing of the steps is left but the task's own branch. */
    team_world_expect(world, "SELECT COUNT(*) FROM repository_refs WHERE name LIKE '%--%'", "0");
    g_assert_nonnull(strstr(world->calls->str, "release task-1-multiply -"));
}

static void
test_restarts_everywhere(void)
{
    g_autoptr(TeamWorld) world = team_world_new(NULL);
    g_autofree char *id = team_world_task(world, one_step, NULL);

    team_world_until(world, TEAM_WORLD_STATE, "working");
    team_world_restart(world);
    team_world_code(world, "work", "m.js", "ok\n", 1);
    team_world_restart(world);
    team_world_until(world, "SELECT COUNT(*) FROM task_executions WHERE kind = 'review'", "1");
    team_world_restart(world);
    look(world, "approve", "approve");
    team_world_restart(world);
    land(world, id);
    team_world_expect(world, "SELECT COUNT(*) FROM threads", "1");
    team_world_expect(world, "SELECT COUNT(*) FROM reviews", "2");
    team_world_expect(world, "SELECT COUNT(*) FROM task_executions", "3");
    team_world_expect(world, "SELECT COUNT(*) FROM merges", "1");
}

/* As a restore does: who is gone afterwards hears of no event. */
static void
test_started_twice(void)
{
    g_autoptr(TeamWorld) world = team_world_new(NULL);

    team_start(world->team);
    team_world_restart(world);
    g_autofree char *id = team_world_task(world, one_step, NULL);
    team_world_code(world, "work", "m.js", "ok\n", 1);
    look(world, "approve", "approve");
    land(world, id);
}

/* ---- tries ---- */

static void
test_fixes(void)
{
    g_autoptr(TeamWorld) world = team_world_new(NULL);
    g_autofree char *id = team_world_task(world, one_step, NULL);

    team_world_code(world, "work", "m.js", "bad\n", 0);
    g_autoptr(Json) agent = team_world_agent(world, "work");
    const char *feedback = row_text(json_object_get(agent, "brief"), "feedback");

    g_assert_nonnull(strstr(feedback, "1 of 2 is red"));
    g_assert_cmpint(row_int(agent, "try"), ==, 2);
    g_assert_cmpstr(row_text(agent, "lease"), ==, "task-1-multiply");
    team_world_done(world, agent, "m.js", "ok\n", 1);
    team_world_until(world, TEAM_WORLD_STATE, "reviewing");
}

static void
test_three_failures_block(void)
{
    g_autoptr(TeamWorld) world = team_world_new(NULL);
    g_autofree char *id = team_world_task(world, one_step, NULL);

    for (guint i = 0; i < 3; i++)
        team_world_code(world, "work", "m.js", i == 0 ? "a\n" : i == 1 ? "b\n" : "c\n", 0);
    team_world_until(world, TEAM_WORLD_STATE, "blocked");
    team_world_expect(world, "SELECT state FROM questions", "open");
    team_world_expect(world, "SELECT COUNT(*) FROM events WHERE kind = 'human.asked'", "1");
    while (strstr(world->calls->str, "release task-1-multiply files") == NULL)
        g_main_context_iteration(NULL, TRUE);
    team_world_sql(world, "UPDATE questions SET state = 'answered', answer = 'use *', answered_us = 3");
    team_world_unblock(world, id);
    g_autoptr(Json) agent = team_world_agent(world, "work");

    g_assert_nonnull(strstr(row_text(json_object_get(agent, "brief"), "feedback"), "use *"));
    team_world_done(world, agent, "m.js", "ok\n", 1);
    look(world, "approve", "approve");
    land(world, id);
}

/* A step without checks of its own has to change something. */
static void
test_nothing_done(void)
{
    g_autoptr(TeamWorld) world = team_world_new(NULL);
    g_autofree char *id = team_world_task(world, chain, NULL);

    team_world_code(world, "work", NULL, NULL, 1);
    team_world_code(world, "work", "a.js", "a\n", 1);
    team_world_until(world, "SELECT tries FROM steps WHERE name = 'add'", "2");
    team_world_code(world, "work", "b.js", "b\n", -1);
    team_world_until(world, TEAM_WORLD_STATE, "reviewing");
}

static void
test_lost(void)
{
    g_autoptr(TeamWorld) world = team_world_new(NULL);
    g_autofree char *id = team_world_task(world, one_step, NULL);

    for (guint i = 0; i < FLOW_LOST_MAX; i++) {
        g_autoptr(Json) agent = team_world_agent(world, "work");

        g_assert_cmpint(row_int(agent, "try"), ==, 1);
        team_world_lost(world, agent);
    }
    team_world_until(world, TEAM_WORLD_STATE, "blocked");
    team_world_unblock(world, id);
    team_world_code(world, "work", "m.js", "ok\n", 1);
    team_world_until(world, TEAM_WORLD_STATE, "reviewing");
}

/* ---- side by side ---- */

static void
test_parallel(void)
{
    g_autoptr(TeamWorld) world = team_world_new(NULL);
    g_autofree char *id = team_world_task(world, two_steps, NULL);
    g_autoptr(Json) add = team_world_agent(world, "work");
    g_autoptr(Json) sub = team_world_agent(world, "work");

    g_assert_cmpstr(row_text(add, "git_branch"), ==, "task-1--coder-1");
    g_assert_cmpstr(row_text(sub, "git_branch"), ==, "task-1--coder-2");
    g_assert_cmpstr(row_text(add, "member_id"), !=, row_text(sub, "member_id"));
    team_world_done(world, add, "add.js", "1\n", 1);
    team_world_done(world, sub, "sub.js", "2\n", 1);
    look(world, "approve", "approve");
    land(world, id);
    g_assert_true(team_world_main_has(world, "add.js"));
    g_assert_true(team_world_main_has(world, "sub.js"));
}

static void
test_order(void)
{
    g_autoptr(TeamWorld) world = team_world_new(NULL);
    g_autofree char *id = team_world_task(world, chain, NULL);
    g_autoptr(Json) add = team_world_agent(world, "work");

    team_world_until(world, "SELECT COUNT(*) FROM task_executions", "1");
    team_world_done(world, add, "add.js", "1\n", 1);
    g_autoptr(Json) sub = team_world_agent(world, "work");
    g_autofree char *tip = git_branch_oid(repo_git(world->w->repo), "task-1", NULL);

    g_assert_cmpstr(row_text(sub, "git_base"), ==, tip);
}

static void
test_conflict(void)
{
    g_autoptr(TeamWorld) world = team_world_new(NULL);
    g_autofree char *id = team_world_task(world, two_steps, NULL);
    g_autoptr(Json) add = team_world_agent(world, "work");
    g_autoptr(Json) sub = team_world_agent(world, "work");

    team_world_done(world, add, "calc.js", "add\n", 1);
    team_world_until(world, "SELECT state FROM steps WHERE name = 'add'", "done");
    team_world_done(world, sub, "calc.js", "sub\n", 1);
    g_autoptr(Json) resolver = team_world_agent(world, "resolve");
    const Json *bundle = json_object_get(json_object_get(resolver, "brief"), "bundle");

    g_assert_cmpstr(row_text(resolver, "member_id"), ==, row_text(sub, "member_id"));
    g_assert_cmpstr(row_text(resolver, "git_branch"), ==, "task-1--coder-2");
    g_assert_cmpstr(row_text(json_object_get(bundle, "ours"), "name"), ==, "task-1");
    g_assert_cmpint(json_array_size(json_object_get(bundle, "files")), ==, 1);
    team_world_expect(world, "SELECT COUNT(*) FROM events WHERE kind = 'merge.conflicted'", "1");

    /* As an agent that merges and resolves: its branch has the task's in it. */
    g_autofree char *tip = git_branch_oid(repo_git(world->w->repo), "task-1", NULL);
    g_autofree char *oid = forge_world_commit(world->w, "calc.js", "add\nsub\n", tip);

    forge_world_move(world->w, "task-1--coder-2", oid);
    team_world_done(world, resolver, NULL, NULL, 1);
    team_world_until(world, TEAM_WORLD_STATE, "reviewing");
    g_autofree char *joined = git_branch_oid(repo_git(world->w->repo), "task-1", NULL);

    g_assert_true(joined != NULL);
    team_world_expect(world, "SELECT joins FROM steps WHERE name = 'sub'", "1");
}

/* ---- reviews ---- */

static void
test_changes(void)
{
    g_autoptr(TeamWorld) world = team_world_new(NULL);
    g_autofree char *id = team_world_task(world, one_step, NULL);

    team_world_code(world, "work", "m.js", "ok\n", 1);
    look(world, "approve", "changes");
    g_autoptr(Json) fixer = team_world_agent(world, "fix");

    g_assert_nonnull(strstr(row_text(json_object_get(fixer, "brief"), "goal"), "wrong"));
    team_world_expect(world, "SELECT COUNT(*) FROM reviews WHERE state = 'CHANGES_REQUESTED'", "1");
    /* The one on a line of the change is there; the other is in the words of the review. */
    team_world_expect(world, "SELECT COUNT(*) FROM review_comments", "1");
    team_world_expect(world, "SELECT COUNT(*) FROM reviews WHERE body LIKE '%elsewhere%'", "1");
    team_world_done(world, fixer, "m.js", "better\n", 1);
    look(world, "approve", "approve");
    land(world, id);
    team_world_expect(world, "SELECT round FROM tasks", "2");
}

static void
test_rounds_end(void)
{
    g_autoptr(TeamWorld) world = team_world_new(&(TeamLimits){.rounds = 2, .retry_ms = 1});
    g_autofree char *id = team_world_task(world, one_step, NULL);

    team_world_code(world, "work", "m.js", "ok\n", 1);
    look(world, "approve", "changes");
    team_world_code(world, "fix", "m.js", "better\n", 1);
    look(world, "changes", "approve");
    team_world_until(world, TEAM_WORLD_STATE, "blocked");
    team_world_unblock(world, id);
    team_world_code(world, "fix", "m.js", "best\n", 1);
    look(world, "approve", "approve");
    land(world, id);
}

/* ---- the merge queue ---- */

static void
enter_queue(TeamWorld *world, const char *id)
{
    look(world, "approve", "approve");
    team_world_until(world, TEAM_WORLD_STATE, "landing");
    team_world_pass(world);
    flow_wake(world->team->flow, id);
}

static void
test_target_conflicts(void)
{
    g_autoptr(TeamWorld) world = team_world_new(NULL);
    g_autofree char *id = team_world_task(world, one_step, NULL);

    team_world_code(world, "work", "m.js", "ok\n", 1);
    g_autofree char *theirs = forge_world_change(world->w, "main", "m.js", "theirs\n", world->w->root);

    enter_queue(world, id);
    g_autoptr(Json) resolver = team_world_agent(world, "resolve");
    const Json *bundle = json_object_get(json_object_get(resolver, "brief"), "bundle");

    g_assert_cmpstr(row_text(json_object_get(bundle, "ours"), "name"), ==, "main");
    g_assert_nonnull(strstr(row_text(json_object_get(resolver, "brief"), "goal"), "git fetch origin main"));
    team_world_expect(world, TEAM_WORLD_STATE, "working");
}

static void
test_queue_finds_failures(void)
{
    g_autoptr(TeamWorld) world = team_world_new(NULL);
    g_autofree char *id = team_world_task(world, one_step, NULL);

    world->checks->verdict = "failed";
    team_world_code(world, "work", "m.js", "ok\n", 1);
    enter_queue(world, id);
    g_autoptr(Json) fixer = team_world_agent(world, "fix");

    world->checks->verdict = "passed";
    team_world_done(world, fixer, "m.js", "better\n", 1);
    look(world, "approve", "approve");
    land(world, id);
    team_world_expect(world, "SELECT COUNT(*) FROM merges WHERE state = 'landed'", "1");
    team_world_expect(world, "SELECT round FROM tasks", "2");
}

/* ---- the end ---- */

static void
test_rungs(void)
{
    static const struct {
        const char *policy, *rung;
        bool draft;
    } cases[] = {
        {"{\"until\": \"tested\"}", "tested", true},
        {"{\"until\": \"ready\"}", "ready", false},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(TeamWorld) world = team_world_new(NULL);
        g_autofree char *id = team_world_task(world, one_step, cases[i].policy);

        team_world_code(world, "work", "m.js", "ok\n", 1);
        team_world_until(world, TEAM_WORLD_STATE, "done");
        team_world_expect(world, "SELECT rung FROM tasks", cases[i].rung);
        team_world_expect(world, "SELECT draft FROM threads", cases[i].draft ? "1" : "0");
    }
}

static void
test_pull_at_the_end(void)
{
    g_autoptr(TeamWorld) world = team_world_new(NULL);
    g_autofree char *id = team_world_task(world, one_step, "{\"pull_request\": \"end\"}");
    g_autoptr(Json) agent = team_world_agent(world, "work");

    team_world_expect(world, "SELECT COUNT(*) FROM threads", "0");
    team_world_done(world, agent, "m.js", "ok\n", 1);
    look(world, "approve", "approve");
    land(world, id);
}

static void
test_no_repository(void)
{
    g_autoptr(TeamWorld) world = team_world_new(NULL);
    g_autofree char *id = team_world_task_bare(world, two_steps, NULL);

    for (guint i = 0; i < 2; i++) {
        g_autoptr(Json) agent = team_world_agent(world, "work");

        g_assert_true(g_queue_is_empty(&world->started));
        g_assert_cmpstr(row_text(agent, "lease"), ==, "task-1");
        team_world_done(world, agent, NULL, NULL, 1);
    }
    team_world_until(world, TEAM_WORLD_STATE, "done");
}

static void
on_stopped(void *data, const GError *error)
{
    g_assert_no_error(error);
    *(bool *)data = true;
}

static void
test_stop(void)
{
    g_autoptr(TeamWorld) world = team_world_new(NULL);
    g_autofree char *id = team_world_task(world, two_steps, NULL);
    g_autoptr(Json) agent = team_world_agent(world, "work");
    bool stopped = false;

    flow_stop(world->team->flow, id, "cancelled", "not wanted", "local", on_stopped, &stopped);
    while (!stopped)
        g_main_context_iteration(NULL, TRUE);
    team_world_expect(world, TEAM_WORLD_STATE, "cancelled");
    team_world_expect(world, "SELECT state FROM threads", "closed");
    team_world_expect(world, "SELECT actor FROM events WHERE kind = 'task.cancelled'", "local");
    team_world_expect(world, "SELECT COUNT(*) FROM task_executions WHERE state = 'queued'", "0");
    g_assert_nonnull(strstr(world->calls->str, "stop\n"));
    g_assert_nonnull(strstr(world->calls->str, "release task-1-add files"));
}

/* The wish to stop is a row, which the next server finds. */
static void
test_stop_goes_on(void)
{
    g_autoptr(TeamWorld) world = team_world_new(NULL);
    g_autofree char *id = team_world_task(world, one_step, NULL);
    g_autoptr(Json) agent = team_world_agent(world, "work");

    team_world_sql(world,
                   "UPDATE tasks SET ending = '{\"state\": \"cancelled\", \"reason\": null, \"actor\": "
                   "\"local\"}'");
    team_world_restart(world);
    team_world_until(world, TEAM_WORLD_STATE, "cancelled");
    team_world_expect(world, "SELECT state FROM threads", "closed");
    g_assert_true(g_queue_is_empty(&world->started));
}

/* What was given up as failed can be taken up again: its pull request is opened again. */
static void
test_failed_goes_on(void)
{
    g_autoptr(TeamWorld) world = team_world_new(NULL);
    g_autofree char *id = team_world_task(world, one_step, NULL);
    g_autoptr(Json) agent = team_world_agent(world, "work");
    bool stopped = false;

    flow_stop(world->team->flow, id, "failed", "too slow", "local", on_stopped, &stopped);
    while (!stopped)
        g_main_context_iteration(NULL, TRUE);
    team_world_expect(world, TEAM_WORLD_STATE, "failed");
    team_world_expect(world, "SELECT problem FROM tasks", "too slow");
    team_world_unblock(world, id);
    team_world_code(world, "work", "m.js", "ok\n", 1);
    look(world, "approve", "approve");
    land(world, id);
    team_world_expect(world, "SELECT COUNT(*) FROM threads", "1");
}

/* The event is what the door says; nothing else happens here. */
static void
test_budget(void)
{
    g_autoptr(TeamWorld) world = team_world_new(NULL);
    g_autofree char *id = team_world_task(world, one_step, NULL);
    g_autoptr(Json) agent = team_world_agent(world, "work");

    store_append(world->w->bench->db,
                 &(EventSpec){.kind = "budget.exceeded",
                              .actor = "coop",
                              .task_id = id,
                              .data = "{\"message\": \"1 of 1 tokens of task are spent\"}"},
                 1);
    team_world_until(world, TEAM_WORLD_STATE, "blocked");
    team_world_expect(world, "SELECT problem FROM tasks", "1 of 1 tokens of task are spent");
}

static void
test_places(void)
{
    g_autoptr(TeamWorld) world = team_world_new(&(TeamLimits){.tasks_at_once = 2, .retry_ms = 1});
    g_autofree char *first = team_world_task(world, one_step, NULL);
    g_autofree char *second = team_world_task(world, one_step, NULL);
    g_autofree char *third = team_world_task(world, one_step, NULL);
    bool stopped = false;

    team_world_until(world, "SELECT COUNT(*) FROM tasks WHERE state = 'working'", "2");
    team_world_expect(world, "SELECT state FROM tasks WHERE number = 3", "queued");
    flow_stop(world->team->flow, first, "cancelled", NULL, "local", on_stopped, &stopped);
    team_world_until(world, "SELECT state FROM tasks WHERE number = 3", "working");
}

/* A branch of that name is somebody's already. */
static void
test_branch_in_use(void)
{
    g_autoptr(TeamWorld) world = team_world_new(NULL);
    g_autofree char *theirs = forge_world_change(world->w, "task-1", "x", "y\n", world->w->root);
    g_autofree char *id = team_world_task(world, one_step, NULL);
    g_autofree char *name = g_strdup_printf("task-1-%.8s", id);
    g_autofree char *step = g_strconcat(name, "--coder-1", NULL);
    g_autoptr(Json) agent = team_world_agent(world, "work");
    g_autofree char *still = git_branch_oid(repo_git(world->w->repo), "task-1", NULL);

    g_assert_cmpstr(row_text(agent, "git_branch"), ==, step);
    g_assert_cmpstr(still, ==, theirs);
}

static void
test_who_plans(void)
{
    g_autoptr(TeamWorld) world = team_world_new(NULL);
    g_autofree char *id = team_world_task(world, NULL, NULL);
    g_autofree char *other = team_world_task(world, NULL, "{\"planner\": \"person\"}");

    while (world->plans_asked < 1)
        g_main_context_iteration(NULL, TRUE);
    team_world_until(world, "SELECT state FROM tasks WHERE number = 2", "approving");
    flow_wake(world->team->flow, id);
    g_assert_cmpint(world->plans_asked, ==, 1);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/team/flow/happy", test_happy);
    g_test_add_func("/team/flow/restarts", test_restarts_everywhere);
    g_test_add_func("/team/flow/started-twice", test_started_twice);
    g_test_add_func("/team/flow/fixes", test_fixes);
    g_test_add_func("/team/flow/three-failures", test_three_failures_block);
    g_test_add_func("/team/flow/nothing-done", test_nothing_done);
    g_test_add_func("/team/flow/lost", test_lost);
    g_test_add_func("/team/flow/parallel", test_parallel);
    g_test_add_func("/team/flow/order", test_order);
    g_test_add_func("/team/flow/conflict", test_conflict);
    g_test_add_func("/team/flow/changes", test_changes);
    g_test_add_func("/team/flow/rounds-end", test_rounds_end);
    g_test_add_func("/team/flow/target-conflicts", test_target_conflicts);
    g_test_add_func("/team/flow/queue-finds-failures", test_queue_finds_failures);
    g_test_add_func("/team/flow/rungs", test_rungs);
    g_test_add_func("/team/flow/pull-at-the-end", test_pull_at_the_end);
    g_test_add_func("/team/flow/no-repository", test_no_repository);
    g_test_add_func("/team/flow/stop", test_stop);
    g_test_add_func("/team/flow/stop-goes-on", test_stop_goes_on);
    g_test_add_func("/team/flow/failed-goes-on", test_failed_goes_on);
    g_test_add_func("/team/flow/budget", test_budget);
    g_test_add_func("/team/flow/places", test_places);
    g_test_add_func("/team/flow/branch-in-use", test_branch_in_use);
    g_test_add_func("/team/flow/who-plans", test_who_plans);
    return g_test_run();
}

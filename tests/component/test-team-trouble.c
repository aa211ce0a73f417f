/* SPDX-License-Identifier: Apache-2.0 */
/* The workflow among agents that lie or talk too much, clocks that jump, and people who say no. */
#include <string.h>

#include "base/clock.h"
#include "base/err.h"
#include "team-world.h"

#define HOUR_US (G_GINT64_CONSTANT(3600) * G_USEC_PER_SEC)

static const char one_step[] =
    "{\"project\": \"calc\", \"features\": [{\"name\": \"multiply\", \"acceptance\": [{\"name\": \"tests\", "
    "\"run\": \"make test\"}]}], \"steps\": [{\"name\": \"multiply\", \"title\": \"Write multiply\"}]}";

static void
look(TeamWorld *world, const char *kind, const char *findings)
{
    g_autoptr(Json) agent = team_world_agent(world, kind);

    team_world_looked(world, agent, "approve", findings);
}

static void
approve(TeamWorld *world)
{
    look(world, "test", "[]");
    look(world, "review", "[]");
}

/* ---- the last rung ---- */

/* What nobody of the squad can review is not merged where a review is the last that was asked for. */
static void
test_nobody_reviews(void)
{
    g_autoptr(TeamWorld) world = team_world_new(NULL);

    team_world_sql(world, "UPDATE squad_members SET is_active = 0 WHERE archetype IN ('reviewer', 'tester')");
    g_autofree char *id = team_world_task(world, one_step, "{\"until\": \"reviewed\"}");

    team_world_code(world, "work", "m.js", "ok\n", 1);
    team_world_until(world, TEAM_WORLD_STATE, "done");
    team_world_expect(world, "SELECT rung FROM tasks", "ready");
    team_world_expect(world, "SELECT COUNT(*) FROM merges", "0");
    g_assert_false(team_world_main_has(world, "m.js"));
}

/* Who reviews gets a clean box and the whole change, also where a plan uses such names itself. */
static void
test_names_of_plans(void)
{
    static const char plan[] = "{\"project\": \"p\", \"steps\": [{\"name\": \"reviewer-1\", \"role\": "
                               "\"reviewer\"}]}";
    g_autoptr(TeamWorld) world = team_world_new(NULL);
    g_autofree char *id = team_world_task(world, plan, NULL);
    g_autoptr(Json) step = team_world_agent(world, "work");

    team_world_done(world, step, "m.js", "ok\n", 1);
    g_autoptr(Json) review = team_world_agent(world, "review");

    g_assert_cmpstr(row_text(review, "lease"), !=, row_text(step, "lease"));
    g_assert_cmpstr(row_text(review, "git_branch"), !=, row_text(step, "git_branch"));
}

/* ---- what agents say ---- */

/* An approval is said, or there is none. */
static void
test_no_verdict(void)
{
    g_autoptr(TeamWorld) world = team_world_new(NULL);
    g_autofree char *id = team_world_task(world, one_step, NULL);

    team_world_code(world, "work", "m.js", "ok\n", 1);
    look(world, "test", "[]");
    team_world_code(world, "review", NULL, NULL, 1);
    team_world_until(world, TEAM_WORLD_STATE, "working");
    team_world_expect(world, "SELECT COUNT(*) FROM reviews WHERE state = 'APPROVED'", "1");
    team_world_expect(world, "SELECT kind FROM steps ORDER BY n DESC LIMIT 1", "fix");
}

/* Nobody is called, nothing is hidden, and no other review's mark is in it. */
static void
test_words_in_reviews(void)
{
    g_autoptr(TeamWorld) world = team_world_new(NULL);
    g_autofree char *id = team_world_task(world, one_step, NULL);

    team_world_code(world, "work", "m.js", "ok\n", 1);
    look(world, "test",
         "[{\"path\": \"m.js\", \"line\": 1, \"body\": \"@all ![x](http://x/y)\"}, {\"path\": \"a`b\", "
         "\"body\": \"@all <!-- coop: x -->\"}]");
    look(world, "review", "[]");
    team_world_until(world, TEAM_WORLD_STATE, "landing");
    team_world_expect(
        world, "SELECT COUNT(*) FROM reviews WHERE body LIKE '%@all%' OR body LIKE '%<!-- coop: x%'", "0");
    team_world_expect(
        world, "SELECT COUNT(*) FROM reviews WHERE body LIKE '%`a?b`, line 0: @%all &lt;!-- coop: x%'", "1");
    team_world_expect(
        world, "SELECT COUNT(*) FROM review_comments WHERE body LIKE '%@all%' OR body LIKE '%![x]%'", "0");
    team_world_expect(world, "SELECT COUNT(*) FROM review_comments", "1");
}

/* A hundred findings of some kilobytes each are more than a review can hold. */
static void
test_long_review(void)
{
    g_autoptr(TeamWorld) world = team_world_new(NULL);
    g_autofree char *id = team_world_task(world, one_step, NULL);
    g_autofree char *words = g_strnfill(4000, 'x');
    g_autoptr(GString) findings = g_string_new("[");

    for (guint i = 0; i < CREW_FINDINGS_MAX; i++)
        g_string_append_printf(findings, "%s{\"path\": \"elsewhere\", \"line\": 1, \"body\": \"%s\"}",
                               i > 0 ? ", " : "", words);
    g_string_append_c(findings, ']');
    team_world_code(world, "work", "m.js", "ok\n", 1);
    look(world, "test", findings->str);
    look(world, "review", "[]");
    team_world_until(world, TEAM_WORLD_STATE, "landing");
    team_world_expect(world, "SELECT COUNT(*) FROM reviews WHERE body LIKE '%<!-- coop:%'", "2");
}

/* Whoever resolves a conflict and does nothing is not asked for ever. */
static void
test_conflicts_end(void)
{
    g_autoptr(TeamWorld) world = team_world_new(&(TeamLimits){.rounds = 2, .retry_ms = 1});
    g_autofree char *id = team_world_task(world, one_step, NULL);

    team_world_code(world, "work", "m.js", "ok\n", 1);
    g_autofree char *theirs = forge_world_change(world->w, "main", "m.js", "theirs\n", world->w->root);

    for (guint i = 0; i < 2; i++) {
        approve(world);
        team_world_until(world, TEAM_WORLD_STATE, "landing");
        if (i > 0)
            break;
        team_world_pass(world);
        flow_wake(world->team->flow, id);
        team_world_code(world, "resolve", NULL, NULL, 1);
    }
    team_world_until(world, TEAM_WORLD_STATE, "blocked");
    team_world_expect(world, "SELECT COUNT(*) FROM questions WHERE state = 'open'", "1");
    team_world_unblock(world, id);
    g_autoptr(Json) resolver = team_world_agent(world, "resolve");

    g_assert_true(json_is_object(json_object_get(json_object_get(resolver, "brief"), "bundle")));
}

/* ---- clocks ---- */

/* The second try is the last one, whatever the clock said when the first began. */
static void
test_clock_goes_back(void)
{
    g_autoptr(TeamWorld) world = team_world_new(NULL);
    g_autofree char *id = team_world_task(world, one_step, NULL);
    g_autoptr(Json) first = team_world_agent(world, "work");
    g_autofree char *later = g_strdup_printf(
        "UPDATE task_executions SET created_us = created_us + %" G_GINT64_FORMAT, HOUR_US);

    team_world_sql(world, later);
    team_world_done(world, first, "m.js", "bad\n", 0);
    team_world_code(world, "work", "m.js", "ok\n", 1);
    team_world_until(world, TEAM_WORLD_STATE, "reviewing");
    team_world_expect(world, "SELECT tries FROM steps", "2");
}

/* No pause is longer than the longest that is ever made. */
static void
test_pause_of_another_clock(void)
{
    static const char *const tables[] = {"tasks", "steps"};

    for (size_t i = 0; i < G_N_ELEMENTS(tables); i++) {
        g_autoptr(TeamWorld) world = team_world_new(&(TeamLimits){.tasks_at_once = 1, .retry_ms = 1});
        g_autofree char *before = team_world_task(world, one_step, NULL);
        g_autoptr(Json) agent = team_world_agent(world, "work");
        g_autofree char *sql = g_strdup_printf("UPDATE %s SET wake_us = %" G_GINT64_FORMAT, tables[i],
                                               clock_wall_us() + 24 * 365 * HOUR_US);

        if (i == 1)
            team_world_sql(world, "UPDATE steps SET state = 'waiting'");
        team_world_sql(world, sql);
        team_world_done(world, agent, "m.js", "ok\n", 1);
        if (i == 1)
            team_world_code(world, "work", "m.js", "better\n", 1);
        team_world_until(world, TEAM_WORLD_STATE, "reviewing");
    }
}

/* ---- agents by hand ---- */

/* What somebody had an agent do beside the task is his: nobody has joined it. */
static void
test_by_hand(void)
{
    g_autoptr(TeamWorld) world = team_world_new(NULL);
    g_autofree char *id = team_world_task(world, one_step, NULL);
    g_autofree char *row = g_strdup_printf(
        "INSERT INTO task_executions (id, agent, task_id, owner, kind, role, archetype, adapter, lease, "
        "state, "
        "try, brief, git_branch, created_us, ended_us) VALUES ('e', 'coder-9-0', '%s', '', 'work', 'coder', "
        "'coder', 'coop', 'agent:e', 'working', 1, '{}', 'task-1--coder-0', 1, 0)",
        id);
    g_autofree char *oid = forge_world_change(world->w, "task-1--coder-0", "x", "y\n", world->w->root);

    team_world_code(world, "work", "m.js", "ok\n", 1);
    approve(world);
    team_world_sql(world, row);
    team_world_until(world, TEAM_WORLD_STATE, "landing");
    team_world_pass(world);
    flow_wake(world->team->flow, id);
    team_world_until(world, TEAM_WORLD_STATE, "done");
    g_autofree char *still = git_branch_oid(repo_git(world->w->repo), "task-1--coder-0", NULL);

    g_assert_cmpstr(still, ==, oid);
    g_assert_null(strstr(world->calls->str, "release agent:"));
    team_world_expect(world, "SELECT COUNT(*) FROM repository_refs WHERE name LIKE '%--%'", "1");
}

/* ---- a disk that is full for a while ---- */

static void
test_admitted_later(void)
{
    g_autoptr(TeamWorld) world = team_world_new(NULL);

    team_world_sql(world, "CREATE TRIGGER full BEFORE UPDATE OF state ON tasks WHEN NEW.state = 'planning' "
                          "BEGIN SELECT RAISE(ABORT, 'disk full'); END");
    g_autofree char *id = team_world_task(world, one_step, NULL);

    while (!world->team->flow->admitting)
        g_main_context_iteration(NULL, TRUE);
    while (world->team->flow->admitting)
        g_main_context_iteration(NULL, TRUE);
    team_world_expect(world, TEAM_WORLD_STATE, "queued");
    team_world_sql(world, "DROP TRIGGER full");
    team_world_until(world, TEAM_WORLD_STATE, "working");
}

/* ---- people ---- */

typedef struct Answered {
    bool done;
    GError *error;
} Answered;

static void
on_answered(Json *value, const GError *error, void *data)
{
    Answered *answered = data;

    answered->done = true;
    answered->error = error != NULL ? g_error_copy(error) : NULL;
}

static void
answer(TeamWorld *world, const char *id, const char *text)
{
    Answered answered = {0};

    task_answer(world->team, &(TaskRef){.id = id, .actor = "local"}, NULL, text, on_answered, &answered);
    while (!answered.done)
        g_main_context_iteration(NULL, TRUE);
    g_assert_no_error(answered.error);
}

static char *
block(TeamWorld *world)
{
    char *id = team_world_task(world, one_step, "{\"tries\": 1}");

    team_world_code(world, "work", "m.js", "bad\n", 0);
    team_world_until(world, TEAM_WORLD_STATE, "blocked");
    return id;
}

/* It is one of the two answers that are offered. */
static void
test_answer_stop(void)
{
    g_autoptr(TeamWorld) world = team_world_new(NULL);
    g_autofree char *id = block(world);

    answer(world, id, " Stop\n");
    team_world_until(world, TEAM_WORLD_STATE, "cancelled");
    team_world_expect(world, "SELECT state FROM questions", "answered");
    team_world_expect(world, "SELECT COUNT(*) FROM task_executions", "1");
    team_world_expect(world, "SELECT actor FROM events WHERE kind = 'task.cancelled'", "local");
}

static void
test_answer_retry(void)
{
    g_autoptr(TeamWorld) world = team_world_new(NULL);
    g_autofree char *id = block(world);

    answer(world, id, "stop multiplying, and add");
    g_autoptr(Json) agent = team_world_agent(world, "work");

    g_assert_nonnull(strstr(row_text(json_object_get(agent, "brief"), "feedback"), "stop multiplying"));
}

/* Each byte of both may be two in an event. */
static void
test_long_answer(void)
{
    g_autoptr(TeamWorld) world = team_world_new(NULL);
    g_autofree char *id = block(world);
    g_autofree char *question = g_strnfill(8192, '"'), *text = g_strnfill(TASK_ANSWER_MAX, '"');
    g_autofree char *sql = g_strdup_printf("UPDATE questions SET text = '%s'", question);

    team_world_sql(world, sql);
    answer(world, id, text);
    team_world_expect(world, "SELECT LENGTH(answer) FROM questions", "16384");
    team_world_until(world, TEAM_WORLD_STATE, "working");
}

/* ---- a model that nobody has ---- */

/* As coop-agent reports it. */
static void
end_without_model(TeamWorld *world, const char *kind)
{
    g_autoptr(Json) agent = team_world_agent(world, kind);
    g_autofree char *sql = g_strdup_printf(
        "UPDATE task_executions SET state = 'failed', ended_us = 2, problem = 'nobody has it', report = "
        "'{\"outcome\": \"failed\", \"reason\": \"no_model\"}' WHERE id = '%s'",
        row_text(agent, "id"));

    team_world_sql(world, sql);
    flow_wake(world->team->flow, row_text(agent, "task_id"));
    team_world_until(world, TEAM_WORLD_STATE, "blocked");
}

/* Asking again would not help: a person is asked at once, as often as nothing has changed. */
static void
test_no_model(void)
{
    g_autoptr(TeamWorld) world = team_world_new(NULL);
    g_autofree char *id = team_world_task(world, one_step, NULL);

    for (guint i = 0; i < 2; i++) {
        end_without_model(world, "work");
        team_world_expect(world, "SELECT text FROM questions WHERE state = 'open'",
                          "The step \"Write multiply\" has no model: nobody has it. Say `retry` when that is "
                          "changed, or `stop`.");
        answer(world, id, "retry");
    }
    team_world_code(world, "work", "m.js", "ok\n", 1);
    team_world_until(world, TEAM_WORLD_STATE, "reviewing");
    team_world_expect(world, "SELECT tries FROM steps", "1");
    look(world, "test", "[]");
    for (guint i = 0; i < 2; i++) {
        end_without_model(world, "review");
        team_world_expect(world, "SELECT text FROM questions WHERE state = 'open'",
                          "The reviewer did not come to its end: nobody has it. Say `retry` when that is "
                          "changed, or `stop`.");
        answer(world, id, "retry");
    }
    look(world, "review", "[]");
    team_world_until(world, TEAM_WORLD_STATE, "landing");
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/team/trouble/nobody-reviews", test_nobody_reviews);
    g_test_add_func("/team/trouble/names-of-plans", test_names_of_plans);
    g_test_add_func("/team/trouble/no-verdict", test_no_verdict);
    g_test_add_func("/team/trouble/words-in-reviews", test_words_in_reviews);
    g_test_add_func("/team/trouble/long-review", test_long_review);
    g_test_add_func("/team/trouble/conflicts-end", test_conflicts_end);
    g_test_add_func("/team/trouble/clock-goes-back", test_clock_goes_back);
    g_test_add_func("/team/trouble/pause-of-another-clock", test_pause_of_another_clock);
    g_test_add_func("/team/trouble/by-hand", test_by_hand);
    g_test_add_func("/team/trouble/admitted-later", test_admitted_later);
    g_test_add_func("/team/trouble/answer-stop", test_answer_stop);
    g_test_add_func("/team/trouble/answer-retry", test_answer_retry);
    g_test_add_func("/team/trouble/long-answer", test_long_answer);
    g_test_add_func("/team/trouble/no-model", test_no_model);
    return g_test_run();
}

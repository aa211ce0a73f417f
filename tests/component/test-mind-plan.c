/* SPDX-License-Identifier: Apache-2.0 */
/* Plans by scripted models, through a real door: who asks is told apart by the labels of its box. */
#include <string.h>

#include "base/err.h"
#include "mind-world.h"
#include "team/plan.h"
#include "team/team-private.h"

#define TASK "11111111-1111-4111-8111-111111111111"
#define SQUAD "22222222-2222-4222-8222-222222222222"
#define PLAN(name) "{\"project\": \"P\", \"steps\": [{\"name\": \"" name "\"}]}"

static const char script[] =
    "conversations:\n"
    "- {role: 'planner-*', match: 'It cannot be used', turns: [{text: '" PLAN(
        "mended") "'}]}\n"
                  "- {role: 'planner-*', match: 'malformed first', turns: [{text: 'Here is your plan!'}]}\n"
                  "- {role: 'planner-*', turns: [{text: '" PLAN(
                      "alone") "', usage: {input: 10, output: 5}}]}\n"
                               "- {role: 'council-2-*', turns: [{first_ms: 60000, text: 'late'}]}\n"
                               "- {role: 'council-3-*', turns: [{text: '{\"project\": 7}'}]}\n"
                               "- {role: 'council-*', match: 'Rank the plans', turns: [{text: '{\"ranking\": "
                               "[\"A\", \"B\"], \"why\": \"x\"}'}]}\n"
                               "- {role: 'council-*', turns: [{text: '```json\n\n  " PLAN(
                                   "seat") "\n\n  ```'}]}\n"
                                           "- {role: 'chairman-*', system: 'chairman', turns: [{text: "
                                           "'{\"plan\": " PLAN(
                                               "joined") ", \"dissent\": [\"A was longer\"]}'}]}\n";

typedef struct Made {
    bool done;
    Json *plan;
    GError *error;
} Made;

static void
on_made(Json *plan, const GError *error, void *data)
{
    Made *made = data;

    made->done = true;
    made->plan = plan != NULL ? json_deep_copy(plan) : NULL;
    made->error = error != NULL ? g_error_copy(error) : NULL;
}

static void
made_clear(Made *made)
{
    json_decref(made->plan);
    g_clear_error(&made->error);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Made, made_clear)

static Team *
team_of(MindWorld *w, const char *request, const char *policy)
{
    g_autofree char *sql = g_strdup_printf("INSERT INTO tasks (id, number, squad_id, owner, actor, source, "
                                           "title, request, policy, state, created_us, "
                                           "updated_us) VALUES ('" TASK "', 7, '" SQUAD
                                           "', '', 'local', 'cli', 't', '%s', '%s', 'planning', 1, 1)",
                                           request, policy);

    g_assert_true(store_write_sql(
        w->store->db,
        "INSERT INTO squads (id, user_id, name, created_us, updated_us) VALUES ('" SQUAD "', '', 's', 1, 1)",
        NULL));
    g_assert_true(store_write_sql(w->store->db,
                                  "INSERT INTO squad_members (id, squad_id, position, name, role, archetype, "
                                  "llm_provider, llm_model, created_us, updated_us) VALUES ('p', '" SQUAD
                                  "', 1, 'p', 'planner', 'planner', 'script', 'brain', 1, 1)",
                                  NULL));
    g_assert_true(store_write_sql(w->store->db, sql, NULL));
    return team_new(&(TeamSpec){.loop = w->bench->loop,
                                .db = w->store->db,
                                .events = w->store->log,
                                .mind = w->face,
                                .limits = {.retry_ms = 1}},
                    NULL);
}

static void
make(Team *team, Made *made)
{
    plan_make(team, TASK, on_made, made);
    while (!made->done)
        g_main_context_iteration(NULL, TRUE);
}

static void
end(MindWorld *w, Team *team)
{
    team_free(team);
    (void)store_read_int(w->store->db, "SELECT 1");
    mind_world_free(w);
}

static void
test_brain(void)
{
    static const struct {
        const char *request, *step;
    } cases[] = {{"make it so", "alone"}, {"malformed first", "mended"}};

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        MindWorld *w = mind_world_new(script);
        Team *team = team_of(w, cases[i].request, "{}");
        g_auto(Made) made = {0};

        make(team, &made);
        g_assert_no_error(made.error);
        Json *steps = json_object_get(json_object_get(made.plan, "body"), "steps");

        g_assert_cmpstr(row_text(json_array_get(steps, 0), "name"), ==, cases[i].step);
        end(w, team);
    }
}

/* One member is silent until the time is over, one says nonsense; the other two rank, the chairman joins. */
static void
test_council(void)
{
    static const char policy[] = "{\"planner\": \"council\", \"council\": {\"timeout_s\": 4, \"quorum\": 2, "
                                 "\"seats\": [{\"provider\": "
                                 "\"script\", \"model\": \"a\"}, {\"provider\": \"script\", \"model\": "
                                 "\"b\"}, {\"provider\": \"script\", "
                                 "\"model\": \"c\"}, {\"provider\": \"script\", \"model\": \"d\"}]}}";
    MindWorld *w = mind_world_new(script);
    Team *team = team_of(w, "make it so", policy);
    g_auto(Made) made = {0};

    make(team, &made);
    g_assert_no_error(made.error);
    const Json *council = json_object_get(made.plan, "council");

    g_assert_cmpstr(row_text(council, "outcome"), ==, "synthesis");
    g_assert_cmpstr(json_string_value(json_array_get(json_object_get(council, "dissent"), 0)), ==,
                    "A was longer");
    g_assert_cmpint(
        store_read_int(w->store->db,
                       "SELECT COUNT(*) FROM plan_voices WHERE phase = 'ranking' AND seat IN (1, 4)"),
        ==, 2);
    g_assert_cmpint(
        store_read_int(w->store->db,
                       "SELECT COUNT(*) FROM plan_voices WHERE phase = 'opinion' AND ((seat IN (1, 4) AND "
                       "state = 'answered') OR (seat = 2 AND state = 'silent') OR (seat = 3 AND state = "
                       "'malformed'))"),
        ==, 4);
    end(w, team);
}

/* A budget of the task's stops the planner too, and says so. */
static void
test_budget(void)
{
    MindWorld *w = mind_world_new(script);
    Team *team = team_of(w, "malformed first", "{}");
    g_auto(Made) made = {0};
    g_autoptr(Json) bounds = json_pack("{s:i}", "calls", 1);

    mind_world_budget(w, "task:" TASK, bounds);
    make(team, &made);
    g_assert_error(made.error, ERR_DOMAIN, ERR_LIMIT);
    g_assert_nonnull(strstr(made.error->message, "the planner: the budget of task:" TASK));
    end(w, team);
}

/* Asked once: what is wrong is a person's to change, and the row waits for it. */
static void
test_no_model(void)
{
    MindWorld *w = mind_world_new(script);
    Team *team = team_of(w, "make it so", "{}");
    g_auto(Made) made = {0};
    g_auto(Made) again = {0};

    mind_world_provider(w, "{\"name\": \"script\", \"kind\": \"script\", \"models\": [\"other\"]}", script);
    team->limits.retry_ms = G_MAXINT / 2;
    make(team, &made);
    g_assert_error(made.error, ERR_DOMAIN, ERR_NOT_FOUND);
    g_assert_nonnull(strstr(made.error->message, "the planner: no provider has the model 'script/brain'"));
    mind_world_provider(w, "{\"name\": \"script\", \"kind\": \"script\"}", script);
    make(team, &again);
    g_assert_no_error(again.error);
    end(w, team);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/mind/plan/brain", test_brain);
    g_test_add_func("/mind/plan/council", test_council);
    g_test_add_func("/mind/plan/budget", test_budget);
    g_test_add_func("/mind/plan/no-model", test_no_model);
    return g_test_run();
}

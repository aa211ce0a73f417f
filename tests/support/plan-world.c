/* SPDX-License-Identifier: Apache-2.0 */
#include "support/plan-world.h"

#include <string.h>

#include "base/err.h"

/* ---- the mind ---- */

static void
asked_free(gpointer data)
{
    PlanAsked *a = data;

    g_free(a->agent);
    g_free(a->model);
    g_free(a->system);
    g_free(a->prompt);
    g_free(a);
}

static const PlanLine *
find_line(const PlanWorld *w, const PlanAsked *asked)
{
    const PlanLine *found = NULL;
    guint before = 0;

    for (guint i = 0; w->asked->pdata[i] != asked; i++)
        before += strcmp(((PlanAsked *)w->asked->pdata[i])->agent, asked->agent) == 0;
    for (size_t i = 0; i < w->n_lines; i++) {
        const char *agent = w->lines[i].agent;

        if (!g_str_has_prefix(asked->agent, agent) || asked->agent[strlen(agent)] != '-')
            continue;
        found = &w->lines[i];
        if (before-- == 0)
            break;
    }
    return found;
}

static guint
ask(void *ctx, const MindAsk *question, MindFunc done, void *data)
{
    PlanWorld *w = ctx;
    PlanAsked *a = g_new0(PlanAsked, 1);

    g_assert_cmpstr(question->task_id, ==, TASK);
    g_assert_cmpstr(question->squad_id, ==, SQUAD);
    *a = (PlanAsked){.world = w,
                     .id = w->asked->len + 1,
                     .agent = g_strdup(question->agent),
                     .model = g_strdup(question->model),
                     .system = g_strdup(question->system),
                     .prompt = g_strdup(question->prompt),
                     .done = done,
                     .data = data};
    g_ptr_array_add(w->asked, a);
    return a->id;
}

static void
cancel(void *ctx, guint id)
{
    PlanAsked *a = ((PlanWorld *)ctx)->asked->pdata[id - 1];

    g_assert_false(a->answered);
    a->cancelled = true;
}

static void
answer(PlanAsked *a)
{
    const PlanLine *line = find_line(a->world, a);
    MindAnswer said = {.text = line != NULL ? line->text : NULL,
                       .model = a->model,
                       .input_tokens = 100,
                       .output_tokens = 10,
                       .duration_us = 5};
    g_autoptr(GError) error = NULL;

    g_assert_nonnull(line);
    a->answered = true;
    if (line->text == NULL)
        error = g_error_new(ERR_DOMAIN, (int)line->error, "no answer");
    a->done(line->text != NULL ? &said : NULL, error, a->data);
}

/* Last first, so that no order can be relied upon. */
bool
plan_world_answer(PlanWorld *w)
{
    for (guint i = w->asked->len; i > 0; i--) {
        PlanAsked *a = w->asked->pdata[i - 1];

        if (a->answered || a->cancelled || (w->answers_max > 0 && w->answers >= w->answers_max))
            continue;
        w->answers++;
        answer(a);
        return true;
    }
    return false;
}

/* ---- the team ---- */

void
plan_world_team(PlanWorld *w)
{
    TeamSpec spec = {.loop = w->loop,
                     .db = w->store->db,
                     .events = w->store->log,
                     .mind = {ask, cancel, w},
                     .limits = {.retry_ms = 1}};

    w->team = team_new(&spec, NULL);
    g_assert_nonnull(w->team);
}

void
plan_world_sql(PlanWorld *w, const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    g_autofree char *text = g_strdup_vprintf(fmt, args);
    va_end(args);
    g_assert_true(store_write_sql(w->store->db, text, NULL));
}

PlanWorld *
plan_world_new(const char *policy, const PlanLine *lines, size_t n_lines)
{
    PlanWorld *w = g_new0(PlanWorld, 1);
    g_autofree char *json = g_strdelimit(g_strdup(policy), "`", '"');

    w->store = store_bench_new_open();
    w->loop = loop_new(NULL);
    w->asked = g_ptr_array_new_with_free_func(asked_free);
    w->lines = lines;
    w->n_lines = n_lines;
    plan_world_sql(w, "INSERT INTO squads (id, user_id, name, created_us, updated_us) VALUES ('" SQUAD
                      "', '', 's', 1, 1)");
    plan_world_sql(
        w,
        "INSERT INTO squad_members (id, squad_id, position, name, role, archetype, llm_provider, llm_model, "
        "created_us, updated_us) VALUES ('c', '" SQUAD
        "', 0, 'c', 'coder', 'coder', 'p', 'coder-model', 1, 1), "
        "('p', '" SQUAD "', 1, 'p', 'planner', 'planner', 'p', 'brain-model', 1, 1)");
    plan_world_sql(
        w,
        "INSERT INTO tasks (id, number, squad_id, owner, actor, source, title, request, policy, state, "
        "created_us, "
        "updated_us) VALUES ('" TASK "', 7, '" SQUAD
        "', '', 'local', 'cli', 't', 'make it so', '%s', 'planning', 1, "
        "1)",
        json);
    plan_world_team(w);
    return w;
}

void
plan_world_free(PlanWorld *w)
{
    team_free(w->team);
    /* What the database still answers holds the team. */
    (void)store_read_int(w->store->db, "SELECT 1");
    store_bench_free(w->store);
    loop_free(w->loop);
    g_ptr_array_unref(w->asked);
    g_clear_error(&w->error);
    json_decref(w->plan);
    g_free(w);
}

void
plan_world_on_plan(Json *plan, const GError *error, void *data)
{
    PlanWorld *w = data;

    g_assert_false(w->done);
    g_assert_true((plan != NULL) != (error != NULL));
    w->done = true;
    g_clear_error(&w->error);
    json_decref(w->plan);
    w->plan = plan != NULL ? json_deep_copy(plan) : NULL;
    w->error = error != NULL ? g_error_copy(error) : NULL;
}

/* Until it is made, or nobody says anything any more. */
static void
run(PlanWorld *w)
{
    while (!w->done && (w->answers_max == 0 || w->answers < w->answers_max)) {
        while (g_main_context_iteration(NULL, FALSE))
            continue;
        if (!w->done && !plan_world_answer(w))
            g_main_context_iteration(NULL, TRUE);
    }
}

void
plan_world_make(PlanWorld *w)
{
    w->done = false;
    plan_make(w->team, TASK, plan_world_on_plan, w);
    run(w);
}

guint
plan_world_asked(const PlanWorld *w, const char *agent)
{
    guint n = 0;

    for (guint i = 0; i < w->asked->len; i++)
        n += g_str_has_prefix(((PlanAsked *)w->asked->pdata[i])->agent, agent);
    return n;
}

const char *
plan_world_council(const PlanWorld *w, const char *name)
{
    return row_text(json_object_get(w->plan, "council"), name);
}

const char *
plan_world_step(const PlanWorld *w)
{
    Json *steps = json_object_get(json_object_get(w->plan, "body"), "steps");

    return row_text(json_array_get(steps, 0), "name");
}

gint64
plan_world_events(PlanWorld *w, const char *kind)
{
    g_autofree char *text = g_strdup_printf(
        "SELECT COUNT(*) FROM events WHERE task_id = '" TASK "' AND kind = '%s'", kind);

    return store_read_int(w->store->db, text);
}

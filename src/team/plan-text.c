/* SPDX-License-Identifier: Apache-2.0 */
/* Where a task is, in words, for whoever works on it.  Everything comes from rows that Coop wrote; words
 * of plans, agents and people are put on one line each, so that none of them looks like a part of ours. */
#include <string.h>

#include "base/clock.h"
#include "team/plan-text.h"
#include "team/room-private.h"
#include "team/task-private.h"

enum { UPDATES = 8, STEPS_SHOWN = 20, LINE_CHARS = 200, MINUTE_S = 60 };

/* ---- lines ---- */

static char *
dup_line(const char *text)
{
    g_autofree char *cut = g_utf8_substring(text, 0, MIN(g_utf8_strlen(text, -1), LINE_CHARS));
    char *line = row_dup_line("the line", cut, LINE_CHARS, ROW_TEXT_MAY_BE_EMPTY, NULL);

    return line != NULL ? line : g_strdup("");
}

static void
put_line(GString *out, const char *before, const char *text)
{
    g_autofree char *line = dup_line(text != NULL ? text : "");

    g_string_append_printf(out, "%s%s\n", before, line);
}

/* ---- how far it is ---- */

static const struct {
    const char *state, *phase;
} phases[] = {
    {"queued", "waiting for a free place"},
    {"planning", "planning"},
    {"approving", "waiting for the plan's approval"},
    {"preparing", "preparing branch and pull request"},
    {"working", "implementation"},
    {"reviewing", "test and review"},
    {"landing", "checks and merge"},
    {"done", "finished"},
    {"failed", "ended without success"},
    {"cancelled", "stopped"},
};

static size_t
phase_index(const char *state)
{
    for (size_t i = 0; state != NULL && i < G_N_ELEMENTS(phases); i++) {
        if (strcmp(phases[i].state, state) == 0)
            return i;
    }
    return 0;
}

/* Of what is blocked: where it was. */
static const char *
place_of(const Json *task)
{
    const char *state = row_text(task, "state");

    return strcmp(state, "blocked") == 0 ? row_text(task, "blocked_from") : state;
}

static bool
is_open(const Json *step)
{
    static const char *const over[] = {"done", "failed", "cancelled", NULL};

    return !g_strv_contains(over, row_text(step, "state"));
}

static guint
count_steps(const Json *facts, const char *state, gint64 *ret_us)
{
    guint n = 0;
    size_t i;
    Json *step;

    json_array_foreach(json_object_get(facts, "steps"), i, step)
    {
        if (strcmp(row_text(step, "state"), state) != 0)
            continue;
        n++;
        *ret_us += MAX(row_int(step, "ended_us") - row_int(step, "started_us"), 0);
    }
    return n;
}

/* What the steps took that are done; before the first of them is, what the plan says. */
static gint64
seconds_left(const Json *facts)
{
    gint64 us = 0, now_us = row_int(facts, "now_us"), left = 0;
    guint done = count_steps(facts, "done", &us);
    size_t i, total = json_array_size(json_object_get(facts, "steps"));
    gint64 minutes = row_int(json_object_get(facts, "plan"), "minutes");
    Json *step;

    if (total == 0)
        return minutes > 0 ? minutes * MINUTE_S : -1;
    if (done == 0 && minutes == 0)
        return -1;
    gint64 each = done > 0 ? us / done / G_USEC_PER_SEC : minutes * MINUTE_S / (gint64)total;

    json_array_foreach(json_object_get(facts, "steps"), i, step)
    {
        gint64 started_us = row_int(step, "started_us");

        if (is_open(step))
            left += MAX(each - (started_us > 0 ? (now_us - started_us) / G_USEC_PER_SEC : 0), 0);
    }
    return left;
}

static void
put_estimate(GString *out, const Json *facts)
{
    gint64 left = seconds_left(facts);

    g_string_append(out, "Estimated time left: ");
    if (task_has_ended(row_text(json_object_get(facts, "task"), "state")))
        g_string_append(out, "none\n");
    else if (left < 0)
        g_string_append(out, "not known yet\n");
    else if (left < MINUTE_S)
        g_string_append(out, "less than a minute\n");
    else
        g_string_append_printf(out, "about %" G_GINT64_FORMAT " min\n", (left + MINUTE_S - 1) / MINUTE_S);
}

/* ---- the parts ---- */

static void
put_head(GString *out, const Json *facts)
{
    const Json *task = json_object_get(facts, "task");
    const char *project = row_text(json_object_get(facts, "plan"), "project");
    const char *problem = row_text(task, "problem"), *state = row_text(task, "state");
    gint64 unused = 0;

    put_line(out, "Project: ", project != NULL && project[0] != '\0' ? project : row_text(task, "title"));
    if (problem != NULL && strcmp(state, "done") != 0)
        put_line(out, strcmp(state, "blocked") == 0 ? "Status: blocked: " : "Status: ", problem);
    else
        put_line(out, "Status: ", state);
    g_string_append_printf(out, "Progress: %u/%zu\n", count_steps(facts, "done", &unused),
                           json_array_size(json_object_get(facts, "steps")));
    put_line(out, "Phase: ", phases[phase_index(place_of(task))].phase);
}

static void
put_agents(GString *out, const Json *facts)
{
    Json *agents = json_object_get(facts, "agents"), *agent;
    size_t i;

    g_string_append(out, "\nActive agents:\n");
    if (json_array_size(agents) == 0)
        g_string_append(out, "- none\n");
    json_array_foreach(agents, i, agent)
    {
        const char *step = row_text(agent, "step");
        g_autofree char *name = dup_line(row_text(agent, "name"));
        g_autofree char *what = dup_line(step != NULL ? step : row_text(agent, "kind"));

        g_string_append_printf(out, "- %s (%s): %s [%s]\n", name, row_text(agent, "role"), what,
                               row_text(agent, "state"));
    }
}

typedef struct Told {
    gint64 at_us;
    char *text;
} Told;

static void
told_clear(void *data)
{
    g_free(((Told *)data)->text);
}

static int
by_time(const void *a, const void *b)
{
    gint64 left = ((const Told *)a)->at_us, right = ((const Told *)b)->at_us;

    return left < right ? -1 : left > right;
}

static void
add_told(GArray *all, gint64 at_us, char *text)
{
    Told told = {at_us, text};

    g_array_append_val(all, told);
}

static void
gather(GArray *all, const Json *facts)
{
    size_t i;
    Json *item;

    json_array_foreach(json_object_get(facts, "steps"), i, item)
    {
        g_autofree char *title = dup_line(row_text(item, "title"));

        if (row_int(item, "started_us") > 0)
            add_told(all, row_int(item, "started_us"), g_strdup_printf("coop: begun: %s", title));
        if (row_int(item, "ended_us") > 0)
            add_told(all, row_int(item, "ended_us"),
                     g_strdup_printf("coop: %s: %s", row_text(item, "state"), title));
    }
    json_array_foreach(json_object_get(facts, "messages"), i, item)
    {
        g_autofree char *text = dup_line(row_text(item, "text")), *name = dup_line(row_text(item, "name"));

        add_told(all, row_int(item, "created_us"),
                 g_strdup_printf("%s (%s): %s", name, row_text(item, "seen_by"), text));
    }
    g_array_sort(all, by_time);
}

static void
put_updates(GString *out, const Json *facts)
{
    g_autoptr(GArray) all = g_array_new(FALSE, FALSE, sizeof(Told));
    char at[CLOCK_ISO_LEN + 1];

    g_array_set_clear_func(all, told_clear);
    gather(all, facts);
    g_string_append(out, "\nRecent updates:\n");
    if (all->len == 0)
        g_string_append(out, "- none\n");
    for (guint i = all->len > UPDATES ? all->len - UPDATES : 0; i < all->len; i++) {
        const Told *told = &g_array_index(all, Told, i);

        clock_format_iso(told->at_us, at);
        g_string_append_printf(out, "- %s %s\n", at, told->text);
    }
}

/* Steps that are open; before there are any, those of the plan. */
static guint
put_steps(GString *out, const Json *facts, guint n)
{
    Json *steps = json_object_get(facts, "steps"), *step;
    bool planned = json_array_size(steps) == 0;
    size_t i;

    if (planned)
        steps = json_object_get(json_object_get(facts, "plan"), "steps");
    json_array_foreach(steps, i, step)
    {
        if ((!planned && !is_open(step)) || n >= STEPS_SHOWN)
            continue;
        g_autofree char *title = dup_line(row_text(step, "title")), *role = dup_line(row_text(step, "role"));

        g_string_append_printf(out, "%u. %s (%s)\n", ++n, title, role);
    }
    return n;
}

static void
put_next(GString *out, const Json *facts)
{
    const Json *task = json_object_get(facts, "task");
    size_t at = phase_index(place_of(task));
    bool has_plan = json_is_object(json_object_get(facts, "plan"));
    guint n = 0;

    g_string_append(out, "\nNext steps:\n");
    if (task_has_ended(row_text(task, "state"))) {
        g_string_append(out, "- none\n");
        return;
    }
    if (!has_plan && at <= phase_index("planning"))
        g_string_append_printf(out, "%u. Make the plan (planner)\n", ++n);
    if (at == phase_index("approving"))
        g_string_append_printf(out, "%u. Approve the plan (a person)\n", ++n);
    n = put_steps(out, facts, n);
    if (at <= phase_index("reviewing"))
        g_string_append_printf(out, "%u. Test and review the change (tester, reviewer)\n", ++n);
    g_string_append_printf(out, "%u. Run the checks in a clean box and merge (coop)\n", ++n);
}

char *
plan_text_format(const Json *facts)
{
    GString *out = g_string_new(NULL);

    put_head(out, facts);
    put_agents(out, facts);
    put_updates(out, facts);
    put_next(out, facts);
    g_string_append_c(out, '\n');
    put_estimate(out, facts);
    return g_string_free(out, FALSE);
}

/* ---- the rows ---- */

static const RowColumn step_columns[] = {
    {"title", ROW_TEXT, NULL},     {"role", ROW_TEXT, NULL},    {"state", ROW_TEXT, NULL},
    {"started_us", ROW_INT, NULL}, {"ended_us", ROW_INT, NULL},
};
static const RowTable steps_table = {"step", "steps", step_columns, G_N_ELEMENTS(step_columns)};

static const RowColumn agent_columns[] = {
    {"name", ROW_TEXT, "COALESCE(m.name, e.agent)"},
    {"role", ROW_TEXT, "e.role"},
    {"kind", ROW_TEXT, "e.kind"},
    {"state", ROW_TEXT, "e.state"},
    {"step", ROW_TEXT, "(SELECT s.title FROM steps s WHERE s.id = e.step_id)"},
};
static const RowTable agents_table = {"agent",
                                      "task_executions e LEFT JOIN squad_members m ON m.id = e.member_id",
                                      agent_columns, G_N_ELEMENTS(agent_columns)};

static const RowColumn told_columns[] = {
    {"name", ROW_TEXT, "author_name"},
    {"seen_by", ROW_TEXT, NULL},
    {"text", ROW_TEXT, NULL},
    {"created_us", ROW_INT, NULL},
};
static const RowTable told_table = {"message", "room_messages", told_columns, G_N_ELEMENTS(told_columns)};

static const RowColumn plan_columns[] = {{"body", ROW_JSON, NULL}};
static const RowTable plans_table = {"plan", "plans", plan_columns, G_N_ELEMENTS(plan_columns)};

static Json *
read_facts(RowJob *job, const char *task_id, GError **error)
{
    g_autofree char *room_id = room_id_of(task_id);
    const DbValue id = db_text(task_id);
    g_autoptr(Json) task = task_row(job, &(TaskRef){.id = task_id}, error), steps = NULL, agents = NULL,
                    messages = NULL, plans = NULL;

    if (task == NULL)
        return NULL;
    steps = row_all(job, &steps_table,
                    "task_id = ? AND plan_id = (SELECT plan_id FROM tasks WHERE id = ?) ORDER BY n",
                    DB_ARGS(id, id), error);
    agents = row_all(job, &agents_table,
                     "e.task_id = ? AND e.state NOT IN ('queued', 'done', 'failed', 'lost', 'stopped') "
                     "ORDER BY e.created_us",
                     DB_ARGS(id), error);
    messages = row_all(job, &told_table, "room_id = ? ORDER BY n DESC LIMIT ?",
                       DB_ARGS(db_text(room_id), db_int(UPDATES)), error);
    plans = row_all(job, &plans_table, "id = (SELECT plan_id FROM tasks WHERE id = ?)", DB_ARGS(id), error);
    if (steps == NULL || agents == NULL || messages == NULL || plans == NULL)
        return NULL;
    Json *plan = json_object_get(json_array_get(plans, 0), "body");

    return json_pack("{s:O, s:O, s:O, s:O, s:O?, s:I}", "task", task, "steps", steps, "agents", agents,
                     "messages", messages, "plan", plan, "now_us", (json_int_t)job->now_us);
}

static bool
run_text(RowJob *job, const void *data, Json **ret_value, GError **error)
{
    const char *const *task_id = data;
    g_autoptr(Json) facts = read_facts(job, *task_id, error);

    if (facts == NULL)
        return false;
    g_autofree char *text = plan_text_format(facts);

    *ret_value = json_pack("{s:s}", "text", text);
    return true;
}

void
room_plan_text(Rooms *rooms, const char *task_id, TeamJsonFunc done, void *data)
{
    static const RowMember members[] = {{ROW_POINTER_TEXT, 0}, ROW_AT_END};
    static const RowOp op = {ROW_READS, sizeof task_id, members, run_text};

    team_run(rooms->team, &op, &task_id, done, data);
}

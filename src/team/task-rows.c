/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/err.h"
#include "base/id.h"
#include "team/task-private.h"

static const RowColumn columns[] = {
    {"id", ROW_TEXT, "t.id"},
    {"number", ROW_INT, "t.number"},
    {"title", ROW_TEXT, "t.title"},
    {"request", ROW_TEXT, "t.request"},
    {"state", ROW_TEXT, "t.state"},
    {"blocked_from", ROW_TEXT, "t.blocked_from"},
    {"problem", ROW_TEXT, "t.problem"},
    {"squad_id", ROW_TEXT, "t.squad_id"},
    {"squad_name", ROW_TEXT, "s.name"},
    {"owner", ROW_TEXT, "t.owner"},
    {"actor", ROW_TEXT, "t.actor"},
    {"source", ROW_TEXT, "t.source"},
    {"repository_id", ROW_TEXT, "t.repository_id"},
    {"repository", ROW_TEXT,
     "(SELECT r.owner || '/' || r.name FROM repositories r WHERE r.id = t.repository_id)"},
    {"base_branch", ROW_TEXT, "t.base_branch"},
    {"base_oid", ROW_TEXT, "t.base_oid"},
    {"branch", ROW_TEXT, "t.branch"},
    {"pull_number", ROW_INT, "t.pull_number"},
    {"pull_url", ROW_TEXT, "t.pull_url"},
    {"policy", ROW_JSON, "t.policy"},
    {"plan_id", ROW_TEXT, "t.plan_id"},
    {"rung", ROW_TEXT, "t.rung"},
    {"round", ROW_INT, "t.round"},
    {"tries", ROW_INT, "t.tries"},
    {"wake_us", ROW_INT, "t.wake_us"},
    {"merge_id", ROW_INT, "t.merge_id"},
    {"report", ROW_JSON, "t.report"},
    {"created_us", ROW_INT, "t.created_us"},
    {"started_us", ROW_INT, "t.started_us"},
    {"ended_us", ROW_INT, "t.ended_us"},
    {"updated_us", ROW_INT, "t.updated_us"},
    {"steps_total", ROW_INT,
     "(SELECT COUNT(*) FROM steps p WHERE p.task_id = t.id AND p.plan_id = t.plan_id)"},
    {"steps_done", ROW_INT,
     "(SELECT COUNT(*) FROM steps p WHERE p.task_id = t.id AND p.plan_id = t.plan_id AND p.state = 'done')"},
    {"ahead", ROW_INT,
     "(SELECT COUNT(*) FROM tasks q WHERE t.state = 'queued' AND q.state = 'queued' AND q.number < "
     "t.number)"},
    {"asked", ROW_TEXT,
     "(SELECT q.text FROM questions q WHERE q.task_id = t.id AND q.state = 'open' ORDER BY q.created_us "
     "LIMIT 1)"},
};
const RowTable task_table = {"task", "tasks t JOIN squads s ON s.id = t.squad_id", columns,
                             G_N_ELEMENTS(columns)};

/* ---- what people see ---- */

/* In the order of the work; the last three have ended. */
static const struct {
    const char *state, *column, *waiting_for;
} states[] = {
    {"queued", "backlog", NULL},
    {"planning", "backlog", "its plan"},
    {"approving", "backlog", "a person who approves the plan"},
    {"preparing", "in_progress", NULL},
    {"working", "in_progress", NULL},
    {"reviewing", "in_review", NULL},
    {"landing", "in_review", "Coop's checks and the merge queue"},
    {"done", "done", NULL},
};

bool
task_has_ended(const char *state)
{
    static const char *const ended[] = {"done", "failed", "cancelled", NULL};

    return g_strv_contains(ended, state);
}

static size_t
state_index(const char *state)
{
    for (size_t i = 0; state != NULL && i < G_N_ELEMENTS(states); i++) {
        if (strcmp(states[i].state, state) == 0)
            return i;
    }
    return G_N_ELEMENTS(states);
}

/* What is blocked, or has ended without being done, stays where it was. */
static const char *
column_of(const Json *row)
{
    size_t i = state_index(row_text(row, "state"));

    if (i == G_N_ELEMENTS(states))
        i = state_index(row_text(row, "blocked_from"));
    return i < G_N_ELEMENTS(states) ? states[i].column : "backlog";
}

static char *
waiting_for(const Json *row, gint64 now_us)
{
    const char *state = row_text(row, "state"), *asked = row_text(row, "asked");
    const char *problem = row_text(row, "problem");
    size_t i = state_index(state);
    gint64 ahead = row_int(row, "ahead");

    if (task_has_ended(state))
        return NULL;
    if (asked != NULL)
        return g_strdup_printf("an answer: %s", asked);
    if (strcmp(state, "blocked") == 0)
        return g_strdup("a retry, or an answer");
    if (strcmp(state, "queued") == 0)
        return ahead == 0 ? g_strdup("a free place")
                          : g_strdup_printf("a free place, with %" G_GINT64_FORMAT " before it", ahead);
    if (row_int(row, "wake_us") > now_us)
        return problem != NULL ? g_strdup_printf("the next try: %s", problem) : g_strdup("the next try");
    return i < G_N_ELEMENTS(states) ? g_strdup(states[i].waiting_for) : NULL;
}

void
task_shape(Json *row, gint64 now_us)
{
    static const char *const inner[] = {"squad_name", "steps_total", "steps_done", "ahead", "asked"};
    g_autofree char *waiting = waiting_for(row, now_us);

    json_object_set_new(
        row, "squad",
        json_pack("{s:s, s:s}", "id", row_text(row, "squad_id"), "name", row_text(row, "squad_name")));
    json_object_set_new(row, "column", json_string(column_of(row)));
    json_object_set_new(row, "progress",
                        json_pack("{s:I, s:I}", "done", (json_int_t)row_int(row, "steps_done"), "total",
                                  (json_int_t)row_int(row, "steps_total")));
    json_object_set_new(row, "waiting_for", waiting != NULL ? json_string(waiting) : json_null());
    for (size_t i = 0; i < G_N_ELEMENTS(inner); i++)
        json_object_del(row, inner[i]);
}

/* ---- finding one ---- */

/* "12", "#12"; 0: it is no number. */
static gint64
number_of(const char *text)
{
    guint64 n;

    if (text[0] == '#')
        text++;
    return g_ascii_string_to_unsigned(text, 10, 1, G_MAXINT64, &n, NULL) ? (gint64)n : 0;
}

Json *
task_row(RowJob *job, const TaskRef *ref, GError **error)
{
    static const char where[] = "(t.id = ? OR t.number = ?) AND (? IS NULL OR t.owner = ?)";
    Json *row = row_get(
        job, &task_table, where,
        DB_ARGS(db_text(ref->id), db_int(number_of(ref->id)), db_text(ref->owner), db_text(ref->owner)),
        error);

    if (row != NULL)
        task_shape(row, job->now_us);
    return row;
}

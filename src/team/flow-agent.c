/* SPDX-License-Identifier: Apache-2.0 */
/* Who gets which piece of work: rows of task_executions. */
#include <string.h>

#include "base/err.h"
#include "base/id.h"
#include "team/flow-private.h"

enum { AGENT_HEX = 4 /* bytes */ };

static guint
count_of(const Json *rows, const char *column, const char *value)
{
    guint n = 0;
    size_t i;
    const Json *agent;

    json_array_foreach(json_object_get(rows, "agents"), i, agent)
    {
        if (flow_is(agent, column, value))
            n++;
    }
    return n;
}

/* Who did this before: the same step, or the same look at the whole. */
static const char *
member_before(const FlowAgent *agent)
{
    const char *before = row_text(agent->step, "member_id");
    size_t i;
    const Json *row;

    if (agent->step != NULL)
        return before;
    json_array_foreach(json_object_get(agent->rows, "agents"), i, row)
    {
        if (flow_is(row, "kind", agent->kind) && row_text(row, "step_id") == NULL)
            before = row_text(row, "member_id");
    }
    return before;
}

/* The one who did it before; else who knows the matter; else who has done least. */
static const Json *
choose_member(const FlowAgent *agent)
{
    const char *before = member_before(agent), *matter = row_text(agent->step, "specialization");
    const Json *best = NULL;
    guint best_cost = G_MAXUINT;
    size_t i;
    const Json *member;

    json_array_foreach(json_object_get(agent->rows, "members"), i, member)
    {
        bool fits = flow_is(member, "archetype", agent->archetype);
        guint cost = count_of(agent->rows, "member_id", row_text(member, "id"));

        if (before != NULL && flow_is(member, "id", before))
            return member;
        if (matter != NULL && !flow_is(member, "specialization", matter))
            cost += G_MAXUINT / 2;
        if (fits && cost < best_cost) {
            best = member;
            best_cost = cost;
        }
    }
    return best;
}

static char *
name_of(const FlowAgent *agent)
{
    char hex[2 * AGENT_HEX + 1];

    id_random_hex(hex, AGENT_HEX);
    return g_strdup_printf("%s-%u-%s", agent->archetype,
                           count_of(agent->rows, "archetype", agent->archetype) + 1, hex);
}

/* The last of them is the last one made, also where the clock was set back. */
static gint64
created_us(const RowJob *job, const Json *rows)
{
    const Json *agents = json_object_get(rows, "agents");
    const Json *last = json_array_get(agents, json_array_size(agents) - 1);

    return MAX(job->now_us, row_int(last, "created_us") + 1);
}

static bool
insert(RowJob *job, const FlowAgent *agent, const Json *member, const char *brief, GError **error)
{
    const Json *task = json_object_get(agent->rows, "task");
    const Json *asked = flow_file_role(task, agent->step, member);
    const char *matter = row_text(agent->step, "specialization"), *template = row_text(member, "template");
    bool chose = row_text(json_object_get(member, "asked"), "llm_model") != NULL;
    const Json *brain = !chose && row_text(asked, "llm_model") != NULL ? asked : member;
    g_autofree char *name = name_of(agent);
    char id[ID_UUID_LEN + 1];

    id_new_uuid(id);
    return db_exec(
        job->tx,
        "INSERT INTO task_executions (id, agent, task_id, step_id, squad_id, member_id, owner, kind, role, "
        "archetype, specialization, adapter, template, provider, model, lease, state, try, brief, "
        "git_branch, git_base, pull_request_url, created_us) "
        "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 'queued', ?, ?, ?, ?, ?, ?)",
        DB_ARGS(db_text(id), db_text(name), db_text(row_text(task, "id")),
                db_text(row_text(agent->step, "id")), db_text(row_text(task, "squad_id")),
                db_text(row_text(member, "id")), db_text(row_text(task, "owner")), db_text(agent->kind),
                db_text(row_text(member, "role")), db_text(row_text(member, "archetype")),
                db_text(matter != NULL ? matter : row_text(member, "specialization")),
                db_text(row_text(member, "adapter")),
                db_text(template != NULL ? template : row_text(asked, "template")),
                db_text(row_text(brain, "llm_provider")), db_text(row_text(brain, "llm_model")),
                db_text(agent->lease), db_int(agent->try), db_text(brief), db_text(agent->branch),
                db_text(agent->base), db_text(row_text(task, "pull_url")),
                db_int(created_us(job, agent->rows))),
        error);
}

void
flow_look_names(const Json *rows, const char *archetype, char **ret_lease, char **ret_branch)
{
    const Json *task = json_object_get(rows, "task");
    size_t n = json_array_size(json_object_get(rows, "agents"));

    *ret_lease = g_strdup_printf("task-%" G_GINT64_FORMAT ":%s-%zu", row_int(task, "number"), archetype, n);
    *ret_branch = g_strdup_printf("%s--%s-look-%zu", row_text(task, "branch"), archetype, n);
}

bool
flow_agent_insert(RowJob *job, const FlowAgent *agent, GError **error)
{
    g_autoptr(Json) taken = agent->brief;
    const Json *member = agent->member != NULL ? agent->member : choose_member(agent);

    if (member == NULL)
        return err_set(error, ERR_NOT_FOUND, "the squad has no %s", agent->archetype);
    const Json *asked = flow_file_role(json_object_get(agent->rows, "task"), agent->step, member);

    if (asked != NULL)
        json_object_set(taken, "role", (Json *)(guintptr)asked);
    if (json_object_get(member, "asked") != NULL)
        json_object_set(taken, "member", json_object_get(member, "asked"));
    g_autofree char *brief = json_encode(taken);

    if (!insert(job, agent, member, brief, error))
        return false;
    return agent->step == NULL ||
           db_exec(job->tx, "UPDATE steps SET member_id = ? WHERE id = ?",
                   DB_ARGS(db_text(row_text(member, "id")), db_text(row_text(agent->step, "id"))), error);
}

char *
flow_tip(RowJob *job, const Json *task, const char *branch, GError **error)
{
    g_autofree char *ref = g_strconcat("refs/heads/", branch, NULL);
    g_autoptr(DbRows)
        rows = db_query(job->tx, "SELECT oid FROM repository_refs WHERE repository_id = ? AND name = ?",
                        DB_ARGS(db_text(row_text(task, "repository_id")), db_text(ref)), error);
    bool found = false;

    if (rows == NULL || !db_rows_next(rows, &found, error))
        return NULL;
    if (!found)
        err_set(error, ERR_NOT_FOUND, "the branch '%s' is gone", branch);
    return found ? g_strdup(db_rows_text(rows, 0)) : NULL;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Agents by hand: a row of its own, and a lease that ends with it. */
#include <string.h>

#include "base/err.h"
#include "base/id.h"
#include "team/crew-private.h"
#include "team/task-private.h"

enum { AGENT_HEX = 4, GOAL_MAX = 32 * 1024, GIT_WORD_MAX = 120 };

/* ---- what the row gets ---- */

/* An AgentSpec that was looked at. */
typedef struct SpawnSpec {
    const char *id, *owner, *sees, *actor, *role, *archetype, *specialization;
    const char *task, *squad, *repository_id, *adapter, *provider, *model, *template, *goal;
    Json *git;
    guint agents_max; /* of a task */
} SpawnSpec;

static bool
find_task(RowJob *job, const SpawnSpec *s, Json **ret_task, GError **error)
{
    *ret_task = task_row(job, &(TaskRef){.id = s->task, .owner = s->sees}, error);
    return *ret_task != NULL;
}

static bool
find_squad(RowJob *job, const SpawnSpec *s, const Json *task, char **ret_id, GError **error)
{
    const char *name = s->squad != NULL ? s->squad : "default";
    g_autoptr(DbRows) rows = NULL;
    bool found = false;

    if (task != NULL) {
        *ret_id = g_strdup(row_text(task, "squad_id"));
        return true;
    }
    rows = db_query(job->tx,
                    "SELECT id FROM squads WHERE (id = ? OR name = ?) AND (user_id = ? OR user_id = '') "
                    "ORDER BY CASE WHEN user_id = ? THEN 0 ELSE 1 END LIMIT 1",
                    DB_ARGS(db_text(name), db_text(name), db_text(s->owner), db_text(s->owner)), error);
    if (rows == NULL || !db_rows_next(rows, &found, error))
        return false;
    if (!found && s->squad != NULL)
        return err_set(error, ERR_NOT_FOUND, "there is no squad '%s'", name);
    *ret_id = found ? g_strdup(db_rows_text(rows, 0)) : NULL;
    return true;
}

/* Who of the squad does such things; NULL: nobody. */
static bool
find_member(RowJob *job, const SpawnSpec *s, const char *squad_id, Json **ret_member, GError **error)
{
    static const RowColumn columns[] = {{"id", ROW_TEXT, NULL},
                                        {"adapter", ROW_TEXT, NULL},
                                        {"llm_provider", ROW_TEXT, NULL},
                                        {"llm_model", ROW_TEXT, NULL},
                                        {"template", ROW_TEXT, NULL},
                                        {"archetype", ROW_TEXT, NULL},
                                        {"specialization", ROW_TEXT, NULL}};
    static const RowTable table = {"member", "squad_members", columns, G_N_ELEMENTS(columns)};
    g_autoptr(GError) failed = NULL;

    *ret_member = row_get(
        job, &table,
        "squad_id = ? AND archetype = ? AND is_active = 1 ORDER BY CASE WHEN specialization = ? "
        "THEN 0 ELSE 1 END, position",
        DB_ARGS(db_text(squad_id), db_text(s->archetype), db_text(s->specialization)), &failed);
    if (failed == NULL || err_kind(failed) == ERR_NOT_FOUND)
        return true;
    g_propagate_error(error, g_steal_pointer(&failed));
    return false;
}

static const char *
first(const char *a, const char *b)
{
    return a != NULL ? a : b;
}

static bool
count_agents(RowJob *job, const char *task_id, const char *archetype, gint64 *ret_n, GError **error)
{
    *ret_n = 0;
    return row_ask_int(
        job, "SELECT COUNT(*) FROM task_executions WHERE archetype = ? AND COALESCE(task_id, '') = ?",
        DB_ARGS(db_text(archetype), db_text(task_id != NULL ? task_id : "")), ret_n, error);
}

/* The task's branch once it is there, else what the task will begin with; NULL: the default branch. */
static bool
find_base(RowJob *job, const Json *task, const char **ret_base, GError **error)
{
    const char *branch = row_text(task, "branch");
    g_autofree char *ref = g_strconcat("refs/heads/", branch != NULL ? branch : "", NULL);
    gint64 n = 0;

    if (!row_ask_int(job, "SELECT COUNT(*) FROM repository_refs WHERE repository_id = ? AND name = ?",
                     DB_ARGS(db_text(row_text(task, "repository_id")), db_text(ref)), &n, error))
        return false;
    *ret_base = n > 0 ? branch : row_text(task, "base_branch");
    return true;
}

static Json *
make_brief(const SpawnSpec *s)
{
    return json_pack("{s:s, s:n, s:n, s:[], s:O?}", "goal", s->goal, "feedback", "bundle", "checks", "git",
                     s->git);
}

static bool
insert(RowJob *job, const SpawnSpec *s, const Json *task, const Json *member, const char *squad_id,
       GError **error)
{
    const char *task_id = row_text(task, "id");
    const char *repository = task != NULL ? row_text(task, "repository_id") : s->repository_id;
    g_autoptr(Json) told = make_brief(s);
    g_autofree char *brief = json_encode(told);
    g_autofree char *lease = g_strconcat(CREW_HAND_LEASE, s->id, NULL);
    char hex[2 * AGENT_HEX + 1];
    const char *base;
    gint64 n;

    if (!count_agents(job, task_id, s->archetype, &n, error) || !find_base(job, task, &base, error))
        return false;
    id_random_hex(hex, AGENT_HEX);
    g_autofree char *agent = g_strdup_printf("%s-%d-%s", s->archetype, (int)n + 1, hex);
    g_autofree char *branch = repository == NULL ? NULL
                              : task != NULL
                                  ? g_strdup_printf("%s--%s-%s", row_text(task, "branch"), s->archetype, hex)
                                  : g_strconcat("agent-", agent, NULL);

    return db_exec(job->tx,
                   "INSERT INTO task_executions (id, agent, task_id, squad_id, member_id, repository_id, "
                   "owner, kind, role, "
                   "archetype, specialization, adapter, template, provider, model, lease, state, try, brief, "
                   "git_branch, "
                   "git_base, pull_request_url, created_us) VALUES (?, ?, ?, ?, ?, ?, ?, 'work', ?, ?, ?, ?, "
                   "?, ?, ?, ?, "
                   "'queued', 1, ?, ?, ?, ?, ?)",
                   DB_ARGS(db_text(s->id), db_text(agent), db_text(task_id), db_text(squad_id),
                           db_text(row_text(member, "id")), db_text(repository), db_text(s->owner),
                           db_text(s->role), db_text(s->archetype), db_text(s->specialization),
                           db_text(first(s->adapter, first(row_text(member, "adapter"), "coop"))),
                           db_text(first(s->template, row_text(member, "template"))),
                           db_text(s->model != NULL ? s->provider : row_text(member, "llm_provider")),
                           db_text(first(s->model, row_text(member, "llm_model"))), db_text(lease),
                           db_text(brief), db_text(branch), db_text(base),
                           db_text(row_text(task, "pull_url")), db_int(job->now_us)),
                   error);
}

static bool
check_task(RowJob *job, const SpawnSpec *s, const Json *task, GError **error)
{
    gint64 n = 0;

    if (task == NULL)
        return true;
    if (task_has_ended(row_text(task, "state")))
        return err_set(error, ERR_CONFLICT, "the task has ended");
    if (!row_ask_int(job, "SELECT COUNT(*) FROM task_executions WHERE task_id = ? AND ended_us = 0",
                     DB_ARGS(db_text(row_text(task, "id"))), &n, error))
        return false;
    return n < s->agents_max || err_set(error, ERR_LIMIT, "a task has at most %u agents", s->agents_max);
}

static bool
run_spawn(RowJob *job, const void *spec, Json **ret_value, GError **error)
{
    const SpawnSpec *s = spec;
    g_autoptr(Json) task = NULL;
    g_autoptr(Json) member = NULL;
    g_autofree char *squad_id = NULL;

    return (s->task == NULL || find_task(job, s, &task, error)) && check_task(job, s, task, error) &&
           find_squad(job, s, task, &squad_id, error) &&
           (squad_id == NULL || find_member(job, s, squad_id, &member, error)) &&
           insert(job, s, task, member, squad_id, error);
}

/* ---- the answer ---- */

typedef struct Spawning {
    Team *team;
    char *id;
    TeamJsonFunc done;
    void *data;
} Spawning;

static void
spawning_finish(Spawning *w, Json *value, const GError *error)
{
    w->done(value, error, w->data);
    team_unref(w->team);
    g_free(w->id);
    g_free(w);
}

static void
on_row(Json *value, const GError *error, void *data)
{
    spawning_finish(data, value, error);
}

/* It has its box, or will never have one. */
static void
on_boxed(void *data)
{
    Spawning *w = data;

    if (w->team->crew != NULL)
        agent_get(w->team, w->id, NULL, on_row, w);
    else
        spawning_finish(w, NULL, NULL);
}

static void
on_inserted(Json *value, const GError *error, void *data)
{
    Spawning *w = data;

    if (error != NULL || w->team->crew == NULL)
        spawning_finish(w, NULL, error);
    else
        crew_start_told(w->team->crew, w->id, on_boxed, w);
}

/* ---- what was asked for ---- */

static bool
check_git(Json *git, GError **error)
{
    const char *username = "", *email = "";
    const JsonField fields[] = {{"username", JSON_KIND_STRING, &username, false, 1, GIT_WORD_MAX},
                                {"email", JSON_KIND_STRING, &email, false, 1, GIT_WORD_MAX},
                                {NULL}};

    if (git == NULL || json_read(git, fields, error))
        return true;
    g_prefix_error(error, "'gitCredentials' (keys never come into a box; the server signs and pushes): ");
    return false;
}

static void
insert_row(Team *team, const SpawnSpec *spec, TeamJsonFunc done, void *data)
{
    static const RowMember members[] = {ROW_AT_TEXT(SpawnSpec, id),
                                        ROW_AT_TEXT(SpawnSpec, owner),
                                        ROW_AT_TEXT(SpawnSpec, sees),
                                        ROW_AT_TEXT(SpawnSpec, actor),
                                        ROW_AT_TEXT(SpawnSpec, role),
                                        ROW_AT_TEXT(SpawnSpec, archetype),
                                        ROW_AT_TEXT(SpawnSpec, specialization),
                                        ROW_AT_TEXT(SpawnSpec, task),
                                        ROW_AT_TEXT(SpawnSpec, squad),
                                        ROW_AT_TEXT(SpawnSpec, repository_id),
                                        ROW_AT_TEXT(SpawnSpec, adapter),
                                        ROW_AT_TEXT(SpawnSpec, provider),
                                        ROW_AT_TEXT(SpawnSpec, model),
                                        ROW_AT_TEXT(SpawnSpec, template),
                                        ROW_AT_TEXT(SpawnSpec, goal),
                                        ROW_AT_JSON(SpawnSpec, git),
                                        ROW_AT_END};
    static const RowOp op = {ROW_WRITES, sizeof(SpawnSpec), members, run_spawn};
    Spawning *w = g_new0(Spawning, 1);

    *w = (Spawning){team_ref(team), g_strdup(spec->id), done, data};
    team_run(team, &op, spec, on_inserted, w);
}

void
agent_spawn(Team *team, const AgentSpec *spec, TeamJsonFunc done, void *data)
{
    const char *matter = NULL;
    const Role *role = team_role(team, spec->role, &matter);
    g_autofree char *goal = g_strjoinv("\n", (char **)(guintptr)spec->requirements);
    g_autoptr(GError) error = NULL;
    char id[ID_UUID_LEN + 1];
    SpawnSpec row = {.id = id,
                     .owner = spec->owner,
                     .sees = spec->sees,
                     .agents_max = team->limits.agents_per_task,
                     .actor = spec->actor,
                     .role = spec->role,
                     .archetype = role != NULL ? role->archetype : "coder",
                     .specialization = matter,
                     .task = spec->task,
                     .squad = spec->squad,
                     .adapter = spec->adapter,
                     .provider = spec->provider,
                     .model = spec->model,
                     .template = spec->template,
                     .goal = goal,
                     .git = spec->git};

    id_new_uuid(id);
    if (!row_check_text("what it shall do", goal, GOAL_MAX, ROW_TEXT_NEEDED, &error) ||
        !check_git(spec->git, &error) ||
        !team_find_repository(team, spec->repository, &row.repository_id, &error) ||
        (spec->adapter != NULL && !crew_has_adapter(team->crew, spec->adapter, &error)))
        done(NULL, error, data);
    else
        insert_row(team, &row, done, data);
}

/* ---- looking and stopping ---- */

typedef struct AgentRef {
    const char *id, *owner;
} AgentRef;
static const RowMember ref_members[] = {ROW_AT_TEXT(AgentRef, id), ROW_AT_TEXT(AgentRef, owner), ROW_AT_END};

/* The handle's names, beside the row's. */
static void
add_handle(Json *row)
{
    static const char *const names[][2] = {
        {"agentId", "agent"}, {"sandboxId", "box_id"}, {"taskId", "task_id"}};

    for (size_t i = 0; i < G_N_ELEMENTS(names); i++)
        json_object_set(row, names[i][0], json_object_get(row, names[i][1]));
}

static bool
run_get(RowJob *job, const void *spec, Json **ret_value, GError **error)
{
    const AgentRef *r = spec;

    *ret_value = row_get(job, &execution_table, "(id = ? OR agent = ?) AND (owner = ? OR ? IS NULL)",
                         DB_ARGS(db_text(r->id), db_text(r->id), db_text(r->owner), db_text(r->owner)),
                         error);
    if (*ret_value != NULL)
        add_handle(*ret_value);
    return *ret_value != NULL;
}

void
agent_get(Team *team, const char *id, const char *owner, TeamJsonFunc done, void *data)
{
    static const RowOp op = {ROW_READS, sizeof(AgentRef), ref_members, run_get};

    team_run(team, &op, &(AgentRef){.id = id, .owner = owner}, done, data);
}

static bool
run_list(RowJob *job, const void *spec, Json **ret_value, GError **error)
{
    const AgentFilter *f = spec;
    g_auto(RowWhere) where = ROW_WHERE_INIT;
    size_t i;
    Json *row;

    row_where_add(&where, "1 = 1", NULL, 0);
    if (f->owner != NULL)
        row_where_add(&where, "owner = ?", DB_ARGS(db_text(f->owner)));
    if (f->task != NULL)
        row_where_add(&where, "task_id = ?", DB_ARGS(db_text(f->task)));
    *ret_value = row_list(job, &execution_table, &where, "created_us DESC, id", f->page, error);
    json_array_foreach(json_object_get(*ret_value, "items"), i, row) add_handle(row);
    return *ret_value != NULL;
}

void
agent_list(Team *team, const AgentFilter *filter, TeamJsonFunc done, void *data)
{
    static const RowMember members[] = {ROW_AT_TEXT(AgentFilter, owner), ROW_AT_TEXT(AgentFilter, task),
                                        ROW_AT_END};
    static const RowOp op = {ROW_READS, sizeof(AgentFilter), members, run_list};

    team_run(team, &op, filter, done, data);
}

static void
on_stopped(void *data, const GError *error)
{
    Spawning *w = data;

    if (error != NULL || w->team->crew == NULL)
        spawning_finish(w, NULL, error);
    else
        agent_get(w->team, w->id, NULL, on_row, w);
}

static void
on_found(Json *value, const GError *error, void *data)
{
    Spawning *w = data;

    if (error != NULL || w->team->crew == NULL) {
        spawning_finish(w, NULL, error);
        return;
    }
    g_free(w->id);
    w->id = g_strdup(row_text(value, "id"));
    crew_stop(w->team->crew, w->id, "stopped by hand", on_stopped, w);
}

void
agent_stop(Team *team, const char *id, const char *owner, const char *actor, TeamJsonFunc done, void *data)
{
    Spawning *w = g_new0(Spawning, 1);

    *w = (Spawning){team_ref(team), g_strdup(id), done, data};
    agent_get(team, id, owner, on_found, w);
}

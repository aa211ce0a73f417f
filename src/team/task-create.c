/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/err.h"
#include "base/id.h"
#include "forge/hook.h"
#include "forge/workspace.h"
#include "team/plan-private.h"
#include "team/repo-file.h"

enum { DEDUPE_MAX = 200, NUMBER_TEXT_MAX = 24 };

/* The spec, with what only the loop can find out. */
typedef struct TaskMake {
    TaskSpec spec;
    const char *repository_id; /* NULL: the squad's */
    Json *repo_config;         /* of its coop.yaml; NULL: not looked at */
} TaskMake;

static const RowMember make_members[] = {
    ROW_AT_TEXT(TaskMake, spec.actor),
    ROW_AT_TEXT(TaskMake, spec.owner),
    ROW_AT_TEXT(TaskMake, spec.source),
    ROW_AT_TEXT(TaskMake, spec.request),
    ROW_AT_TEXT(TaskMake, spec.title),
    ROW_AT_TEXT(TaskMake, spec.squad),
    ROW_AT_TEXT(TaskMake, spec.repository),
    ROW_AT_TEXT(TaskMake, spec.base),
    ROW_AT_TEXT(TaskMake, spec.dedupe),
    ROW_AT_TEXT(TaskMake, spec.reply),
    ROW_AT_JSON(TaskMake, spec.policy),
    ROW_AT_JSON(TaskMake, spec.plan),
    ROW_AT_TEXT(TaskMake, repository_id),
    ROW_AT_JSON(TaskMake, repo_config),
    ROW_AT_END,
};

/* What the row gets that the spec does not say itself. */
typedef struct TaskParts {
    char id[ID_UUID_LEN + 1];
    gint64 number;
    char *title, *dedupe, *base, *branch, *policy_text;
    const char *repository_id;
    Json *squad, *policy;
} TaskParts;

static void
task_parts_clear(TaskParts *p)
{
    g_free(p->title);
    g_free(p->dedupe);
    g_free(p->base);
    g_free(p->branch);
    g_free(p->policy_text);
    json_decref(p->squad);
    json_decref(p->policy);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(TaskParts, task_parts_clear)

/* ---- what is asked for ---- */

static bool
check_spec(const TaskSpec *spec, GError **error)
{
    if (spec->request == NULL || strlen(spec->request) > TASK_REQUEST_MAX)
        return err_set(error, ERR_INVALID, "the request must have 1 to %d bytes", TASK_REQUEST_MAX);
    if (spec->dedupe != NULL && (spec->dedupe[0] == '\0' || strlen(spec->dedupe) > DEDUPE_MAX))
        return err_set(error, ERR_INVALID, "'dedupe' must have 1 to %d bytes", DEDUPE_MAX);
    return row_check_text("the request", spec->request, TASK_REQUEST_MAX, ROW_TEXT_NEEDED, error);
}

/* The first line that says something, cut where it is long. */
static char *
title_of(const char *request, GError **error)
{
    g_autofree char *text = g_strstrip(g_strdup(request));
    g_autofree char *line = g_strndup(text, strcspn(text, "\r\n"));
    g_autofree char *whole = row_dup_line("the request", line, TASK_REQUEST_MAX, ROW_TEXT_NEEDED, error);

    if (whole == NULL || g_utf8_strlen(whole, -1) <= TASK_TITLE_MAX)
        return g_steal_pointer(&whole);
    g_autofree char *cut = g_utf8_substring(whole, 0, TASK_TITLE_MAX - 1);

    return g_strconcat(g_strchomp(cut), "…", NULL);
}

static bool
fill_repository(RowJob *job, const TaskMake *m, TaskParts *p, GError **error)
{
    bool none = m->spec.repository != NULL && m->spec.repository[0] == '\0', found = false;

    p->repository_id = none                       ? NULL
                       : m->repository_id != NULL ? m->repository_id
                                                  : row_text(p->squad, "repository_id");
    if (p->repository_id == NULL)
        return m->spec.base == NULL ||
               err_set(error, ERR_INVALID, "a base branch is of a repository, and none is named");
    g_autoptr(DbRows) rows = db_query(job->tx, "SELECT default_branch, state FROM repositories WHERE id = ?",
                                      DB_ARGS(db_text(p->repository_id)), error);

    if (rows == NULL || !db_rows_next(rows, &found, error))
        return false;
    if (!found || strcmp(db_rows_text(rows, 1), "ready") != 0)
        return err_set(error, ERR_CONFLICT, "the repository of the task is not ready");
    const char *base = m->spec.base != NULL ? m->spec.base : row_text(p->policy, "base");

    p->base = g_strdup(base != NULL ? base : db_rows_text(rows, 0));
    return git_branch_is_valid(p->base, error);
}

static bool
fill_branch(TaskParts *p, GError **error)
{
    char number[NUMBER_TEXT_MAX];
    g_autofree char *slug = workspace_slug(p->title);

    if (p->repository_id == NULL)
        return true;
    g_snprintf(number, sizeof number, "%" G_GINT64_FORMAT, p->number);
    p->branch = workspace_branch_name(
        &(BranchName){.pattern = row_text(p->policy, "branch"), .id = number, .slug = slug}, error);
    return p->branch != NULL;
}

static bool
check_room(RowJob *job, GError **error)
{
    gint64 queued = 0;

    if (!row_ask_int(job, "SELECT COUNT(*) FROM tasks WHERE state = 'queued'", DB_NO_ARGS, &queued, error))
        return false;
    return queued < TASKS_QUEUED_MAX ||
           err_set(error, ERR_LIMIT, "%d tasks are waiting already", TASKS_QUEUED_MAX);
}

static bool
fill_parts(RowJob *job, const TaskMake *m, TaskParts *p, GError **error)
{
    const TaskSpec *s = &m->spec;

    id_new_uuid(p->id);
    p->squad = squad_row(job, s->squad != NULL ? s->squad : SQUAD_DEFAULT, s->owner, error);
    if (p->squad == NULL)
        return false;
    if (strcmp(row_text(p->squad, "status"), "active") != 0)
        return err_set(error, ERR_CONFLICT, "the squad '%s' takes no tasks: it is %s",
                       row_text(p->squad, "name"), row_text(p->squad, "status"));
    g_autoptr(Json) usual = squad_config_over(m->repo_config, json_object_get(p->squad, "config"), error);

    p->policy = usual != NULL ? squad_config_over(usual, s->policy, error) : NULL;
    if (p->policy == NULL || !squad_config_is_kept(json_object_get(p->squad, "config"), p->policy, error)) {
        g_prefix_error(error, "policy: ");
        return false;
    }
    p->policy_text = json_encode(p->policy);
    p->title = s->title != NULL ? row_dup_line("the title", s->title, TASK_TITLE_MAX, ROW_TEXT_NEEDED, error)
                                : title_of(s->request, error);
    return p->title != NULL && fill_repository(job, m, p, error) && check_room(job, error) &&
           row_next_id(job, "tasks", &p->number, error) && fill_branch(p, error);
}

/* ---- the rows ---- */

static bool
add_row(RowJob *job, const TaskSpec *s, const TaskParts *p, GError **error)
{
    return db_exec(job->tx,
                   "INSERT INTO tasks (id, number, squad_id, owner, actor, source, dedupe, title, request, "
                   "repository_id, base_branch, branch, policy, state, created_us, updated_us) "
                   "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 'queued', ?, ?)",
                   DB_ARGS(db_text(p->id), db_int(p->number), db_text(row_text(p->squad, "id")),
                           db_text(s->owner != NULL ? s->owner : ""), db_text(s->actor), db_text(s->source),
                           db_text(p->dedupe), db_text(p->title), db_text(s->request),
                           db_text(p->repository_id), db_text(p->base), db_text(p->branch),
                           db_text(p->policy_text), db_int(job->now_us), db_int(job->now_us)),
                   error);
}

/* One that came with the request needs nobody's approval. */
static bool
add_plan(RowJob *job, const TaskSpec *s, const char *task_id, GError **error)
{
    g_autoptr(Json) body = s->plan != NULL ? plan_check(s->plan, error) : NULL;

    if (s->plan != NULL && body == NULL) {
        g_prefix_error(error, "plan: ");
        return false;
    }
    return body == NULL || plan_insert(job,
                                       &(PlanInsert){.task_id = task_id,
                                                     .producer = "person",
                                                     .state = "approved",
                                                     .actor = s->actor,
                                                     .body = body},
                                       error);
}

static bool
tell(RowJob *job, const TaskSpec *s, const Json *row, GError **error)
{
    Json *data = json_pack("{s:I, s:s, s:s, s:s, s:s?, s:s?}", "number", (json_int_t)row_int(row, "number"),
                           "title", row_text(row, "title"), "source", s->source, "squad",
                           row_text(json_object_get(row, "squad"), "name"), "repository",
                           row_text(row, "repository"), "branch", row_text(row, "branch"));

    return team_event(job->tx,
                      &(TeamEvent){.kind = "task.created",
                                   .actor = s->actor,
                                   .task_id = row_text(row, "id"),
                                   .squad_id = row_text(row, "squad_id"),
                                   .data = data},
                      error);
}

/* The same asked for again; NULL without an error: it was not. */
static Json *
find_same(RowJob *job, const char *dedupe, GError **error)
{
    g_autoptr(GError) failed = NULL;
    Json *row = dedupe != NULL ? row_get(job, &task_table, "t.dedupe = ?", DB_ARGS(db_text(dedupe)), &failed)
                               : NULL;

    if (failed != NULL && err_kind(failed) != ERR_NOT_FOUND)
        g_propagate_error(error, g_steal_pointer(&failed));
    if (row != NULL)
        task_shape(row, job->now_us);
    return row;
}

static bool
run_create(RowJob *job, const void *data, Json **ret_value, GError **error)
{
    const TaskMake *m = data;
    const TaskSpec *s = &m->spec;
    g_auto(TaskParts) p = {0};
    g_autoptr(GError) failed = NULL;

    if (!check_spec(s, error))
        return false;
    /* What one caller has asked for must not be found by another's word. */
    if (s->dedupe != NULL)
        p.dedupe = g_strconcat(s->owner != NULL ? s->owner : "", ":", s->dedupe, NULL);
    *ret_value = find_same(job, p.dedupe, &failed);
    if (failed != NULL) {
        g_propagate_error(error, g_steal_pointer(&failed));
        return false;
    }
    bool is_new = *ret_value == NULL;

    if (is_new) {
        if (!fill_parts(job, m, &p, error) || !add_row(job, s, &p, error) || !add_plan(job, s, p.id, error) ||
            (s->reply != NULL && !hook_add_reply(job, s->seal, p.id, s->reply, error)))
            return false;
        *ret_value = task_row(job, &(TaskRef){.id = p.id}, error);
        if (*ret_value == NULL || !tell(job, s, *ret_value, error))
            return false;
    }
    json_object_set_new(*ret_value, "created", json_boolean(is_new));
    return true;
}

static const RowOp create_op = {ROW_WRITES, sizeof(TaskMake), make_members, run_create};

/* ---- the call ---- */

typedef struct Creation {
    Team *team;
    TaskMake *make; /* a copy, by row_spec_dup() */
    TeamJsonFunc done;
    void *data;
} Creation;

static void
on_created(Json *task, const GError *error, void *data)
{
    Creation *c = data;

    if (error == NULL && row_is(task, "created") && c->team->flow != NULL)
        flow_wake(c->team->flow, row_text(task, "id"));
    c->done(task, error, c->data);
    team_unref(c->team);
    row_spec_free(&create_op, c->make);
    g_free(c);
}

/* A repository can ask for less than the server gives, and not for more. */
static Json *
bounded_config(Team *team, const Json *file)
{
    const TeamLimits *l = &team->limits;
    const struct {
        const char *name;
        guint most;
    } bounds[] = {{"agents_per_task", l->agents_per_task},
                  {"tries", l->tries},
                  {"rounds", l->rounds},
                  {"agent_s", l->agent_s},
                  {"turns", l->turns}};
    Json *config = json_copy(json_object_get(file, "config"));

    for (size_t i = 0; i < G_N_ELEMENTS(bounds); i++) {
        if (row_int(config, bounds[i].name) > bounds[i].most)
            json_object_set_new(config, bounds[i].name, json_integer(bounds[i].most));
    }
    return config;
}

static void
on_file(Json *file, const GError *error, void *data)
{
    Creation *c = data;

    /* What is wrong with the file is told when the task begins: it may be right by then. */
    if (error != NULL && err_kind(error) != ERR_INVALID) {
        on_created(NULL, error, c);
        return;
    }
    c->make->repo_config = error != NULL ? json_object() : bounded_config(c->team, file);
    team_run(c->team, &create_op, c->make, on_created, c);
}

/* The repository may be the squad's; what is wrong with the squad is told later. */
static void
on_squad(Json *squad, const GError *error, void *data)
{
    Creation *c = data;

    repo_file_read(c->team, row_text(squad, "repository_id"), c->make->spec.base, on_file, c);
}

void
task_create(Team *team, const TaskSpec *spec, TeamJsonFunc done, void *data)
{
    g_autoptr(GError) error = NULL;
    TaskMake m = {.spec = *spec};

    if (!team_find_repository(team, spec->repository, &m.repository_id, &error)) {
        done(NULL, error, data);
        return;
    }
    Creation *c = g_new(Creation, 1);

    *c = (Creation){.team = team_ref(team), .make = row_spec_dup(&create_op, &m), .done = done, .data = data};
    if (spec->repository != NULL)
        repo_file_read(team, m.repository_id, spec->base, on_file, c);
    else
        squad_get(team, spec->squad != NULL ? spec->squad : SQUAD_DEFAULT, spec->owner, on_squad, c);
}

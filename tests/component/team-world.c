/* SPDX-License-Identifier: Apache-2.0 */
#include "team-world.h"

#include <string.h>

#include "base/clock.h"
#include "base/id.h"
#include "forge/commit.h"
#include "forge/contents.h"

enum { UNTIL_S = 60 };

/* ---- who is played ---- */

static TeamWorld *the_world; /* crews have no context of their own */

static void
play_start(Crew *crew, const char *execution_id)
{
    g_queue_push_tail(&the_world->started, g_strdup(execution_id));
}

typedef struct Stop {
    char *id;
    DbDone done;
    void *data;
} Stop;

static bool
stop_work(DbTx *tx, void *data, GError **error)
{
    return db_exec(tx, "UPDATE task_executions SET state = 'stopped', ended_us = 1 WHERE id = ?",
                   DB_ARGS(db_text(((Stop *)data)->id)), error);
}

static void
on_stop(void *data, const GError *error)
{
    Stop *s = data;

    s->done(s->data, error);
    g_free(s->id);
    g_free(s);
}

static void
play_stop(Crew *crew, const char *execution_id, const char *reason, DbDone done, void *data)
{
    Stop *s = g_new0(Stop, 1);

    *s = (Stop){g_strdup(execution_id), done, data};
    g_string_append(the_world->calls, "stop\n");
    db_write(the_world->w->bench->db, stop_work, on_stop, s, NULL);
}

static void
play_release(Crew *crew, const char *task_id, const char *lease, const char *keep, DbDone done, void *data)
{
    g_string_append_printf(the_world->calls, "release %s %s\n", lease, keep != NULL ? keep : "-");
    if (done != NULL)
        done(data, NULL);
}

static void
play_plan(Team *team, const char *task_id, TeamJsonFunc done, void *data)
{
    the_world->plans_asked++;
    flow_task_unref(data);
}

static void
play_plan_cancel(Team *team, const char *task_id)
{
}

static const FlowHands played = {play_start, play_stop, play_release, play_plan, play_plan_cancel};

/* ---- the world ---- */

static void
on_loaded(void *data, const GError *error)
{
    g_assert_no_error(error);
    *(bool *)data = true;
}

static void
load_team(TeamWorld *world)
{
    g_autoptr(GError) error = NULL;
    bool loaded = false;

    landings_start(world->landings);
    world->team = team_new(&(TeamSpec){.loop = world->w->loop,
                                       .db = world->w->bench->db,
                                       .events = world->w->bench->log,
                                       .forge = world->w->forge,
                                       .landings = world->landings,
                                       .home = world->w->bench->dir,
                                       .address = "http://127.0.0.1",
                                       .limits = world->limits},
                           &error);
    g_assert_no_error(error);
    world->team->flow->hands = played;
    team_load(world->team, on_loaded, &loaded);
    while (!loaded)
        g_main_context_iteration(NULL, TRUE);
    team_start(world->team);
}

static void
make_landings(ForgeWorld *w)
{
    TeamWorld *world = w->ctx;

    world->checks->world = w;
    world->landings = landings_new(
        &(LandingsSpec){.forge = w->forge, .check = fake_checks_table(world->checks)});
    world->checks->landings = world->landings;
}

TeamWorld *
team_world_new(const TeamLimits *limits)
{
    TeamWorld *world = the_world = g_new0(TeamWorld, 1);

    world->limits = limits != NULL ? *limits : (TeamLimits){.retry_ms = 1};
    world->calls = g_string_new(NULL);
    world->checks = fake_checks_new();
    world->checks->verdict = "passed";
    world->w = forge_world_new(make_landings, world);
    load_team(world);
    return world;
}

static void
stop(TeamWorld *world)
{
    world->checks->landings = NULL;
    team_free(world->team);
    landings_free(world->landings);
    forge_world_stop(world->w);
    g_queue_clear_full(&world->started, g_free);
}

void
team_world_restart(TeamWorld *world)
{
    stop(world);
    forge_world_load(world->w);
    load_team(world);
}

void
team_world_free(TeamWorld *world)
{
    stop(world);
    forge_world_free(world->w);
    fake_checks_free(world->checks);
    g_string_free(world->calls, TRUE);
    g_free(world);
}

/* ---- rows ---- */

void
team_world_sql(TeamWorld *world, const char *sql)
{
    g_autoptr(GError) error = NULL;

    store_write_sql(world->w->bench->db, sql, &error);
    g_assert_no_error(error);
}

typedef struct Ask {
    const char *sql;
    char *text;
} Ask;

static bool
ask_work(DbTx *tx, void *data, GError **error)
{
    Ask *ask = data;
    g_autoptr(DbRows) rows = db_query(tx, ask->sql, DB_NO_ARGS, error);
    bool found = false;

    if (rows == NULL || !db_rows_next(rows, &found, error))
        return false;
    ask->text = found ? g_strdup(db_rows_text(rows, 0)) : NULL;
    return true;
}

char *
team_world_text(TeamWorld *world, const char *sql)
{
    g_autoptr(GError) error = NULL;
    Ask ask = {.sql = sql};

    store_read(world->w->bench->db, ask_work, &ask, &error);
    g_assert_no_error(error);
    return ask.text;
}

void
team_world_until(TeamWorld *world, const char *sql, const char *value)
{
    gint64 end_us = clock_mono_us() + (gint64)UNTIL_S * G_USEC_PER_SEC;
    g_autofree char *text = team_world_text(world, sql);

    while (g_strcmp0(text, value) != 0) {
        if (clock_mono_us() > end_us)
            g_error("'%s' is '%s', not '%s'", sql, text, value);
        g_free(text);
        text = team_world_text(world, sql);
    }
}

static bool
unblock_work(DbTx *tx, void *data, GError **error)
{
    return flow_unblock(tx, data, "local", error);
}

void
team_world_unblock(TeamWorld *world, const char *task_id)
{
    g_autofree char *id = g_strdup(task_id);
    g_autoptr(GError) error = NULL;

    store_write(world->w->bench->db, unblock_work, id, &error);
    g_assert_no_error(error);
    flow_wake(world->team->flow, task_id);
}

/* ---- tasks ---- */

/* In the form that every plan has when it is stored. */
static char *
whole_plan(const char *text)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(Json) said = json_decode(text, strlen(text), &error);
    g_autoptr(Json) whole = said != NULL ? plan_check(said, &error) : NULL;

    g_assert_no_error(error);
    return json_encode(whole);
}

static char *
make_task(TeamWorld *world, const char *repository_id, const char *plan, const char *policy)
{
    gint64 n = store_read_int(world->w->bench->db, "SELECT COUNT(*) + 1 FROM tasks");
    g_autofree char *branch = repository_id != NULL ? g_strdup_printf("'task-%d'", (int)n) : g_strdup("NULL");
    g_autofree char *repo = repository_id != NULL ? g_strdup_printf("'%s'", repository_id) : g_strdup("NULL");
    char id[ID_UUID_LEN + 1], plan_id[ID_UUID_LEN + 1];

    id_new_uuid(id);
    id_new_uuid(plan_id);
    g_autofree char *task = g_strdup_printf(
        "INSERT INTO tasks (id, number, squad_id, owner, actor, source, title, request, repository_id, "
        "branch, "
        "policy, state, created_us, updated_us) SELECT '%s', %d, id, '', 'local', 'api', 'Multiply', "
        "'Please multiply', %s, %s, '%s', 'queued', 1700000000000000, 1 FROM squads LIMIT 1",
        id, (int)n, repo, branch, policy != NULL ? policy : "{}");
    g_autofree char *body = plan != NULL ? whole_plan(plan) : NULL;
    g_autofree char *row = g_strdup_printf(
        "INSERT INTO plans (id, task_id, version, producer, state, body, actor, created_us, updated_us) "
        "VALUES ('%s', '%s', 1, 'person', 'approved', '%s', 'local', 1, 1)",
        plan_id, id, body);

    team_world_sql(world, task);
    if (plan != NULL)
        team_world_sql(world, row);
    flow_wake(world->team->flow, id);
    return g_strdup(id);
}

char *
team_world_task(TeamWorld *world, const char *plan, const char *policy)
{
    RepoInfo info;

    repo_info(world->w->repo, &info);
    return make_task(world, info.id, plan, policy);
}

char *
team_world_task_bare(TeamWorld *world, const char *plan, const char *policy)
{
    return make_task(world, NULL, plan, policy);
}

/* ---- agents ---- */

typedef struct Find {
    const char *id;
    Json *row;
} Find;

static bool
find_work(DbTx *tx, void *data, GError **error)
{
    static const RowColumn columns[] = {
        {"id", ROW_TEXT},        {"task_id", ROW_TEXT},    {"kind", ROW_TEXT},  {"agent", ROW_TEXT},
        {"lease", ROW_TEXT},     {"git_branch", ROW_TEXT}, {"brief", ROW_JSON}, {"git_base", ROW_TEXT},
        {"member_id", ROW_TEXT}, {"try", ROW_INT},
    };
    static const RowTable table = {"agent", "task_executions", columns, G_N_ELEMENTS(columns)};
    Find *find = data;
    g_auto(RowJob) job = {0};

    row_job_init(&job, tx, "");
    find->row = row_get(&job, &table, "id = ?", DB_ARGS(db_text(find->id)), error);
    return find->row != NULL;
}

/* Those that are started together have no order. */
static Json *
take_agent(TeamWorld *world, const char *kind)
{
    for (GList *at = world->started.head; at != NULL; at = at->next) {
        Find find = {.id = at->data};
        g_autoptr(GError) error = NULL;

        store_read(world->w->bench->db, find_work, &find, &error);
        g_assert_no_error(error);
        if (strcmp(row_text(find.row, "kind"), kind) == 0) {
            g_free(at->data);
            g_queue_delete_link(&world->started, at);
            return find.row;
        }
        json_decref(find.row);
    }
    return NULL;
}

Json *
team_world_agent(TeamWorld *world, const char *kind)
{
    gint64 end_us = clock_mono_us() + (gint64)UNTIL_S * G_USEC_PER_SEC;
    Json *row = take_agent(world, kind);

    while (row == NULL) {
        if (clock_mono_us() > end_us)
            g_error("no agent was started for '%s'", kind);
        g_main_context_iteration(NULL, TRUE);
        row = take_agent(world, kind);
    }
    return row;
}

static void
end_agent(TeamWorld *world, const Json *agent, const char *state, Json *result, Json *report)
{
    g_autoptr(Json) taken = result, taken_too = report;
    g_autofree char *seen = result != NULL ? json_encode(result) : NULL;
    g_autofree char *said = report != NULL ? json_encode(report) : NULL;
    g_autofree char *sql = g_strdup_printf("UPDATE task_executions SET state = '%s', ended_us = 2, result = "
                                           "'%s', report = '%s' WHERE id = '%s'",
                                           state, seen != NULL ? seen : "null", said != NULL ? said : "null",
                                           row_text(agent, "id"));

    team_world_sql(world, sql);
    flow_wake(world->team->flow, row_text(agent, "task_id"));
}

static Json *
result_new(const char *head, int passed)
{
    Json *checks = passed < 0
                       ? json_array()
                       : json_pack("[{s:s, s:s, s:i, s:{s:i, s:i, s:i, s:i, s:[]}, s:s}]", "name", "tests",
                                   "run", "make test", "exit_code", passed > 0 ? 0 : 1, "tests", "total", 2,
                                   "passed", passed > 0 ? 2 : 1, "failed", passed > 0 ? 0 : 1, "skipped", 0,
                                   "failing", "output", "1 of 2 is red");

    return json_pack("{s:s?, s:[], s:o, s:o}", "head_oid", head, "commits", "passed",
                     passed < 0 ? json_null() : json_boolean(passed), "checks", checks);
}

void
team_world_done(TeamWorld *world, const Json *agent, const char *file, const char *text, int passed)
{
    const char *branch = row_text(agent, "git_branch"), *base = row_text(agent, "git_base");
    g_autofree char *tip = branch != NULL ? git_branch_oid(repo_git(world->w->repo), branch, NULL) : NULL;
    g_autofree char *head = g_strdup(tip != NULL ? tip : base);

    if (file != NULL && branch != NULL) {
        g_autofree char *parent = g_steal_pointer(&head);

        head = forge_world_change(world->w, branch, file, text, parent);
    }
    end_agent(world, agent, "done", result_new(head, passed),
              json_pack("{s:s, s:s}", "outcome", "done", "summary", "I did it"));
}

void
team_world_looked(TeamWorld *world, const Json *agent, const char *verdict, const char *findings)
{
    g_autoptr(Json) list = json_decode(findings, strlen(findings), NULL);

    end_agent(world, agent, "done", result_new(row_text(agent, "git_base"), 1),
              json_pack("{s:s, s:s, s:s, s:O}", "outcome", "done", "summary", "Looked", "verdict", verdict,
                        "findings", list));
}

void
team_world_lost(TeamWorld *world, const Json *agent)
{
    end_agent(world, agent, "lost", NULL, NULL);
}

void
team_world_pass(TeamWorld *world)
{
    gint64 number = store_read_int(world->w->bench->db, "SELECT MAX(number) FROM threads");

    fake_checks_pass_pull(world->w, number);
}

void
team_world_code(TeamWorld *world, const char *kind, const char *file, const char *text, int passed)
{
    g_autoptr(Json) agent = team_world_agent(world, kind);

    team_world_done(world, agent, file, text, passed);
}

void
team_world_expect(TeamWorld *world, const char *sql, const char *value)
{
    g_autofree char *text = team_world_text(world, sql);

    g_assert_cmpstr(text, ==, value);
}

bool
team_world_main_has(TeamWorld *world, const char *path)
{
    GitRepo *git = repo_git(world->w->repo);
    g_autofree char *tip = git_branch_oid(git, "main", NULL);
    g_autoptr(TreeEntry) entry = contents_entry(git, tip, path, NULL);

    return entry != NULL;
}

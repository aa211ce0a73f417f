/* SPDX-License-Identifier: Apache-2.0 */
#include "base/err.h"
#include "forge/repo.h"
#include "team/member-private.h"
#include "team/plan-private.h"
#include "team/role-private.h"
#include "team/squad-private.h"
#include "team/tally.h"

enum {
    TASKS_AT_ONCE = 3,
    AGENTS_PER_TASK = 5,
    TRIES = 3,
    ROUNDS = 3,
    AGENT_S = 1800,
    TURNS = 100,
    KEEP_S = 24 * 3600,
    RETRY_MS = 1000,
};
#define KEPT_MAX (G_GINT64_CONSTANT(10) << 30)

static guint
usual(guint value, guint usual_value)
{
    return value != 0 ? value : usual_value;
}

static TeamLimits
whole_limits(const TeamLimits *l)
{
    return (TeamLimits){
        .tasks_at_once = usual(l->tasks_at_once, TASKS_AT_ONCE),
        .agents_per_task = usual(l->agents_per_task, AGENTS_PER_TASK),
        .tries = usual(l->tries, TRIES),
        .rounds = usual(l->rounds, ROUNDS),
        .agent_s = usual(l->agent_s, AGENT_S),
        .turns = usual(l->turns, TURNS),
        .keep_s = usual(l->keep_s, KEEP_S),
        .kept_max = l->kept_max != 0 ? l->kept_max : KEPT_MAX,
        .retry_ms = usual(l->retry_ms, RETRY_MS),
    };
}

/* The strings of the spec, each of which is copied. */
static const size_t strings[] = {
    offsetof(TeamSpec, home),
    offsetof(TeamSpec, address),
    offsetof(TeamSpec, roles_dir),
    offsetof(TeamSpec, agents_dir),
    offsetof(TeamSpec, tools_dir),
    offsetof(TeamSpec, default_provider),
    offsetof(TeamSpec, default_model),
    offsetof(TeamSpec, template_coder),
    offsetof(TeamSpec, template_reviewer),
    offsetof(TeamSpec, template_tester),
};

static char **
string_at(TeamSpec *spec, size_t i)
{
    return (char **)((char *)spec + strings[i]);
}

Team *
team_new(const TeamSpec *spec, GError **error)
{
    Team *team = g_new0(Team, 1);

    team->refs = 1;
    team->spec = *spec;
    for (size_t i = 0; i < G_N_ELEMENTS(strings); i++)
        *string_at(&team->spec, i) = g_strdup(*string_at(&team->spec, i));
    team->limits = whole_limits(&spec->limits);
    roles_load(team);
    team->rooms = rooms_new(team);
    team->crew = crew_new(team);
    team->flow = flow_new(team);
    team->tally = tally_new(team);
    return team;
}

Team *
team_ref(Team *team)
{
    team->refs++;
    return team;
}

void
team_unref(Team *team)
{
    if (--team->refs > 0)
        return;
    for (size_t i = 0; i < G_N_ELEMENTS(strings); i++)
        g_free(*string_at(&team->spec, i));
    g_hash_table_unref(team->roles);
    g_hash_table_unref(team->aliases);
    g_free(team);
}

/* ---- the start ---- */

typedef struct Load {
    Team *team;
    DbDone done;
    void *data;
} Load;

static const RowMember default_members[] = {
    ROW_AT_TEXT(SquadDefault, provider),
    ROW_AT_TEXT(SquadDefault, model),
    ROW_AT_END,
};

static bool
run_load(RowJob *job, const void *spec, Json **ret_value, GError **error)
{
    return squad_make_default(job, spec, error);
}

static const RowOp load_op = {ROW_WRITES, sizeof(SquadDefault), default_members, run_load};

static void
on_identities(void *data, const GError *error)
{
    g_autofree Load *load = data;

    load->done(load->data, error);
    team_unref(load->team);
}

static void
on_loaded(Json *value, const GError *error, void *data)
{
    Load *load = data;

    if (error != NULL)
        on_identities(load, error);
    else
        member_identities(load->team, NULL, on_identities, load);
}

void
team_load(Team *team, DbDone done, void *data)
{
    const SquadDefault spec = {.provider = team->spec.default_provider, .model = team->spec.default_model};
    Load *load = g_new(Load, 1);

    *load = (Load){.team = team_ref(team), .done = done, .data = data};
    team_run(team, &load_op, &spec, on_loaded, load);
}

void
team_start(Team *team)
{
    crew_begin(team->crew);
    flow_start(team->flow);
    tally_start(team->tally);
}

void
team_free(Team *team)
{
    if (team == NULL)
        return;
    g_clear_pointer(&team->tally, tally_free);
    g_clear_pointer(&team->flow, flow_free);
    plan_end_all(team);
    g_clear_pointer(&team->crew, crew_free);
    g_clear_pointer(&team->rooms, rooms_free);
    team_unref(team);
}

void
team_stats(Team *team, TeamStats *ret_stats)
{
    *ret_stats = (TeamStats){
        .tasks_queued = team->tasks_queued,
        .tasks_running = team->tasks_running,
        .tasks_blocked = team->tasks_blocked,
        .completed = team->completed,
        .failed = team->failed,
        .cancelled = team->cancelled,
    };
}

void
team_run(Team *team, const RowOp *op, const void *spec, TeamJsonFunc done, void *data)
{
    row_run_in(team->spec.db, "", op, spec, done, data);
}

bool
team_find_repository(Team *team, const char *name, const char **ret_id, GError **error)
{
    g_autofree char *owner = NULL, *base = NULL;
    RepoInfo info;

    if (name == NULL || name[0] == '\0') {
        *ret_id = NULL;
        return true;
    }
    if (!repo_name_split(name, &owner, &base, error))
        return false;
    Repo *repo = team->spec.forge != NULL ? forge_find(team->spec.forge, owner, base) : NULL;

    if (repo == NULL)
        return err_set(error, ERR_NOT_FOUND, "there is no repository '%s/%s'", owner, base);
    repo_info(repo, &info);
    *ret_id = info.id;
    return true;
}

bool
team_event(DbTx *tx, const TeamEvent *event, GError **error)
{
    g_autoptr(Json) data = event->data;
    g_autofree char *text = data != NULL ? json_encode(data) : NULL;
    EventSpec spec = {
        .kind = event->kind,
        .actor = event->actor,
        .task_id = event->task_id,
        .squad_id = event->squad_id,
        .box_id = event->box_id,
        .execution_id = event->execution_id,
        .data = text,
    };

    return event_append(tx, &spec, NULL, error);
}

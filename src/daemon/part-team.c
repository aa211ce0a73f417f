/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/log.h"
#include "daemon/place.h"
#include "daemon/serve-private.h"

static TeamLimits
limits_of(const ConfigTeam *t)
{
    return (TeamLimits){
        .tasks_at_once = (guint)t->concurrent_tasks,
        .agents_per_task = (guint)t->agents_per_task,
        .tries = (guint)t->tries,
        .rounds = (guint)t->rounds,
        .agent_s = (guint)(t->agent_ms / 1000),
        .turns = (guint)t->turns,
        .keep_s = (guint)(t->keep_ms / 1000),
        .kept_max = t->kept_max,
        .retry_ms = (guint)t->retry_ms,
    };
}

/* Nothing, without a door. */
static Mind
make_mind(Server *s)
{
    DoorService *door = s->boxes != NULL ? boxes_door(s->boxes) : NULL;
    g_autofree char *run = g_build_filename(s->config->home, "run", NULL);

    s->mind = door != NULL ? serve_mind_new(s->loop, door, run) : NULL;
    return s->mind != NULL ? serve_mind_face(s->mind) : (Mind){0};
}

/* ---- what tasks may spend ---- */

static const char purse_actor[] = "coop";

static bool
purse_is_bound(void *ctx, const char *task_id)
{
    g_autofree char *scope = g_strconcat("task:", task_id, NULL);

    return g_strcmp0(door_models_budget_actor(ctx, scope), purse_actor) == 0;
}

static void
purse_bind(void *ctx, const char *task_id, Json *bounds, DbDone done, void *data)
{
    g_autofree char *scope = g_strconcat("task:", task_id, NULL);
    const char *by = door_models_budget_actor(ctx, scope);

    if (by != NULL ? strcmp(by, purse_actor) != 0 : bounds == NULL)
        done(data, NULL);
    else if (bounds != NULL)
        door_models_put_budget(ctx, scope, bounds, purse_actor, done, data);
    else
        door_models_remove_budget(ctx, scope, done, data);
}

static Purse
make_purse(Server *s)
{
    DoorService *door = s->boxes != NULL ? boxes_door(s->boxes) : NULL;

    return door != NULL ? (Purse){purse_bind, purse_is_bound, door_service_models(door)} : (Purse){0};
}

/* ---- what repositories may ask for ---- */

/* One with rules of its own at the door lets out more, or other things, than the others do. */
static bool
names_template(const Json *list, const char *template)
{
    size_t i;
    const Json *row;

    json_array_foreach(list, i, row)
    {
        if (g_strcmp0(json_string_value(json_object_get(row, "scope")), "template") == 0 &&
            g_strcmp0(json_string_value(json_object_get(row, "scope_id")), template) == 0)
            return true;
    }
    return false;
}

static bool
is_open_template(void *ctx, const char *template)
{
    g_autoptr(Json) shown = door_rules_show(ctx);

    return !names_template(json_object_get(shown, "rules"), template) &&
           !names_template(json_object_get(shown, "modes"), template);
}

static void
make_team(Server *s)
{
    const ConfigTeam *t = &s->config->team;
    const char *slash = t->model != NULL ? strchr(t->model, '/') : NULL;
    g_autofree char *provider = slash != NULL ? g_strndup(t->model, (gsize)(slash - t->model)) : NULL;
    g_autofree char *self = g_file_read_link("/proc/self/exe", NULL);
    g_autofree char *agent = self != NULL ? program_find(self, "coop-agent", NULL) : NULL;
    g_autofree char *tools = agent != NULL ? g_path_get_dirname(agent) : NULL;
    g_autofree char *agents = g_build_filename(s->config->home, "agents", NULL);
    g_autofree char *roles = g_build_filename(s->config->home, "roles", NULL);
    DoorService *door = s->boxes != NULL ? boxes_door(s->boxes) : NULL;
    g_autoptr(GError) error = NULL;

    s->team = team_new(&(TeamSpec){.loop = s->loop,
                                   .db = s->db,
                                   .events = s->events,
                                   .boxes = serve_box_host(s),
                                   .forge = s->forge,
                                   .checks = s->checks,
                                   .landings = s->landings,
                                   .mind = make_mind(s),
                                   .purse = make_purse(s),
                                   .home = s->config->home,
                                   .address = s->address,
                                   .agents_dir = agents,
                                   .tools_dir = tools,
                                   .roles_dir = roles,
                                   .default_provider = provider,
                                   .template_coder = t->template_coder,
                                   .template_reviewer = t->template_reviewer,
                                   .template_tester = t->template_tester,
                                   .default_model = slash != NULL ? slash + 1 : t->model,
                                   .limits = limits_of(t),
                                   .is_open_template = door != NULL ? is_open_template : NULL,
                                   .template_ctx = door != NULL ? door_service_rules(door) : NULL},
                       &error);
    if (s->team == NULL)
        log_warn("daemon", "there are no squads", log_gerror(error));
}

static bool
load_team(Server *s, DbDone done)
{
    if (s->team != NULL)
        team_load(s->team, done, s);
    return s->team != NULL;
}

static void
start_team(Server *s)
{
    if (s->team != NULL)
        team_start(s->team);
}

static void
stop_team(Server *s)
{
    team_free(s->team);
    serve_mind_free(s->mind);
}

const ServePart part_team = {.make = make_team, .load = load_team, .start = start_team, .stop = stop_team};

/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/commands.h"
#include "cli/follow.h"
#include "cli/number.h"
#include "cli/remote.h"
#include "cli/team-call.h"

enum { SHOWN = 30, SHOWN_MAX = 1000 };

static const char api[] = "/api/v1/agents";

static const OutColumn columns[] = {
    {"agentId", "AGENT"},   {"role", "ROLE"},          {"state", "STATE"},
    {"adapter", "ADAPTER"}, {"model", "MODEL"},        {"sandboxId", "SANDBOX"},
    {"problem", "PROBLEM"}, {"created_at", "CREATED"}, {NULL},
};

static char *
agent_path(Cli *cli)
{
    g_autofree char *id = g_uri_escape_string(cli_args(cli)[0], NULL, FALSE);

    return g_strconcat(api, "/", id, NULL);
}

static ExitCode
call(Cli *cli, const char *method, const char *path, const Json *body, Remote **ret_remote, Json **ret_answer)
{
    ExitCode code = remote_open(cli, ret_remote);

    return code == EXIT_CODE_OK ? remote_call(*ret_remote, method, path, body, ret_answer) : code;
}

static ExitCode
run_ls(Cli *cli)
{
    g_autofree char *task = cli_option(cli, "task") != NULL
                                ? g_uri_escape_string(cli_option(cli, "task"), NULL, FALSE)
                                : NULL;
    g_autofree char *path = task != NULL ? g_strconcat(api, "?task=", task, "&", NULL)
                                         : g_strconcat(api, "?", NULL);
    g_autoptr(Json) list = NULL;
    g_autoptr(GError) error = NULL;
    gint64 limit = SHOWN;

    if (!cli_read_number(cli, "limit", SETTING_INT, 1, SHOWN_MAX, &limit, &error))
        return cli_fail_error(cli, error);
    ExitCode code = team_fetch(cli, path, "agents", (guint)limit, &list);

    if (code == EXIT_CODE_OK)
        out_table(cli_out(cli), columns, list);
    return code;
}

static Json *
requirements_of(Cli *cli)
{
    Json *list = json_array();

    for (guint i = 1; i < cli_n_args(cli); i++)
        json_array_append_new(list, json_string(cli_args(cli)[i]));
    return list;
}

static ExitCode
run_spawn(Cli *cli)
{
    g_autoptr(Json)
        body = json_pack("{s:s, s:o, s:s*, s:s*, s:s*, s:s*, s:s*, s:s*, s:s*}", "role", cli_args(cli)[0],
                         "requirements", requirements_of(cli), "taskId", cli_option(cli, "task"),
                         "repository", cli_option(cli, "repo"), "squad", cli_option(cli, "squad"), "adapter",
                         cli_option(cli, "adapter"), "provider", cli_option(cli, "provider"), "model",
                         cli_option(cli, "model"), "template", cli_option(cli, "template"));
    g_autoptr(Remote) remote = NULL;
    g_autoptr(Json) made = NULL;

    if (body == NULL)
        return cli_fail(cli, EXIT_CODE_USAGE, "the role and the options must be UTF-8");
    ExitCode code = call(cli, "POST", api, body, &remote, &made);

    if (code == EXIT_CODE_OK)
        out_fields(cli_out(cli), columns, made);
    return code;
}

static ExitCode
run_show(Cli *cli)
{
    g_autofree char *path = agent_path(cli);
    g_autoptr(Remote) remote = NULL;
    g_autoptr(Json) agent = NULL;
    ExitCode code = call(cli, "GET", path, NULL, &remote, &agent);

    if (code == EXIT_CODE_OK)
        out_fields(cli_out(cli), columns, agent);
    return code;
}

static ExitCode
run_stop(Cli *cli)
{
    g_autofree char *path = agent_path(cli);
    g_autoptr(Remote) remote = NULL;
    g_autoptr(Json) agent = NULL;
    ExitCode code = call(cli, "DELETE", path, NULL, &remote, &agent);

    if (code != EXIT_CODE_OK)
        return code;
    out_json(cli_out(cli), agent);
    out_text(cli_out(cli), OUT_PLAIN, "%s\n", json_string_value(json_object_get(agent, "state")));
    return EXIT_CODE_OK;
}

static ExitCode
show_events(Cli *cli, Remote *remote, const char *path)
{
    g_autofree char *page = g_strconcat(path, "&limit=500", NULL);
    g_autoptr(Json) body = NULL;
    ExitCode code = remote_call(remote, "GET", page, NULL, &body);
    size_t i;
    Json *event;

    json_array_foreach(json_object_get(body, "events"), i, event) follow_show_event(cli_out(cli), event);
    return code;
}

/* False: it has left. */
static bool
show_event(Out *out, const Json *event, void *ctx)
{
    follow_show_event(out, event);
    return g_strcmp0(json_string_value(json_object_get(event, "kind")), "agent.left") != 0;
}

static ExitCode
run_log(Cli *cli)
{
    g_autofree char *path = agent_path(cli);
    g_autoptr(Remote) remote = NULL;
    g_autoptr(Json) agent = NULL;
    ExitCode code = call(cli, "GET", path, NULL, &remote, &agent);
    const char *id = json_string_value(json_object_get(agent, "id"));

    if (code != EXIT_CODE_OK)
        return code;
    if (id == NULL)
        return cli_fail(cli, EXIT_CODE_FAILED, "the server at %s gave no agent", remote_address(remote));
    g_autofree char *events = g_strconcat("/api/v1/events?after=0&execution=", id, NULL);
    const FollowSpec spec = {.path = events, .limit = -1, .known = true, .show = show_event};

    return cli_option(cli, "follow") != NULL ? follow_run_as(cli, remote, &spec)
                                             : show_events(cli, remote, events);
}

static const CliOption ls_options[] = {
    {.name = "task", .value = "ID", .help = "only those of this task"},
    {.name = "limit", .value = "N", .help = "at most so many; 30 if not named"},
    {NULL},
};
static const Command agent_ls = {
    .name = "ls",
    .summary = "List agents, the newest first",
    .options = ls_options,
    .settings = CLI_SETTINGS_CLIENT,
    .run = run_ls,
};

static const CliOption spawn_options[] = {
    {.name = "task", .value = "TASK", .help = "the task it helps with: id or number"},
    {.name = "repo", .value = "OWNER/NAME", .help = "what it works on (default: the task's, or none)"},
    {.name = "squad", .value = "SQUAD", .help = "whose members' settings count (default: default)"},
    {.name = "adapter", .value = "NAME", .help = "coop, claude-code, codex, opencode or one of your own"},
    {.name = "provider", .value = "NAME", .help = "of the model"},
    {.name = "model", .value = "NAME", .help = "that it asks"},
    {.name = "template", .value = "NAME", .help = "of its sandbox"},
    {NULL},
};
static const Command agent_spawn_command = {
    .name = "spawn",
    .summary = "Start an agent in a sandbox of its own",
    .args = "ROLE TEXT...",
    .args_min = 2,
    .args_max = CLI_ARGS_MANY,
    .options = spawn_options,
    .details = "TEXT says what it shall do. Its sandbox ends with it; what it made is on its branch.",
    .settings = CLI_SETTINGS_CLIENT,
    .run = run_spawn,
};

static const Command agent_show = {
    .name = "show",
    .summary = "Show an agent",
    .args = "AGENT",
    .args_min = 1,
    .args_max = 1,
    .settings = CLI_SETTINGS_CLIENT,
    .run = run_show,
};

static const Command agent_stop_command = {
    .name = "stop",
    .summary = "End an agent and its sandbox",
    .args = "AGENT",
    .args_min = 1,
    .args_max = 1,
    .settings = CLI_SETTINGS_CLIENT,
    .run = run_stop,
};

static const CliOption log_options[] = {
    {.name = "follow", .letter = 'f', .help = "go on until it has left"},
    {NULL},
};
static const Command agent_log = {
    .name = "log",
    .summary = "What an agent said and did",
    .args = "AGENT",
    .args_min = 1,
    .args_max = 1,
    .options = log_options,
    .settings = CLI_SETTINGS_CLIENT,
    .run = run_log,
};

static const Command *const commands[] = {&agent_ls,           &agent_spawn_command, &agent_show,
                                          &agent_stop_command, &agent_log,           NULL};

const Command command_agent = {
    .name = "agent",
    .summary = "Agents in their sandboxes",
    .commands = commands,
    .settings = CLI_SETTINGS_CLIENT,
    .run = run_ls,
};

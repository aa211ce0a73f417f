/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/sandbox.h"

#include <signal.h>
#include <string.h>

#include "cli/box-call.h"
#include "cli/box-spec.h"
#include "cli/commands.h"

static OutStyle
style_state(const char *value)
{
    static const struct {
        const char *word;
        OutStyle style;
    } rows[] = {{"ready", OUT_GOOD}, {"busy", OUT_GOOD}, {"paused", OUT_WARN}, {"error", OUT_BAD}};

    for (size_t i = 0; i < G_N_ELEMENTS(rows); i++) {
        if (strcmp(rows[i].word, value) == 0)
            return rows[i].style;
    }
    return OUT_PLAIN;
}

static const OutColumn fields[] = {
    {"sandbox_id", "Sandbox"},  {"name", "Name"},
    {"template", "Template"},   {"state", "State", style_state},
    {"reason", "Reason"},       {"uptime", "Uptime"},
    {"executions", "Commands"}, {"cost", "Cost"},
    {"limits", "Limits"},       {"degraded", "Degraded"},
    {"created_at", "Created"},  {"expires_at", "Expires"},
    {"agent_id", "Agent"},      {"task_id", "Task"},
    {"squad_id", "Squad"},      {NULL},
};

/* ---- create ---- */

static ExitCode
run_create(Cli *cli)
{
    g_autoptr(Remote) remote = NULL;
    g_autoptr(Json) box = NULL;
    g_autofree char *id = NULL;
    ExitCode code = remote_open(cli, &remote);

    if (code == EXIT_CODE_OK)
        code = box_make(cli, remote, &box, &id);
    if (code != EXIT_CODE_OK)
        return code;
    out_json(cli_out(cli), box);
    out_text(cli_out(cli), OUT_PLAIN, "%s\n", id);
    return EXIT_CODE_OK;
}

static const CliOption create_options[] = {BOX_OPTIONS, {NULL}};
const Command sandbox_create = {
    .name = "create",
    .summary = "Make a box and print its id",
    .options = create_options,
    .settings = CLI_SETTINGS_CLIENT,
    .run = run_create,
};

/* ---- ls ---- */

static ExitCode
run_ls(Cli *cli)
{
    static const OutColumn columns[] = {
        {"sandbox_id", "SANDBOX"}, {"name", "NAME"},
        {"template", "TEMPLATE"},  {"state", "STATE", style_state},
        {"uptime", "UPTIME"},      {"executions", "COMMANDS"},
        {"cost", "COST"},          {NULL},
    };
    g_autoptr(Remote) remote = NULL;
    g_autoptr(Json) body = NULL;
    ExitCode code = remote_open(cli, &remote);

    if (code == EXIT_CODE_OK)
        code = remote_call(remote, "GET",
                           cli_option(cli, "all") != NULL ? "/api/v1/sandboxes?ended=1" : "/api/v1/sandboxes",
                           NULL, &body);
    const Json *boxes = json_object_get(body, "sandboxes");
    if (code == EXIT_CODE_OK && !json_is_array(boxes))
        return cli_fail(cli, EXIT_CODE_FAILED, "the server at %s gave no list of boxes",
                        remote_address(remote));
    if (code == EXIT_CODE_OK)
        out_table(cli_out(cli), columns, boxes);
    return code;
}

static const CliOption ls_options[] = {
    {.name = "all", .letter = 'a', .help = "also those that have ended"},
    {NULL},
};
const Command sandbox_ls = {
    .name = "ls",
    .summary = "List the boxes",
    .options = ls_options,
    .settings = CLI_SETTINGS_CLIENT,
    .run = run_ls,
};

const Command command_ps = {
    .name = "ps",
    .summary = "List the boxes",
    .options = ls_options,
    .settings = CLI_SETTINGS_CLIENT,
    .run = run_ls,
};

/* ---- exec ---- */

static ExitCode
run_exec(Cli *cli)
{
    g_autoptr(Remote) remote = NULL;
    ExitCode code = remote_open(cli, &remote);

    signal(SIGPIPE, SIG_IGN);
    if (code != EXIT_CODE_OK)
        return code;
    return box_exec(cli, remote, cli_args(cli)[0], cli_args(cli) + 1, cli_n_args(cli) - 1);
}

static const CliOption exec_options[] = {COMMAND_OPTIONS, {NULL}};
#define EXEC_COMMAND                                                                                         \
    {                                                                                                        \
        .name = "exec", .summary = "Run a command in a box", .args = "BOX -- COMMAND...", .args_min = 2,     \
        .args_max = CLI_ARGS_MANY, .options = exec_options, .rest = true, .settings = CLI_SETTINGS_CLIENT,   \
        .run = run_exec,                                                                                     \
        .details = "One word is a line for the shell inside; several are the program and its arguments.\n"   \
                   "The exit code is the command's.",                                                        \
    }
const Command sandbox_exec = EXEC_COMMAND;
const Command command_exec = EXEC_COMMAND;

/* ---- one box, one call ---- */

/* The call on every box that is named; the last failure is what we end with. */
static ExitCode
call_each(Cli *cli, const char *method, const char *rest, const char *done)
{
    g_autoptr(Remote) remote = NULL;
    g_autoptr(Json) all = json_array();
    ExitCode code = remote_open(cli, &remote), last = EXIT_CODE_OK;

    if (code != EXIT_CODE_OK)
        return code;
    for (guint i = 0; i < cli_n_args(cli); i++) {
        const char *id = cli_args(cli)[i];
        g_autofree char *path = box_path(id, rest);
        g_autoptr(Json) body = NULL;

        code = remote_call(remote, method, path, NULL, &body);
        if (code == EXIT_CODE_UNREACHABLE || code == EXIT_CODE_DENIED)
            return code; /* the next would fare no better */
        if (code != EXIT_CODE_OK) {
            last = code;
            continue;
        }
        json_array_append_new(all, body != NULL ? json_incref(body) : json_pack("{s:s}", "sandbox_id", id));
        out_text(cli_out(cli), OUT_PLAIN, "%s %s\n", done, id);
    }
    if (json_array_size(all) > 0)
        out_json(cli_out(cli), all);
    return last;
}

static ExitCode
run_rm(Cli *cli)
{
    return call_each(cli, "DELETE", "", "removed");
}

static ExitCode
run_pause(Cli *cli)
{
    return call_each(cli, "POST", "/pause", "paused");
}

static ExitCode
run_resume(Cli *cli)
{
    return call_each(cli, "POST", "/resume", "resumed");
}

#define EACH_COMMAND(word, text, func)                                                                       \
    {                                                                                                        \
        .name = (word), .summary = (text), .args = "BOX...", .args_min = 1, .args_max = CLI_ARGS_MANY,       \
        .settings = CLI_SETTINGS_CLIENT, .run = (func),                                                      \
    }
const Command sandbox_rm = EACH_COMMAND("rm", "End boxes and remove what is in them", run_rm);
const Command command_rm = EACH_COMMAND("rm", "End boxes and remove what is in them", run_rm);
const Command sandbox_pause = EACH_COMMAND("pause", "Freeze boxes; their memory is kept", run_pause);
const Command sandbox_resume = EACH_COMMAND("resume", "Let frozen boxes go on", run_resume);

/* ---- show ---- */

static ExitCode
run_show(Cli *cli)
{
    g_autoptr(Remote) remote = NULL;
    g_autoptr(Json) box = NULL;
    g_autofree char *path = box_path(cli_args(cli)[0], "");
    ExitCode code = remote_open(cli, &remote);

    if (code == EXIT_CODE_OK)
        code = remote_call(remote, "GET", path, NULL, &box);
    if (code == EXIT_CODE_OK)
        out_fields(cli_out(cli), fields, box);
    return code;
}

const Command sandbox_show = {
    .name = "show",
    .summary = "Show everything about a box",
    .args = "BOX",
    .args_min = 1,
    .args_max = 1,
    .settings = CLI_SETTINGS_CLIENT,
    .run = run_show,
};

static const Command *const commands[] = {
    &sandbox_create, &sandbox_ls,    &sandbox_show,  &sandbox_exec,   &sandbox_logs, &sandbox_cp,
    &sandbox_git,    &sandbox_stats, &sandbox_pause, &sandbox_resume, &sandbox_rm,   NULL,
};

const Command command_sandbox = {
    .name = "sandbox",
    .summary = "Make, use and remove boxes",
    .details =
        "'coop ps', 'coop exec', 'coop logs', 'coop cp' and 'coop rm' are short for the commands here.",
    .commands = commands,
};

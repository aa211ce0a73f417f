/* SPDX-License-Identifier: Apache-2.0 */
/* coop squad hook: where a squad's events are posted to. */
#include <string.h>

#include "cli/forge-call.h"
#include "cli/secret.h"
#include "cli/squad.h"
#include "cli/team-call.h"
#include "door/takeover.h"

enum { HOOKS_SHOWN = 100, DELIVERIES_SHOWN = 200 };

/* "/api/v1/squads/SQUAD/hooks", the hook behind it where there is one, and `rest`. */
static char *
hook_path(Cli *cli, const char *rest)
{
    g_autofree char *hook = cli_n_args(cli) > 1 ? g_uri_escape_string(cli_args(cli)[1], NULL, FALSE) : NULL;
    g_autofree char *end = g_strconcat("/hooks", hook != NULL ? "/" : "", hook != NULL ? hook : "", rest,
                                       NULL);

    return team_path("squads", cli_args(cli)[0], end);
}

static Json *
names_of(const Json *events)
{
    g_autoptr(GString) text = g_string_new(NULL);
    size_t i;
    Json *name;

    json_array_foreach((Json *)(guintptr)events, i, name)
        g_string_append_printf(text, "%s%s", i > 0 ? ", " : "", json_string_value(name));
    return json_string(text->str);
}

static void
shorten(Cli *cli, Json *hook)
{
    if (out_format(cli_out(cli)) == OUT_TEXT)
        json_object_set_new(hook, "events", names_of(json_object_get(hook, "events")));
}

/* ---- hooks ---- */

static ExitCode
run_ls(Cli *cli)
{
    static const OutColumn columns[] = {
        {"id", "ID"}, {"url", "URL"}, {"events", "EVENTS"}, {"active", "ACTIVE"}, {NULL},
    };
    g_autofree char *path = hook_path(cli, "?");
    g_autoptr(Json) list = NULL;
    ExitCode code = team_fetch(cli, path, "hooks", HOOKS_SHOWN, &list);
    size_t i;
    Json *hook;

    if (code != EXIT_CODE_OK)
        return code;
    json_array_foreach(list, i, hook) shorten(cli, hook);
    out_table(cli_out(cli), columns, list);
    return EXIT_CODE_OK;
}

/* False: said. */
static bool
set_secret(Cli *cli, Json *body)
{
    const char *file = cli_option(cli, "secret-file");
    g_autoptr(GError) error = NULL;
    char *secret = file != NULL ? secret_read(file, NULL, &error) : NULL;
    Json *text = secret != NULL ? json_string(secret) : NULL;

    if (error != NULL)
        cli_fail_error(cli, error);
    else if (secret != NULL && text == NULL)
        cli_fail(cli, EXIT_CODE_USAGE, "the secret is no UTF-8");
    else if (text != NULL)
        json_object_set_new(body, "secret", text);
    if (secret != NULL)
        door_wipe_text(secret);
    return file == NULL || text != NULL;
}

static bool
set_events(Cli *cli, Json *body)
{
    g_autoptr(GPtrArray) given = cli_option_all(cli, "event");

    for (guint i = 0; i < given->len; i++) {
        Json *name = json_string(given->pdata[i]);

        if (name == NULL) {
            cli_fail(cli, EXIT_CODE_USAGE, "--event is no UTF-8");
            return false;
        }
        if (i == 0)
            json_object_set_new(body, "events", json_array());
        json_array_append_new(json_object_get(body, "events"), name);
    }
    return true;
}

static ExitCode
run_add(Cli *cli)
{
    static const OutColumn fields[] = {
        {"id", "Id"}, {"url", "URL"}, {"events", "Events"}, {"secret", "Secret"}, {NULL},
    };
    g_autofree char *path = team_path("squads", cli_args(cli)[0], "/hooks");
    g_autoptr(Json) body = json_pack("{s:s}", "url", cli_args(cli)[1]), hook = NULL;

    if (body == NULL)
        return cli_fail(cli, EXIT_CODE_USAGE, "the URL is no UTF-8");
    if (!set_secret(cli, body) || !set_events(cli, body))
        return EXIT_CODE_USAGE;
    ExitCode code = team_send(cli, "POST", path, body, &hook);

    if (code != EXIT_CODE_OK)
        return code;
    shorten(cli, hook);
    out_fields(cli_out(cli), fields, hook);
    return EXIT_CODE_OK;
}

static ExitCode
run_rm(Cli *cli)
{
    g_autofree char *path = hook_path(cli, "");

    return remote_remove(cli, path, cli_args(cli)[1]);
}

/* ---- deliveries ---- */

static const OutColumn delivery_columns[] = {
    {"id", "ID"},           {"event", "EVENT"},     {"state", "STATE"},
    {"status", "STATUS"},   {"tries", "TRIES"},     {"guid", "DELIVERY"},
    {"created_at", "WHEN"}, {"problem", "PROBLEM"}, {NULL},
};

static ExitCode
run_log(Cli *cli)
{
    g_autofree char *path = hook_path(cli, "/deliveries?");
    g_autoptr(Json) list = NULL;
    ExitCode code = team_fetch(cli, path, "deliveries", DELIVERIES_SHOWN, &list);

    if (code == EXIT_CODE_OK)
        out_table(cli_out(cli), delivery_columns, list);
    return code;
}

static ExitCode
send_one(Cli *cli, const char *path)
{
    static const OutColumn fields[] = {
        {"id", "Id"}, {"event", "Event"}, {"guid", "Delivery"}, {"state", "State"}, {NULL},
    };
    g_autoptr(Json) delivery = NULL;
    ExitCode code = team_send(cli, "POST", path, NULL, &delivery);

    if (code == EXIT_CODE_OK)
        out_fields(cli_out(cli), fields, delivery);
    return code;
}

static ExitCode
run_test(Cli *cli)
{
    g_autofree char *path = hook_path(cli, "/ping");

    return send_one(cli, path);
}

static ExitCode
run_again(Cli *cli)
{
    g_autofree char *delivery = g_uri_escape_string(cli_args(cli)[2], NULL, FALSE);
    g_autofree char *rest = g_strdup_printf("/deliveries/%s/again", delivery);
    g_autofree char *path = hook_path(cli, rest);

    return send_one(cli, path);
}

/* ---- the commands ---- */

static const CliOption add_options[] = {
    {.name = "event",
     .letter = 'e',
     .value = "NAME",
     .help = "task.completed, 'pr.*', '*'; may be given again"},
    {.name = "secret-file",
     .value = "FILE",
     .help = "what is signed with ('-': standard input); made and shown once without"},
    {NULL},
};

#define HOOK_ARGS(words, n) .args = words, .args_min = n, .args_max = n, .settings = CLI_SETTINGS_CLIENT

static const Command hook_add = {.name = "add",
                                 .summary = "Post a squad's events to a URL, signed",
                                 .options = add_options,
                                 HOOK_ARGS("SQUAD URL", 2),
                                 .run = run_add};
static const Command hook_ls = {
    .name = "ls", .summary = "List the webhooks of a squad", HOOK_ARGS("SQUAD", 1), .run = run_ls};
static const Command hook_rm = {
    .name = "rm", .summary = "Remove a webhook", HOOK_ARGS("SQUAD ID", 2), .run = run_rm};
static const Command hook_test = {
    .name = "test", .summary = "Send a ping", HOOK_ARGS("SQUAD ID", 2), .run = run_test};
static const Command hook_log = {
    .name = "log", .summary = "List what was sent", HOOK_ARGS("SQUAD ID", 2), .run = run_log};
static const Command hook_again = {.name = "again",
                                   .summary = "Send one of those once more",
                                   HOOK_ARGS("SQUAD ID DELIVERY", 3),
                                   .run = run_again};

static const Command *const commands[] = {&hook_add, &hook_ls,    &hook_rm, &hook_test,
                                          &hook_log, &hook_again, NULL};

const Command squad_hook = {
    .name = "hook",
    .summary = "Webhooks of a squad",
    .commands = commands,
};

/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/serve.h"

#include <stdio.h>

#include "base/log.h"
#include "cli/commands.h"
#include "cli/settings.h"
#include "json/json.h"

static void
on_ready(const char *address, const char *link, void *data)
{
    Cli *cli = data;
    g_autoptr(Json) object = json_pack("{s:s, s:s?}", "address", address, "link", link);
    Out *out = cli_out(cli);

    out_json(out, object);
    out_text(out, OUT_GOOD, "Coop is ready.\n");
    out_text(out, OUT_PLAIN, "  address: %s\n", address);
    if (link != NULL)
        out_text(out, OUT_PLAIN,
                 "  sign in: %s\n           (works once, within ten minutes; 'coop link' prints another)\n",
                 link);
    out_text(out, OUT_PLAIN, "  try it:  coop demo, in a second terminal (needs no key for a model)\n");
    if (cli_option(cli, "supervised") != NULL)
        out_raw(out, "ready\n"); /* for the supervisor, which reads our lines */
}

static ExitCode
run(Cli *cli)
{
    g_autoptr(Config) config = NULL;
    g_autoptr(GError) error = NULL;
    ExitCode code = cli_config(cli, &config);
    ServeOptions options = {
        .user = cli_option(cli, "user"),
        .supervised = cli_option(cli, "supervised") != NULL,
        .ready = on_ready,
        .data = cli,
    };

    if (code != EXIT_CODE_OK)
        return code;
    for (guint i = 0; i < config->notices->len; i++)
        log_warn("config", config->notices->pdata[i]);
    log_set_levels(config->log_levels);
    if (serve_run(config, &options, &error))
        return EXIT_CODE_OK;
    code = exit_code_of(error);
    /* The command line was right; what it leads to is not. */
    return cli_fail(cli, code == EXIT_CODE_USAGE ? EXIT_CODE_CONFIG : code, "%s", error->message);
}

static const CliOption options[] = {
    {.name = "user", .value = "NAME", .help = "when started by root, run as this user (default: coop)"},
    {.name = "supervised", .help = "end when the process that started this one ends"},
    {NULL},
};

const Command command_serve = {
    .name = "serve",
    .summary = "Run the server in the foreground",
    .details = "'coop start' runs it with a supervisor that restarts it.",
    .options = options,
    .settings = CLI_SETTINGS_ALL,
    .run = run,
};

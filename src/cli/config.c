/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/config.h"

#include "cli/commands.h"
#include "cli/settings.h"
#include "daemon/setting.h"

/* All names that set it; the first that is there decides. */
static Json *
environment_json(const Setting *setting)
{
    g_autofree char *own = setting_dup_env_name(setting);
    Json *names = json_array();

    json_array_append_new(names, json_string(own));
    for (size_t i = 0; i < G_N_ELEMENTS(setting->env) && setting->env[i].name != NULL; i++)
        json_array_append_new(names, json_string(setting->env[i].name));
    return names;
}

static Json *
entry_json(const ConfigEntry *entry)
{
    const Setting *s = entry->setting;
    g_autofree char *expects = setting_dup_expects(s, UNIT_NONE);

    return json_pack("{s:s,s:s?,s:s,s:s?,s:o,s:s,s:s,s:b,s:s*}", "name", s->name, "value", entry->value,
                     "origin", entry->origin, "default", s->fallback, "environment", environment_json(s),
                     "expects", expects, "help", s->help, "secret", (int)s->secret, "later", s->later);
}

static ExitCode
run_show(Cli *cli)
{
    static const OutColumn columns[] = {{"name", "NAME"}, {"value", "VALUE"}, {"origin", "ORIGIN"}, {NULL}};
    g_autoptr(Config) config = NULL;
    g_autoptr(Json) rows = json_array();
    ExitCode code = cli_config(cli, &config);

    if (code != EXIT_CODE_OK)
        return code;
    g_autoptr(GPtrArray) entries = config_entries(config);
    for (guint i = 0; i < entries->len; i++)
        json_array_append_new(rows, entry_json(entries->pdata[i]));
    out_table(cli_out(cli), columns, rows);
    for (guint i = 0; i < config->notices->len; i++)
        out_notice(cli_out(cli), "%s", (const char *)config->notices->pdata[i]);
    return EXIT_CODE_OK;
}

static const Command show = {
    .name = "show",
    .summary = "Show every setting, its value and where the value comes from",
    .details = "Sources, each overriding those before it: the defaults, " CONFIG_SYSTEM_FILE
               ", " CONFIG_FILE_NAME "\nin the data folder, the environment, options. Secrets are not shown.",
    .settings = CLI_SETTINGS_ALL,
    .run = run_show,
};
static const Command *const commands[] = {&show, NULL};

const Command command_config = {
    .name = "config",
    .summary = "Look at the configuration",
    .commands = commands,
};

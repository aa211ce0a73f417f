/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/settings.h"

#include <string.h>

#include "base/nearest.h"
#include "daemon/setting.h"

static const CliOption set_option = {
    .name = "set",
    .value = "NAME=VALUE",
    .help = "any setting by its name; 'coop config show' lists them",
};

static bool
is_taken(const Setting *s, CliSettings which)
{
    bool is_home = strcmp(s->name, "home") == 0;
    bool is_server = strcmp(s->name, "server.url") == 0;

    switch (which) {
    case CLI_SETTINGS_NONE:
        return false;
    case CLI_SETTINGS_HOME:
        return is_home;
    case CLI_SETTINGS_CLIENT:
        return is_home || is_server;
    case CLI_SETTINGS_ALL:
        return !is_server;
    }
    g_assert_not_reached();
}

void
cli_settings_append(GArray *options, CliSettings which)
{
    for (size_t i = 0; i < n_settings; i++) {
        const Setting *s = &settings[i];

        if (s->flag == NULL || !is_taken(s, which))
            continue;
        CliOption option = {.name = s->flag, .value = s->flag_value, .help = s->help};
        g_array_append_val(options, option);
    }
    if (which == CLI_SETTINGS_ALL)
        g_array_append_val(options, set_option);
}

/* "NAME=VALUE" of --set.  NULL after a message. */
static const Setting *
find_set(Cli *cli, const char *text, const char **ret_value)
{
    const char *equals = strchr(text, '=');
    g_autofree char *name = equals != NULL ? g_strndup(text, (gsize)(equals - text)) : NULL;
    g_autofree const char **names = g_new(const char *, n_settings);

    if (name == NULL) {
        cli_fail(cli, EXIT_CODE_USAGE, "option --set: '%s' is not NAME=VALUE", text);
        return NULL;
    }
    for (size_t i = 0; i < n_settings; i++)
        names[i] = settings[i].name;
    const Setting *setting = setting_find(name);
    const char *near = setting == NULL ? nearest(name, names, n_settings) : NULL;
    if (near != NULL)
        cli_fail(cli, EXIT_CODE_USAGE, "option --set: unknown setting %s: did you mean %s?", name, near);
    else if (setting == NULL)
        cli_fail(cli, EXIT_CODE_USAGE, "option --set: unknown setting %s", name);
    *ret_value = equals + 1;
    return setting;
}

static void
add_flags(Cli *cli, const Setting *setting, GArray *flags, GPtrArray *words)
{
    g_autoptr(GPtrArray) values = cli_option_all(cli, setting->flag);

    for (guint i = 0; i < values->len; i++) {
        char *word = g_strconcat("--", setting->flag, NULL);
        ConfigFlag flag = {
            .name = setting->name,
            .value = setting->flag_value != NULL ? values->pdata[i] : "true",
            .shown_as = word,
        };

        g_ptr_array_add(words, word);
        g_array_append_val(flags, flag);
    }
}

/* `words` keeps the texts that the flags borrow. */
static bool
collect_flags(Cli *cli, GArray *flags, GPtrArray *words)
{
    g_autoptr(GPtrArray) sets = cli_option_all(cli, set_option.name);

    for (size_t i = 0; i < n_settings; i++) {
        if (settings[i].flag != NULL)
            add_flags(cli, &settings[i], flags, words);
    }
    for (guint i = 0; i < sets->len; i++) {
        ConfigFlag flag = {.shown_as = "--set"};
        const Setting *setting = find_set(cli, sets->pdata[i], &flag.value);

        if (setting == NULL)
            return false;
        flag.name = setting->name;
        g_array_append_val(flags, flag);
    }
    return true;
}

ExitCode
cli_config(Cli *cli, Config **ret_config)
{
    g_autoptr(GArray) flags = g_array_new(FALSE, FALSE, sizeof(ConfigFlag));
    g_autoptr(GPtrArray) words = g_ptr_array_new_with_free_func(g_free);
    g_autoptr(GError) error = NULL;

    if (!collect_flags(cli, flags, words))
        return EXIT_CODE_USAGE;
    Config *config = config_load(
        &(ConfigSpec){.flags = (const ConfigFlag *)(void *)flags->data, .n_flags = flags->len}, &error);
    if (config == NULL)
        return cli_fail(cli, EXIT_CODE_CONFIG, "the configuration is wrong:\n%s", error->message);
    *ret_config = config;
    return EXIT_CODE_OK;
}

void
cli_settings_forward(const Cli *cli, GPtrArray *argv)
{
    for (size_t i = 0; i <= n_settings; i++) {
        const char *name = i < n_settings ? settings[i].flag : set_option.name;
        bool takes_value = i == n_settings || settings[i].flag_value != NULL;

        if (name == NULL)
            continue;
        g_autoptr(GPtrArray) values = cli_option_all(cli, name);
        for (guint v = 0; v < values->len; v++)
            g_ptr_array_add(argv, takes_value
                                      ? g_strdup_printf("--%s=%s", name, (const char *)values->pdata[v])
                                      : g_strdup_printf("--%s", name));
    }
}

/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "cli/commands.h"
#include "cli/repo-watch.h"

/* "3", "true", "null" and lists are what they are in JSON, everything else is a text. */
static Json *
value_of(const char *text)
{
    g_autofree char *wrapped = g_strdup_printf("[%s]", text);
    g_autoptr(Json) list = json_decode(wrapped, strlen(wrapped), NULL);

    return json_array_size(list) == 1 ? json_incref(json_array_get(list, 0)) : json_string(text);
}

static Json *
read_changes(Cli *cli)
{
    g_autoptr(Json) changes = json_object();

    for (guint i = 1; i < cli_n_args(cli); i++) {
        const char *word = cli_args(cli)[i];
        const char *is = strchr(word, '=');
        g_autofree char *name = is != NULL ? g_strndup(word, (size_t)(is - word)) : NULL;

        if (name == NULL || json_object_set_new(changes, name, value_of(is + 1)) < 0) {
            cli_fail(cli, EXIT_CODE_USAGE, "'%s' is not NAME=VALUE", word);
            return NULL;
        }
    }
    return g_steal_pointer(&changes);
}

static ExitCode
run_set(Cli *cli)
{
    static const OutColumn fields[] = {
        {"branch_pattern", "Branches"},
        {"required_approvals", "Approvals"},
        {"up_to_date", "Up to date"},
        {"merge_methods", "Merge by"},
        {"protected_branches", "Protected"},
        {"conventional_commits", "Messages checked"},
        {"commit_types", "Types"},
        {"checks", "Checks"},
        {"delete_merged_branches", "Merged branches go"},
        {"checks", "Checks"},
        {NULL},
    };
    g_autofree char *path = repo_path_of_arg(cli, "/settings");
    g_autoptr(Json) changes = path != NULL ? read_changes(cli) : NULL;
    g_autoptr(Remote) remote = NULL;
    g_autoptr(Json) settings = NULL;

    if (changes == NULL)
        return EXIT_CODE_USAGE;
    ExitCode code = remote_open(cli, &remote);
    bool any = json_object_size(changes) > 0;

    if (code == EXIT_CODE_OK)
        code = remote_call(remote, any ? "PATCH" : "GET", path, any ? changes : NULL, &settings);
    if (code == EXIT_CODE_OK)
        out_fields(cli_out(cli), fields, settings);
    return code;
}

const Command repo_set = {
    .name = "set",
    .summary = "Show or change what is set for a repository",
    .args = "[OWNER/]NAME [SETTING=VALUE...]",
    .args_min = 1,
    .args_max = CLI_ARGS_MANY,
    .details = "Such as branch_pattern=feature/{id}-{slug}, required_approvals=1 or\n"
               "protected_branches='[\"main\"]'; null brings the default back.",
    .settings = CLI_SETTINGS_CLIENT,
    .run = run_set,
};

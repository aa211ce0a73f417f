/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/commands.h"
#include "cli/remote.h"
#include "cli/settings.h"

static const char *
text_of(const Json *object, const char *member)
{
    const char *text = json_string_value(json_object_get(object, member));

    return text != NULL ? text : "";
}

static ExitCode
run_ls(Cli *cli)
{
    static const OutColumn columns[] = {
        {"name", "NAME"},
        {"email", "E-MAIL"},
        {"agent_id", "AGENT"},
        {"created_at", "CREATED"},
        {"revoked_at", "REVOKED"},
        {"id", "ID"},
        {NULL},
    };
    g_autoptr(Remote) remote = NULL;
    g_autoptr(Json) body = NULL;
    ExitCode code = remote_open(cli, &remote);

    if (code == EXIT_CODE_OK)
        code = remote_call(remote, "GET", "/api/v1/identities", NULL, &body);
    if (code != EXIT_CODE_OK)
        return code;
    const Json *list = json_object_get(body, "identities");

    if (!json_is_array(list))
        return cli_fail(cli, EXIT_CODE_FAILED, "the server at %s gave no list of identities",
                        remote_address(remote));
    out_table(cli_out(cli), columns, list);
    return EXIT_CODE_OK;
}

static ExitCode
run_create(Cli *cli)
{
    g_autoptr(Json) body = json_pack("{s:s, s:s*, s:s*}", "name", cli_args(cli)[0], "email",
                                     cli_option(cli, "email"), "agent_id", cli_option(cli, "agent"));
    const char *repository = cli_option(cli, "repo");
    g_autoptr(Remote) remote = NULL;
    g_autoptr(Json) made = NULL;

    if (body == NULL)
        return cli_fail(cli, EXIT_CODE_USAGE, "the name and the options must be UTF-8");
    if (repository != NULL)
        json_object_set_new(body, "rights",
                            json_pack("[{s:s, s:s}]", "repository", repository, "access", "write"));
    ExitCode code = remote_open(cli, &remote);

    if (code == EXIT_CODE_OK)
        code = remote_call(remote, "POST", "/api/v1/identities", body, &made);
    if (code != EXIT_CODE_OK)
        return code;
    out_json(cli_out(cli), made);
    out_text(cli_out(cli), OUT_PLAIN, "%s <%s>\n%s\n", text_of(made, "name"), text_of(made, "email"),
             text_of(made, "public_key"));
    return EXIT_CODE_OK;
}

static ExitCode
run_revoke(Cli *cli)
{
    g_autofree char *name = g_uri_escape_string(cli_args(cli)[0], NULL, FALSE);
    g_autofree char *path = g_strconcat("/api/v1/identities/", name, NULL);
    g_autoptr(Remote) remote = NULL;
    g_autoptr(Json) gone = NULL;
    ExitCode code = remote_open(cli, &remote);

    if (code == EXIT_CODE_OK)
        code = remote_call(remote, "DELETE", path, NULL, &gone);
    if (code != EXIT_CODE_OK)
        return code;
    out_json(cli_out(cli), gone);
    out_text(cli_out(cli), OUT_PLAIN, "revoked %s\n", text_of(gone, "name"));
    return EXIT_CODE_OK;
}

static const Command identity_ls = {
    .name = "ls",
    .summary = "List who commits, revoked ones too",
    .settings = CLI_SETTINGS_CLIENT,
    .run = run_ls,
};

static const CliOption create_options[] = {
    {.name = "email", .value = "ADDRESS", .help = "made of the name if not given"},
    {.name = "agent", .value = "ID", .help = "the agent whose sandboxes commit under it"},
    {.name = "repo", .value = "OWNER/NAME", .help = "the one repository it may write to (default: all)"},
    {NULL},
};
static const Command identity_create_command = {
    .name = "create",
    .summary = "Make one, with a signing key that stays on the server",
    .args = "NAME",
    .args_min = 1,
    .args_max = 1,
    .options = create_options,
    .settings = CLI_SETTINGS_CLIENT,
    .run = run_create,
};

static const Command identity_revoke_command = {
    .name = "revoke",
    .summary = "Let it sign and push nothing any more",
    .args = "NAME",
    .args_min = 1,
    .args_max = 1,
    .details = "NAME is its name or its id. What it has signed stays valid.",
    .settings = CLI_SETTINGS_CLIENT,
    .run = run_revoke,
};

static const Command *const commands[] = {&identity_ls, &identity_create_command, &identity_revoke_command,
                                          NULL};

const Command command_identity = {
    .name = "identity",
    .summary = "Manage who commits in sandboxes",
    .commands = commands,
    .settings = CLI_SETTINGS_CLIENT,
    .run = run_ls,
};

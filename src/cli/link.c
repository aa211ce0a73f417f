/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/commands.h"
#include "cli/remote.h"

static ExitCode
run(Cli *cli)
{
    g_autoptr(Remote) remote = NULL;
    g_autoptr(Json) ticket = NULL;
    ExitCode code = remote_open(cli, &remote);

    if (code == EXIT_CODE_OK)
        code = remote_call(remote, "POST", "/api/v1/tickets", NULL, &ticket);
    if (code != EXIT_CODE_OK)
        return code;
    const char *url = json_string_value(json_object_get(ticket, "url"));
    const char *path = json_string_value(json_object_get(ticket, "path"));
    if (url == NULL || path == NULL)
        return cli_fail(cli, EXIT_CODE_FAILED, "the server at %s gave no link", remote_address(remote));
    /* A server that was named is reached by that name, from here at least. */
    const Config *config = remote_config(remote);
    g_autofree char *named = config->server_url_is_set ? g_strconcat(remote_address(remote), path, NULL)
                                                       : NULL;
    json_object_set_new(ticket, "url", json_string(named != NULL ? named : url));
    out_json(cli_out(cli), ticket);
    out_text(cli_out(cli), OUT_PLAIN, "%s\n", json_string_value(json_object_get(ticket, "url")));
    return EXIT_CODE_OK;
}

const Command command_link = {
    .name = "link",
    .summary = "Print a link that signs a browser in once",
    .details = "It works once, within ten minutes, and gives the browser the rights of an admin.",
    .settings = CLI_SETTINGS_CLIENT,
    .run = run,
};

/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/team-call.h"

#include <string.h>

#include "cli/input.h"

enum { FILE_MAX = 256 * 1024, PAGE_MAX = 100 };

char *
team_path(const char *kind, const char *name, const char *rest)
{
    g_autofree char *escaped = g_uri_escape_string(name, NULL, FALSE);

    return g_strdup_printf("/api/v1/%s/%s%s", kind, escaped, rest);
}

ExitCode
team_send(Cli *cli, const char *method, const char *path, const Json *body, Json **ret_body)
{
    g_autoptr(Remote) remote = NULL;
    ExitCode code = remote_open(cli, &remote);

    return code == EXIT_CODE_OK ? remote_call(remote, method, path, body, ret_body) : code;
}

ExitCode
team_fetch(Cli *cli, const char *path, const char *name, guint max, Json **ret_list)
{
    g_autoptr(Remote) remote = NULL;
    g_autoptr(Json) all = json_array();
    ExitCode code = remote_open(cli, &remote);

    for (guint page = 1; code == EXIT_CODE_OK && json_array_size(all) < max; page++) {
        g_autofree char *at = g_strdup_printf("%spage=%u&per_page=%u", path, page, MIN(max, (guint)PAGE_MAX));
        g_autoptr(Json) body = NULL;

        code = remote_call(remote, "GET", at, NULL, &body);
        if (code != EXIT_CODE_OK)
            break;
        const Json *list = json_object_get(body, name);

        if (!json_is_array(list))
            return cli_fail(cli, EXIT_CODE_FAILED, "the server at %s gave no list of %s",
                            remote_address(remote), name);
        for (size_t i = 0; i < json_array_size(list) && json_array_size(all) < max; i++)
            json_array_append(all, json_array_get(list, i));
        if (json_array_size(list) < PAGE_MAX)
            break;
    }
    if (code == EXIT_CODE_OK)
        *ret_list = g_steal_pointer(&all);
    return code;
}

bool
team_set_options(Cli *cli, const TeamOption *options, Json *body)
{
    for (const TeamOption *o = options; o->option != NULL; o++) {
        const char *value = cli_option(cli, o->option);
        Json *text = value != NULL ? json_string(value) : NULL;

        if (value != NULL && text == NULL) {
            cli_fail(cli, EXIT_CODE_USAGE, "--%s is no UTF-8", o->option);
            return false;
        }
        if (text != NULL)
            json_object_set_new(body, o->member, text);
    }
    return true;
}

Json *
team_read_object(Cli *cli, const char *option)
{
    const char *text = cli_option(cli, option);
    g_autoptr(GError) error = NULL;
    g_autoptr(Json) value = text != NULL ? json_decode(text, strlen(text), &error) : json_object();

    if (json_is_object(value))
        return g_steal_pointer(&value);
    cli_fail(cli, EXIT_CODE_USAGE, "--%s must be a JSON object%s%s", option, error != NULL ? ": " : "",
             error != NULL ? error->message : "");
    return NULL;
}

char *
team_read_file(Cli *cli, const char *path)
{
    g_autoptr(GError) error = NULL;
    size_t len;
    g_autofree char *text = input_read(path, FILE_MAX, &len, &error);

    if (text != NULL && !g_utf8_validate(text, (gssize)len, NULL)) {
        cli_fail(cli, EXIT_CODE_USAGE, "what '%s' has is no UTF-8", path);
        return NULL;
    }
    if (text == NULL)
        cli_fail_error(cli, error);
    return g_steal_pointer(&text);
}

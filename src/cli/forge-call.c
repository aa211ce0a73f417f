/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/forge-call.h"

#include <stdarg.h>

#include "forge/repo.h"

enum { PER_PAGE = 100, PAGES_MAX = 1000, HTTP_NOT_FOUND = 404 };

const char *
forge_text(const Json *object, const char *member)
{
    const char *text = json_string_value(json_object_get(object, member));

    return text != NULL ? text : "";
}

const char *
forge_text_of(const Json *object, const char *outer, const char *member)
{
    return forge_text(json_object_get(object, outer), member);
}

/* ---- which repository ---- */

static ExitCode
only_repo(ForgeCall *call)
{
    g_autoptr(Json) body = NULL;
    ExitCode code = remote_call(call->remote, "GET", "/api/v1/repos?limit=2", NULL, &body);
    const Json *list = json_object_get(body, "repositories");

    if (code != EXIT_CODE_OK)
        return code;
    if (json_array_size(list) == 0)
        return cli_fail(call->cli, EXIT_CODE_NOT_FOUND,
                        "the server has no repository: 'coop repo add' imports one");
    if (json_array_size(list) > 1)
        return cli_fail(call->cli, EXIT_CODE_USAGE,
                        "the server has several repositories ('coop repo ls'): name one with --repo");
    call->owner = g_strdup(forge_text(json_array_get(list, 0), "owner"));
    call->name = g_strdup(forge_text(json_array_get(list, 0), "name"));
    return EXIT_CODE_OK;
}

ExitCode
forge_call_open(Cli *cli, ForgeCall *ret_call)
{
    const char *named = cli_option(cli, "repo");
    g_autoptr(GError) error = NULL;

    *ret_call = (ForgeCall){.cli = cli};
    if (named != NULL && !repo_name_split(named, &ret_call->owner, &ret_call->name, &error))
        return cli_fail_error(cli, error);
    ExitCode code = remote_open(cli, &ret_call->remote);

    return code == EXIT_CODE_OK && named == NULL ? only_repo(ret_call) : code;
}

ExitCode
forge_call_begin(Cli *cli, ForgeCall *ret_call, gint64 *ret_number)
{
    const char *text = cli_args(cli)[0];
    guint64 number;

    if (!g_ascii_string_to_unsigned(text + (*text == '#'), 10, 1, G_MAXINT64, &number, NULL))
        return cli_fail(cli, EXIT_CODE_USAGE, "'%s' is no number, such as 7 or '#7'", text);
    *ret_number = (gint64)number;
    return forge_call_open(cli, ret_call);
}

void
forge_call_clear(ForgeCall *call)
{
    g_clear_pointer(&call->remote, remote_free);
    g_clear_pointer(&call->owner, g_free);
    g_clear_pointer(&call->name, g_free);
}

/* ---- calls ---- */

char *
forge_call_path(const ForgeCall *call, const char *fmt, ...)
{
    g_autofree char *owner = g_uri_escape_string(call->owner, NULL, FALSE);
    g_autofree char *name = g_uri_escape_string(call->name, NULL, FALSE);
    va_list args;

    va_start(args, fmt);
    g_autofree char *rest = g_strdup_vprintf(fmt, args);
    va_end(args);
    return g_strdup_printf("/api/v3/repos/%s/%s%s", owner, name, rest);
}

ExitCode
forge_call_fail(ForgeCall *call, const RemoteReply *reply)
{
    if (reply->status != HTTP_NOT_FOUND)
        return cli_fail(call->cli, reply->code, "%s", reply->message);
    if (cli_n_args(call->cli) > 0)
        return cli_fail(call->cli, EXIT_CODE_NOT_FOUND, "%s/%s is not there, or has no %s", call->owner,
                        call->name, cli_args(call->cli)[0]);
    return cli_fail(call->cli, EXIT_CODE_NOT_FOUND, "there is no repository %s/%s: 'coop repo ls' lists them",
                    call->owner, call->name);
}

ExitCode
forge_call_run(ForgeCall *call, const char *method, const char *path, const Json *body, Json **ret_body)
{
    g_auto(RemoteReply) reply = {0};
    RemoteCall spec = REMOTE_CALL_INIT;

    spec.method = method;
    spec.path = path;
    spec.body = body;
    remote_try(call->remote, &spec, &reply);
    if (reply.message != NULL)
        return forge_call_fail(call, &reply);
    if (ret_body != NULL)
        *ret_body = g_steal_pointer(&reply.body);
    return EXIT_CODE_OK;
}

ExitCode
forge_call_list(ForgeCall *call, const char *path, guint max, ForgeKeep keep, Json *into)
{
    for (guint page = 1; page <= PAGES_MAX; page++) {
        g_autofree char *of_page = g_strdup_printf("%s&per_page=%d&page=%u", path, PER_PAGE, page);
        g_autoptr(Json) list = NULL;
        ExitCode code = forge_call_run(call, "GET", of_page, NULL, &list);
        size_t i;
        Json *item;

        if (code != EXIT_CODE_OK)
            return code;
        if (!json_is_array(list))
            return cli_fail(call->cli, EXIT_CODE_FAILED, "the server at %s gave no list",
                            remote_address(call->remote));
        json_array_foreach(list, i, item)
        {
            if (json_array_size(into) < max && (keep == NULL || keep(item)))
                json_array_append(into, item);
        }
        if (json_array_size(list) < PER_PAGE || json_array_size(into) >= max)
            return EXIT_CODE_OK;
    }
    return EXIT_CODE_OK;
}

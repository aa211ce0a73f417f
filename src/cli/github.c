/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/err.h"
#include "cli/commands.h"
#include "cli/remote.h"
#include "cli/secret.h"
#include "door/takeover.h"
#include "github/account.h"

static const char github_path_api[] = "/api/v1/github";

/* ---- showing ---- */

static void
make_readable(Json *account)
{
    const Json *rate = json_object_get(account, "rate");
    const Json *warnings = json_object_get(account, "warnings");
    g_autofree char *left = json_is_object(rate) && json_integer_value(json_object_get(rate, "limit")) >= 0
                                ? g_strdup_printf("%d of %d",
                                                  (int)json_integer_value(json_object_get(rate, "remaining")),
                                                  (int)json_integer_value(json_object_get(rate, "limit")))
                                : g_strdup("");
    const char *expires = json_string_value(json_object_get(account, "expires_at"));
    g_autofree char *day = g_strndup(expires != NULL ? expires : "never said", 10);

    json_object_set_new(account, "rate", json_string(left));
    json_object_set_new(account, "expires_at", json_string(day));
    json_object_set_new(account, "warnings", json_integer((json_int_t)json_array_size(warnings)));
}

static void
warn_of(Cli *cli, const Json *account)
{
    const Json *warnings = json_object_get(account, "warnings");

    for (size_t i = 0; i < json_array_size(warnings); i++)
        out_notice(cli_out(cli), "%s: %s", json_string_value(json_object_get(account, "base_url")),
                   json_string_value(json_array_get(warnings, i)));
}

static ExitCode
show_list(Cli *cli, const OutColumn *columns, const Json *list)
{
    if (!json_is_array(list))
        return cli_fail(cli, EXIT_CODE_FAILED, "the answer of the server cannot be used: it has no list");
    out_table(cli_out(cli), columns, list);
    return EXIT_CODE_OK;
}

static ExitCode
show_accounts(Cli *cli, Json *list)
{
    static const OutColumn columns[] = {
        {"base_url", "WHERE"}, {"login", "LOGIN"},        {"kind", "TOKEN"},
        {"from", "FROM"},      {"expires_at", "EXPIRES"}, {"rate", "CALLS LEFT"},
        {"webhooks", "HOOKS"}, {"warnings", "WARNINGS"},  {NULL},
    };

    for (size_t i = 0; i < json_array_size(list); i++) {
        warn_of(cli, json_array_get(list, i));
        if (out_format(cli_out(cli)) == OUT_TEXT)
            make_readable(json_array_get(list, i));
    }
    return show_list(cli, columns, list);
}

static ExitCode
run_status(Cli *cli)
{
    g_autoptr(Remote) remote = NULL;
    g_autoptr(Json) found = NULL, checked = NULL;
    g_autofree char *path = g_strconcat(github_path_api, "/check", NULL);
    g_autoptr(Json) body = json_pack("{s:s*}", "base_url", cli_option(cli, "base-url"));
    ExitCode code = remote_open(cli, &remote);

    if (code == EXIT_CODE_OK && cli_option(cli, "check") != NULL)
        code = remote_call(remote, "POST", path, body, &checked);
    if (code == EXIT_CODE_OK)
        code = remote_call(remote, "GET", github_path_api, NULL, &found);
    if (code != EXIT_CODE_OK)
        return code;
    return show_accounts(cli, json_object_get(found, "accounts"));
}

/* ---- signing in ---- */

/* From a variable, a file or the terminal; never from the command line, which everybody sees. */
static char *
read_token(Cli *cli, GError **error)
{
    const char *variable = cli_option(cli, "token-env");

    if (variable == NULL)
        return secret_read(cli_option(cli, "token-file"), "Token: ", error);
    const char *value = g_getenv(variable);

    if (value == NULL || *value == '\0')
        err_set(error, ERR_INVALID, "the variable %s is not set", variable);
    return value != NULL && *value != '\0' ? g_strdup(value) : NULL;
}

/* False after a message. */
static bool
add_secret(Cli *cli, Json *body, const char *member, char *secret, const GError *error)
{
    if (secret == NULL) {
        cli_fail_error(cli, error);
        return false;
    }
    json_object_set_new(body, member, json_string(secret));
    door_wipe_text(secret);
    return true;
}

static bool
add_secrets(Cli *cli, Json *body)
{
    const char *hook = cli_option(cli, "webhook-secret-file");
    g_autoptr(GError) error = NULL;
    char *token = read_token(cli, &error);

    if (!add_secret(cli, body, "token", token, error))
        return false;
    if (hook == NULL)
        return true;
    char *secret = secret_read(hook, "", &error);

    return add_secret(cli, body, "webhook_secret", secret, error);
}

static ExitCode
put(Cli *cli, const char *verb)
{
    g_autoptr(Json) body = json_pack("{s:s*}", "base_url", cli_option(cli, "base-url"));
    g_autofree char *path = g_strconcat(github_path_api, "/", verb, NULL);
    g_autoptr(Remote) remote = NULL;
    g_autoptr(Json) account = NULL;
    ExitCode code = remote_open(cli, &remote);

    if (code != EXIT_CODE_OK)
        return code;
    if (!add_secrets(cli, body))
        return EXIT_CODE_USAGE;
    code = remote_call(remote, "POST", path, body, &account);
    if (code != EXIT_CODE_OK)
        return code;
    out_json(cli_out(cli), account);
    warn_of(cli, account);
    out_text(cli_out(cli), OUT_GOOD, "%s: signed in as %s\n",
             json_string_value(json_object_get(account, "base_url")),
             json_string_value(json_object_get(account, "login")));
    return EXIT_CODE_OK;
}

static ExitCode
run_login(Cli *cli)
{
    return put(cli, "login");
}

static ExitCode
run_rotate(Cli *cli)
{
    return put(cli, "rotate");
}

static ExitCode
run_logout(Cli *cli)
{
    const char *base_url = cli_option(cli, "base-url");
    g_autofree char *escaped = base_url != NULL ? g_uri_escape_string(base_url, NULL, FALSE) : NULL;
    g_autofree char *path = g_strconcat(github_path_api, escaped != NULL ? "?base_url=" : "", escaped, NULL);
    g_autoptr(Remote) remote = NULL;
    ExitCode code = remote_open(cli, &remote);

    if (code == EXIT_CODE_OK)
        code = remote_call(remote, "DELETE", path, NULL, NULL);
    if (code == EXIT_CODE_OK)
        out_text(cli_out(cli), OUT_GOOD, "%s: signed out; revoke the token there too\n",
                 base_url != NULL ? base_url : github_base_default);
    return code;
}

static ExitCode
run_work(Cli *cli)
{
    static const OutColumn columns[] = {
        {"id", "ID"},
        {"kind", "KIND"},
        {"repository_id", "REPOSITORY"},
        {"state", "STATE"},
        {"tries", "TRIES"},
        {"problem", "PROBLEM"},
        {NULL},
    };
    g_autofree char *path = g_strconcat(github_path_api, "/work", NULL);
    g_autoptr(Remote) remote = NULL;
    g_autoptr(Json) found = NULL;
    ExitCode code = remote_open(cli, &remote);

    if (code == EXIT_CODE_OK)
        code = remote_call(remote, "GET", path, NULL, &found);
    if (code == EXIT_CODE_OK)
        code = show_list(cli, columns, json_object_get(found, "work"));
    return code;
}

/* ---- the commands ---- */

#define BASE_URL                                                                                             \
    {                                                                                                        \
        .name = "base-url", .value = "URL",                                                                  \
        .help = "where its API answers (default: https://api.github.com); a Coop's ends in /api/v3"          \
    }

static const CliOption login_options[] = {
    BASE_URL,
    {.name = "token-file", .value = "FILE", .help = "read the token from a file ('-': standard input)"},
    {.name = "token-env", .value = "VARIABLE", .help = "take the token from the environment"},
    {.name = "webhook-secret-file",
     .value = "FILE",
     .help = "secret of the webhooks that are sent to /webhooks/github"},
    {NULL},
};

static const CliOption status_options[] = {
    BASE_URL,
    {.name = "check", .help = "ask the other side anew"},
    {NULL},
};

static const CliOption logout_options[] = {BASE_URL, {NULL}};

static const Command github_login = {
    .name = "login",
    .summary = "Sign in with a token",
    .details =
        "The token is asked for at the terminal if it is not given in another way; it is never an argument.\n"
        "It is kept sealed by the server and no box ever sees it. A fine-grained token with contents and\n"
        "pull requests to write is enough; what it may do beyond that is warned of.",
    .options = login_options,
    .settings = CLI_SETTINGS_CLIENT,
    .run = run_login,
};
static const Command github_rotate = {
    .name = "rotate",
    .summary = "Put a new token in the place of the old one",
    .details =
        "The new one is looked at first; one of somebody else, or one that is not taken, changes nothing.",
    .options = login_options,
    .settings = CLI_SETTINGS_CLIENT,
    .run = run_rotate,
};
static const Command github_status = {
    .name = "status",
    .summary = "Show the accounts, what their tokens may do, and when they expire",
    .options = status_options,
    .settings = CLI_SETTINGS_CLIENT,
    .run = run_status,
};
static const Command github_logout = {
    .name = "logout",
    .summary = "Forget an account and its token",
    .options = logout_options,
    .settings = CLI_SETTINGS_CLIENT,
    .run = run_logout,
};
static const Command github_work = {
    .name = "work",
    .summary = "Show what was and will be done there for boxes",
    .settings = CLI_SETTINGS_CLIENT,
    .run = run_work,
};

static const Command *const commands[] = {&github_login,  &github_status, &github_rotate,
                                          &github_logout, &github_work,   NULL};

const Command command_github = {
    .name = "github",
    .summary = "Sign in to GitHub, or another place that speaks its API",
    .commands = commands,
    .options = status_options,
    .settings = CLI_SETTINGS_CLIENT,
    .run = run_status,
};

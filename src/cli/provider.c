/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/err.h"
#include "brain/provider.h"
#include "cli/commands.h"
#include "cli/remote.h"
#include "cli/secret.h"
#include "door/takeover.h"
#include "door/vault.h"

enum { SCRIPT_MAX = 4 * 1024 * 1024 };

static const char providers_path[] = "/api/v1/providers";

static char *
path_of(const char *name, const char *rest)
{
    g_autofree char *escaped = g_uri_escape_string(name, NULL, FALSE);

    return g_strconcat(providers_path, "/", escaped, rest, NULL);
}

static const char *
text_of(const Json *object, const char *name)
{
    const char *text = json_string_value(json_object_get(object, name));

    return text != NULL ? text : "";
}

/* ---- coop provider ls ---- */

static ExitCode
run_ls(Cli *cli)
{
    static const OutColumn columns[] = {
        {"name", "NAME"},     {"kind", "KIND"},    {"key", "KEY"},    {"models", "MODELS"},
        {"record", "RECORD"}, {"base_url", "URL"}, {"actor", "FROM"}, {NULL}};
    g_autoptr(Remote) remote = NULL;
    g_autoptr(Json) found = NULL;
    ExitCode code = remote_open(cli, &remote);

    if (code == EXIT_CODE_OK)
        code = remote_call(remote, "GET", providers_path, NULL, &found);
    if (code != EXIT_CODE_OK)
        return code;
    const Json *list = json_object_get(found, "providers");

    if (!json_is_array(list))
        return cli_fail(cli, EXIT_CODE_FAILED, "the server at %s gave no list of providers",
                        remote_address(remote));
    out_table(cli_out(cli), columns, list);
    return EXIT_CODE_OK;
}

/* ---- coop provider add ---- */

/* False after a message. */
static bool
add_script(Cli *cli, Json *body)
{
    const char *path = cli_option(cli, "script");
    g_autofree char *text = NULL;
    g_autoptr(GError) error = NULL;
    gsize n;

    if (path == NULL)
        return true;
    if (!g_file_get_contents(path, &text, &n, &error)) {
        cli_fail(cli, EXIT_CODE_NOT_FOUND, "%s", error->message);
        return false;
    }
    if (n > SCRIPT_MAX || json_object_set_new(body, "script", json_stringn(text, n)) < 0) {
        cli_fail(cli, EXIT_CODE_USAGE, "'%s' is not a text of at most %d MiB", path, SCRIPT_MAX >> 20);
        return false;
    }
    return true;
}

static void
add_list(Cli *cli, Json *body, const char *option, const char *member)
{
    g_autoptr(GPtrArray) values = cli_option_all(cli, option);
    Json *list = json_array();

    for (guint i = 0; i < values->len; i++)
        json_array_append_new(list, json_string(values->pdata[i]));
    if (values->len > 0)
        json_object_set(body, member, list);
    json_decref(list);
}

/* NULL with no error: it needs none. */
static char *
find_key(Cli *cli, ProviderKind kind, GError **error)
{
    const char *variable = cli_option(cli, "key-env"), *file = cli_option(cli, "key-file");

    if (variable != NULL) {
        const char *value = g_getenv(variable);

        if (value == NULL || *value == '\0')
            err_set(error, ERR_INVALID, "the variable %s is not set", variable);
        return g_strdup(value);
    }
    if (file == NULL && (kind == PROVIDER_SCRIPT || kind == PROVIDER_COMPATIBLE))
        return NULL;
    return secret_read(file, "Key: ", error);
}

/* The key leaves this process only as the door alone can read it, and for the place that is meant. */
static bool
add_key(Cli *cli, Remote *remote, const Provider *meant, Json *body)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(Json) found = NULL;
    const char *base_url = provider_base_url(meant);
    char *key = find_key(cli, provider_kind(meant), &error);

    if (error != NULL) {
        cli_fail_error(cli, error);
        return false;
    }
    if (key == NULL)
        return true;
    g_autofree char *sealed = NULL;

    if (remote_call(remote, "GET", providers_path, NULL, &found) == EXIT_CODE_OK) {
        sealed = door_seal(text_of(found, "public_key"), base_url != NULL ? base_url : "", key, &error);
        if (sealed == NULL)
            cli_fail(cli, EXIT_CODE_FAILED,
                     "the key cannot be sealed (%s): is the door there? See 'coop door'", error->message);
    }
    door_wipe_text(key);
    if (sealed != NULL)
        json_object_set_new(body, "sealed_key", json_string(sealed));
    return sealed != NULL;
}

/* NULL after a message. */
static Provider *
read_meant(Cli *cli, const char *name, Json *body)
{
    g_autoptr(Json) object = json_copy(body);
    g_autoptr(GError) error = NULL;

    json_object_set_new(object, "name", json_string(name));
    Provider *meant = provider_new(object, &error);

    if (meant == NULL)
        cli_fail_error(cli, error);
    return meant;
}

static ExitCode
run_add(Cli *cli)
{
    const char *name = cli_args(cli)[0], *kind_name = cli_option(cli, "kind");
    g_autoptr(Json)
        body = json_pack("{s:s, s:s*, s:s*}", "kind", kind_name != NULL ? kind_name : name, "base_url",
                         cli_option(cli, "base-url"), "record", cli_option(cli, "record"));
    g_autofree char *path = path_of(name, "");
    g_autoptr(Remote) remote = NULL;
    g_autoptr(Json) all = NULL;
    ProviderKind kind;

    if (!provider_kind_from_name(kind_name != NULL ? kind_name : name, &kind))
        return cli_fail(cli, EXIT_CODE_USAGE,
                        "--kind is one of openai, anthropic, openrouter, groq, compatible and script");
    add_list(cli, body, "model", "models");
    add_list(cli, body, "default-for", "default_for");
    g_autoptr(Provider) meant = read_meant(cli, name, body);
    if (meant == NULL || !add_script(cli, body))
        return EXIT_CODE_USAGE;
    ExitCode code = remote_open(cli, &remote);
    if (code != EXIT_CODE_OK)
        return code;
    if (!add_key(cli, remote, meant, body))
        return EXIT_CODE_FAILED;
    code = remote_call(remote, "PUT", path, body, &all);
    if (code != EXIT_CODE_OK)
        return code;
    out_json(cli_out(cli), all);
    const char *note = json_string_value(json_object_get(all, "note"));

    if (note != NULL) {
        out_notice(cli_out(cli), "%s: %s", name, note);
        return EXIT_CODE_OK;
    }
    out_text(cli_out(cli), OUT_GOOD,
             "%s: boxes reach its models from now on; 'coop provider test %s' asks it\n", name, name);
    return EXIT_CODE_OK;
}

/* ---- coop provider rm, test ---- */

static ExitCode
run_rm(Cli *cli)
{
    const char *name = cli_args(cli)[0];
    g_autofree char *path = path_of(name, "");
    g_autoptr(Remote) remote = NULL;
    ExitCode code = remote_open(cli, &remote);

    if (code == EXIT_CODE_OK)
        code = remote_call(remote, "DELETE", path, NULL, NULL);
    if (code == EXIT_CODE_OK)
        out_text(cli_out(cli), OUT_GOOD, "%s: gone, and its key with it\n", name);
    return code;
}

static ExitCode
run_test(Cli *cli)
{
    const char *name = cli_args(cli)[0];
    g_autofree char *path = path_of(name, "/test");
    g_autoptr(Remote) remote = NULL;
    g_autoptr(Json) result = NULL;
    ExitCode code = remote_open(cli, &remote);

    if (code == EXIT_CODE_OK)
        code = remote_call(remote, "POST", path, NULL, &result);
    if (code != EXIT_CODE_OK)
        return code;
    if (!json_is_true(json_object_get(result, "ok")))
        return cli_fail(cli, EXIT_CODE_FAILED, "%s: %s", name, text_of(result, "error"));
    out_json(cli_out(cli), result);
    out_text(cli_out(cli), OUT_GOOD, "%s: it answers\n", name);
    return EXIT_CODE_OK;
}

/* ---- the commands ---- */

static const CliOption add_options[] = {
    {.name = "kind",
     .value = "KIND",
     .help = "openai, anthropic, openrouter, groq, compatible or script (default: NAME)"},
    {.name = "base-url",
     .value = "URL",
     .help = "where it answers; for compatible: Ollama, llama.cpp, vLLM, …"},
    {.name = "model", .value = "PATTERN", .help = "only these models, such as 'gpt-*'; may be repeated"},
    {.name = "default-for", .value = "DIALECT", .help = "openai or anthropic: models that no pattern names"},
    {.name = "key-file", .value = "FILE", .help = "read the key from a file ('-': standard input)"},
    {.name = "key-env", .value = "VARIABLE", .help = "take the key from the environment"},
    {.name = "script", .value = "FILE", .help = "the conversations of a scripted one"},
    {.name = "record", .value = "off|record|replay", .help = "keep whole conversations, or play them back"},
    {NULL},
};

static const Command provider_add = {
    .name = "add",
    .summary = "Add a provider of models, or change one",
    .args = "NAME",
    .args_min = 1,
    .args_max = 1,
    .details =
        "The key is asked for at the terminal if it is not given in another way. It is sealed before it\n"
        "leaves this command: only the door can open it, and no box ever sees it.",
    .options = add_options,
    .settings = CLI_SETTINGS_CLIENT,
    .run = run_add,
};
static const Command provider_ls = {
    .name = "ls",
    .summary = "List the providers",
    .settings = CLI_SETTINGS_CLIENT,
    .run = run_ls,
};
static const Command provider_rm = {
    .name = "rm",
    .summary = "Remove a provider and its key",
    .args = "NAME",
    .args_min = 1,
    .args_max = 1,
    .settings = CLI_SETTINGS_CLIENT,
    .run = run_rm,
};
static const Command provider_test = {
    .name = "test",
    .summary = "Ask a provider for its models, with its key",
    .args = "NAME",
    .args_min = 1,
    .args_max = 1,
    .settings = CLI_SETTINGS_CLIENT,
    .run = run_test,
};

static const Command *const commands[] = {&provider_add, &provider_ls, &provider_rm, &provider_test, NULL};

const Command command_provider = {
    .name = "provider",
    .summary = "List, add and remove providers of models",
    .commands = commands,
    .settings = CLI_SETTINGS_CLIENT,
    .run = run_ls,
};

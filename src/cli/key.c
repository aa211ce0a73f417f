/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "cli/commands.h"
#include "cli/remote.h"
#include "cli/settings.h"
#include "daemon/home.h"
#include "daemon/setting.h"

/* ---- coop key ---- */

static ExitCode
run_show(Cli *cli)
{
    g_autoptr(Config) config = NULL;
    g_autoptr(GError) error = NULL;
    ExitCode code = cli_config(cli, &config);

    if (code != EXIT_CODE_OK)
        return code;
    g_autofree char *key = home_read_key(config->home, &error);
    /* One that was restored has keys of its own, so none will be made. */
    if (key == NULL && err_kind(error) == ERR_NOT_FOUND)
        return cli_fail(cli, EXIT_CODE_NOT_FOUND, "there is no key in '%s': %s", config->home,
                        access(config->database_file, F_OK) == 0
                            ? "'coop key new NAME --scopes admin' makes one"
                            : "'coop start' makes the first one");
    if (key == NULL)
        return cli_fail_error(cli, error);
    g_autoptr(Json) value = json_pack("{s:s}", "key", key);
    out_json(cli_out(cli), value);
    out_text(cli_out(cli), OUT_PLAIN, "%s\n", key);
    return EXIT_CODE_OK;
}

/* ---- coop key ls ---- */

/* The list as the server gave it; NULL after a message. */
static Json *
fetch_keys(Cli *cli, Remote *remote, ExitCode *ret_code)
{
    g_autoptr(Json) body = NULL;

    *ret_code = remote_call(remote, "GET", "/api/v1/keys", NULL, &body);
    if (*ret_code != EXIT_CODE_OK)
        return NULL;
    Json *keys = json_object_get(body, "keys");
    if (json_is_array(keys))
        return json_incref(keys);
    *ret_code = cli_fail(cli, EXIT_CODE_FAILED, "the server at %s gave no list of keys",
                         remote_address(remote));
    return NULL;
}

static const char *
text_of(const Json *key, const char *member)
{
    const char *text = json_string_value(json_object_get(key, member));

    return text != NULL ? text : "";
}

static bool
is_revoked(const Json *key)
{
    return text_of(key, "revoked_at")[0] != '\0';
}

static ExitCode
run_ls(Cli *cli)
{
    static const OutColumn columns[] = {
        {"prefix", "KEY"},        {"name", "NAME"},          {"scopes", "SCOPES"}, {"created_at", "CREATED"},
        {"last_used_at", "USED"}, {"expires_at", "EXPIRES"}, {"id", "ID"},         {NULL},
    };
    static const OutColumn all_columns[] = {
        {"prefix", "KEY"},
        {"name", "NAME"},
        {"scopes", "SCOPES"},
        {"created_at", "CREATED"},
        {"last_used_at", "USED"},
        {"expires_at", "EXPIRES"},
        {"revoked_at", "REVOKED"},
        {"id", "ID"},
        {NULL},
    };
    bool all = cli_option(cli, "all") != NULL;
    g_autoptr(Remote) remote = NULL;
    ExitCode code = remote_open(cli, &remote);

    if (code != EXIT_CODE_OK)
        return code;
    g_autoptr(Json) keys = fetch_keys(cli, remote, &code);
    if (keys == NULL)
        return code;
    for (size_t i = json_array_size(keys); i-- > 0 && !all;) {
        if (is_revoked(json_array_get(keys, i)))
            json_array_remove(keys, i);
    }
    out_table(cli_out(cli), all ? all_columns : columns, keys);
    return EXIT_CODE_OK;
}

/* ---- coop key new ---- */

static bool
parse_expiry(const char *text, gint64 *ret_s, GError **error)
{
    static const Setting setting = {.name = "expires",
                                    .type = SETTING_DURATION,
                                    .min = 1000,
                                    .max = G_GINT64_CONSTANT(3650) * 86400 * 1000};
    const char *const texts[] = {text, NULL};
    g_auto(SettingValue) value = {0};
    size_t bad;

    if (!setting_parse(&setting, UNIT_NONE, texts, &value, &bad)) {
        g_autofree char *expects = setting_dup_expects(&setting, UNIT_NONE);

        return err_set(error, ERR_INVALID, "option --expires: '%s' is not %s", text, expects);
    }
    *ret_s = value.number / 1000;
    return true;
}

static ExitCode
run_new(Cli *cli)
{
    const char *scopes = cli_option(cli, "scopes"), *expires = cli_option(cli, "expires");
    g_autoptr(Json) body = json_pack("{s:s, s:s*}", "name", cli_args(cli)[0], "scopes", scopes);
    g_autoptr(Remote) remote = NULL;
    g_autoptr(Json) made = NULL;
    g_autoptr(GError) error = NULL;
    gint64 expires_s = 0;

    if (body == NULL)
        return cli_fail(cli, EXIT_CODE_USAGE, "the name and the scopes must be UTF-8");
    if (expires != NULL && !parse_expiry(expires, &expires_s, &error))
        return cli_fail_error(cli, error);
    if (expires_s > 0)
        json_object_set_new(body, "expires_in", json_integer(expires_s));
    ExitCode code = remote_open(cli, &remote);
    if (code == EXIT_CODE_OK)
        code = remote_call(remote, "POST", "/api/v1/keys", body, &made);
    if (code != EXIT_CODE_OK)
        return code;
    out_json(cli_out(cli), made);
    out_text(cli_out(cli), OUT_PLAIN, "%s\n", text_of(made, "key"));
    out_notice(cli_out(cli), "scopes: %s; this key is shown only now", text_of(made, "scopes"));
    return EXIT_CODE_OK;
}

/* ---- coop key revoke ---- */

typedef enum KeyMatch { MATCH_NONE, MATCH_BEGIN, MATCH_EXACT } KeyMatch;

/* By its id, by the beginning of that or of what lists show of the key, or by the key itself. */
static KeyMatch
match_key(const Json *key, const char *word)
{
    const char *id = text_of(key, "id"), *prefix = text_of(key, "prefix");

    if (strcmp(id, word) == 0)
        return MATCH_EXACT;
    if (is_revoked(key) || prefix[0] == '\0')
        return MATCH_NONE;
    return g_str_has_prefix(id, word) || g_str_has_prefix(prefix, word) || g_str_has_prefix(word, prefix)
               ? MATCH_BEGIN
               : MATCH_NONE;
}

/* NULL after a message. */
static const Json *
find_key(Cli *cli, const Json *keys, const char *word, ExitCode *ret_code)
{
    const Json *found = NULL;
    guint n = 0;

    for (size_t i = 0; i < json_array_size(keys); i++) {
        const Json *key = json_array_get(keys, i);
        KeyMatch match = match_key(key, word);

        if (match == MATCH_EXACT)
            return key;
        if (match == MATCH_BEGIN) {
            found = key;
            n++;
        }
    }
    if (n == 0)
        *ret_code = cli_fail(cli, EXIT_CODE_NOT_FOUND, "there is no key '%s': 'coop key ls' lists them",
                             word);
    else if (n > 1)
        *ret_code = cli_fail(cli, EXIT_CODE_USAGE, "%u keys begin with '%s': give more of it", n, word);
    return n == 1 ? found : NULL;
}

static ExitCode
run_revoke(Cli *cli)
{
    const char *word = cli_args(cli)[0];
    g_autoptr(Remote) remote = NULL;
    ExitCode code = word[0] != '\0' ? remote_open(cli, &remote)
                                    : cli_fail(cli, EXIT_CODE_USAGE, "the id of the key is empty");

    if (code != EXIT_CODE_OK)
        return code;
    g_autoptr(Json) keys = fetch_keys(cli, remote, &code);
    const Json *key = keys != NULL ? find_key(cli, keys, word, &code) : NULL;
    if (key == NULL)
        return code;
    g_autofree char *id = g_uri_escape_string(text_of(key, "id"), NULL, FALSE);
    g_autofree char *path = g_strconcat("/api/v1/keys/", id, NULL);
    code = remote_call(remote, "DELETE", path, NULL, NULL);
    if (code != EXIT_CODE_OK)
        return code;
    g_autoptr(Json) value = json_pack("{s:s, s:s, s:s}", "revoked", text_of(key, "id"), "name",
                                      text_of(key, "name"), "prefix", text_of(key, "prefix"));
    out_json(cli_out(cli), value);
    out_text(cli_out(cli), OUT_PLAIN, "revoked %s… (%s)\n", text_of(key, "prefix"), text_of(key, "name"));
    return EXIT_CODE_OK;
}

/* ---- the commands ---- */

static const CliOption ls_options[] = {
    {.name = "all", .letter = 'a', .help = "also those that are revoked"},
    {NULL},
};
static const Command key_ls = {
    .name = "ls",
    .summary = "List the keys",
    .options = ls_options,
    .settings = CLI_SETTINGS_CLIENT,
    .run = run_ls,
};

static const CliOption new_options[] = {
    {.name = "scopes",
     .value = "SCOPES",
     .help = "admin, box, read, separated by commas (default: read,box)"},
    {.name = "expires", .value = "TIME", .help = "how long it is valid, such as 30d (default: for ever)"},
    {NULL},
};
static const Command key_new = {
    .name = "new",
    .summary = "Make a key and print it",
    .args = "NAME",
    .args_min = 1,
    .args_max = 1,
    .details = "The key is shown this once: only its hash is stored.",
    .options = new_options,
    .settings = CLI_SETTINGS_CLIENT,
    .run = run_new,
};

static const Command key_revoke = {
    .name = "revoke",
    .summary = "Revoke a key and end what it opened",
    .args = "ID",
    .args_min = 1,
    .args_max = 1,
    .details = "ID is the key's id, or enough of its beginning, or what 'coop key ls' shows of the key.",
    .settings = CLI_SETTINGS_CLIENT,
    .run = run_revoke,
};

static const Command *const commands[] = {&key_ls, &key_new, &key_revoke, NULL};

const Command command_key = {
    .name = "key",
    .summary = "Print the first admin key, or manage keys",
    .details = "Without a command it prints the key that was made at the first start, and nothing else.",
    .commands = commands,
    .settings = CLI_SETTINGS_HOME,
    .run = run_show,
};

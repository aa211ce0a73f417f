/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "cli/commands.h"
#include "cli/door-scope.h"
#include "cli/events.h"
#include "cli/remote.h"
#include "door/policy.h"

static const char rules_path[] = "/api/v1/door/rules";

/* ---- coop door allow, deny ---- */

static bool
add_ports(Cli *cli, Json *body)
{
    g_autoptr(GPtrArray) values = cli_option_all(cli, "port");
    Json *ports = json_array();

    for (guint i = 0; i < values->len; i++) {
        guint64 port;

        if (!g_ascii_string_to_unsigned(values->pdata[i], 10, 1, G_MAXUINT16, &port, NULL)) {
            json_decref(ports);
            cli_fail(cli, EXIT_CODE_USAGE, "option --port: '%s' is no port", (const char *)values->pdata[i]);
            return false;
        }
        json_array_append_new(ports, json_integer((json_int_t)port));
    }
    json_object_set_new(body, "ports", ports);
    return true;
}

static ExitCode
put_rule(Cli *cli, const char *action)
{
    static const char *const switches[] = {"inside", "upgrade", "plain"};
    const char *pattern = cli_args(cli)[0];
    g_autoptr(Json) body = json_pack("{s:s, s:s}", "action", action, "pattern", pattern);
    g_autoptr(Remote) remote = NULL;
    g_autoptr(Json) rules = NULL;

    if (!door_scope_add(cli, body) || !add_ports(cli, body))
        return EXIT_CODE_USAGE;
    for (size_t i = 0; i < G_N_ELEMENTS(switches); i++) {
        if (cli_option(cli, switches[i]) != NULL)
            json_object_set_new(body, switches[i], json_true());
    }
    ExitCode code = remote_open(cli, &remote);
    if (code == EXIT_CODE_OK)
        code = remote_call(remote, "POST", rules_path, body, &rules);
    if (code != EXIT_CODE_OK)
        return code;
    g_autofree char *scope = door_scope_shown(body);
    const char *warning = strcmp(action, "allow") == 0 ? policy_pattern_warning(pattern) : NULL;

    out_json(cli_out(cli), rules);
    out_text(cli_out(cli), OUT_GOOD, "%s: %s may %sreach it, from now on\n", pattern, scope,
             strcmp(action, "allow") == 0 ? "" : "not ");
    if (warning != NULL)
        out_notice(cli_out(cli), "%s: %s", pattern, warning);
    return EXIT_CODE_OK;
}

static ExitCode
run_allow(Cli *cli)
{
    return put_rule(cli, "allow");
}

static ExitCode
run_deny(Cli *cli)
{
    return put_rule(cli, "deny");
}

/* ---- coop door rm ---- */

/* A rule has the bare id of a box; who asks may write it either way. */
static bool
is_same_id(const char *scope, const char *asked, const char *of_rule)
{
    if (strcmp(scope, "box") == 0 && g_str_has_prefix(asked, "sb-"))
        asked += strlen("sb-");
    return strcmp(asked, of_rule) == 0;
}

static bool
is_meant(Json *rule, Json *body, const char *word)
{
    const char *scope = json_string_value(json_object_get(body, "scope"));
    const char *scope_id = json_string_value(json_object_get(body, "scope_id"));

    if (strcmp(json_string_value(json_object_get(rule, "id")), word) == 0)
        return true;
    return g_ascii_strcasecmp(json_string_value(json_object_get(rule, "pattern")), word) == 0 &&
           strcmp(json_string_value(json_object_get(rule, "scope")), scope != NULL ? scope : "server") == 0 &&
           (scope_id == NULL ||
            is_same_id(scope, scope_id, json_string_value(json_object_get(rule, "scope_id"))));
}

static ExitCode
run_rm(Cli *cli)
{
    const char *word = cli_args(cli)[0];
    g_autoptr(Json) body = json_object();
    g_autoptr(Remote) remote = NULL;
    g_autoptr(Json) all = NULL;
    Json *rule;
    size_t i;

    if (!door_scope_add(cli, body))
        return EXIT_CODE_USAGE;
    ExitCode code = remote_open(cli, &remote);
    if (code == EXIT_CODE_OK)
        code = remote_call(remote, "GET", rules_path, NULL, &all);
    if (code != EXIT_CODE_OK)
        return code;
    json_array_foreach(json_object_get(all, "rules"), i, rule)
    {
        if (!is_meant(rule, body, word))
            continue;
        g_autofree char *path = g_strdup_printf("%s/%s", rules_path,
                                                json_string_value(json_object_get(rule, "id")));

        code = remote_call(remote, "DELETE", path, NULL, NULL);
        if (code == EXIT_CODE_OK)
            out_text(cli_out(cli), OUT_GOOD, "%s: the rule is gone\n", word);
        return code;
    }
    g_autofree char *scope = door_scope_shown(body);

    return cli_fail(cli, EXIT_CODE_NOT_FOUND, "there is no rule '%s' for %s: 'coop door rules' shows them",
                    word, scope);
}

/* ---- coop door rules ---- */

static void
add_row(Json *rows, const char *scope, const char *action, const char *pattern, Json *ports, bool inside,
        const char *source)
{
    g_autoptr(GString) text = g_string_new(NULL);
    Json *port;
    size_t i;

    json_array_foreach(ports, i, port)
    {
        g_string_append_printf(text, "%s%d", i > 0 ? "," : "", (int)json_integer_value(port));
    }
    json_array_append_new(rows, json_pack("{s:s, s:s, s:s, s:s, s:s, s:s}", "scope", scope, "action", action,
                                          "pattern", pattern, "ports", text->str, "inside",
                                          inside ? "yes" : "", "source", source));
}

static void
add_policy_rows(Json *rows, Json *list, const char *scope)
{
    Json *rule;
    size_t i;

    json_array_foreach(list, i, rule)
    {
        const char *allow = json_string_value(json_object_get(rule, "allow"));
        const char *deny = json_string_value(json_object_get(rule, "deny"));

        add_row(rows, scope, allow != NULL ? "allow" : "deny", allow != NULL ? allow : deny,
                json_object_get(rule, "ports"), json_is_true(json_object_get(rule, "inside")),
                json_string_value(json_object_get(rule, "source")));
    }
}

static void
add_rule_rows(Json *rows, Json *list)
{
    Json *rule;
    size_t i;

    json_array_foreach(list, i, rule)
    {
        const char *id = json_string_value(json_object_get(rule, "scope_id"));
        const char *scope = json_string_value(json_object_get(rule, "scope"));
        g_autofree char *whole = g_strdup_printf("%s%s%s", scope, *id != '\0' ? " " : "", id);

        add_row(rows, whole, json_string_value(json_object_get(rule, "action")),
                json_string_value(json_object_get(rule, "pattern")), json_object_get(rule, "ports"),
                json_is_true(json_object_get(rule, "inside")),
                json_string_value(json_object_get(rule, "actor")));
    }
}

static ExitCode
run_rules(Cli *cli)
{
    static const OutColumn columns[] = {{"scope", "SCOPE"},
                                        {"action", "ACTION"},
                                        {"pattern", "PATTERN"},
                                        {"ports", "PORTS"},
                                        {"inside", "INSIDE"},
                                        {"source", "FROM"},
                                        {NULL}};
    const char *box = cli_option(cli, "box");
    g_autofree char *escaped = box != NULL ? g_uri_escape_string(box, NULL, FALSE) : NULL;
    g_autofree char *path = escaped != NULL ? g_strconcat(rules_path, "?box=", escaped, NULL)
                                            : g_strdup(rules_path);
    g_autoptr(Remote) remote = NULL;
    g_autoptr(Json) found = NULL;
    ExitCode code = remote_open(cli, &remote);

    if (code == EXIT_CODE_OK)
        code = remote_call(remote, "GET", path, NULL, &found);
    if (code != EXIT_CODE_OK)
        return code;
    g_autoptr(Json) rows = json_array();
    Out *out = cli_out(cli);

    if (out_format(out) == OUT_JSON) {
        out_json(out, found);
        return EXIT_CODE_OK;
    }
    out_text(out, OUT_PLAIN, "Mode: %s\n", json_string_value(json_object_get(found, "mode")));
    if (box != NULL)
        add_policy_rows(rows, json_object_get(found, "rules"), "this box");
    else
        add_rule_rows(rows, json_object_get(found, "rules"));
    add_policy_rows(rows, json_object_get(found, "defaults"), "default");
    out_table(out, columns, rows);
    return EXIT_CODE_OK;
}

/* ---- coop door mode ---- */

static ExitCode
run_mode(Cli *cli)
{
    const char *mode = cli_args(cli)[0];
    g_autoptr(Json) body = json_pack("{s:s}", "mode", mode);
    g_autoptr(Remote) remote = NULL;
    g_autoptr(Json) rules = NULL;

    if (!door_scope_add(cli, body))
        return EXIT_CODE_USAGE;
    ExitCode code = remote_open(cli, &remote);
    if (code == EXIT_CODE_OK)
        code = remote_call(remote, "PUT", "/api/v1/door/mode", body, &rules);
    if (code != EXIT_CODE_OK)
        return code;
    g_autofree char *scope = door_scope_shown(body);

    out_json(cli_out(cli), rules);
    out_text(cli_out(cli), OUT_GOOD, "%s: %s\n", scope, mode);
    return EXIT_CODE_OK;
}

/* ---- coop door, coop door log ---- */

static ExitCode
run_status(Cli *cli)
{
    static const OutColumn fields[] = {
        {"door", "Door"},       {"boxes", "Boxes"},   {"connections", "Connections"}, {"tunnels", "Tunnels"},
        {"allowed", "Allowed"}, {"denied", "Denied"}, {"observed", "Observed"},       {NULL}};
    g_autoptr(Remote) remote = NULL;
    g_autoptr(Json) status = NULL;
    ExitCode code = remote_open(cli, &remote);

    if (code == EXIT_CODE_OK)
        code = remote_call(remote, "GET", "/api/v1/door/status", NULL, &status);
    if (code != EXIT_CODE_OK)
        return code;
    if (out_format(cli_out(cli)) == OUT_JSON) {
        out_json(cli_out(cli), status);
        return EXIT_CODE_OK;
    }
    g_autoptr(Json) shown = json_copy(json_object_get(status, "stats"));
    bool up = json_is_true(json_object_get(status, "up"));

    json_object_set_new(shown, "door", json_string(up ? "there" : "away"));
    json_object_set(shown, "boxes", json_object_get(status, "boxes"));
    out_fields(cli_out(cli), fields, shown);
    return EXIT_CODE_OK;
}

static ExitCode
run_log(Cli *cli)
{
    return events_show(cli, "/api/v1/door/log");
}

/* ---- the commands ---- */

static const CliOption allow_options[] = {
    {.name = "port", .value = "N", .help = "this port (default: 80 and 443); may be repeated"},
    DOOR_SCOPE_OPTIONS,
    {.name = "inside", .help = "also where the name leads into a private network"},
    {.name = "upgrade", .help = "let WebSocket through the plain proxy"},
    {.name = "plain", .help = "what goes to 443 or 80 need not be TLS, so its name is not compared"},
    {NULL},
};
static const CliOption deny_options[] = {
    {.name = "port", .value = "N", .help = "this port alone (default: every port); may be repeated"},
    DOOR_SCOPE_OPTIONS,
    {NULL},
};
static const CliOption scope_options[] = {DOOR_SCOPE_OPTIONS, {NULL}};
static const CliOption rules_options[] = {
    {.name = "box", .value = "ID", .help = "what is true for this box, the first that matches first"},
    {NULL},
};
static const CliOption log_options[] = {
    {.name = "follow", .letter = 'f', .help = "wait for further ones and show them as they come"},
    {.name = "box", .value = "ID", .help = "only of this box"},
    {.name = "kind", .value = "KIND", .help = "only of this kind, such as door.denied; may be repeated"},
    {.name = "after", .value = "SEQ", .help = "those after this number, oldest first"},
    {.name = "limit", .value = "N", .help = "at most so many (without --after: the newest, 100 of them)"},
    {NULL},
};

static const Command door_allow = {
    .name = "allow",
    .summary = "Let boxes reach a place, from now on",
    .args = "PATTERN",
    .args_min = 1,
    .args_max = 1,
    .details = "PATTERN is a name, *.NAME for what is below it, an address, or '*' for everything.",
    .options = allow_options,
    .settings = CLI_SETTINGS_CLIENT,
    .run = run_allow,
};
static const Command door_deny = {
    .name = "deny",
    .summary = "Keep boxes from a place; streams that are open are cut",
    .args = "PATTERN",
    .args_min = 1,
    .args_max = 1,
    .options = deny_options,
    .settings = CLI_SETTINGS_CLIENT,
    .run = run_deny,
};
static const Command door_rm = {
    .name = "rm",
    .summary = "Take a rule back",
    .args = "PATTERN",
    .args_min = 1,
    .args_max = 1,
    .options = scope_options,
    .settings = CLI_SETTINGS_CLIENT,
    .run = run_rm,
};
static const Command door_rules = {
    .name = "rules",
    .summary = "List what boxes may reach, and why",
    .options = rules_options,
    .settings = CLI_SETTINGS_CLIENT,
    .run = run_rules,
};
static const Command door_mode = {
    .name = "mode",
    .summary = "Enforce the rules, only observe, or deny everything",
    .args = "enforce|observe|deny|inherit",
    .args_min = 1,
    .args_max = 1,
    .details =
        "'observe' lets through what would be denied and says so in the log; private networks, metadata\n"
        "services and this machine stay closed. 'inherit' takes the mode of a scope back.",
    .options = scope_options,
    .settings = CLI_SETTINGS_CLIENT,
    .run = run_mode,
};
static const Command door_log = {
    .name = "log",
    .summary = "Show what the door allowed and denied, and what models were asked",
    .options = log_options,
    .settings = CLI_SETTINGS_CLIENT,
    .run = run_log,
};

static const Command *const commands[] = {&door_allow, &door_deny,   &door_rm,  &door_rules,
                                          &door_mode,  &door_limits, &door_log, NULL};

const Command command_door = {
    .name = "door",
    .summary = "Show or change what boxes may reach",
    .commands = commands,
    .settings = CLI_SETTINGS_CLIENT,
    .run = run_status,
};

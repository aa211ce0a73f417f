/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "cli/commands.h"
#include "cli/forge-call.h"
#include "cli/squad-file.h"
#include "cli/squad.h"
#include "cli/team-call.h"

enum { SQUADS_SHOWN = 1000 };

/* ---- looking ---- */

static Json *
names_of(const Json *members)
{
    g_autoptr(GString) text = g_string_new(NULL);
    size_t i;
    Json *member;

    json_array_foreach((Json *)(guintptr)members, i, member)
        g_string_append_printf(text, "%s%s", i > 0 ? ", " : "", forge_text(member, "name"));
    return json_string(text->str);
}

static ExitCode
run_ls(Cli *cli)
{
    static const OutColumn columns[] = {
        {"name", "NAME"},       {"status", "STATUS"},           {"members", "MEMBERS"},
        {"repository", "REPO"}, {"description", "DESCRIPTION"}, {NULL},
    };
    g_autoptr(Json) list = NULL;
    ExitCode code = team_fetch(cli, "/api/v1/squads?", "squads", SQUADS_SHOWN, &list);
    size_t i;
    Json *squad;

    if (code != EXIT_CODE_OK)
        return code;
    json_array_foreach(list, i, squad)
    {
        if (out_format(cli_out(cli)) == OUT_TEXT)
            json_object_set_new(squad, "members", names_of(json_object_get(squad, "members")));
    }
    out_table(cli_out(cli), columns, list);
    return EXIT_CODE_OK;
}

static void
show_members(Cli *cli, const Json *members)
{
    static const OutColumn columns[] = {
        {"name", "MEMBER"},   {"role", "ROLE"},         {"specialization", "FOR"},   {"model", "MODEL"},
        {"adapter", "AGENT"}, {"template", "TEMPLATE"}, {"current_task_id", "TASK"}, {NULL},
    };
    g_autoptr(Json) rows = json_deep_copy(members);
    size_t i;
    Json *row;

    json_array_foreach(rows, i, row)
    {
        g_autofree char *model = g_strdup_printf("%s/%s", forge_text(row, "llm_provider"),
                                                 forge_text(row, "llm_model"));

        json_object_set_new(row, "model", json_string(model));
    }
    out_text(cli_out(cli), OUT_PLAIN, "\n");
    out_table(cli_out(cli), columns, rows);
}

static ExitCode
show(Cli *cli, Json *squad)
{
    static const OutColumn fields[] = {
        {"name", "Name"},          {"description", "What"},
        {"status", "Status"},      {"repository", "Repository"},
        {"config", "Config"},      {"id", "Id"},
        {"created_at", "Created"}, {NULL},
    };

    out_fields(cli_out(cli), fields, squad);
    if (out_format(cli_out(cli)) == OUT_TEXT && json_is_array(json_object_get(squad, "members")))
        show_members(cli, json_object_get(squad, "members"));
    return EXIT_CODE_OK;
}

static ExitCode
run_show(Cli *cli)
{
    g_autofree char *path = team_path("squads", cli_args(cli)[0], "");
    g_autoptr(Json) squad = NULL;
    ExitCode code = team_send(cli, "GET", path, NULL, &squad);

    return code == EXIT_CODE_OK ? show(cli, squad) : code;
}

static ExitCode
run_roles(Cli *cli)
{
    static const OutColumn columns[] = {
        {"name", "ROLE"}, {"archetype", "WORKS AS"}, {"template", "TEMPLATE"}, {"names", "ALSO CALLED"},
        {NULL},
    };
    g_autoptr(Json) body = NULL;
    ExitCode code = team_send(cli, "GET", "/api/v1/roles", NULL, &body);
    Json *list = json_object_get(body, "roles"), *role;
    size_t i;

    if (code != EXIT_CODE_OK)
        return code;
    if (!json_is_array(list))
        return cli_fail(cli, EXIT_CODE_FAILED, "the server gave no list of roles");
    json_array_foreach(list, i, role)
    {
        g_autoptr(GString) names = g_string_new(NULL);
        const char *name;
        Json *value;

        json_object_foreach(json_object_get(role, "aliases"), name, value)
            g_string_append_printf(names, "%s%s", names->len > 0 ? ", " : "", name);
        if (out_format(cli_out(cli)) == OUT_TEXT)
            json_object_set_new(role, "names", json_string(names->str));
    }
    out_table(cli_out(cli), columns, list);
    return EXIT_CODE_OK;
}

/* ---- squads ---- */

static const TeamOption squad_texts[] = {
    {"description", "description"},
    {"repo", "repository"},
    {"status", "status"},
    {"name", "name"},
    {NULL, NULL},
};

/* "coder", or "coder:backend". */
static bool
add_members(Cli *cli, Json *body)
{
    g_autoptr(GPtrArray) given = cli_option_all(cli, "member");

    for (guint i = 0; i < given->len; i++) {
        g_auto(GStrv) parts = g_strsplit(given->pdata[i], ":", 2);
        Json *member = json_pack("{s:s?}", "role", parts[0]);

        if (member == NULL) {
            cli_fail(cli, EXIT_CODE_USAGE, "--member is no UTF-8");
            return false;
        }
        if (parts[0] != NULL && parts[1] != NULL)
            json_object_set_new(member, "specialization", json_string(parts[1]));
        if (i == 0)
            json_object_set_new(body, "members", json_array());
        json_array_append_new(json_object_get(body, "members"), member);
    }
    return true;
}

static ExitCode
write_squad(Cli *cli, const char *method, const char *path, Json *body)
{
    g_autoptr(Json) config = team_read_object(cli, "config"), squad = NULL;

    if (config == NULL || !team_set_options(cli, squad_texts, body))
        return EXIT_CODE_USAGE;
    if (json_object_size(config) > 0)
        json_object_set(body, "config", config);
    ExitCode code = team_send(cli, method, path, body, &squad);

    return code == EXIT_CODE_OK ? show(cli, squad) : code;
}

static ExitCode
run_new(Cli *cli)
{
    const char *file = cli_option(cli, "file");
    g_autoptr(Json) body = file != NULL ? squad_file_read(cli, file) : json_object();
    g_autoptr(Json) name = json_string(cli_args(cli)[0]);

    if (body == NULL)
        return EXIT_CODE_USAGE;
    if (name == NULL)
        return cli_fail(cli, EXIT_CODE_USAGE, "the name is no UTF-8");
    json_object_set(body, "name", name);
    return add_members(cli, body) ? write_squad(cli, "POST", "/api/v1/squads", body) : EXIT_CODE_USAGE;
}

static ExitCode
run_set(Cli *cli)
{
    g_autofree char *path = team_path("squads", cli_args(cli)[0], "");
    g_autoptr(Json) body = json_object();

    return write_squad(cli, "PATCH", path, body);
}

static ExitCode
run_rm(Cli *cli)
{
    g_autofree char *path = team_path("squads", cli_args(cli)[0], "");

    return remote_remove(cli, path, cli_args(cli)[0]);
}

/* ---- members ---- */

static const TeamOption member_texts[] = {
    {"name", "name"},       {"role", "role"},       {"for", "specialization"}, {"provider", "llm_provider"},
    {"model", "llm_model"}, {"adapter", "adapter"}, {"template", "template"},  {NULL, NULL},
};

static char *
member_path(Cli *cli)
{
    g_autofree char *name = g_uri_escape_string(cli_args(cli)[1], NULL, FALSE);
    g_autofree char *rest = g_strconcat("/members/", name, NULL);

    return team_path("squads", cli_args(cli)[0], rest);
}

static ExitCode
write_member(Cli *cli, const char *method, const char *path, Json *body)
{
    static const OutColumn fields[] = {
        {"name", "Name"},
        {"role", "Role"},
        {"archetype", "Works as"},
        {"specialization", "For"},
        {"llm_provider", "Provider"},
        {"llm_model", "Model"},
        {"adapter", "Agent"},
        {"template", "Template"},
        {"is_active", "Active"},
        {"id", "Id"},
        {NULL},
    };
    g_autoptr(Json) config = team_read_object(cli, "config"), member = NULL;
    const char *prompt = cli_option(cli, "prompt");
    g_autofree char *text = prompt != NULL ? team_read_file(cli, prompt) : NULL;

    if (config == NULL || (prompt != NULL && text == NULL) || !team_set_options(cli, member_texts, body))
        return EXIT_CODE_USAGE;
    if (text != NULL)
        json_object_set_new(body, "system_prompt", json_string(text));
    if (json_object_size(config) > 0)
        json_object_set(body, "config", config);
    if (cli_option(cli, "active") != NULL)
        json_object_set_new(body, "is_active", json_boolean(strcmp(cli_option(cli, "active"), "yes") == 0));
    ExitCode code = team_send(cli, method, path, body, &member);

    if (code == EXIT_CODE_OK)
        out_fields(cli_out(cli), fields, member);
    return code;
}

static ExitCode
run_add(Cli *cli)
{
    g_autofree char *path = team_path("squads", cli_args(cli)[0], "/members");
    g_autoptr(Json) body = json_pack("{s:s}", "role", cli_args(cli)[1]);

    return body != NULL ? write_member(cli, "POST", path, body)
                        : cli_fail(cli, EXIT_CODE_USAGE, "the role is no UTF-8");
}

static ExitCode
run_change(Cli *cli)
{
    g_autofree char *path = member_path(cli);
    g_autoptr(Json) body = json_object();

    return write_member(cli, "PATCH", path, body);
}

static ExitCode
run_drop(Cli *cli)
{
    g_autofree char *path = member_path(cli);

    return remote_remove(cli, path, cli_args(cli)[1]);
}

/* ---- the commands ---- */

static const char *const statuses[] = {"active", "inactive", NULL};
static const char *const answers[] = {"yes", "no", NULL};

#define SQUAD_OPTIONS                                                                                        \
    {.name = "description", .value = "TEXT", .help = "what it is for"},                                      \
        {.name = "repo", .letter = 'R', .value = "[OWNER/]NAME", .help = "where tasks go that name none"},   \
    {                                                                                                        \
        .name = "config", .value = "JSON", .help = "what it decides for its tasks; null removes a member"    \
    }
static const CliOption new_options[] = {
    SQUAD_OPTIONS,
    {.name = "member",
     .letter = 'm',
     .value = "ROLE[:FOR]",
     .help = "may be given again; the usual five without"},
    {.name = "file", .letter = 'f', .value = "FILE", .help = "the squad as YAML or JSON; '-' is the input"},
    {NULL},
};
static const CliOption set_options[] = {
    SQUAD_OPTIONS,
    {.name = "name", .value = "NAME", .help = "another name"},
    {.name = "status", .value = "STATUS", .help = "active or inactive", .choices = statuses},
    {NULL},
};
#define MEMBER_OPTIONS                                                                                       \
    {.name = "name", .value = "NAME", .help = "what it is called; made of the role if not named"},           \
        {.name = "for", .value = "WORD", .help = "its specialisation, such as backend"},                     \
        {.name = "provider", .value = "NAME", .help = "whose model"},                                        \
        {.name = "model", .value = "NAME", .help = "which model"},                                           \
        {.name = "prompt", .value = "FILE", .help = "its own part of the system prompt; '-' is the input"},  \
        {.name = "adapter", .value = "NAME", .help = "the program that is the agent; coop if not named"},    \
        {.name = "template", .value = "NAME", .help = "what its boxes start from"},                          \
        {.name = "config", .value = "JSON", .help = "turns, seconds, context_tokens, tools"},                \
    {                                                                                                        \
        .name = "active", .value = "ANSWER", .help = "yes or no", .choices = answers                         \
    }
static const CliOption add_options[] = {MEMBER_OPTIONS, {NULL}};
static const CliOption change_options[] = {
    MEMBER_OPTIONS, {.name = "role", .value = "ROLE", .help = "another role"}, {NULL}};

#define ONE_SQUAD .args = "SQUAD", .args_min = 1, .args_max = 1, .settings = CLI_SETTINGS_CLIENT
#define ONE_MEMBER .args = "SQUAD MEMBER", .args_min = 2, .args_max = 2, .settings = CLI_SETTINGS_CLIENT

static const Command squad_ls = {
    .name = "ls", .summary = "List squads", .settings = CLI_SETTINGS_CLIENT, .run = run_ls};
static const Command squad_show = {
    .name = "show", .summary = "Show a squad and its members", ONE_SQUAD, .run = run_show};
static const Command squad_new = {.name = "new",
                                  .summary = "Make a squad",
                                  .args = "NAME",
                                  .args_min = 1,
                                  .args_max = 1,
                                  .options = new_options,
                                  .settings = CLI_SETTINGS_CLIENT,
                                  .run = run_new};
static const Command squad_set = {
    .name = "set", .summary = "Change a squad", .options = set_options, ONE_SQUAD, .run = run_set};
static const Command squad_rm = {.name = "rm", .summary = "Remove a squad", ONE_SQUAD, .run = run_rm};
static const Command squad_add = {.name = "add",
                                  .summary = "Add a member to a squad",
                                  .args = "SQUAD ROLE",
                                  .args_min = 2,
                                  .args_max = 2,
                                  .options = add_options,
                                  .settings = CLI_SETTINGS_CLIENT,
                                  .run = run_add};
static const Command squad_change = {.name = "change",
                                     .summary = "Change a member of a squad",
                                     .options = change_options,
                                     ONE_MEMBER,
                                     .run = run_change};
static const Command squad_drop = {
    .name = "drop", .summary = "Remove a member of a squad", ONE_MEMBER, .run = run_drop};
static const Command squad_roles = {.name = "roles",
                                    .summary = "Show the roles and their other names",
                                    .settings = CLI_SETTINGS_CLIENT,
                                    .run = run_roles};

static const Command *const commands[] = {&squad_ls,    &squad_show, &squad_new,    &squad_set,
                                          &squad_rm,    &squad_add,  &squad_change, &squad_drop,
                                          &squad_roles, &squad_hook, NULL};

const Command command_squad = {
    .name = "squad",
    .summary = "Make and change squads of agents",
    .commands = commands,
    .settings = CLI_SETTINGS_CLIENT,
    .run = run_ls,
};

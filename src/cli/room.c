/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/commands.h"
#include "cli/follow.h"
#include "cli/remote.h"
#include "http/url.h"

static const char *
text_of(const Json *object, const char *member)
{
    const char *text = json_string_value(json_object_get(object, member));

    return text != NULL ? text : "";
}

static ExitCode
call_room(Cli *cli, Remote *remote, const char *method, const char *below, const Json *body, Json **ret_body)
{
    g_autofree char *id = url_encode_path(cli_args(cli)[0]);
    g_autofree char *path = g_strconcat("/api/v1/rooms/", id, below, NULL);

    return remote_call(remote, method, path, body, ret_body);
}

/* ---- showing ---- */

/* Whose word it is stands before every word. */
static void
show_messages(Out *out, const Json *messages)
{
    size_t i;
    Json *m;

    json_array_foreach((Json *)(guintptr)messages, i, m)
    {
        const char *recipient = text_of(m, "recipient");

        out_text(out, OUT_DIM, "%s ", text_of(m, "at"));
        out_text(out, OUT_BOLD, "%s (%s)%s%s", text_of(m, "name"), text_of(m, "seen_by"),
                 recipient[0] != '\0' ? " to " : "", recipient);
        out_text(out, OUT_PLAIN, ": %s\n", text_of(m, "text"));
    }
}

static void
show_knowledge(Out *out, const Json *knowledge)
{
    size_t i;
    Json *fact;

    if (json_array_size(knowledge) > 0)
        out_text(out, OUT_BOLD, "\nKnowledge\n");
    json_array_foreach((Json *)(guintptr)knowledge, i, fact)
    {
        out_text(out, OUT_PLAIN, "  %s: %s", text_of(fact, "name"), text_of(fact, "text"));
        out_text(out, OUT_DIM, "  (%s, %s%s%s)\n", text_of(fact, "by"), text_of(fact, "seen_by"),
                 text_of(fact, "evidence")[0] != '\0' ? "; " : "", text_of(fact, "evidence"));
    }
}

static void
show_part(Out *out, const char *title, const Json *part)
{
    if (json_object_size(part) == 0)
        return;
    g_autofree char *text = json_dumps(part, JSON_INDENT(2));

    out_text(out, OUT_BOLD, "\n%s\n", title);
    out_text(out, OUT_PLAIN, "%s\n", text);
}

static ExitCode
run_show(Cli *cli)
{
    g_autoptr(Remote) remote = NULL;
    g_autoptr(Json) room = NULL;
    ExitCode code = remote_open(cli, &remote);

    if (code == EXIT_CODE_OK)
        code = call_room(cli, remote, "GET", NULL, NULL, &room);
    if (code != EXIT_CODE_OK)
        return code;
    if (out_format(cli_out(cli)) == OUT_JSON) {
        out_json(cli_out(cli), room);
        return EXIT_CODE_OK;
    }
    out_text(cli_out(cli), OUT_BOLD, "%s\n", text_of(room, "id"));
    show_messages(cli_out(cli), json_object_get(room, "messages"));
    show_part(cli_out(cli), "Plan", json_object_get(room, "plan"));
    show_part(cli_out(cli), "Assignments", json_object_get(room, "assignments"));
    show_knowledge(cli_out(cli), json_object_get(room, "knowledge"));
    return EXIT_CODE_OK;
}

/* ---- saying, hearing ---- */

static ExitCode
run_post(Cli *cli)
{
    const char *priority = cli_option(cli, "priority"), *to = cli_option(cli, "to");
    g_autoptr(Json) body = json_pack("{s:s, s:s*, s:s*}", "text", cli_args(cli)[1], "priority", priority,
                                     "recipient", to);
    g_autoptr(Remote) remote = NULL;
    g_autoptr(Json) message = NULL;

    if (body == NULL)
        return cli_fail(cli, EXIT_CODE_USAGE, "the message is no UTF-8");
    ExitCode code = remote_open(cli, &remote);

    if (code == EXIT_CODE_OK)
        code = call_room(cli, remote, "POST", "/messages", body, &message);
    if (code != EXIT_CODE_OK)
        return code;
    out_json(cli_out(cli), message);
    out_text(cli_out(cli), OUT_PLAIN, "said as %s, message %" JSON_INTEGER_FORMAT "\n",
             text_of(message, "name"), json_integer_value(json_object_get(message, "n")));
    return EXIT_CODE_OK;
}

static ExitCode
run_watch(Cli *cli)
{
    static const char kinds[] = "message.posted,context.updated,knowledge.added,agent.joined,agent.left";
    g_autoptr(Remote) remote = NULL;
    g_autoptr(Json) room = NULL;
    ExitCode code = remote_open(cli, &remote);

    if (code == EXIT_CODE_OK)
        code = call_room(cli, remote, "GET", NULL, NULL, &room);
    if (code != EXIT_CODE_OK)
        return code;
    if (text_of(room, "task_id")[0] == '\0')
        return cli_fail(cli, EXIT_CODE_FAILED, "the server at %s gave no room", remote_address(remote));
    g_autofree char *path = g_strdup_printf("/api/v1/events?task=%s&kind=%s", text_of(room, "task_id"),
                                            kinds);

    return follow_run(cli, remote, path, -1);
}

static const char *const priorities[] = {"low", "normal", "high", "urgent", NULL};
static const CliOption post_options[] = {
    {.name = "priority",
     .letter = 'p',
     .value = "PRIORITY",
     .help = "low, normal, high or urgent",
     .choices = priorities},
    {.name = "to", .value = "NAME", .help = "for one member, such as coder-1"},
    {NULL},
};

#define OF_TASK .args = "TASK", .args_min = 1, .args_max = 1, .settings = CLI_SETTINGS_CLIENT
static const Command room_show = {.name = "show",
                                  .summary = "Show plan, assignments, messages and knowledge of a task",
                                  OF_TASK,
                                  .run = run_show};
static const Command room_post_command = {.name = "post",
                                          .summary = "Say something to a task's agents",
                                          .args = "TASK TEXT",
                                          .args_min = 2,
                                          .args_max = 2,
                                          .options = post_options,
                                          .settings = CLI_SETTINGS_CLIENT,
                                          .run = run_post};
static const Command room_watch = {.name = "watch",
                                   .summary = "Follow what is said and changed in a task's room",
                                   OF_TASK,
                                   .run = run_watch};
static const Command *const commands[] = {&room_show, &room_post_command, &room_watch, NULL};

const Command command_room = {
    .name = "room",
    .summary = "See and join the conversation of a task's agents",
    .commands = commands,
};

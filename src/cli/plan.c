/* SPDX-License-Identifier: Apache-2.0 */
#include "team/plan.h"

#include <glib/gstdio.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "base/io.h"
#include "cli/commands.h"
#include "cli/forge-call.h"
#include "cli/input.h"
#include "cli/plan-file.h"
#include "cli/remote.h"

static const char *
text_of(const Json *object, const char *name)
{
    return json_string_value(json_object_get(object, name));
}

static gint64
int_of(const Json *object, const char *name)
{
    return json_integer_value(json_object_get(object, name));
}

static char *
plan_path(Cli *cli, const char *rest)
{
    const char *task = cli_args(cli)[0];
    g_autofree char *escaped = g_uri_escape_string(task[0] == '#' ? task + 1 : task, NULL, FALSE);

    return g_strconcat("/api/v1/tasks/", escaped, "/plan", rest, NULL);
}

/* ---- showing ---- */

static void
show_voice(Out *out, const Json *voice, bool whole)
{
    const char *problem = text_of(voice, "problem"), *text = text_of(voice, "text");
    Json *body = json_object_get(voice, "body");
    g_autoptr(GString) line = g_string_new(NULL);

    g_string_append_printf(line, "%s %" G_GINT64_FORMAT " (%s): %s", text_of(voice, "phase"),
                           int_of(voice, "seat"), text_of(voice, "model"), text_of(voice, "state"));
    if (problem != NULL)
        g_string_append_printf(line, ", %s", problem);
    for (size_t i = 0; i < json_array_size(body); i++)
        g_string_append_printf(line, "%s%" JSON_INTEGER_FORMAT, i == 0 ? ": " : " > ",
                               json_integer_value(json_array_get(body, i)));
    out_text(out, OUT_PLAIN, "- %s\n", line->str);
    if (whole && text != NULL)
        out_text(out, OUT_DIM, "%s\n\n", text);
}

static void
show_council(Out *out, const Json *plan, bool whole)
{
    const Json *council = json_object_get(plan, "council"), *voices = json_object_get(plan, "voices");
    const Json *dissent = json_object_get(council, "dissent");
    const char *outcome = text_of(council, "outcome"), *reason = text_of(council, "reason");

    if (json_is_object(council))
        out_text(out, OUT_BOLD, "\nCouncil: %s%s%s\n", outcome != NULL ? outcome : "under way",
                 reason != NULL ? ", because " : "", reason != NULL ? reason : "");
    else if (whole)
        out_text(out, OUT_BOLD, "\nWhat was said\n");
    for (size_t i = 0; (whole || json_is_object(council)) && i < json_array_size(voices); i++)
        show_voice(out, json_array_get(voices, i), whole);
    if (json_array_size(dissent) > 0)
        out_text(out, OUT_BOLD, "\nDissent\n");
    for (size_t i = 0; i < json_array_size(dissent); i++)
        out_text(out, OUT_PLAIN, "- %s\n", json_string_value(json_array_get(dissent, i)));
}

static void
show_plan(Cli *cli, const Json *plan, bool whole)
{
    Out *out = cli_out(cli);
    const char *text = text_of(plan, "text"), *problem = text_of(plan, "problem");

    if (out_format(out) == OUT_JSON) {
        out_json(out, plan);
        return;
    }
    out_text(out, OUT_DIM, "version %" G_GINT64_FORMAT ", by %s, %s%s%s\n\n", int_of(plan, "version"),
             forge_text(plan, "producer"), forge_text(plan, "state"), problem != NULL ? ": " : "",
             problem != NULL ? problem : "");
    if (text != NULL)
        out_text(out, OUT_PLAIN, "%s", text);
    show_council(out, plan, whole);
}

static ExitCode
fetch(Cli *cli, Remote **ret_remote, Json **ret_plan)
{
    g_autofree char *path = plan_path(cli, "");
    ExitCode code = remote_open(cli, ret_remote);

    return code == EXIT_CODE_OK ? remote_call(*ret_remote, "GET", path, NULL, ret_plan) : code;
}

static ExitCode
run_show(Cli *cli)
{
    g_autoptr(Remote) remote = NULL;
    g_autoptr(Json) plan = NULL;
    ExitCode code = fetch(cli, &remote, &plan);

    if (code == EXIT_CODE_OK)
        show_plan(cli, plan, cli_option(cli, "voices") != NULL);
    return code;
}

/* ---- changing ---- */

static ExitCode
send_plan(Cli *cli, Remote *remote, const Json *body)
{
    g_autofree char *path = plan_path(cli, "");
    g_autoptr(Json) plan = NULL;
    ExitCode code = remote_call(remote, "PUT", path, body, &plan);

    if (code == EXIT_CODE_OK)
        show_plan(cli, plan, false);
    return code;
}

static ExitCode
run_set(Cli *cli)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(Remote) remote = NULL;
    size_t len = 0;
    const char *path = cli_args(cli)[1];
    g_autofree char *text = input_read(path, PLAN_BYTES_MAX * 2, &len, &error);
    g_autoptr(Json) body = text != NULL ? plan_file_parse(text, len, &error) : NULL;

    if (body == NULL)
        return cli_fail(cli, EXIT_CODE_USAGE, "%s: %s", path, error->message);
    ExitCode code = remote_open(cli, &remote);

    return code == EXIT_CODE_OK ? send_plan(cli, remote, body) : code;
}

static ExitCode
run_approve(Cli *cli)
{
    g_autofree char *path = plan_path(cli, "/approve");
    g_autoptr(Remote) remote = NULL;
    g_autoptr(Json) plan = NULL;
    ExitCode code = remote_open(cli, &remote);

    if (code == EXIT_CODE_OK)
        code = remote_call(remote, "POST", path, NULL, &plan);
    if (code != EXIT_CODE_OK)
        return code;
    out_json(cli_out(cli), plan);
    out_text(cli_out(cli), OUT_GOOD, "the plan of task %s is approved\n", cli_args(cli)[0]);
    return EXIT_CODE_OK;
}

/* ---- the editor ---- */

static bool
write_file(int fd, const char *text, GError **error)
{
    bool ok = io_write_all(fd, text, strlen(text)) || err_errno(error, "write the plan for the editor");

    close(fd);
    return ok;
}

/* Until it can be used, or the person gives up, who keeps the file then. */
static Json *
edit_until_good(Cli *cli, const char *path, GError **error)
{
    for (;;) {
        g_autoptr(GError) problem = NULL;
        g_autofree char *text = NULL;
        size_t len = 0;
        char answer[8] = "";

        if (!plan_file_edit(path, error))
            return NULL;
        text = input_read(path, PLAN_BYTES_MAX * 2, &len, &problem);
        Json *plan = text != NULL ? plan_file_parse(text, len, &problem) : NULL;

        if (plan != NULL)
            return plan;
        if (isatty(STDIN_FILENO) == 1) {
            out_notice(cli_out(cli), "%s. Edit it again? [Y/n]", problem->message);
            if (read(STDIN_FILENO, answer, sizeof answer - 1) > 0 && g_ascii_tolower(answer[0]) != 'n')
                continue;
        }
        err_set(error, ERR_INVALID, "%s\nWhat was written is in %s", problem->message, path);
        return NULL;
    }
}

static ExitCode
run_edit(Cli *cli)
{
    g_autoptr(Remote) remote = NULL;
    g_autoptr(Json) plan = NULL, changed = NULL;
    g_autoptr(GError) error = NULL;
    g_autofree char *path = NULL;
    ExitCode code = fetch(cli, &remote, &plan);
    const Json *body = json_object_get(plan, "body");

    if (code != EXIT_CODE_OK)
        return code;
    if (!json_is_object(body))
        return cli_fail(cli, EXIT_CODE_FAILED, "the plan is still being made: 'coop plan set' gives another");
    g_autofree char *text = plan_file_format(body);
    int fd = g_file_open_tmp("coop-plan-XXXXXX", &path, &error);

    if (fd >= 0 && write_file(fd, text, &error))
        changed = edit_until_good(cli, path, &error);
    if (changed == NULL)
        return cli_fail_error(cli, error);
    (void)g_unlink(path); /* of no use to anybody */
    if (json_equal(changed, body)) {
        out_notice(cli_out(cli), "nothing was changed");
        return EXIT_CODE_OK;
    }
    return send_plan(cli, remote, changed);
}

/* ---- the commands ---- */

static const CliOption show_options[] = {
    {.name = "voices", .help = "with all that models said"},
    {NULL},
};

#define PLAN_COMMAND(id, text, words, n, ...)                                                                \
    static const Command id##_command = {.name = #id,                                                        \
                                         .summary = text,                                                    \
                                         .args = words,                                                      \
                                         .args_min = n,                                                      \
                                         .args_max = n,                                                      \
                                         .settings = CLI_SETTINGS_CLIENT,                                    \
                                         .run = run_##id,                                                    \
                                         __VA_ARGS__}
PLAN_COMMAND(show, "Show a task's plan, and how it came about", "TASK", 1, .options = show_options);
PLAN_COMMAND(edit, "Change it in $EDITOR; what you leave is the plan, approved", "TASK", 1);
PLAN_COMMAND(approve, "Let the work begin", "TASK", 1);
PLAN_COMMAND(set, "Give a plan of your own", "TASK FILE", 2,
             .details = "FILE is JSON or YAML, '-' the standard input; docs/team.md shows one.");

const Command command_plan = {
    .name = "plan",
    .summary = "What is to be done for a task",
    .commands = (const Command *const[]){&show_command, &edit_command, &approve_command, &set_command, NULL},
};

/* SPDX-License-Identifier: Apache-2.0 */
/* Tools that run commands: shell, test, commit. */
#include <string.h>

#include "agent/run.h"
#include "agent/tool.h"
#include "base/clock.h"
#include "base/err.h"

enum { COMMAND_MAX = 64 * 1024, PATHS_MAX = 1000 };

static gint64
bound_ms(const Work *work, gint64 ms)
{
    gint64 left_ms = (work->deadline_us - clock_mono_us()) / 1000;

    return CLAMP(ms, 1, MAX(left_ms, 1));
}

static bool
run(const Work *work, const char *const *argv, gint64 timeout_ms, RunResult *ret_result, GError **error)
{
    const RunSpec spec = {.argv = argv,
                          .cwd = work->brief->workdir,
                          .timeout_ms = bound_ms(work, timeout_ms),
                          .cancel_fd = work->cancel_fd,
                          .echo = work->echo};

    return run_command(&spec, ret_result, error);
}

static bool
run_shell(const Work *work, const char *command, gint64 timeout_ms, RunResult *ret_result, GError **error)
{
    const char *argv[] = {"sh", "-c", command, NULL};
    g_autofree char *bash = g_find_program_in_path("bash");

    if (bash != NULL)
        argv[0] = bash;
    return run(work, argv, timeout_ms, ret_result, error);
}

static void
take(ToolResult *result, const RunResult *r)
{
    g_string_append(result->text, r->output);
    if (result->err != NULL)
        g_string_append(result->err, r->err);
}

static void
say(ToolResult *result, const RunResult *r)
{
    take(result, r);
    if (result->text->len > 0 && result->text->str[result->text->len - 1] != '\n')
        g_string_append_c(result->text, '\n');
    if (r->timed_out)
        g_string_append_printf(result->text, "[ended: it took longer than %" G_GINT64_FORMAT " s]",
                               r->duration_ms / 1000);
    else
        g_string_append_printf(result->text, "[exit code %d]", r->exit_code);
    result->exit_code = r->exit_code;
}

static bool
shell_run(Work *work, Json *arguments, ToolResult *result, GError **error)
{
    const char *command = NULL;
    gint64 seconds = TOOL_SHELL_MS / 1000;
    const JsonField fields[] = {
        {"command", JSON_KIND_STRING, &command, true, 1, COMMAND_MAX},
        {"timeout", JSON_KIND_INT, &seconds, false, 1, TOOL_SHELL_MAX_MS / 1000},
        {NULL},
    };
    g_auto(RunResult) r = {0};

    if (!json_read(arguments, fields, error) || !run_shell(work, command, seconds * 1000, &r, error))
        return false;
    say(result, &r);
    return true;
}

const Tool tool_shell = {
    .name = "shell",
    .description =
        "Run a command with bash in the work tree. The output of both streams comes back, its middle "
        "left out when it is long. Processes left in the background end with the command.",
    .parameters =
        "{\"type\": \"object\", \"properties\": {"
        "\"command\": {\"type\": \"string\"},"
        "\"timeout\": {\"type\": \"integer\", \"description\": \"seconds, 120 if not given, at most 1800\"}},"
        "\"required\": [\"command\"]}",
    .flags = TOOL_SLOW,
    .run = shell_run,
};

/* ---- test ---- */

static bool
run_check(Work *work, Json *check, ToolResult *result, guint *ret_failed, GError **error)
{
    const char *name = json_string_value(json_object_get(check, "name"));
    const char *command = json_string_value(json_object_get(check, "run"));
    g_auto(RunResult) r = {0};

    if (command == NULL)
        return true;
    g_string_append_printf(result->text, "%s== %s: %s\n", result->text->len > 0 ? "\n" : "",
                           name != NULL ? name : "check", command);
    if (!run_shell(work, command, TOOL_CHECK_MS, &r, error))
        return false;
    say(result, &r);
    *ret_failed += r.exit_code != 0 || r.timed_out;
    return true;
}

static bool
test_run(Work *work, Json *arguments, ToolResult *result, GError **error)
{
    const JsonField none[] = {{NULL}};
    guint failed = 0;
    size_t i;
    Json *check;

    if (!json_read(arguments, none, error))
        return false;
    if (json_array_size(work->brief->checks) == 0) {
        g_string_assign(result->text,
                        "No checks are set for this step. Run the project's tests with `shell`.");
        return true;
    }
    json_array_foreach(work->brief->checks, i, check)
    {
        if (!run_check(work, check, result, &failed, error))
            return false;
    }
    result->exit_code = failed > 0 ? 1 : 0;
    g_string_append_printf(result->text, "\n== %zu checks, %u failed", json_array_size(work->brief->checks),
                           failed);
    return true;
}

const Tool tool_test = {
    .name = "test",
    .description = "Run the checks of this step, as Coop will run them afterwards.",
    .parameters = "{\"type\": \"object\", \"properties\": {}}",
    .flags = TOOL_SLOW | TOOL_REPEATABLE,
    .run = test_run,
};

/* ---- commit ---- */

static bool
git(Work *work, const char *const *argv, ToolResult *result, bool *ret_good, GError **error)
{
    g_auto(RunResult) r = {0};

    if (!run(work, argv, TOOL_GIT_MS, &r, error))
        return false;
    take(result, &r);
    result->exit_code = r.exit_code;
    *ret_good = r.exit_code == 0 && !r.timed_out;
    if (!*ret_good)
        g_string_append_printf(result->text, "\n[git %s: exit code %d]", argv[1], r.exit_code);
    return true;
}

static bool
git_add(Work *work, Json *paths, ToolResult *result, bool *ret_good, GError **error)
{
    g_autoptr(GStrvBuilder) builder = g_strv_builder_new();
    size_t i;
    Json *path;

    g_strv_builder_add_many(builder, "git", "add", "-A", "--", NULL);
    json_array_foreach(paths, i, path)
    {
        if (!json_is_string(path))
            return err_set(error, ERR_INVALID, "'paths' must be a list of strings");
        g_strv_builder_add(builder, json_string_value(path));
    }
    if (json_array_size(paths) == 0)
        g_strv_builder_add(builder, ".");
    g_auto(GStrv) argv = g_strv_builder_end(builder);
    return git(work, (const char *const *)argv, result, ret_good, error);
}

static bool
git_push(Work *work, ToolResult *result, bool *ret_good, GError **error)
{
    g_autofree char *ref = work->brief->branch != NULL
                               ? g_strconcat("HEAD:refs/heads/", work->brief->branch, NULL)
                               : NULL;

    return git(work,
               (const char *const[]){"git", "push", "--quiet", ref != NULL ? "origin" : NULL, ref, NULL},
               result, ret_good, error);
}

static bool
git_commit(Work *work, const char *message, ToolResult *result, bool *ret_good, GError **error)
{
    g_auto(RunResult) r = {0};

    /* Nothing new may still mean that an earlier push failed. */
    if (!run(work, (const char *const[]){"git", "diff", "--cached", "--quiet", NULL}, TOOL_GIT_MS, &r, error))
        return false;
    if (r.exit_code == 0) {
        g_string_append(result->text, "Nothing has changed since the last commit.\n");
        return true;
    }
    return git(work, (const char *const[]){"git", "commit", "--quiet", "-m", message, NULL}, result, ret_good,
               error);
}

static bool
commit_run(Work *work, Json *arguments, ToolResult *result, GError **error)
{
    const char *message = NULL;
    Json *paths = NULL;
    const JsonField fields[] = {
        {"message", JSON_KIND_STRING, &message, true, 1, COMMAND_MAX},
        {"paths", JSON_KIND_ARRAY, &paths, false, 0, PATHS_MAX},
        {NULL},
    };
    const char *const show[] = {"git", "show", "--stat", "--format=%h %s", "HEAD", NULL};
    bool good = false;

    return json_read(arguments, fields, error) && git_add(work, paths, result, &good, error) &&
           (!good || git_commit(work, message, result, &good, error)) &&
           (!good || git_push(work, result, &good, error)) &&
           (!good || git(work, show, result, &good, error));
}

const Tool tool_commit = {
    .name = "commit",
    .description = "Commit what has changed and push it to the branch of this step. The message follows "
                   "Conventional Commits: `type(scope): what it does`, an empty line, why.",
    .parameters = "{\"type\": \"object\", \"properties\": {"
                  "\"message\": {\"type\": \"string\"},"
                  "\"paths\": {\"type\": \"array\", \"items\": {\"type\": \"string\"}, \"description\": "
                  "\"only these; everything if not given\"}},"
                  "\"required\": [\"message\"]}",
    .flags = TOOL_SLOW,
    .run = commit_run,
};

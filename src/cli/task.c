/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "cli/commands.h"
#include "cli/forge-call.h"
#include "cli/number.h"
#include "cli/plan-file.h"
#include "cli/task-log.h"
#include "cli/task.h"
#include "cli/team-call.h"

enum { SHOWN = 30, SHOWN_MAX = 10000 };

static OutStyle
state_style(const char *value)
{
    static const struct {
        const char *state;
        OutStyle style;
    } styles[] = {
        {"done", OUT_GOOD},     {"blocked", OUT_WARN}, {"failed", OUT_BAD},
        {"cancelled", OUT_DIM}, {"queued", OUT_DIM},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(styles); i++) {
        if (strcmp(styles[i].state, value) == 0)
            return styles[i].style;
    }
    return OUT_PLAIN;
}

/* ---- looking ---- */

static void
make_readable(Json *task)
{
    const Json *progress = json_object_get(task, "progress");
    g_autofree char *steps = g_strdup_printf("%" JSON_INTEGER_FORMAT "/%" JSON_INTEGER_FORMAT,
                                             json_integer_value(json_object_get(progress, "done")),
                                             json_integer_value(json_object_get(progress, "total")));
    g_autofree char *squad = g_strdup(forge_text(json_object_get(task, "squad"), "name"));

    json_object_set_new(task, "steps_done", json_string(steps));
    json_object_set_new(task, "squad", json_string(squad));
}

static ExitCode
run_ls(Cli *cli)
{
    static const OutColumn columns[] = {
        {"number", "NUMBER"},
        {"title", "TITLE"},
        {"state", "STATE", state_style},
        {"steps_done", "STEPS"},
        {"squad", "SQUAD"},
        {"repository", "REPO"},
        {"waiting_for", "WAITS FOR"},
        {NULL},
    };
    const char *state = cli_option(cli, "state"), *squad = cli_option(cli, "squad");
    g_autoptr(GString) path = g_string_new("/api/v1/tasks?");
    g_autoptr(Json) list = NULL;
    g_autoptr(GError) error = NULL;
    gint64 limit = SHOWN;
    size_t i;
    Json *task;

    if (!cli_read_number(cli, "limit", SETTING_INT, 1, SHOWN_MAX, &limit, &error))
        return cli_fail_error(cli, error);
    if (squad != NULL) {
        g_autofree char *escaped = g_uri_escape_string(squad, NULL, FALSE);

        g_string_append_printf(path, "squad=%s&", escaped);
    }
    if (state != NULL)
        g_string_append_printf(path, "state=%s&", state);
    if (cli_option(cli, "open") != NULL)
        g_string_append(path, "open=1&");
    ExitCode code = team_fetch(cli, path->str, "tasks", (guint)limit, &list);

    if (code != EXIT_CODE_OK)
        return code;
    json_array_foreach(list, i, task)
    {
        if (out_format(cli_out(cli)) == OUT_TEXT)
            make_readable(task);
    }
    out_table(cli_out(cli), columns, list);
    return EXIT_CODE_OK;
}

static void
show_parts(Cli *cli, const Json *task)
{
    static const OutColumn steps[] = {
        {"n", "STEP"},      {"title", "TITLE"},     {"role", "ROLE"}, {"state", "STATE"},
        {"tries", "TRIES"}, {"problem", "PROBLEM"}, {NULL},
    };
    static const OutColumn agents[] = {
        {"agent", "AGENT"}, {"kind", "DOES"},  {"state", "STATE"},     {"model", "MODEL"},
        {"turns", "TURNS"}, {"box_id", "BOX"}, {"problem", "PROBLEM"}, {NULL},
    };
    static const OutColumn questions[] = {
        {"id", "QUESTION"}, {"state", "STATE"}, {"text", "TEXT"}, {"answer", "ANSWER"}, {NULL},
    };
    static const OutColumn kept[] = {
        {"id", "KEPT"},     {"kind", "KIND"},        {"agent", "OF"},
        {"bytes", "BYTES"}, {"expires_at", "UNTIL"}, {NULL},
    };
    const struct {
        const char *name;
        const OutColumn *columns;
    } parts[] = {{"steps", steps}, {"agents", agents}, {"questions", questions}, {"kept", kept}};

    for (size_t i = 0; i < G_N_ELEMENTS(parts); i++) {
        const Json *rows = json_object_get(task, parts[i].name);

        if (json_array_size(rows) == 0)
            continue;
        out_text(cli_out(cli), OUT_PLAIN, "\n");
        out_table(cli_out(cli), parts[i].columns, rows);
    }
}

static void
show_totals(Cli *cli, const Json *totals)
{
    enum { MICRO = 1000 * 1000 };
    const Json *tests = json_object_get(totals, "tests");

    if (!json_is_object(totals))
        return;
    out_text(cli_out(cli), OUT_PLAIN,
             "\nTests: total %" JSON_INTEGER_FORMAT ", passed %" JSON_INTEGER_FORMAT
             ", failed %" JSON_INTEGER_FORMAT "\n",
             json_integer_value(json_object_get(tests, "total")),
             json_integer_value(json_object_get(tests, "passed")),
             json_integer_value(json_object_get(tests, "failed")));
    out_text(cli_out(cli), OUT_PLAIN,
             "Models: %" JSON_INTEGER_FORMAT " calls, %" JSON_INTEGER_FORMAT
             " tokens in, %" JSON_INTEGER_FORMAT " out, %.4f $\n",
             json_integer_value(json_object_get(totals, "calls")),
             json_integer_value(json_object_get(totals, "input_tokens")),
             json_integer_value(json_object_get(totals, "output_tokens")),
             (double)json_integer_value(json_object_get(totals, "microusd")) / MICRO);
}

static ExitCode
show(Cli *cli, Json *task)
{
    static const OutColumn fields[] = {
        {"number", "Number"},
        {"title", "Title"},
        {"state", "State", state_style},
        {"waiting_for", "Waits for"},
        {"problem", "Problem"},
        {"squad", "Squad"},
        {"repository", "Repository"},
        {"branch", "Branch"},
        {"pull_url", "Pull request"},
        {"steps_done", "Steps"},
        {"created_at", "Created"},
        {"ended_at", "Ended"},
        {"id", "Id"},
        {NULL},
    };

    if (out_format(cli_out(cli)) == OUT_TEXT)
        make_readable(task);
    out_fields(cli_out(cli), fields, task);
    if (out_format(cli_out(cli)) == OUT_JSON)
        return EXIT_CODE_OK;
    show_parts(cli, task);
    show_totals(cli, json_object_get(task, "totals"));
    return EXIT_CODE_OK;
}

static ExitCode
run_show(Cli *cli)
{
    g_autofree char *path = team_path("tasks", cli_args(cli)[0], "");
    g_autoptr(Json) task = NULL;
    ExitCode code = team_send(cli, "GET", path, NULL, &task);

    return code == EXIT_CODE_OK ? show(cli, task) : code;
}

static ExitCode
run_log(Cli *cli)
{
    g_autofree char *path = team_path("tasks", cli_args(cli)[0], "");
    g_autoptr(Remote) remote = NULL;
    g_autoptr(Json) task = NULL;
    ExitCode code = remote_open(cli, &remote);

    if (code == EXIT_CODE_OK)
        code = remote_call(remote, "GET", path, NULL, &task);
    if (code != EXIT_CODE_OK)
        return code;
    if (forge_text(task, "id")[0] == '\0')
        return cli_fail(cli, EXIT_CODE_FAILED, "the server at %s gave no task", remote_address(remote));
    return task_log(cli, remote, forge_text(task, "id"), cli_option(cli, "follow") != NULL);
}

/* ---- making ---- */

static bool
read_plan(Cli *cli, Json *body)
{
    const char *path = cli_option(cli, "plan");
    g_autofree char *text = path != NULL ? team_read_file(cli, path) : NULL;
    g_autoptr(GError) error = NULL;

    if (path == NULL)
        return true;
    if (text == NULL)
        return false;
    g_autoptr(Json) plan = plan_file_parse(text, strlen(text), &error);

    if (plan == NULL) {
        cli_fail_error(cli, error);
        return false;
    }
    json_object_set(body, "plan", plan);
    return true;
}

static Json *
read_new(Cli *cli)
{
    static const TeamOption texts[] = {
        {"repo", "repository"}, {"squad", "squad"},   {"title", "title"},
        {"base", "base"},       {"dedupe", "dedupe"}, {NULL, NULL},
    };
    const char *given = cli_args(cli)[0];
    g_autofree char *text = strcmp(given, "-") == 0 ? team_read_file(cli, given) : g_strdup(given);
    g_autoptr(Json) policy = text != NULL ? team_read_object(cli, "policy") : NULL;
    g_autoptr(Json) body = policy != NULL ? json_pack("{s:s, s:s}", "request", text, "source", "cli") : NULL;

    if (policy != NULL && body == NULL)
        cli_fail(cli, EXIT_CODE_USAGE, "the request is no UTF-8");
    if (body == NULL || !team_set_options(cli, texts, body) || !read_plan(cli, body))
        return NULL;
    if (cli_option(cli, "until") != NULL)
        json_object_set_new(policy, "until", json_string(cli_option(cli, "until")));
    if (cli_option(cli, "planner") != NULL)
        json_object_set_new(policy, "planner", json_string(cli_option(cli, "planner")));
    if (cli_option(cli, "approve") != NULL)
        json_object_set_new(policy, "approve", json_true());
    if (json_object_size(policy) > 0)
        json_object_set(body, "policy", policy);
    return g_steal_pointer(&body);
}

static ExitCode
run_new(Cli *cli)
{
    g_autoptr(Json) body = read_new(cli), task = NULL;
    g_autoptr(Remote) remote = NULL;

    if (body == NULL)
        return EXIT_CODE_USAGE;
    ExitCode code = remote_open(cli, &remote);

    if (code == EXIT_CODE_OK)
        code = remote_call(remote, "POST", "/api/v1/tasks", body, &task);
    if (code != EXIT_CODE_OK)
        return code;
    show(cli, task);
    return cli_option(cli, "watch") != NULL ? task_log(cli, remote, forge_text(task, "id"), true)
                                            : EXIT_CODE_OK;
}

/* ---- acting ---- */

static ExitCode
act(Cli *cli, const char *what, const Json *body)
{
    g_autofree char *path = team_path("tasks", cli_args(cli)[0], what);
    g_autoptr(Json) task = NULL;
    ExitCode code = team_send(cli, "POST", path, body, &task);

    if (code != EXIT_CODE_OK)
        return code;
    out_json(cli_out(cli), task);
    out_text(cli_out(cli), OUT_PLAIN, "task %" JSON_INTEGER_FORMAT " is %s\n",
             json_integer_value(json_object_get(task, "number")), forge_text(task, "state"));
    return EXIT_CODE_OK;
}

static ExitCode
run_stop(Cli *cli)
{
    static const TeamOption texts[] = {{"reason", "reason"}, {NULL, NULL}};
    g_autoptr(Json) body = json_object();

    return team_set_options(cli, texts, body) ? act(cli, "/stop", body) : EXIT_CODE_USAGE;
}

static ExitCode
run_retry(Cli *cli)
{
    g_autoptr(Json) body = json_object();

    return act(cli, "/retry", body);
}

static ExitCode
run_answer(Cli *cli)
{
    static const TeamOption texts[] = {{"question", "question"}, {NULL, NULL}};
    const char *given = cli_args(cli)[1];
    g_autofree char *text = strcmp(given, "-") == 0 ? team_read_file(cli, given) : g_strdup(given);
    g_autoptr(Json) body = text != NULL ? json_pack("{s:s}", "answer", text) : NULL;

    if (body == NULL)
        return text != NULL ? cli_fail(cli, EXIT_CODE_USAGE, "the answer is no UTF-8") : EXIT_CODE_USAGE;
    return team_set_options(cli, texts, body) ? act(cli, "/answer", body) : EXIT_CODE_USAGE;
}

/* ---- the commands ---- */

static const char *const states[] = {"queued",  "planning",  "approving", "preparing",
                                     "working", "reviewing", "landing",   "done",
                                     "blocked", "failed",    "cancelled", NULL};
static const char *const rungs[] = {"tested", "ready", "reviewed", "merged", NULL};
static const char *const planners[] = {"brain", "council", "person", NULL};

static const CliOption ls_options[] = {
    {.name = "squad", .letter = 's', .value = "SQUAD", .help = "only of this one"},
    {.name = "state", .value = "STATE", .help = "only in this one", .choices = states},
    {.name = "open", .help = "only those that have not ended"},
    {.name = "limit", .value = "N", .help = "at most so many; 30 if not named"},
    {NULL},
};
static const CliOption new_options[] = {
    {.name = "repo",
     .letter = 'R',
     .value = "[OWNER/]NAME",
     .help = "the repository; the squad's if not named"},
    {.name = "squad", .letter = 's', .value = "SQUAD", .help = "who does it; 'default' if not named"},
    {.name = "title", .value = "TEXT", .help = "a short one; the first line of the request if not named"},
    {.name = "base", .value = "BRANCH", .help = "where it starts from and goes into"},
    {.name = "plan", .value = "FILE", .help = "a plan that is there already, YAML or JSON; '-' is the input"},
    {.name = "planner", .value = "WHO", .help = "brain, council or person", .choices = planners},
    {.name = "approve", .help = "wait for a person who approves the plan"},
    {.name = "until", .value = "RUNG", .help = "tested, ready, reviewed or merged", .choices = rungs},
    {.name = "policy", .value = "JSON", .help = "whatever else is to be as the squad has it not"},
    {.name = "dedupe", .value = "WORD", .help = "the same word again is the same task"},
    {.name = "watch", .letter = 'w', .help = "show what happens until it is over"},
    {NULL},
};
static const CliOption log_options[] = {
    {.name = "follow", .letter = 'f', .help = "go on until the task is over"},
    {NULL},
};
static const CliOption stop_options[] = {
    {.name = "reason", .value = "TEXT", .help = "for the record"},
    {NULL},
};
static const CliOption answer_options[] = {
    {.name = "question", .value = "ID", .help = "which one; not needed where one is open"},
    {NULL},
};

#define ONE_TASK .args = "TASK", .args_min = 1, .args_max = 1, .settings = CLI_SETTINGS_CLIENT

static const Command task_new = {
    .name = "new",
    .summary = "Give a squad a task",
    .args = "REQUEST",
    .args_min = 1,
    .args_max = 1,
    .details = "REQUEST is what is wanted, in words; '-' reads it from the input.",
    .options = new_options,
    .settings = CLI_SETTINGS_CLIENT,
    .run = run_new};
static const Command task_ls = {.name = "ls",
                                .summary = "List tasks, the newest first",
                                .options = ls_options,
                                .settings = CLI_SETTINGS_CLIENT,
                                .run = run_ls};
static const Command task_show = {.name = "show", .summary = "Show a task", ONE_TASK, .run = run_show};
static const Command task_log_command = {.name = "log",
                                         .summary = "Tell what happened in a task",
                                         .options = log_options,
                                         ONE_TASK,
                                         .run = run_log};
static const Command task_stop = {.name = "stop",
                                  .summary = "Stop a task, its agents and their boxes",
                                  .options = stop_options,
                                  ONE_TASK,
                                  .run = run_stop};
static const Command task_retry = {
    .name = "retry", .summary = "Let a task go on that is blocked or has failed", ONE_TASK, .run = run_retry};
static const Command task_answer = {.name = "answer",
                                    .summary = "Answer a question of a task",
                                    .args = "TASK ANSWER",
                                    .args_min = 2,
                                    .args_max = 2,
                                    .details = "'-' as ANSWER reads it from the input.",
                                    .options = answer_options,
                                    .settings = CLI_SETTINGS_CLIENT,
                                    .run = run_answer};

static const Command *const commands[] = {&task_new,         &task_ls,   &task_show,
                                          &task_log_command, &task_stop, &task_retry,
                                          &task_answer,      &task_kept, NULL};

const Command command_task = {
    .name = "task",
    .summary = "Give squads tasks and see how they go",
    .commands = commands,
    .options = ls_options,
    .settings = CLI_SETTINGS_CLIENT,
    .run = run_ls,
};

/* SPDX-License-Identifier: Apache-2.0 */
/* coop sandbox git: each command is one call of the server, whose body is made of the options. */
#include "cli/box-call.h"
#include "cli/commands.h"
#include "cli/sandbox.h"

enum { CLONE_MS = 10 * 60 * 1000 }; /* where the objects cannot be mounted they are fetched */

typedef enum FormKind { FORM_TEXT, FORM_SWITCH, FORM_TEXTS, FORM_NUMBER } FormKind;

/* Which option becomes which member; those of `task` go into an object of that name. */
typedef struct FormField {
    const char *option, *member;
    FormKind kind;
    bool of_task;
} FormField;

static Json *
value_of(Cli *cli, const FormField *field)
{
    const char *text = cli_option(cli, field->option);

    switch (field->kind) {
    case FORM_SWITCH:
        return json_true();
    case FORM_NUMBER: {
        guint64 n;

        return g_ascii_string_to_unsigned(text, 10, 1, G_MAXINT32, &n, NULL) ? json_integer((json_int_t)n)
                                                                             : NULL;
    }
    case FORM_TEXTS: {
        g_autoptr(GPtrArray) all = cli_option_all(cli, field->option);
        Json *list = json_array();

        for (guint i = 0; i < all->len; i++)
            json_array_append_new(list, json_string(all->pdata[i]));
        return list;
    }
    case FORM_TEXT:
    default:
        return json_string(text);
    }
}

static Json *
read_form(Cli *cli, const FormField *fields)
{
    g_autoptr(Json) body = json_object();
    g_autoptr(Json) task = json_object();

    for (; fields->option != NULL; fields++) {
        if (cli_option(cli, fields->option) == NULL)
            continue;
        if (json_object_set_new(fields->of_task ? task : body, fields->member, value_of(cli, fields)) < 0) {
            cli_fail(cli, EXIT_CODE_USAGE, "--%s: '%s' is no value for it", fields->option,
                     cli_option(cli, fields->option));
            return NULL;
        }
    }
    if (json_object_size(task) > 0)
        json_object_set(body, "task", task);
    return g_steal_pointer(&body);
}

static ExitCode
call_git(Cli *cli, const char *what, const FormField *fields, Json **ret_done)
{
    g_autofree char *rest = g_strconcat("/git/", what, NULL);
    g_autofree char *path = box_path(cli_args(cli)[0], rest);
    g_autoptr(Json) body = read_form(cli, fields);
    g_autoptr(Remote) remote = NULL;
    RemoteCall call = REMOTE_CALL_INIT;

    if (body == NULL)
        return EXIT_CODE_USAGE;
    if (cli_n_args(cli) > 1)
        json_object_set_new(body, "repository", json_string(cli_args(cli)[1]));
    ExitCode code = remote_open(cli, &remote);

    call.method = "POST";
    call.path = path;
    call.body = body;
    call.answer_ms = CLONE_MS;
    return code == EXIT_CODE_OK ? remote_run(remote, &call, ret_done) : code;
}

static ExitCode
run_form(Cli *cli, const char *what, const FormField *fields)
{
    static const OutColumn shown[] = {
        {"branch", "Branch"},   {"commit", "Commit"},       {"path", "Folder"},
        {"objects", "Objects"}, {"without", "Because"},     {"identity", "Identity"},
        {"message", "Message"}, {"duration_ms", "Took ms"}, {NULL},
    };
    g_autoptr(Json) done = NULL;
    ExitCode code = call_git(cli, what, fields, &done);

    if (code == EXIT_CODE_OK)
        out_fields(cli_out(cli), shown, done);
    return code;
}

/* ---- clone, branch ---- */

#define TASK_FIELDS                                                                                          \
    {"branch", "branch"}, {"base", "base"}, {"task", "id", FORM_TEXT, true},                                 \
        {"role", "role", FORM_TEXT, true}, {"n", "n", FORM_NUMBER, true},                                    \
        {"title", "title", FORM_TEXT, true},                                                                 \
    {                                                                                                        \
        "pattern", "pattern", FORM_TEXT, true                                                                \
    }
#define TASK_OPTIONS                                                                                         \
    {.name = "branch", .value = "NAME", .help = "the branch itself; else it is made for the task"},          \
        {.name = "base", .value = "BRANCH|COMMIT", .help = "where a branch begins that is not there"},       \
        {.name = "task", .value = "ID", .help = "the task that it is for"},                                  \
        {.name = "role", .value = "ROLE", .help = "of whom works on the task"},                              \
        {.name = "n", .value = "N", .help = "which one of that role"},                                       \
        {.name = "title", .value = "TEXT", .help = "of the task: {slug} of a pattern is made of it"},        \
    {                                                                                                        \
        .name = "pattern", .value = "PATTERN", .help = "of the branch, if not as the repository has it"      \
    }

static ExitCode
run_clone(Cli *cli)
{
    static const FormField fields[] = {
        TASK_FIELDS, {"path", "path"}, {"identity", "identity"}, {"force", "force", FORM_SWITCH}, {NULL}};

    return run_form(cli, "clone", fields);
}

static ExitCode
run_branch(Cli *cli)
{
    static const FormField fields[] = {TASK_FIELDS, {NULL}};

    return run_form(cli, "branch", fields);
}

/* ---- commit, push ---- */

static ExitCode
run_commit(Cli *cli)
{
    static const FormField fields[] = {{"message", "message"}, {"path", "paths", FORM_TEXTS}, {NULL}};

    return run_form(cli, "commit", fields);
}

static ExitCode
run_push(Cli *cli)
{
    static const FormField fields[] = {{NULL}};

    return run_form(cli, "push", fields);
}

/* ---- pr ---- */

static ExitCode
run_pr(Cli *cli)
{
    static const FormField fields[] = {
        {"title", "title"},
        {"body", "body"},
        {"base", "base"},
        {"summary", "summary"},
        {"task", "task_id"},
        {"task-url", "task_url"},
        {"task-name", "task_name"},
        {"role", "role"},
        {"step", "plan", FORM_TEXTS},
        {"draft", "draft", FORM_SWITCH},
        {NULL},
    };
    static const OutColumn shown[] = {
        {"number", "Number"}, {"title", "Title"}, {"head", "Branch"},
        {"base", "Into"},     {"draft", "Draft"}, {NULL},
    };
    g_autoptr(Json) done = NULL;
    ExitCode code = call_git(cli, "pr", fields, &done);

    if (code == EXIT_CODE_OK)
        out_fields(cli_out(cli), shown, done);
    return code;
}

/* ---- the commands ---- */

#define IN_BOX(more) .args = "BOX " more, .args_max = 2, .settings = CLI_SETTINGS_CLIENT

static const CliOption clone_options[] = {
    TASK_OPTIONS,
    {.name = "path", .value = "FOLDER", .help = "where in the box; NAME in its home folder if not named"},
    {.name = "identity", .value = "NAME", .help = "who commits; that of the box's agent if not named"},
    {.name = "force", .help = "let it push what does not go forward"},
    {NULL},
};
static const CliOption branch_options[] = {TASK_OPTIONS, {NULL}};
static const CliOption commit_options[] = {
    {.name = "message", .letter = 'm', .value = "TEXT", .help = "a Conventional Commit; else one is written"},
    {.name = "path", .value = "PATH", .help = "only this; may be given again"},
    {NULL},
};
static const CliOption pr_options[] = {
    {.name = "title", .value = "TEXT", .help = "its title; else made of the summary"},
    {.name = "body", .value = "TEXT", .help = "as it is; else written of what follows"},
    {.name = "summary", .value = "TEXT", .help = "what was asked for"},
    {.name = "task", .value = "ID", .help = "the task; that of the box if not named"},
    {.name = "task-name", .value = "TEXT", .help = "what the task is called"},
    {.name = "task-url", .value = "URL", .help = "where the task is"},
    {.name = "step", .value = "TEXT", .help = "of the plan; may be given again"},
    {.name = "role", .value = "ROLE", .help = "of whom wrote it"},
    {.name = "base", .value = "BRANCH", .help = "into which; the default branch if not named"},
    {.name = "draft", .help = "not ready yet"},
    {NULL},
};

static const Command git_clone = {.name = "clone",
                                  .summary = "Put a work tree of a repository into a box",
                                  IN_BOX("[OWNER/]NAME"),
                                  .args_min = 2,
                                  .options = clone_options,
                                  .run = run_clone};
static const Command git_branch = {.name = "branch",
                                   .summary = "Give a work tree another branch",
                                   IN_BOX("[REPOSITORY]"),
                                   .args_min = 1,
                                   .options = branch_options,
                                   .run = run_branch};
static const Command git_commit = {.name = "commit",
                                   .summary = "Commit what changed in a work tree",
                                   IN_BOX("[REPOSITORY]"),
                                   .args_min = 1,
                                   .options = commit_options,
                                   .run = run_commit};
static const Command git_push = {.name = "push",
                                 .summary = "Push the branch of a work tree",
                                 IN_BOX("[REPOSITORY]"),
                                 .args_min = 1,
                                 .run = run_push};
static const Command git_pr = {.name = "pr",
                               .summary = "Open a pull request of the branch of a work tree",
                               IN_BOX("[REPOSITORY]"),
                               .args_min = 1,
                               .options = pr_options,
                               .run = run_pr};

static const Command *const commands[] = {&git_clone, &git_branch, &git_commit, &git_push, &git_pr, NULL};

const Command sandbox_git = {
    .name = "git",
    .summary = "Clone, commit, push and open pull requests in a box",
    .details = "A box with one work tree needs no REPOSITORY.",
    .commands = commands,
};

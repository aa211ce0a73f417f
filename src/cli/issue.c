/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/commands.h"
#include "cli/threads.h"

/* The same list has the pull requests. */
static bool
is_issue(const Json *thread)
{
    return json_object_get(thread, "pull_request") == NULL;
}

static ExitCode
run_ls(Cli *cli)
{
    static const OutColumn columns[] = {
        {"number", "NUMBER"},
        {"title", "TITLE"},
        {"state", "STATE"},
        {"labels", "LABELS"},
        {"author", "AUTHOR"},
        {"updated_at", "UPDATED"},
        {NULL},
    };
    g_autoptr(Json) list = NULL, rows = json_array();
    ExitCode code = threads_fetch(cli, "issues", "", is_issue, &list);
    size_t i;
    Json *thread;

    if (code != EXIT_CODE_OK)
        return code;
    json_array_foreach(list, i, thread) json_array_append_new(rows, threads_row(thread));
    out_table(cli_out(cli), columns, out_format(cli_out(cli)) == OUT_TEXT ? rows : list);
    return EXIT_CODE_OK;
}

static void
show_comments(Out *out, const Json *comments)
{
    size_t i;
    Json *comment;

    json_array_foreach(comments, i, comment)
    {
        out_text(out, OUT_BOLD, "\n%s, %s\n", forge_text_of(comment, "user", "login"),
                 forge_text(comment, "created_at"));
        out_text(out, OUT_PLAIN, "%s\n", forge_text(comment, "body"));
    }
}

static ExitCode
run_show(Cli *cli)
{
    static const OutColumn fields[] = {
        {"number", "Number"}, {"title", "Title"},        {"state", "State"},        {"author", "Author"},
        {"labels", "Labels"}, {"created_at", "Created"}, {"updated_at", "Updated"}, {NULL},
    };
    enum { COMMENTS_MAX = 100 };
    g_auto(ForgeCall) call = {0};
    g_autoptr(Json) issue = NULL, comments = json_array();
    gint64 number;

    ExitCode code = forge_call_begin(cli, &call, &number);

    if (code != EXIT_CODE_OK)
        return code;
    g_autofree char *path = forge_call_path(&call, "/issues/%" G_GINT64_FORMAT, number);
    g_autofree char *below = g_strconcat(path, "/comments?", NULL);

    code = forge_call_run(&call, "GET", path, NULL, &issue);
    if (code == EXIT_CODE_OK)
        code = forge_call_list(&call, below, COMMENTS_MAX, NULL, comments);
    if (code != EXIT_CODE_OK)
        return code;
    if (out_format(cli_out(cli)) == OUT_JSON) {
        json_object_set(issue, "comments_list", comments);
        out_json(cli_out(cli), issue);
        return EXIT_CODE_OK;
    }
    g_autoptr(Json) row = threads_row(issue);

    out_fields(cli_out(cli), fields, row);
    threads_show_text(cli_out(cli), forge_text(issue, "body"));
    show_comments(cli_out(cli), comments);
    return EXIT_CODE_OK;
}

static ExitCode
run_new(Cli *cli)
{
    g_autofree char *text = threads_read_body(cli, false);
    g_autoptr(GPtrArray) labels = cli_option_all(cli, "label");
    g_auto(ForgeCall) call = {0};
    g_autoptr(Json) made = NULL;

    if (text == NULL)
        return EXIT_CODE_USAGE;
    g_autoptr(Json) body = json_pack("{s:s, s:s, s:[]}", "title", cli_args(cli)[0], "body", text, "labels");

    if (body == NULL)
        return cli_fail(cli, EXIT_CODE_USAGE, "the title is no UTF-8");
    for (guint i = 0; i < labels->len; i++)
        json_array_append_new(json_object_get(body, "labels"), json_string(labels->pdata[i]));
    ExitCode code = forge_call_open(cli, &call);

    if (code != EXIT_CODE_OK)
        return code;
    g_autofree char *path = forge_call_path(&call, "/issues");

    code = forge_call_run(&call, "POST", path, body, &made);
    if (code != EXIT_CODE_OK)
        return code;
    out_json(cli_out(cli), made);
    out_text(cli_out(cli), OUT_PLAIN, "opened %s/%s#%" JSON_INTEGER_FORMAT "\n", call.owner, call.name,
             json_integer_value(json_object_get(made, "number")));
    return EXIT_CODE_OK;
}

static ExitCode
run_close(Cli *cli)
{
    const char *reason = cli_option(cli, "reason");
    g_autoptr(Json) change = json_pack("{s:s, s:s}", "state", "closed", "state_reason",
                                       reason != NULL ? reason : "completed");

    return threads_send(cli, &(ThreadsCall){"PATCH", "issues", "", change, "closed"});
}

/* ---- the commands ---- */

static const char *const reasons[] = {"completed", "not_planned", NULL};
static const CliOption ls_options[] = {THREAD_LS_OPTIONS, {NULL}};
static const CliOption repo_options[] = {REPO_OPTION, {NULL}};
static const CliOption comment_options[] = {THREAD_BODY_OPTION, REPO_OPTION, {NULL}};
static const CliOption new_options[] = {
    THREAD_BODY_OPTION,
    {.name = "label", .letter = 'l', .value = "NAME", .help = "may be given again"},
    REPO_OPTION,
    {NULL},
};
static const CliOption close_options[] = {
    {.name = "reason", .value = "REASON", .help = "completed or not_planned", .choices = reasons},
    REPO_OPTION,
    {NULL},
};

static const Command issue_ls = {.name = "ls",
                                 .summary = "List issues",
                                 .options = ls_options,
                                 .settings = CLI_SETTINGS_CLIENT,
                                 .run = run_ls};
static const Command issue_show = {.name = "show",
                                   .summary = "Show an issue and its comments",
                                   ONE_THREAD,
                                   .options = repo_options,
                                   .run = run_show};
static const Command issue_new = {.name = "new",
                                  .summary = "Open an issue",
                                  .args = "TITLE",
                                  .args_min = 1,
                                  .args_max = 1,
                                  .options = new_options,
                                  .settings = CLI_SETTINGS_CLIENT,
                                  .run = run_new};
static const Command issue_comment = {.name = "comment",
                                      .summary = "Comment on an issue",
                                      ONE_THREAD,
                                      .options = comment_options,
                                      .run = threads_run_comment};
static const Command issue_close = {
    .name = "close", .summary = "Close an issue", ONE_THREAD, .options = close_options, .run = run_close};

static const Command *const commands[] = {&issue_ls,      &issue_show,  &issue_new,
                                          &issue_comment, &issue_close, NULL};

const Command command_issue = {
    .name = "issue",
    .summary = "List, open, comment and close issues",
    .commands = commands,
    .options = ls_options,
    .settings = CLI_SETTINGS_CLIENT,
    .run = run_ls,
};

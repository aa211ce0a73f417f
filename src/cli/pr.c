/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/pr.h"

#include "cli/commands.h"
#include "cli/threads.h"

/* ---- ls ---- */

static ExitCode
run_ls(Cli *cli)
{
    static const OutColumn columns[] = {
        {"number", "NUMBER"}, {"title", "TITLE"},   {"state", "STATE"},        {"head", "BRANCH"},
        {"base", "INTO"},     {"author", "AUTHOR"}, {"updated_at", "UPDATED"}, {NULL},
    };
    static const char *const filters[] = {"base", "head"};
    g_autoptr(GString) query = g_string_new(NULL);
    g_autoptr(Json) list = NULL, rows = json_array();
    size_t i;
    Json *pull;

    for (i = 0; i < G_N_ELEMENTS(filters); i++) {
        const char *value = cli_option(cli, filters[i]);
        g_autofree char *escaped = value != NULL ? g_uri_escape_string(value, NULL, FALSE) : NULL;

        if (escaped != NULL)
            g_string_append_printf(query, "&%s=%s", filters[i], escaped);
    }
    ExitCode code = threads_fetch(cli, "pulls", query->str, NULL, &list);

    if (code != EXIT_CODE_OK)
        return code;
    json_array_foreach(list, i, pull) json_array_append_new(rows, threads_row(pull));
    out_table(cli_out(cli), columns, out_format(cli_out(cli)) == OUT_TEXT ? rows : list);
    return EXIT_CODE_OK;
}

/* ---- show ---- */

static Json *
reviewers_of(const Json *pull)
{
    Json *names = json_array();
    size_t i;
    Json *user;

    json_array_foreach(json_object_get(pull, "requested_reviewers"), i, user)
        json_array_append_new(names, json_string(forge_text(user, "login")));
    return names;
}

static void
add_more(Json *row, const Json *pull)
{
    const Json *own = json_object_get(pull, "coop");
    json_int_t files = json_integer_value(json_object_get(pull, "changed_files"));

    json_object_set(row, "commits", json_object_get(pull, "commits"));
    if (json_is_integer(json_object_get(pull, "changed_files")))
        json_object_set_new(row, "files",
                            json_sprintf("%" JSON_INTEGER_FORMAT " (+%" JSON_INTEGER_FORMAT
                                         " -%" JSON_INTEGER_FORMAT ")",
                                         files, json_integer_value(json_object_get(pull, "additions")),
                                         json_integer_value(json_object_get(pull, "deletions"))));
    if (json_array_size(json_object_get(pull, "requested_reviewers")) > 0)
        json_object_set_new(row, "reviewers", reviewers_of(pull));
    if (json_is_string(json_object_get(own, "task_id")))
        json_object_set(row, "task", json_object_get(own, "task_id"));
    if (strcmp(forge_text(pull, "state"), "open") == 0)
        json_object_set(row, "mergeable", json_object_get(pull, "mergeable_state"));
    if (json_is_true(json_object_get(pull, "merged")))
        json_object_set(row, "landed", json_object_get(pull, "merge_commit_sha"));
}

/* What is in the way of a merge. */
static void
show_reasons(Out *out, const Json *pull)
{
    const Json *merge = json_object_get(json_object_get(pull, "coop"), "merge");
    size_t i;
    Json *reason;

    if (json_is_true(json_object_get(pull, "merged")))
        return;
    json_array_foreach(json_object_get(merge, "reasons"), i, reason)
        out_text(out, OUT_WARN, "  %s\n", forge_text(reason, "text"));
}

static ExitCode
run_show(Cli *cli)
{
    static const OutColumn fields[] = {
        {"number", "Number"},      {"title", "Title"},     {"state", "State"},     {"author", "Author"},
        {"head", "Branch"},        {"base", "Into"},       {"labels", "Labels"},   {"reviewers", "Reviewers"},
        {"task", "Task"},          {"commits", "Commits"}, {"files", "Files"},     {"created_at", "Created"},
        {"updated_at", "Updated"}, {"landed", "Landed"},   {"mergeable", "Merge"}, {NULL},
    };
    g_auto(ForgeCall) call = {0};
    g_autoptr(Json) pull = NULL;
    gint64 number;

    ExitCode code = forge_call_begin(cli, &call, &number);

    if (code != EXIT_CODE_OK)
        return code;
    g_autofree char *path = forge_call_path(&call, "/pulls/%" G_GINT64_FORMAT, number);

    code = forge_call_run(&call, "GET", path, NULL, &pull);
    if (code != EXIT_CODE_OK)
        return code;
    if (out_format(cli_out(cli)) == OUT_JSON) {
        out_json(cli_out(cli), pull);
        return EXIT_CODE_OK;
    }
    g_autoptr(Json) row = threads_row(pull);

    add_more(row, pull);
    out_fields(cli_out(cli), fields, row);
    show_reasons(cli_out(cli), pull);
    threads_show_text(cli_out(cli), forge_text(pull, "body"));
    return EXIT_CODE_OK;
}

/* ---- review ---- */

static const struct {
    const char *option, *event, *said;
    bool needs_body;
} verdicts[] = {
    {"approve", "APPROVE", "approved", false},
    {"request-changes", "REQUEST_CHANGES", "asked for changes of", true},
    {"comment", "COMMENT", "reviewed", true},
};

static ExitCode
review(Cli *cli, size_t verdict)
{
    g_autofree char *text = threads_read_body(cli, verdicts[verdict].needs_body);
    g_autoptr(Json)
        body = text != NULL ? json_pack("{s:s, s:s}", "event", verdicts[verdict].event, "body", text) : NULL;

    if (body == NULL)
        return EXIT_CODE_USAGE;
    return threads_send(cli, &(ThreadsCall){"POST", "pulls", "/reviews", body, verdicts[verdict].said});
}

static ExitCode
run_review(Cli *cli)
{
    size_t given = 0, verdict = 0;

    for (size_t i = 0; i < G_N_ELEMENTS(verdicts); i++) {
        if (cli_option(cli, verdicts[i].option) == NULL)
            continue;
        verdict = i;
        given++;
    }
    if (given != 1)
        return cli_fail(cli, EXIT_CODE_USAGE, "say one of --approve, --request-changes and --comment");
    return review(cli, verdict);
}

/* ---- ready, close ---- */

static ExitCode
run_ready(Cli *cli)
{
    bool undo = cli_option(cli, "undo") != NULL;
    g_autoptr(Json) change = json_pack("{s:b}", "draft", (int)undo);

    return threads_send(
        cli, &(ThreadsCall){"PATCH", "pulls", "", change, undo ? "made a draft of" : "made ready"});
}

static ExitCode
run_close(Cli *cli)
{
    bool reopen = cli_option(cli, "reopen") != NULL;
    g_autoptr(Json) change = json_pack("{s:s}", "state", reopen ? "open" : "closed");

    return threads_send(cli,
                        &(ThreadsCall){"PATCH", "pulls", "", change, reopen ? "opened again" : "closed"});
}

/* ---- the commands ---- */

static const CliOption ls_options[] = {
    THREAD_LS_OPTIONS,
    {.name = "base", .value = "BRANCH", .help = "only those into it"},
    {.name = "head", .value = "BRANCH", .help = "only that of it"},
    {NULL},
};
static const CliOption show_options[] = {REPO_OPTION, {NULL}};
static const CliOption comment_options[] = {THREAD_BODY_OPTION, REPO_OPTION, {NULL}};
static const CliOption review_options[] = {
    {.name = "approve", .letter = 'a', .help = "it may be merged"},
    {.name = "request-changes", .letter = 'r', .help = "it may not, as it is"},
    {.name = "comment", .letter = 'c', .help = "neither"},
    THREAD_BODY_OPTION,
    REPO_OPTION,
    {NULL},
};
static const CliOption ready_options[] = {
    {.name = "undo", .help = "make it a draft again"}, REPO_OPTION, {NULL}};
static const CliOption close_options[] = {{.name = "reopen", .help = "open it again"}, REPO_OPTION, {NULL}};

static const Command pr_ls = {.name = "ls",
                              .summary = "List pull requests",
                              .options = ls_options,
                              .settings = CLI_SETTINGS_CLIENT,
                              .run = run_ls};
static const Command pr_show = {.name = "show",
                                .summary = "Show a pull request, and what is in the way of its merge",
                                ONE_THREAD,
                                .options = show_options,
                                .run = run_show};
static const Command pr_review = {.name = "review",
                                  .summary = "Approve, or ask for changes",
                                  ONE_THREAD,
                                  .options = review_options,
                                  .run = run_review};
static const Command pr_comment = {.name = "comment",
                                   .summary = "Comment on a pull request",
                                   ONE_THREAD,
                                   .options = comment_options,
                                   .run = threads_run_comment};
static const Command pr_ready = {.name = "ready",
                                 .summary = "Say that a draft is ready",
                                 ONE_THREAD,
                                 .options = ready_options,
                                 .run = run_ready};
static const Command pr_close = {.name = "close",
                                 .summary = "Close a pull request without a merge",
                                 ONE_THREAD,
                                 .options = close_options,
                                 .run = run_close};

static const Command *const commands[] = {&pr_ls,      &pr_show,   &pr_diff,    &pr_checks,
                                          &pr_receipt, &pr_review, &pr_comment, &pr_ready,
                                          &pr_merge,   &pr_close,  NULL};

const Command command_pr = {
    .name = "pr",
    .summary = "List, review and merge pull requests",
    .details = "'coop sandbox git pr' opens one of the branch that a box has.",
    .commands = commands,
    .options = ls_options,
    .settings = CLI_SETTINGS_CLIENT,
    .run = run_ls,
};

/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "cli/pr.h"
#include "cli/threads.h"

static OutStyle
style_result(const char *value)
{
    static const struct {
        const char *word;
        OutStyle style;
    } rows[] = {{"success", OUT_GOOD}, {"failure", OUT_BAD}, {"timed_out", OUT_BAD}, {"cancelled", OUT_WARN}};

    for (size_t i = 0; i < G_N_ELEMENTS(rows); i++) {
        if (strcmp(rows[i].word, value) == 0)
            return rows[i].style;
    }
    return OUT_PLAIN;
}

static bool
has_failed(const Json *run)
{
    const char *conclusion = forge_text(run, "conclusion");

    return strcmp(forge_text(run, "status"), "completed") == 0 && strcmp(conclusion, "success") != 0 &&
           strcmp(conclusion, "neutral") != 0 && strcmp(conclusion, "skipped") != 0;
}

static Json *
row_of(const Json *run)
{
    bool ended = strcmp(forge_text(run, "status"), "completed") == 0;

    return json_pack("{s:s, s:s, s:s, s:s, s:s}", "name", forge_text(run, "name"), "result",
                     forge_text(run, ended ? "conclusion" : "status"), "by",
                     forge_text_of(run, "app", "slug"), "ended", forge_text(run, "completed_at"), "what",
                     forge_text_of(run, "output", "title"));
}

static ExitCode
show_runs(Cli *cli, const Json *runs)
{
    static const OutColumn columns[] = {
        {"name", "CHECK"}, {"result", "RESULT", style_result},
        {"by", "BY"},      {"ended", "ENDED"},
        {"what", "WHAT"},  {NULL},
    };
    g_autoptr(Json) rows = json_array();
    guint failed = 0;
    size_t i;
    Json *run;

    json_array_foreach(runs, i, run)
    {
        json_array_append_new(rows, row_of(run));
        failed += has_failed(run);
    }
    out_table(cli_out(cli), columns, out_format(cli_out(cli)) == OUT_TEXT ? rows : runs);
    return failed > 0 ? EXIT_CODE_FAILED : EXIT_CODE_OK;
}

static ExitCode
run(Cli *cli)
{
    g_auto(ForgeCall) call = {0};
    g_autoptr(Json) pull = NULL, found = NULL;
    gint64 number;

    ExitCode code = forge_call_begin(cli, &call, &number);

    if (code != EXIT_CODE_OK)
        return code;
    g_autofree char *path = forge_call_path(&call, "/pulls/%" G_GINT64_FORMAT, number);

    code = forge_call_run(&call, "GET", path, NULL, &pull);
    if (code != EXIT_CODE_OK)
        return code;
    g_autofree char *sha = g_uri_escape_string(forge_text_of(pull, "head", "sha"), NULL, FALSE);
    g_autofree char *below = forge_call_path(&call, "/commits/%s/check-runs?per_page=100", sha);

    code = forge_call_run(&call, "GET", below, NULL, &found);
    if (code != EXIT_CODE_OK)
        return code;
    const Json *runs = json_object_get(found, "check_runs");

    if (!json_is_array(runs))
        return cli_fail(cli, EXIT_CODE_FAILED, "the server at %s gave no list of checks",
                        remote_address(call.remote));
    return show_runs(cli, runs);
}

static const CliOption options[] = {REPO_OPTION, {NULL}};
const Command pr_checks = {
    .name = "checks",
    .summary = "Show the checks of a pull request",
    ONE_THREAD,
    .details = "Of the newest commit, those that others reported too: only what Coop saw itself lets a pull\n"
               "request be merged. The exit code is 1 if one has failed.",
    .options = options,
    .run = run,
};

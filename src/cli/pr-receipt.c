/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "cli/pr.h"
#include "cli/threads.h"

/* Of the newest run that came to a result; NULL: none. */
static const char *
newest_result(const Json *suites)
{
    size_t i;
    Json *suite;

    json_array_foreach(suites, i, suite)
    {
        const char *state = forge_text(suite, "state");

        if (strcmp(state, "passed") == 0 || strcmp(state, "failed") == 0)
            return forge_text(suite, "id");
    }
    return NULL;
}

static ExitCode
run(Cli *cli)
{
    g_auto(ForgeCall) call = {0};
    g_autoptr(Json) found = NULL, receipt = NULL;
    gint64 number;

    ExitCode code = forge_call_begin(cli, &call, &number);

    if (code != EXIT_CODE_OK)
        return code;
    g_autofree char *suites = g_strdup_printf("/api/v1/repos/%s/%s/checks?number=%" G_GINT64_FORMAT,
                                              call.owner, call.name, number);

    code = forge_call_run(&call, "GET", suites, NULL, &found);
    if (code != EXIT_CODE_OK)
        return code;
    const char *id = newest_result(json_object_get(found, "suites"));

    if (id == NULL)
        return cli_fail(
            cli, EXIT_CODE_NOT_FOUND,
            "Coop has no result for #%" G_GINT64_FORMAT " yet: 'coop pr checks' shows how far it is", number);
    g_autofree char *escaped = g_uri_escape_string(id, NULL, FALSE);
    g_autofree char *path = g_strdup_printf("/api/v1/repos/%s/%s/checks/%s/receipt", call.owner, call.name,
                                            escaped);

    code = forge_call_run(&call, "GET", path, NULL, &receipt);
    if (code != EXIT_CODE_OK)
        return code;
    g_autofree char *line = json_encode(receipt);

    out_raw(cli_out(cli), line);
    out_raw(cli_out(cli), "\n");
    return EXIT_CODE_OK;
}

static const CliOption options[] = {REPO_OPTION, {NULL}};
const Command pr_receipt = {
    .name = "receipt",
    .summary = "Print what Coop signed for a pull request's checks",
    ONE_THREAD,
    .details = "One line of JSON, of the newest run that came to a result. 'coop verify' reads it, without\n"
               "a server too:\n"
               "    coop pr receipt 7 >receipt.json && coop verify receipt.json",
    .options = options,
    .run = run,
};

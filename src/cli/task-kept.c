/* SPDX-License-Identifier: Apache-2.0 */
/* coop task kept: what is left of boxes, and how much it is in all. */
#include "cli/remote.h"
#include "cli/task.h"

enum { SHOWN = 100 };

static void
show_total(Cli *cli, const Json *body)
{
    g_autofree char *bytes = g_format_size_full((guint64)json_integer_value(json_object_get(body, "bytes")),
                                                G_FORMAT_SIZE_IEC_UNITS);
    g_autofree char *max = g_format_size_full((guint64)json_integer_value(json_object_get(body, "bytes_max")),
                                              G_FORMAT_SIZE_IEC_UNITS);

    out_text(cli_out(cli), OUT_DIM, "%" JSON_INTEGER_FORMAT " kept, %s; all together at most %s\n",
             json_integer_value(json_object_get(body, "total")), bytes, max);
}

static ExitCode
run_kept(Cli *cli)
{
    static const OutColumn columns[] = {
        {"id", "KEPT"},     {"number", "TASK"},       {"kind", "KIND"},        {"agent", "OF"},
        {"bytes", "BYTES"}, {"cost_usd", "COST ($)"}, {"expires_at", "UNTIL"}, {NULL},
    };
    const char *task = cli_args(cli)[0];
    g_autofree char *escaped = task != NULL ? g_uri_escape_string(task, NULL, FALSE) : NULL;
    g_autofree char *path = g_strdup_printf("/api/v1/kept?per_page=%d%s%s", SHOWN,
                                            task != NULL ? "&task=" : "", task != NULL ? escaped : "");
    g_autoptr(Remote) remote = NULL;
    g_autoptr(Json) body = NULL;
    ExitCode code = remote_open(cli, &remote);

    if (code == EXIT_CODE_OK)
        code = remote_call(remote, "GET", path, NULL, &body);
    if (code != EXIT_CODE_OK)
        return code;
    if (!json_is_array(json_object_get(body, "kept")))
        return cli_fail(cli, EXIT_CODE_FAILED, "the server at %s gave no list of what is kept",
                        remote_address(remote));
    out_table(cli_out(cli), columns, json_object_get(body, "kept"));
    if (out_format(cli_out(cli)) == OUT_TEXT)
        show_total(cli, body);
    return code;
}

const Command task_kept = {.name = "kept",
                           .summary = "List what is left of boxes, the newest first",
                           .args = "[TASK]",
                           .args_max = 1,
                           .settings = CLI_SETTINGS_CLIENT,
                           .run = run_kept};

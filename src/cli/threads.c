/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/threads.h"

#include <string.h>
#include <unistd.h>

#include "base/io.h"
#include "cli/number.h"

enum { BODY_MAX = 256 * 1024 };

const char *const thread_states[] = {"open", "closed", "all", NULL};

ExitCode
threads_fetch(Cli *cli, const char *kind, const char *query, ForgeKeep keep, Json **ret_list)
{
    const char *state = cli_option(cli, "state");
    g_auto(ForgeCall) call = {0};
    g_autoptr(Json) list = json_array();
    g_autoptr(GError) error = NULL;
    gint64 limit = THREAD_LIMIT;

    if (!cli_read_number(cli, "limit", SETTING_INT, 1, THREAD_LIMIT_MAX, &limit, &error))
        return cli_fail_error(cli, error);
    ExitCode code = forge_call_open(cli, &call);

    if (code != EXIT_CODE_OK)
        return code;
    g_autofree char *path = forge_call_path(&call, "/%s?state=%s%s", kind, state != NULL ? state : "open",
                                            query);

    code = forge_call_list(&call, path, (guint)limit, keep, list);
    if (code == EXIT_CODE_OK)
        *ret_list = g_steal_pointer(&list);
    return code;
}

static const char *
state_of(const Json *thread)
{
    const char *state = forge_text(thread, "state");

    if (json_is_string(json_object_get(thread, "merged_at")))
        return "merged";
    return strcmp(state, "open") == 0 && json_is_true(json_object_get(thread, "draft")) ? "draft" : state;
}

static Json *
label_names(const Json *thread)
{
    g_autoptr(GString) names = g_string_new(NULL);
    size_t i;
    Json *label;

    json_array_foreach(json_object_get(thread, "labels"), i, label)
        g_string_append_printf(names, "%s%s", i > 0 ? ", " : "", forge_text(label, "name"));
    return names->len > 0 ? json_string(names->str) : json_null();
}

Json *
threads_row(const Json *thread)
{
    return json_pack("{s:O?, s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:o}", "number",
                     json_object_get(thread, "number"), "title", forge_text(thread, "title"), "state",
                     state_of(thread), "author", forge_text_of(thread, "user", "login"), "head",
                     forge_text_of(thread, "head", "ref"), "base", forge_text_of(thread, "base", "ref"),
                     "created_at", forge_text(thread, "created_at"), "updated_at",
                     forge_text(thread, "updated_at"), "labels", label_names(thread));
}

void
threads_show_text(Out *out, const char *text)
{
    if (*text != '\0')
        out_text(out, OUT_PLAIN, "\n%s\n", text);
}

/* ---- texts ---- */

static char *
read_input(Cli *cli)
{
    g_autofree char *text = g_malloc(BODY_MAX + 1);
    ssize_t n = io_read_full(STDIN_FILENO, text, BODY_MAX);

    if (n < 0 || n == BODY_MAX) {
        cli_fail(cli, EXIT_CODE_FAILED, "the text cannot be read, or has more than %d bytes", BODY_MAX);
        return NULL;
    }
    text[n] = '\0';
    return g_steal_pointer(&text);
}

char *
threads_read_body(Cli *cli, bool needed)
{
    const char *given = cli_option(cli, "body");

    if (given == NULL && needed) {
        cli_fail(cli, EXIT_CODE_USAGE, "--body is missing: the text, or '-' to read it from the input");
        return NULL;
    }
    g_autofree char *text = given != NULL && strcmp(given, "-") == 0 ? read_input(cli)
                                                                     : g_strdup(given != NULL ? given : "");

    if (text != NULL && !g_utf8_validate(text, -1, NULL)) {
        cli_fail(cli, EXIT_CODE_USAGE, "the text is no UTF-8");
        return NULL;
    }
    return g_steal_pointer(&text);
}

/* ---- changing ---- */

ExitCode
threads_send(Cli *cli, const ThreadsCall *what)
{
    g_auto(ForgeCall) call = {0};
    g_autoptr(Json) answer = NULL;
    gint64 number;
    ExitCode code = forge_call_begin(cli, &call, &number);

    if (code != EXIT_CODE_OK)
        return code;
    g_autofree char *path = forge_call_path(&call, "/%s/%" G_GINT64_FORMAT "%s", what->kind, number,
                                            what->rest);

    code = forge_call_run(&call, what->method, path, what->body, &answer);
    if (code != EXIT_CODE_OK)
        return code;
    out_json(cli_out(cli), answer);
    out_text(cli_out(cli), OUT_PLAIN, "%s %s/%s#%" G_GINT64_FORMAT "\n", what->said, call.owner, call.name,
             number);
    return EXIT_CODE_OK;
}

ExitCode
threads_run_comment(Cli *cli)
{
    g_autofree char *text = threads_read_body(cli, true);
    g_autoptr(Json) body = text != NULL ? json_pack("{s:s}", "body", text) : NULL;

    if (body == NULL)
        return EXIT_CODE_USAGE;
    return threads_send(cli, &(ThreadsCall){"POST", "issues", "/comments", body, "commented on"});
}

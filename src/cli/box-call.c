/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/box-call.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include "cli/attach.h"
#include "cli/box-spec.h"

char *
box_path(const char *id, const char *rest)
{
    g_autofree char *escaped = g_uri_escape_string(id, NULL, FALSE);

    return g_strconcat("/api/v1/sandboxes/", escaped, rest, NULL);
}

/* With the command in it, if there is one. */
static ExitCode
create(Cli *cli, Remote *remote, const Json *command, Json **ret_box, char **ret_id)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(Json) body = box_spec_body(cli, &error);
    g_autoptr(Json) box = NULL;

    if (body == NULL)
        return cli_fail(cli, EXIT_CODE_USAGE, "%s", error->message);
    if (command != NULL)
        json_object_set_new(body, "command", json_deep_copy(command));
    ExitCode code = remote_call(remote, "POST", "/api/v1/sandboxes", body, &box);
    if (code != EXIT_CODE_OK)
        return code;
    const char *id = json_string_value(json_object_get(box, "sandbox_id"));
    if (id == NULL)
        return cli_fail(cli, EXIT_CODE_FAILED, "the server at %s gave no sandbox", remote_address(remote));
    *ret_id = g_strdup(id);
    *ret_box = g_steal_pointer(&box);
    return EXIT_CODE_OK;
}

ExitCode
box_make(Cli *cli, Remote *remote, Json **ret_box, char **ret_id)
{
    return create(cli, remote, NULL, ret_box, ret_id);
}

/* Also after remote_cancel(), so the server is opened anew. */
static void
remove_quietly(Cli *cli, const char *id)
{
    g_autoptr(Remote) remote = NULL;
    g_autofree char *path = box_path(id, "");
    g_auto(RemoteReply) reply = {0};
    RemoteCall call = REMOTE_CALL_INIT;

    if (remote_open(cli, &remote) != EXIT_CODE_OK)
        return;
    call.method = "DELETE";
    call.path = path;
    remote_try(remote, &call, &reply);
}

static void
add_terminal(Json *body)
{
    struct winsize size;
    const char *term = g_getenv("TERM");
    Json *env = json_object_get(body, "env");

    json_object_set_new(body, "tty", json_true());
    if (ioctl(STDIN_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_row > 0 && size.ws_col > 0) {
        json_object_set_new(body, "rows", json_integer(size.ws_row));
        json_object_set_new(body, "columns", json_integer(size.ws_col));
    }
    if (env == NULL) {
        env = json_object();
        json_object_set_new(body, "env", env);
    }
    if (json_object_get(env, "TERM") == NULL)
        json_object_set_new(env, "TERM", json_string(term != NULL ? term : "xterm"));
}

/* For programs: nothing is streamed, one object tells everything. */
static ExitCode
exec_for_json(Cli *cli, Remote *remote, const char *id, Json *body)
{
    g_autofree char *path = box_path(id, "/commands");
    g_autoptr(Json) result = NULL;
    RemoteCall call = REMOTE_CALL_INIT;

    json_object_set_new(body, "wait", json_true());
    call.method = "POST";
    call.path = path;
    call.body = body;
    call.answer_ms = 0;
    ExitCode code = remote_run(remote, &call, &result);
    if (code != EXIT_CODE_OK)
        return code;
    out_json(cli_out(cli), result);
    Json *end = json_object_get(result, "end");
    return (ExitCode)json_integer_value(json_object_get(end, "exit_code"));
}

typedef struct Streams {
    bool input, terminal;
} Streams;

/* What the options say. */
static bool
read_streams(Cli *cli, Streams *ret_streams)
{
    *ret_streams = (Streams){.input = cli_option(cli, "interactive") != NULL,
                             .terminal = cli_option(cli, "tty") != NULL};
    return !ret_streams->terminal || !ret_streams->input || isatty(STDIN_FILENO) == 1;
}

/* In the box `id`, or in a new one that goes with it. */
static ExitCode
exec_attached(Cli *cli, Remote *remote, const char *id, Json *body, Streams streams)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(Json) create = id == NULL ? box_spec_body(cli, &error) : NULL;
    g_autofree char *made = NULL;
    int exit_code = 0;

    if (error != NULL)
        return cli_fail(cli, EXIT_CODE_USAGE, "%s", error->message);
    if (streams.terminal)
        add_terminal(body);
    if (streams.input)
        json_object_set_new(body, "stdin", json_true());
    if (create != NULL)
        json_object_set(create, "command", body);
    ExitCode code = attach_run(&(AttachSpec){.cli = cli,
                                             .remote = remote,
                                             .box = id,
                                             .create = create,
                                             .command = create == NULL ? body : NULL,
                                             .input = streams.input,
                                             .terminal = streams.terminal && streams.input},
                               &exit_code, &made);
    if (made != NULL)
        remove_quietly(cli, made);
    return code != EXIT_CODE_OK ? code : (ExitCode)exit_code;
}

/* The answer comes at its end; by then the box is known, whatever becomes of us. */
static ExitCode
run_for_json(Cli *cli, Remote *remote, Json *body)
{
    g_autoptr(Json) box = NULL;
    g_autofree char *id = NULL;
    ExitCode code = box_make(cli, remote, &box, &id);

    if (code != EXIT_CODE_OK)
        return code;
    code = exec_for_json(cli, remote, id, body);
    remove_quietly(cli, id);
    return code;
}

ExitCode
box_exec(Cli *cli, Remote *remote, const char *id, const char *const *words, guint n)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(Json) body = command_spec_body(cli, words, n, &error);
    Streams streams;

    if (body == NULL)
        return cli_fail(cli, EXIT_CODE_USAGE, "%s", error->message);
    if (!read_streams(cli, &streams))
        return cli_fail(cli, EXIT_CODE_USAGE, "standard input is no terminal: leave -t out");
    if (out_format(cli_out(cli)) != OUT_JSON)
        return exec_attached(cli, remote, id, body, streams);
    return id != NULL ? exec_for_json(cli, remote, id, body) : run_for_json(cli, remote, body);
}

ExitCode
box_exec_terminal(Cli *cli, Remote *remote, const char *id, const char *const *words, guint n)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(Json) body = command_spec_body(cli, words, n, &error);

    if (body == NULL)
        return cli_fail(cli, EXIT_CODE_USAGE, "%s", error->message);
    return exec_attached(cli, remote, id, body, (Streams){.input = true, .terminal = true});
}

ExitCode
box_run_detached(Cli *cli, Remote *remote, const char *const *words, guint n)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(Json) body = command_spec_body(cli, words, n, &error);
    g_autoptr(Json) box = NULL;
    g_autofree char *id = NULL;

    if (body == NULL)
        return cli_fail(cli, EXIT_CODE_USAGE, "%s", error->message);
    ExitCode code = create(cli, remote, body, &box, &id);
    if (code != EXIT_CODE_OK)
        return code;
    out_json(cli_out(cli), box);
    out_text(cli_out(cli), OUT_PLAIN, "%s\n", id);
    return EXIT_CODE_OK;
}

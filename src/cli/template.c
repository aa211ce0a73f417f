/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "cli/bar.h"
#include "cli/commands.h"
#include "cli/remote.h"
#include "http/sse.h"

enum {
    EVENT_MAX = 1024 * 1024,
    SILENCE_MS = 45000, /* three beats of the server */
};

static char *
path_of(const char *name, const char *more)
{
    g_autofree char *escaped = g_uri_escape_string(name, NULL, FALSE);

    return g_strconcat("/api/v1/templates/", escaped, more, NULL);
}

/* ---- coop template ls ---- */

static char *
show_age(gint64 seconds)
{
    if (seconds < 2 * 60)
        return g_strdup_printf("%" G_GINT64_FORMAT " s", seconds);
    if (seconds < 2 * 3600)
        return g_strdup_printf("%" G_GINT64_FORMAT " min", seconds / 60);
    if (seconds < 2 * 86400)
        return g_strdup_printf("%" G_GINT64_FORMAT " h", seconds / 3600);
    return g_strdup_printf("%" G_GINT64_FORMAT " d", seconds / 86400);
}

/* What people read in place of seconds and bytes. */
static void
make_readable(Json *t)
{
    const Json *age = json_object_get(t, "age");
    const Json *size = json_object_get(t, "size");

    if (age != NULL) {
        g_autofree char *text = show_age(json_integer_value(age));

        json_object_set_new(t, "age", json_string(text));
    }
    if (size != NULL) {
        g_autofree char *text = g_format_size((guint64)json_integer_value(size));

        json_object_set_new(t, "size", json_string(text));
    }
}

static ExitCode
run_ls(Cli *cli)
{
    static const OutColumn columns[] = {
        {"name", "NAME"}, {"state", "STATE"},      {"age", "AGE"}, {"size", "SIZE"},
        {"from", "FROM"}, {"description", "WHAT"}, {NULL},
    };
    g_autoptr(Remote) remote = NULL;
    g_autoptr(Json) body = NULL;
    ExitCode code = remote_open(cli, &remote);

    if (code == EXIT_CODE_OK)
        code = remote_call(remote, "GET", "/api/v1/templates", NULL, &body);
    if (code != EXIT_CODE_OK)
        return code;
    Json *list = json_object_get(body, "templates");
    if (!json_is_array(list))
        return cli_fail(cli, EXIT_CODE_FAILED, "the server at %s gave no list of templates",
                        remote_address(remote));
    for (size_t i = 0; out_format(cli_out(cli)) == OUT_TEXT && i < json_array_size(list); i++)
        make_readable(json_array_get(list, i));
    out_table(cli_out(cli), columns, list);
    return EXIT_CODE_OK;
}

/* ---- coop template show ---- */

static void
show_template(Cli *cli, Json *t)
{
    static const OutColumn fields[] = {
        {"name", "Name"}, {"state", "State"},    {"description", "What"},
        {"from", "From"}, {"age", "Age"},        {"size", "Size"},
        {"user", "User"}, {"workdir", "Folder"}, {"test", "Tests"},
        {"sudo", "Sudo"}, {"hash", "Hash"},      {"error", "Error"},
        {NULL},
    };
    const char *command;
    Json *version;

    if (out_format(cli_out(cli)) == OUT_JSON) {
        out_json(cli_out(cli), t);
        return;
    }
    make_readable(t);
    out_fields(cli_out(cli), fields, t);
    json_object_foreach(json_object_get(t, "versions"), command, version)
        out_text(cli_out(cli), OUT_DIM, "  %s: %s\n", command, json_string_value(version));
}

static ExitCode
run_show(Cli *cli)
{
    g_autofree char *path = path_of(cli_args(cli)[0], "");
    g_autoptr(Remote) remote = NULL;
    g_autoptr(Json) body = NULL;
    ExitCode code = remote_open(cli, &remote);

    if (code == EXIT_CODE_OK)
        code = remote_call(remote, "GET", path, NULL, &body);
    if (code == EXIT_CODE_OK)
        show_template(cli, body);
    return code;
}

/* ---- coop template build, update ---- */

typedef struct Building {
    Cli *cli;
    SseDecoder *decoder;
    Bar bar;
    Json *done;
    char *failed;
    int status; /* of the failure */
} Building;

static void
on_progress(Building *b, const Json *p)
{
    bar_show(&b->bar, (guint)json_integer_value(json_object_get(p, "percent")),
             json_string_value(json_object_get(p, "step")), json_string_value(json_object_get(p, "line")));
}

static void
on_event(const SseEvent *e, void *data)
{
    Building *b = data;
    g_autoptr(Json) object = json_decode(e->data, e->data_len, NULL);
    const char *message = json_string_value(json_object_get(object, "message"));

    if (strcmp(e->event, "progress") == 0) {
        on_progress(b, object);
    } else if (strcmp(e->event, "done") == 0) {
        b->done = g_steal_pointer(&object);
    } else if (strcmp(e->event, "failed") == 0) {
        b->failed = g_strdup(message != NULL ? message : "it failed");
        b->status = (int)json_integer_value(json_object_get(object, "code"));
    }
}

static bool
on_bytes(const guint8 *bytes, size_t n, void *data)
{
    Building *b = data;

    return sse_decoder_feed(b->decoder, bytes, n, NULL) && b->done == NULL && b->failed == NULL;
}

static ExitCode
end_build(Building *b, ExitCode code)
{
    bar_clear(&b->bar);
    if (b->failed != NULL)
        return cli_fail(b->cli, b->status == 404 ? EXIT_CODE_NOT_FOUND : EXIT_CODE_FAILED, "%s", b->failed);
    if (b->done != NULL)
        show_template(b->cli, b->done);
    else if (code == EXIT_CODE_OK)
        code = cli_fail(b->cli, EXIT_CODE_FAILED, "the server ended the answer before the build was done");
    return b->done != NULL ? EXIT_CODE_OK : code;
}

static ExitCode
build(Cli *cli, bool update)
{
    static const char *const headers[] = {"Accept: text/event-stream", NULL};
    g_autofree char *path = path_of(cli_args(cli)[0], "/build");
    g_autoptr(Remote) remote = NULL;
    g_autoptr(Json) body = json_pack("{s:b}", "update", (int)update);
    Building b = {.cli = cli, .bar = bar_make(cli)};
    RemoteCall call = REMOTE_CALL_INIT;
    g_auto(RemoteReply) reply = {0};
    ExitCode code = remote_open(cli, &remote);

    if (code != EXIT_CODE_OK)
        return code;
    b.decoder = sse_decoder_new(EVENT_MAX, on_event, &b);
    call.method = "POST";
    call.path = path;
    call.headers = headers;
    call.body = body;
    call.stall_ms = SILENCE_MS;
    call.data = on_bytes;
    call.ctx = &b;
    remote_try(remote, &call, &reply);
    code = reply.code;
    if (b.done == NULL && b.failed == NULL && reply.message != NULL) {
        bar_clear(&b.bar);
        code = cli_fail(cli, reply.code, "%s", reply.message);
    } else {
        code = end_build(&b, code);
    }
    sse_decoder_free(b.decoder);
    json_decref(b.done);
    g_free(b.failed);
    return code;
}

static ExitCode
run_build(Cli *cli)
{
    return build(cli, false);
}

static ExitCode
run_update(Cli *cli)
{
    return build(cli, true);
}

/* ---- coop template rm ---- */

static ExitCode
run_rm(Cli *cli)
{
    const char *name = cli_args(cli)[0];
    g_autofree char *path = path_of(name, "");

    return remote_remove(cli, path, name);
}

/* ---- the commands ---- */

#define ONE_TEMPLATE .args = "NAME", .args_min = 1, .args_max = 1, .settings = CLI_SETTINGS_CLIENT

static const Command template_build = {.name = "build",
                                       .summary = "Build a template, unless it is built as its recipe says",
                                       ONE_TEMPLATE,
                                       .run = run_build};
static const Command template_update = {.name = "update",
                                        .summary = "Build a template again with the newest packages",
                                        ONE_TEMPLATE,
                                        .run = run_update};
static const Command template_ls = {
    .name = "ls", .summary = "List the templates", .settings = CLI_SETTINGS_CLIENT, .run = run_ls};
static const Command template_rm = {
    .name = "rm", .summary = "Remove what was built; the recipe stays", ONE_TEMPLATE, .run = run_rm};
static const Command template_show = {
    .name = "show", .summary = "Show one template", ONE_TEMPLATE, .run = run_show};

static const Command *const commands[] = {&template_build, &template_update, &template_ls,
                                          &template_rm,    &template_show,   NULL};

const Command command_template = {
    .name = "template",
    .summary = "List, build and remove what boxes start from",
    .details = "Recipes of your own are YAML files in templates.d of the data folder.",
    .commands = commands,
    .settings = CLI_SETTINGS_CLIENT,
    .run = run_ls,
};

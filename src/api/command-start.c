/* SPDX-License-Identifier: Apache-2.0 */
/* POST …/commands: starts one, and answers at once, at its end, or with its output as it
 * comes. */
#include <string.h>

#include "api/box-json.h"
#include "api/call-box.h"
#include "api/command-find.h"
#include "api/form.h"
#include "api/output-feed.h"
#include "api/routes.h"
#include "api/run-collect.h"
#include "api/state.h"
#include "base/err.h"

enum {
    TIMEOUT_S = RUN_TIMEOUT_MS / 1000,
    TIMEOUT_S_MAX = 24 * 3600,
    LINE_MAX_BYTES = 64 * 1024,
    USER_MAX = 64,
    SIDE_MAX = 4096, /* rows or columns */
    ROWS = 24,
    COLUMNS = 80,
    TEXT_MAX = 1024 * 1024, /* of the output in an answer that waited */
};

/* ---- what is asked for ---- */

typedef struct StartForm {
    RunSpec run; /* borrows from the rest and from the body */
    char **argv, **env;
    bool wait;
} StartForm;

static void
start_form_clear(StartForm *form)
{
    g_strfreev(form->argv);
    g_strfreev(form->env);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(StartForm, start_form_clear)

static bool
read_argv(StartForm *form, const Box *box, const char *line, Json *argv, GError **error)
{
    if ((line == NULL) == (argv == NULL))
        return err_set(error, ERR_INVALID, "either 'command' or 'argv' must be given");
    if (line != NULL) {
        BoxInfo info;

        box_info(box, &info);
        form->argv = g_strdupv((char **)(gpointer)(const char *[]){info.shell, "-c", line, NULL});
        return true;
    }
    if (json_array_size(argv) == 0)
        return err_set(error, ERR_INVALID, "'argv' must not be empty");
    return form_read_words(argv, "argv", &form->argv, error);
}

static bool
check_root(const Box *box, GError **error)
{
    BoxInfo info;

    box_info(box, &info);
    return info.sudo || err_set(error, ERR_DENIED, "the template of this sandbox lets no command be root");
}

static bool
read_form(Json *body, const Box *box, StartForm *form, GError **error)
{
    const char *line = NULL;
    Json *argv = NULL, *env = NULL;
    gint64 timeout_s = TIMEOUT_S, rows = ROWS, columns = COLUMNS;
    bool tty = false, input = false, root = false;
    const JsonField fields[] = {
        {"command", JSON_KIND_STRING, &line, false, 1, LINE_MAX_BYTES},
        {"argv", JSON_KIND_ARRAY, &argv, false, 0, FRAME_ARGS_MAX},
        {"user", JSON_KIND_STRING, &form->run.user, false, 1, USER_MAX},
        {"cwd", JSON_KIND_STRING, &form->run.cwd, false, 1, FRAME_PATH_MAX - 1},
        {"env", JSON_KIND_OBJECT, &env},
        {"timeout", JSON_KIND_INT, &timeout_s, false, 0, TIMEOUT_S_MAX},
        {"tty", JSON_KIND_BOOL, &tty},
        {"rows", JSON_KIND_INT, &rows, false, 1, SIDE_MAX},
        {"columns", JSON_KIND_INT, &columns, false, 1, SIDE_MAX},
        {"stdin", JSON_KIND_BOOL, &input},
        {"root", JSON_KIND_BOOL, &root},
        {"wait", JSON_KIND_BOOL, &form->wait},
        {NULL},
    };

    form->run.user = form->run.cwd = "";
    if (!json_read(body, fields, error) || !read_argv(form, box, line, argv, error) ||
        !form_read_env(env, &form->env, error) || (root && !check_root(box, error)))
        return false;
    form->run.argv = (const char *const *)form->argv;
    form->run.env = (const char *const *)form->env;
    form->run.flags = (tty ? START_TTY : 0) | (input || tty ? START_STDIN : 0) | (root ? START_ROOT : 0);
    form->run.timeout_ms = (guint)(timeout_s * 1000);
    form->run.rows = (guint16)rows;
    form->run.columns = (guint16)columns;
    return true;
}

/* ---- waiting ---- */

typedef struct Wait {
    ApiCall *call; /* with a reference to its request */
    Json *row;     /* as it was at the start */
    RunCollect *collect;
} Wait;

static void
wait_free(Wait *w)
{
    http_request_on_gone(w->call->request, NULL, NULL);
    run_collect_free(w->collect);
    json_decref(w->row);
    http_request_unref(w->call->request);
    g_free(w);
}

static void
on_wait_over(RunCollect *collect, void *data)
{
    Wait *w = data;

    if (!caller_is_still_known(w->call)) {
        respond_error(w->call->request, 401, "the key of this call is not valid any more");
    } else {
        Json *o = command_describe(w->row, run_collect_run(collect));

        run_collect_set_text(collect, o);
        call_respond_json(w->call, 200, o);
    }
    wait_free(w);
}

static void
on_gone(HttpRequest *request, void *data)
{
    wait_free(data);
}

static void
wait_for_end(ApiCall *call, Box *box, Run *run)
{
    Wait *w = g_new0(Wait, 1);

    w->call = call;
    w->row = box_command_row(box, run_id(run));
    http_request_ref(call->request);
    w->collect = run_collect_new(run, TEXT_MAX, on_wait_over, w);
    http_request_on_gone(call->request, on_gone, w);
}

/* ---- starting ---- */

static void
start(ApiCall *call, Json *body, void *data)
{
    Box *box = call_box(call);
    g_auto(StartForm) form = {0};
    g_autoptr(GError) error = NULL;
    g_autoptr(Run) run = NULL;

    if (box == NULL)
        return;
    if (read_form(body, box, &form, &error))
        run = box_start(box, &form.run, call->caller.actor, &error);
    if (run == NULL) {
        call_respond_error(call, error);
    } else if (call_wants_stream(call)) {
        OutputFeedSpec feed = {.run = run, .started = run_describe(box, run)};

        call_respond_output_feed(call, &feed);
    } else if (form.wait) {
        wait_for_end(call, box, run);
    } else {
        call_respond_json(call, 201, run_describe(box, run));
    }
}

static void
post_command(ApiCall *call)
{
    call_read_json(call, start, NULL);
}

const ApiRoute command_start_routes[] = {
    {"POST", "/api/v1/sandboxes/{id}/commands", SCOPE_BOX, ROUTE_STREAM, post_command},
    {NULL},
};

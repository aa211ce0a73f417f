/* SPDX-License-Identifier: Apache-2.0 */
/* A terminal over a WebSocket.  Binary frames are its bytes, text frames are JSON about it.  The
 * command is logged as any other, so a lost connection loses nothing: whoever attaches again sees
 * what was written meanwhile.
 *
 * Both ways are bounded.  Output is taken from the log only while the socket has room, one piece
 * at most waits here.  Of input one message waits here until the program reads; until then the
 * socket is not read either. */
#include <signal.h>
#include <string.h>

#include "api/box-json.h"
#include "api/call-box.h"
#include "api/command-find.h"
#include "api/form.h"
#include "api/routes.h"
#include "api/state.h"
#include "base/err.h"
#include "http/url.h"
#include "http/ws.h"

enum {
    SIDE_MAX = 4096, /* rows or columns */
    ROWS = 24,
    COLUMNS = 80,
    MESSAGE_MAX = 64 * 1024,
    QUEUE_MAX = 256 * 1024,
    CLOSE_NORMAL = 1000,
    CLOSE_POLICY = 1008,
    CLOSE_BROKEN = 1011,
};

/* Whichever there is; both take a login's files. */
static const char login_shell[] = "command -v bash >/dev/null 2>&1 && exec bash -l; exec sh -l";

typedef struct TerminalForm {
    char *command, *user, *cwd; /* NULL: not said */
    gint64 rows, columns;       /* 0: not said */
    gint64 attach;              /* 0: a new one */
    gint64 from;                /* where an attached one's output begins */
    gint64 kill;
} TerminalForm;

static void
terminal_form_clear(TerminalForm *form)
{
    g_free(form->command);
    g_free(form->user);
    g_free(form->cwd);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(TerminalForm, terminal_form_clear)

typedef struct Terminal {
    ApiCall *call;         /* with a reference to its request */
    Box *box;              /* a reference */
    Run *run;              /* a reference */
    WsConn *ws;            /* it frees us when it is closed */
    RunFollower *follower; /* NULL: everything was told */
    Buf input;             /* not taken yet */
    Buf output;            /* a message the socket had no room for */
    WsKind output_kind;
    bool kill;
} Terminal;

/* ---- output ---- */

/* False: it waits for room. */
static bool
send_or_hold(Terminal *t, WsKind kind, const void *bytes, size_t n)
{
    if (ws_send(t->ws, kind, bytes, n))
        return true;
    bool ok = buf_put(&t->output, bytes, n);
    g_assert(ok); /* empty, and a piece has its bound */
    t->output_kind = kind;
    return false;
}

static bool
send_json(Terminal *t, Json *value)
{
    g_autoptr(Json) owned = value;
    g_autofree char *text = json_encode(owned);

    return send_or_hold(t, WS_TEXT, text, strlen(text));
}

static bool
send_gap(Terminal *t, const RunPiece *piece)
{
    return send_json(t, json_pack("{s:{s:I, s:I}}", "gap", "offset", (json_int_t)piece->offset, "bytes",
                                  (json_int_t)piece->n));
}

static void
stop_following(Terminal *t)
{
    g_clear_pointer(&t->follower, run_follower_free);
}

static bool
send_end(Terminal *t)
{
    Json *end = run_end_describe(t->run);

    report_json_shorten(json_object_get(end, "test_results"));
    stop_following(t);
    return send_json(t, json_pack("{s:o}", "end", end));
}

/* False: nothing more can be sent now. */
static bool
send_next(Terminal *t)
{
    RunPiece piece;

    switch (run_follower_next(t->follower, &piece)) {
    case RUN_STEP_DATA:
        return send_or_hold(t, WS_BINARY, piece.bytes, piece.n);
    case RUN_STEP_GAP:
        return send_gap(t, &piece);
    case RUN_STEP_WAIT:
        return false;
    case RUN_STEP_END:
        return send_end(t);
    case RUN_STEP_FAILED:
        break;
    }
    stop_following(t);
    ws_close(t->ws, CLOSE_BROKEN, "the output cannot be read");
    return false;
}

static bool
is_dismissed(Terminal *t)
{
    if (caller_is_still_known(t->call))
        return false;
    stop_following(t);
    ws_close(t->ws, CLOSE_POLICY, "the key is not valid any more");
    return true;
}

static void
pump(Terminal *t)
{
    if (buf_len(&t->output) > 0 || t->follower == NULL || is_dismissed(t))
        return;
    while (t->follower != NULL) {
        if (!send_next(t))
            break;
    }
    if (t->follower == NULL && buf_len(&t->output) == 0)
        ws_close(t->ws, CLOSE_NORMAL, "the command has ended");
}

static void
on_output(void *data)
{
    pump(data);
}

static void
on_drained(WsConn *ws, void *ctx)
{
    Terminal *t = ctx;
    size_t n;
    const guint8 *bytes = buf_peek(&t->output, &n);

    if (n > 0) {
        if (!ws_send(ws, t->output_kind, bytes, n))
            return;
        buf_clear(&t->output);
        if (t->follower == NULL) {
            ws_close(ws, CLOSE_NORMAL, "the command has ended");
            return;
        }
    }
    pump(t);
}

/* ---- input ---- */

static void
refuse(Terminal *t, const char *message)
{
    g_autofree char *valid = g_utf8_make_valid(message, -1);
    g_autoptr(Json) json = json_pack("{s:{s:s}}", "error", "message", valid);
    g_autofree char *text = json_encode(json);

    /* A client that sends nonsense faster than it reads does not get every word of it. */
    (void)!ws_send(t->ws, WS_TEXT, text, strlen(text));
}

static void on_room(void *data);

/* False: the rest waits. */
static bool
push(Terminal *t)
{
    size_t n;
    const guint8 *bytes = buf_peek(&t->input, &n);

    if (n == 0)
        return true;
    buf_skip(&t->input, run_write(t->run, bytes, n));
    if (buf_len(&t->input) == 0)
        return true;
    if (run_takes_input(t->run) && run_on_input_room(t->run, on_room, t))
        return false;
    buf_clear(&t->input);
    refuse(t, "the command takes no input, or takes another's now: some was dropped");
    return true;
}

static void
on_room(void *data)
{
    Terminal *t = data;

    if (push(t))
        ws_resume(t->ws);
}

static bool
read_sides(Json *sides, gint64 *ret_rows, gint64 *ret_columns, GError **error)
{
    const JsonField fields[] = {
        {.name = "rows", .kind = JSON_KIND_INT, .ret = ret_rows, .required = true, .min = 1, .max = SIDE_MAX},
        {.name = "columns",
         .kind = JSON_KIND_INT,
         .ret = ret_columns,
         .required = true,
         .min = 1,
         .max = SIDE_MAX},
        {NULL},
    };

    return json_read(sides, fields, error);
}

static bool
obey(Terminal *t, Json *order, GError **error)
{
    Json *sides = json_object_get(order, "resize");
    Json *name = json_object_get(order, "signal");
    gint64 rows = 0, columns = 0;
    int number = 0;

    if (json_object_size(order) != 1 || (sides == NULL && name == NULL))
        return err_set(error, ERR_INVALID, "a text message is {\"resize\": …} or {\"signal\": …}");
    if (name != NULL) {
        if (!form_read_signal(name, &number, error))
            return false;
        run_signal(t->run, number);
        return true;
    }
    if (!read_sides(sides, &rows, &columns, error))
        return false;
    run_resize(t->run, (guint16)rows, (guint16)columns);
    return true;
}

static bool
on_message(WsConn *ws, WsKind kind, const guint8 *bytes, size_t n, void *ctx)
{
    Terminal *t = ctx;
    g_autoptr(GError) error = NULL;

    if (is_dismissed(t))
        return true;
    box_touch(t->box);
    if (kind == WS_TEXT) {
        g_autoptr(Json) order = json_decode(bytes, n, &error);

        if (order == NULL || !obey(t, order, &error))
            refuse(t, error->message);
        return true;
    }
    if (run_has_ended(t->run))
        return true;
    bool ok = buf_put(&t->input, bytes, n);
    g_assert(ok); /* empty, and a message has its bound */
    return push(t);
}

/* ---- life ---- */

static void
terminal_free(Terminal *t)
{
    run_on_input_room(t->run, NULL, t);
    stop_following(t);
    buf_clear(&t->input);
    buf_clear(&t->output);
    run_unref(t->run);
    box_unref(t->box);
    http_request_unref(t->call->request);
    g_free(t);
}

static void
on_closed(WsConn *ws, guint16 code, void *ctx)
{
    Terminal *t = ctx;

    if (t->kill && !run_has_ended(t->run))
        run_signal(t->run, SIGKILL);
    terminal_free(t);
}

static bool
read_form(const char *query, TerminalForm *form, GError **error)
{
    static const char *const names[] = {"rows",   "columns", "command", "user", "cwd",
                                        "attach", "from",    "kill",    NULL};

    *form = (TerminalForm){0};
    if (!url_query_only(query, names, error) || !url_query_get(query, "command", &form->command, error) ||
        !url_query_get(query, "user", &form->user, error) ||
        !url_query_get(query, "cwd", &form->cwd, error) ||
        !url_query_get_int(query, "rows", 1, SIDE_MAX, &form->rows, error) ||
        !url_query_get_int(query, "columns", 1, SIDE_MAX, &form->columns, error) ||
        !url_query_get_int(query, "attach", 1, G_MAXUINT32, &form->attach, error) ||
        !url_query_get_int(query, "from", 0, G_MAXINT64, &form->from, error) ||
        !url_query_get_int(query, "kill", 0, 1, &form->kill, error))
        return false;
    if (form->attach != 0 && (form->command != NULL || form->user != NULL || form->cwd != NULL))
        return err_set(error, ERR_INVALID, "'attach' names a command that goes on; it takes no other");
    return true;
}

static Run *
find_or_start(ApiCall *call, Box *box, const TerminalForm *form, GError **error)
{
    static const char *const env[] = {"TERM=xterm-256color", NULL};
    const char *line = form->command != NULL && form->command[0] != '\0' ? form->command : login_shell;
    BoxInfo info;
    box_info(box, &info);
    const char *argv[] = {info.shell, "-c", line, NULL};
    RunSpec spec = {
        .flags = START_TTY | START_STDIN,
        .argv = argv,
        .env = env,
        .user = form->user != NULL ? form->user : "",
        .cwd = form->cwd != NULL ? form->cwd : "",
        .rows = (guint16)(form->rows != 0 ? form->rows : ROWS),
        .columns = (guint16)(form->columns != 0 ? form->columns : COLUMNS),
    };

    if (form->attach == 0)
        return box_start(box, &spec, call->caller.actor, error);
    Run *run = box_find_run(box, (guint32)form->attach);
    if (run == NULL)
        err_set(error, ERR_NOT_FOUND, "no such command goes on in this sandbox");
    return run != NULL ? run_ref(run) : NULL;
}

static void
open_terminal(ApiCall *call, Box *box, Run *run, const TerminalForm *form)
{
    static const WsHandler handler = {.message = on_message, .drained = on_drained, .closed = on_closed};
    WsSpec spec = WS_SPEC_INIT;
    Terminal *t = g_new0(Terminal, 1);

    spec.message_max = MESSAGE_MAX;
    spec.queue_max = QUEUE_MAX;
    *t = (Terminal){.call = call, .box = box_ref(box), .run = run_ref(run), .kill = form->kill != 0};
    http_request_ref(call->request);
    buf_init(&t->input, MESSAGE_MAX);
    buf_init(&t->output, QUEUE_MAX);
    t->ws = ws_accept(call->request, call->api->loop, &spec, &handler, t);
    if (t->ws == NULL) {
        if (form->attach == 0)
            run_signal(run, SIGKILL); /* nobody ever saw it */
        terminal_free(t);
        return;
    }
    if (form->attach != 0 && form->rows != 0 && form->columns != 0)
        run_resize(run, (guint16)form->rows, (guint16)form->columns);
    t->follower = run_follow(run, (guint64)form->from, 0, on_output, t);
    if (send_json(t, json_pack("{s:o}", "started", run_describe(box, run))))
        pump(t);
}

static void
get_terminal(ApiCall *call)
{
    g_auto(TerminalForm) form = {0};
    g_autoptr(GError) error = NULL;
    Box *box = call_box(call);

    if (box == NULL)
        return;
    if (!ws_is_handshake(call->request)) {
        respond_error(call->request, 426, "a terminal is a WebSocket");
        return;
    }
    bool ok = read_form(http_request_query(call->request), &form, &error);
    g_autoptr(Run) run = ok ? find_or_start(call, box, &form, &error) : NULL;
    if (run == NULL)
        call_respond_error(call, error);
    else
        open_terminal(call, box, run, &form);
}

/* It runs commands, though it is a GET. */
const ApiRoute terminal_routes[] = {
    {"GET", "/api/v1/sandboxes/{id}/terminal", SCOPE_BOX, ROUTE_STREAM, get_terminal},
    {NULL},
};

/* SPDX-License-Identifier: Apache-2.0 */
/* POST …/commands/{command}/stdin: the body becomes input as it comes.  What the command does
 * not take holds the caller up through TCP; at most one read's worth is kept here. */
#include <string.h>

#include "api/call-box.h"
#include "api/command-find.h"
#include "api/routes.h"
#include "api/state.h"
#include "base/err.h"
#include "http/limits.h"
#include "http/url.h"

typedef struct Input {
    ApiCall *call; /* with a reference to its request */
    Box *box;      /* a reference */
    Run *run;      /* a reference */
    Buf held;      /* not taken yet */
    guint64 taken;
    bool close;
    bool ended;     /* nothing of the body will come any more */
    bool answering; /* which may end the body */
} Input;

static void
input_free(Input *in)
{
    (void)run_on_input_room(in->run, NULL, in); /* false: another one waits */
    buf_clear(&in->held);
    run_unref(in->run);
    box_unref(in->box);
    http_request_unref(in->call->request);
    g_free(in);
}

static void
finish(Input *in)
{
    if (in->close)
        run_close_input(in->run);
    call_respond_json(in->call, 200, json_pack("{s:I}", "bytes", (json_int_t)in->taken));
    input_free(in);
}

/* `in` is gone after it, or goes with the end of the body. */
static void
refuse(Input *in, const char *why)
{
    in->answering = true;
    respond_error(in->call->request, 409, why);
    in->answering = false;
    if (in->ended)
        input_free(in);
}

static void on_room(void *data);

/* False: the rest waits, or was refused and `in` is not to be touched. */
static bool
push(Input *in)
{
    size_t n, taken;
    const guint8 *bytes = buf_peek(&in->held, &n);

    if (n == 0)
        return true;
    taken = run_write(in->run, bytes, n);
    in->taken += taken;
    buf_skip(&in->held, taken);
    if (taken == n)
        return true;
    if (!run_on_input_room(in->run, on_room, in))
        refuse(in, "somebody else writes to the command");
    return false;
}

static void
on_room(void *data)
{
    Input *in = data;

    if (run_has_ended(in->run)) {
        refuse(in, "the command has ended");
        return;
    }
    if (!push(in))
        return;
    if (in->ended)
        finish(in);
    else
        http_request_resume_body(in->call->request);
}

static bool
take_data(void *ctx, const guint8 *bytes, size_t n)
{
    Input *in = ctx;

    if (http_request_is_answered(in->call->request))
        return true;
    if (!run_takes_input(in->run)) {
        refuse(in, "the command has ended");
        return true;
    }
    bool ok = buf_put(&in->held, bytes, n);
    g_assert(ok); /* nothing was held, and one read's worth comes at a time */
    return push(in);
}

static void
end_body(void *ctx, const GError *error)
{
    Input *in = ctx;
    size_t n;

    in->ended = true;
    if (in->answering)
        return;
    (void)buf_peek(&in->held, &n);
    if (http_request_is_answered(in->call->request)) {
        input_free(in);
    } else if (error != NULL) {
        call_respond_body_error(in->call, error);
        input_free(in);
    } else if (n == 0) {
        finish(in);
    }
}

static void
post_input(ApiCall *call)
{
    static const HttpSink sink = {.data = take_data, .end = end_body};
    static const char *const names[] = {"close", NULL};
    const char *query = http_request_query(call->request);
    gint64 close = 0;
    Box *box = NULL;
    g_autoptr(GError) error = NULL;

    if (!url_query_only(query, names, &error) || !url_query_get_int(query, "close", 0, 1, &close, &error)) {
        call_respond_error(call, error);
        return;
    }
    Run *run = call_live_run(call, &box);
    if (run == NULL)
        return;
    if (!run_takes_input(run)) {
        respond_error(call->request, 409, "the command takes no input, or no more");
        return;
    }
    Input *in = g_new0(Input, 1);
    *in = (Input){.call = call, .box = box_ref(box), .run = run_ref(run), .close = close != 0};
    buf_init(&in->held, 2 * HTTP_READ_SIZE);
    http_request_ref(call->request);
    http_request_read_body(call->request, &sink, in, G_MAXINT64);
}

const ApiRoute command_input_routes[] = {
    {"POST", "/api/v1/sandboxes/{id}/commands/{command}/stdin", SCOPE_BOX, 0, post_input},
    {NULL},
};

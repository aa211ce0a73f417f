/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "forge/box-call.h"

enum { SHOWN_MAX = 1000 };

typedef struct Call {
    Run *run;
    Buf out, err;
    char *input; /* NULL: none, or all was taken */
    size_t input_n, input_at;
    BoxCallFunc done;
    void *data;
    GError *error;
    guint source;
} Call;

static void
call_free(Call *call)
{
    g_clear_pointer(&call->run, run_unref);
    buf_clear(&call->out);
    buf_clear(&call->err);
    g_clear_error(&call->error);
    g_free(call->input);
    g_free(call);
}

static char *
dup_text(const Buf *buf)
{
    size_t n;
    const guint8 *bytes = buf_peek(buf, &n);

    return g_utf8_make_valid(n > 0 ? (const char *)bytes : "", (gssize)n);
}

/* What does not fit is of nobody's interest, but the writer must not wait. */
static bool
on_output(Run *run, FrameStream stream, const guint8 *bytes, size_t n, void *ctx)
{
    Call *call = ctx;
    Buf *buf = stream == STREAM_STDERR ? &call->err : &call->out;

    (void)!buf_put(buf, bytes, MIN(n, buf_room(buf)));
    return true;
}

/* A signal and too little memory are about the command; where the box is gone, nobody knows. */
static ErrKind
kind_of(RunReason reason)
{
    return reason == RUN_TIMEOUT                       ? ERR_TIMEOUT
           : reason == RUN_SIGNAL || reason == RUN_OOM ? ERR_CONFLICT
                                                       : ERR_UNAVAILABLE;
}

static void
on_ended(Run *run, const RunEnd *end, void *ctx)
{
    Call *call = ctx;
    g_autofree char *out = dup_text(&call->out);
    g_autofree char *err = dup_text(&call->err);
    g_autofree char *message = end->reason != RUN_EXIT ? run_end_dup_message(end) : NULL;

    if (end->reason != RUN_EXIT)
        err_set(&call->error, kind_of(end->reason), "%s", message);
    call->done(run_end_exit_code(end), out, err, call->error, call->data);
    call_free(call);
}

static void
give_input(Run *run, void *ctx)
{
    Call *call = ctx;

    call->input_at += run_write(call->run, call->input + call->input_at, call->input_n - call->input_at);
    if (call->input_at == call->input_n)
        run_close_input(call->run);
}

static gboolean
on_refused(gpointer data)
{
    Call *call = data;

    call->done(-1, "", "", call->error, call->data);
    call_free(call);
    return G_SOURCE_REMOVE;
}

static void
on_dropped(void *ctx)
{
    Call *call = ctx;

    err_set(&call->error, ERR_CANCELLED, "the server ends");
    call->done(-1, "", "", call->error, call->data);
    call_free(call);
}

static const RunSink sink = {on_output, on_ended, give_input, on_dropped};

void
box_call(Box *box, const BoxCall *spec, const char *actor, BoxCallFunc done, void *data)
{
    Call *call = g_new0(Call, 1);
    RunSpec run = {.flags = spec->input != NULL ? START_STDIN : 0,
                   .argv = spec->argv,
                   .env = spec->env,
                   .user = "",
                   .cwd = spec->cwd != NULL ? spec->cwd : "",
                   .timeout_ms = spec->timeout_ms != 0 ? spec->timeout_ms : BOX_CALL_MS,
                   .sink = &sink,
                   .ctx = call};

    *call = (Call){.done = done, .data = data};
    buf_init(&call->out, spec->output_max != 0 ? spec->output_max : BOX_CALL_OUTPUT_MAX);
    buf_init(&call->err, BOX_CALL_OUTPUT_MAX);
    call->run = box_start(box, &run, actor, &call->error);
    if (call->run == NULL) {
        g_idle_add(on_refused, call);
        return;
    }
    if (spec->input == NULL)
        return;
    call->input = g_strdup(spec->input);
    call->input_n = strlen(spec->input);
    give_input(call->run, call);
}

GError *
box_call_error(const char *what, int code, const char *err)
{
    g_autofree char *shown = g_strndup(err, SHOWN_MAX);

    g_strstrip(shown);
    for (char *at = shown; *at != '\0'; at++) {
        if (g_ascii_iscntrl(*at) && *at != '\n')
            *at = ' ';
    }
    g_autofree char *valid = g_utf8_make_valid(shown, -1);

    if (*valid == '\0')
        return g_error_new(ERR_DOMAIN, ERR_INVALID, "%s: exit code %d", what, code);
    return g_error_new(ERR_DOMAIN, ERR_INVALID, "%s: %s", what, valid);
}

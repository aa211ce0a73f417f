/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/attach.h"

#include <string.h>
#include <unistd.h>

#include "base/io.h"
#include "cli/attach-input.h"
#include "http/sse.h"

enum {
    EVENT_MAX = 256 * 1024,
    SILENCE_MS = 45000, /* three beats of the server */
    TRIES_MAX = 8,      /* in a row without a byte */
    FIRST_DELAY_MS = 200,
    ID_MAX = 48,
};

typedef struct Attach {
    AttachSpec spec;
    char *made; /* the id of the box; NULL: none, or not yet */
    char *path; /* of the command; NULL: not started yet */
    AttachInput *input;
    SseDecoder *decoder;
    char last_id[ID_MAX];
    bool ended;
    int exit_code;
    guint tries;
    const char *trouble;
} Attach;

static const Json *
field(const Json *object, const char *name)
{
    return json_object_get(object, name);
}

static char *
dup_command_path(const char *box, gint64 number)
{
    return g_strdup_printf("/api/v1/sandboxes/%s/commands/%" G_GINT64_FORMAT, box, number);
}

/* ---- what comes ---- */

static void
take_sandbox(Attach *a, const Json *event)
{
    if (a->made == NULL)
        a->made = g_strdup(json_string_value(field(event, "sandbox_id")));
}

static void
take_started(Attach *a, const Json *event)
{
    const char *box = a->spec.box != NULL ? a->spec.box : a->made;

    if (a->path != NULL)
        return;
    if (box == NULL) {
        a->trouble = "the server gave no sandbox";
        return;
    }
    a->path = dup_command_path(box, json_integer_value(field(event, "id")));
    a->input = attach_input_new(&a->spec, a->path);
}

static void
take_output(Attach *a, const Json *event)
{
    const char *stream = json_string_value(field(event, "stream"));
    const char *coded = json_string_value(field(event, "base64"));
    int fd = g_strcmp0(stream, "stderr") == 0 ? STDERR_FILENO : STDOUT_FILENO;
    bool ok = true;

    if (coded != NULL) {
        gsize n = 0;
        g_autofree guchar *bytes = g_base64_decode(coded, &n);

        ok = io_write_all(fd, bytes, n);
    } else {
        const Json *text = field(event, "text");

        ok = io_write_all(fd, json_string_value(text), json_string_length(text));
    }
    if (!ok)
        a->trouble = "nobody takes the output any more";
}

static void
take_gap(Attach *a, const Json *event)
{
    out_notice(cli_out(a->spec.cli), "%lld bytes of %s were dropped here",
               (long long)json_integer_value(field(event, "bytes")),
               json_string_value(field(event, "stream")));
}

static void
take_end(Attach *a, const Json *event)
{
    const char *message = json_string_value(field(event, "message"));

    a->ended = true;
    a->exit_code = (int)json_integer_value(field(event, "exit_code"));
    if (message != NULL && message[0] != '\0')
        out_notice(cli_out(a->spec.cli), "%s", message);
}

static void
on_event(const SseEvent *e, void *data)
{
    static const struct {
        const char *name;
        void (*take)(Attach *a, const Json *event);
    } kinds[] = {{"output", take_output},
                 {"sandbox", take_sandbox},
                 {"started", take_started},
                 {"gap", take_gap},
                 {"end", take_end}};
    Attach *a = data;

    if (a->ended || a->trouble != NULL)
        return;
    a->tries = 0;
    g_strlcpy(a->last_id, e->last_id, sizeof a->last_id);
    for (size_t i = 0; i < G_N_ELEMENTS(kinds); i++) {
        if (strcmp(e->event, kinds[i].name) != 0)
            continue;
        g_autoptr(Json) event = json_decode(e->data, e->data_len, NULL);

        if (json_is_object(event))
            kinds[i].take(a, event);
        else
            a->trouble = "the server sent an event that is not JSON";
    }
}

static bool
on_data(const guint8 *bytes, size_t n, void *ctx)
{
    Attach *a = ctx;

    if (!sse_decoder_feed(a->decoder, bytes, n, NULL))
        a->trouble = "the server sent an event that is too long";
    return !a->ended && a->trouble == NULL;
}

/* ---- the stream ---- */

static void
connect_once(Attach *a, RemoteReply *ret_reply)
{
    g_autoptr(SseDecoder) decoder = sse_decoder_new(EVENT_MAX, on_event, a);
    g_autofree char *start = a->spec.create != NULL
                                 ? g_strdup("/api/v1/sandboxes")
                                 : g_strdup_printf("/api/v1/sandboxes/%s/commands", a->spec.box);
    g_autofree char *follow = a->path != NULL ? g_strconcat(a->path, "/output", NULL) : NULL;
    g_autofree char *last = g_strconcat("Last-Event-ID: ", a->last_id, NULL);
    const char *const headers[] = {"Accept: text/event-stream", a->last_id[0] != '\0' ? last : NULL, NULL};
    RemoteCall call = REMOTE_CALL_INIT;

    a->decoder = decoder;
    call.method = follow != NULL ? "GET" : "POST";
    call.path = follow != NULL ? follow : start;
    call.headers = headers;
    call.body = follow != NULL ? NULL : a->spec.create != NULL ? a->spec.create : a->spec.command;
    call.stall_ms = SILENCE_MS;
    call.data = on_data;
    call.ctx = a;
    remote_try(a->spec.remote, &call, ret_reply);
    a->decoder = NULL;
}

static bool
is_refused(const RemoteReply *reply)
{
    return reply->status >= 400 && reply->status < 500 && reply->status != 408 && reply->status != 429;
}

static ExitCode
keep_connected(Attach *a)
{
    Cli *cli = a->spec.cli;

    for (;;) {
        g_auto(RemoteReply) reply;

        connect_once(a, &reply);
        if (a->ended || attach_input_has_left(a->input) || remote_is_cancelled(a->spec.remote))
            return EXIT_CODE_OK;
        if (a->trouble != NULL)
            return cli_fail(cli, EXIT_CODE_FAILED, "%s", a->trouble);
        /* What was not seen to start may have started: it is not started twice. */
        if (reply.message != NULL && (a->path == NULL || is_refused(&reply) || a->tries >= TRIES_MAX))
            return cli_fail(cli, reply.code, "%s", reply.message);
        if (a->path == NULL)
            return cli_fail(cli, EXIT_CODE_FAILED, "the server did not say that the command was started");
        if (!remote_wait(a->spec.remote, (guint)FIRST_DELAY_MS << MIN(a->tries, 4)))
            return EXIT_CODE_OK;
        a->tries++;
    }
}

ExitCode
attach_run(const AttachSpec *spec, int *ret_exit, char **ret_made)
{
    Attach a = {.spec = *spec};

    if (spec->command == NULL && spec->create == NULL) {
        a.path = dup_command_path(spec->box, spec->number);
        a.input = attach_input_new(spec, a.path);
    }
    ExitCode code = keep_connected(&a);
    bool left = attach_input_has_left(a.input);

    attach_input_free(a.input);
    if (left && !spec->watch)
        out_notice(cli_out(spec->cli), "left; the command goes on");
    g_free(a.path);
    *ret_exit = a.ended ? a.exit_code : 0;
    if (ret_made != NULL)
        *ret_made = g_steal_pointer(&a.made);
    g_free(a.made);
    return code;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/follow.h"

#include <glib-unix.h>
#include <signal.h>
#include <string.h>

#include "http/sse.h"

enum {
    EVENT_MAX = 1024 * 1024, /* one event of a stream, in bytes */
    SILENCE_MS = 45000,      /* three beats of the server */
    FIRST_DELAY_MS = 500,
    MAX_DELAY_MS = 15000,
    ID_MAX = 19, /* digits of the largest seq */
};

typedef struct Follow {
    Cli *cli;
    Remote *remote;
    SseDecoder *decoder;
    char last_id[ID_MAX + 1];
    const FollowSpec *spec;
    gint64 left;   /* -1: no end */
    guint lost;    /* times in a row */
    bool ever;     /* met */
    bool ended;    /* enough */
    char *trouble; /* with what the server sends; NULL: none */
} Follow;

static OutStyle
style_dim(const char *value)
{
    return OUT_DIM;
}

static OutStyle
style_bold(const char *value)
{
    return OUT_BOLD;
}

void
follow_show_event(Out *out, const Json *event)
{
    static const OutColumn columns[] = {
        {"seq", "SEQ", style_dim}, {"at", "AT", style_dim}, {"kind", "KIND", style_bold},
        {"actor", "ACTOR"},        {"data", "DATA"},        {NULL},
    };
    static const char *const ids[] = {"task_id", "squad_id", "box_id", "execution_id"};

    if (out_format(out) == OUT_JSON) {
        out_json(out, event);
        return;
    }
    g_autoptr(Json) row = json_deep_copy(event);
    for (size_t i = 0; i < G_N_ELEMENTS(ids); i++) {
        Json *id = json_object_get(row, ids[i]);

        if (json_is_string(id))
            json_object_set(json_object_get(row, "data"), ids[i], id);
    }
    out_row(out, columns, row);
}

/* ---- the stream ---- */

static bool
is_number(const char *text)
{
    size_t n = strspn(text, "0123456789");

    return n > 0 && n <= ID_MAX && text[n] == '\0';
}

static void
greet(Follow *f)
{
    if (f->lost > 0)
        out_notice(cli_out(f->cli), "connected again");
    f->lost = 0;
    f->ever = true;
}

static void
on_event(const SseEvent *e, void *data)
{
    Follow *f = data;
    Out *out = cli_out(f->cli);

    if (f->ended || f->trouble != NULL)
        return;
    if (is_number(e->last_id))
        g_strlcpy(f->last_id, e->last_id, sizeof f->last_id);
    greet(f);
    if (strcmp(e->event, "beat") == 0)
        return;
    if (strcmp(e->event, "resync") == 0) {
        out_notice(out,
                   "events are missing here: they were deleted, or the log was restored; going on after %s",
                   f->last_id);
        return;
    }
    g_autoptr(Json) event = json_decode(e->data, e->data_len, NULL);
    if (!json_is_object(event)) {
        f->trouble = g_strdup("the server sent an event that is not JSON");
        return;
    }
    if (f->spec->show == NULL)
        follow_show_event(out, event);
    else if (!f->spec->show(out, event, f->spec->ctx))
        f->ended = true;
    if (f->left > 0 && --f->left == 0)
        f->ended = true;
}

static bool
on_data(const guint8 *bytes, size_t n, void *ctx)
{
    Follow *f = ctx;
    g_autoptr(GError) error = NULL;

    if (!sse_decoder_feed(f->decoder, bytes, n, &error) && f->trouble == NULL)
        f->trouble = g_strdup(error->message);
    if (out_is_gone(cli_out(f->cli)) || !out_ok(cli_out(f->cli)))
        f->ended = true;
    return !f->ended && f->trouble == NULL;
}

static void
connect_once(Follow *f, const char *path, RemoteReply *ret_reply)
{
    g_autoptr(SseDecoder) decoder = sse_decoder_new(EVENT_MAX, on_event, f);
    g_autofree char *last = g_strconcat("Last-Event-ID: ", f->last_id, NULL);
    const char *const headers[] = {"Accept: text/event-stream", f->last_id[0] != '\0' ? last : NULL, NULL};
    RemoteCall call = REMOTE_CALL_INIT;

    f->decoder = decoder;
    call.path = path;
    call.headers = headers;
    call.stall_ms = SILENCE_MS;
    call.data = on_data;
    call.ctx = f;
    remote_try(f->remote, &call, ret_reply);
    f->decoder = NULL;
}

/* Trying again helps against a server that is away or has too much to do, not against one
 * that has refused us. */
static bool
may_come_back(const Follow *f, const RemoteReply *reply)
{
    bool refused = reply->status >= 400 && reply->status < 500 && reply->status != 408 &&
                   reply->status != 429;

    return f->ever && !refused;
}

static guint
next_delay_ms(Follow *f)
{
    guint delay = FIRST_DELAY_MS;

    for (guint i = 0; i < f->lost && delay < MAX_DELAY_MS; i++)
        delay *= 2;
    f->lost++;
    return MIN(delay, (guint)MAX_DELAY_MS);
}

static ExitCode
keep_connected(Follow *f, const char *path)
{
    for (;;) {
        g_auto(RemoteReply) reply;

        connect_once(f, path, &reply);
        if (f->trouble != NULL)
            return cli_fail(f->cli, EXIT_CODE_FAILED, "%s", f->trouble);
        if (reply.message != NULL && !may_come_back(f, &reply))
            return cli_fail(f->cli, reply.code, "%s", reply.message);
        if (f->ended || remote_is_cancelled(f->remote))
            return EXIT_CODE_OK;
        guint delay = next_delay_ms(f);
        if (f->lost == 1)
            out_notice(cli_out(f->cli), "the connection was lost; trying again");
        if (!remote_wait(f->remote, delay))
            return EXIT_CODE_OK;
    }
}

static gboolean
on_signal(gpointer data)
{
    remote_cancel(((Follow *)data)->remote);
    return G_SOURCE_CONTINUE;
}

/* Whoever reads us went away. */
static gboolean
on_hang_up(gint fd, GIOCondition condition, gpointer data)
{
    remote_cancel(((Follow *)data)->remote);
    return G_SOURCE_CONTINUE;
}

ExitCode
follow_run(Cli *cli, Remote *remote, const char *path, gint64 limit)
{
    return follow_run_as(cli, remote, &(FollowSpec){.path = path, .limit = limit});
}

ExitCode
follow_run_as(Cli *cli, Remote *remote, const FollowSpec *spec)
{
    Follow f = {.cli = cli, .remote = remote, .spec = spec, .left = spec->limit, .ever = spec->known};

    signal(SIGPIPE, SIG_IGN);
    const guint sources[] = {
        g_unix_signal_add(SIGINT, on_signal, &f),
        g_unix_signal_add(SIGTERM, on_signal, &f),
        g_unix_fd_add(out_fd(cli_out(cli)), G_IO_ERR | G_IO_HUP, on_hang_up, &f),
    };
    ExitCode code = keep_connected(&f, spec->path);
    for (size_t i = 0; i < G_N_ELEMENTS(sources); i++)
        g_source_remove(sources[i]);
    g_free(f.trouble);
    return code;
}

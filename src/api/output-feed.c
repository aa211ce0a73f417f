/* SPDX-License-Identifier: Apache-2.0 */
#include "api/output-feed.h"

#include <string.h>

#include "api/box-json.h"
#include "api/output-cut.h"
#include "api/state.h"
#include "base/err.h"
#include "http/sse.h"

enum {
    BEAT_MS = 15000,
    BATCH_BYTES = 8 * 1024,
    /* A byte becomes six characters of JSON at most, and an event must fit into one pull. */
    EVENT_BYTES = 8 * 1024,
    ID_LEN = 48,
};

/* Bytes of one stream that were read and not sent. */
typedef struct Pending {
    GByteArray *bytes;
    guint64 sent; /* offset of the first of them */
} Pending;

typedef struct OutputFeed {
    LoopTimer beat; /* first: the timer hands back its address */
    ApiCall *call;  /* its request ends the stream, and closes us, before it goes */
    Run *run;       /* a reference; NULL: none */
    OutputReader *reader;
    Json *sandbox, *started, *end; /* NULL: told, or not to be */
    Pending out, err;
    Pending *active; /* has more than a piece of a character; NULL: none */
    bool beat_due, over;
} OutputFeed;

bool
output_offsets_read(const char *last_id, OutputOffsets *ret_offsets, GError **error)
{
    g_auto(GStrv) parts = g_strsplit(last_id != NULL ? last_id : "", ".", 3);
    OutputOffsets offsets = {0};

    if (last_id == NULL || last_id[0] == '\0') {
        *ret_offsets = offsets;
        return true;
    }
    if (g_strv_length(parts) != 2 ||
        !g_ascii_string_to_unsigned(parts[0], 10, 0, G_MAXINT64, &offsets.out, NULL) ||
        !g_ascii_string_to_unsigned(parts[1], 10, 0, G_MAXINT64, &offsets.err, NULL))
        return err_set(error, ERR_INVALID, "Last-Event-ID must be one that came as an id");
    *ret_offsets = offsets;
    return true;
}

/* ---- events ---- */

static const char *
stream_name(const OutputFeed *f, const Pending *p)
{
    return p == &f->err ? "stderr" : "stdout";
}

static HttpPull
put_json(OutputFeed *f, Buf *out, const char *event, Json *value)
{
    g_autoptr(Json) owned = value;
    g_autofree char *text = json_encode(owned);
    char id[ID_LEN];

    g_snprintf(id, sizeof id, "%" G_GUINT64_FORMAT ".%" G_GUINT64_FORMAT, f->out.sent, f->err.sent);
    return sse_put(out, id, event, text, strlen(text)) ? HTTP_PULL_DATA : HTTP_PULL_FAIL;
}

/* One event of what is pending; WAIT when it is only the beginning of a character. */
static HttpPull
put_pending(OutputFeed *f, Buf *out, Pending *p, bool more_may_come)
{
    OutputCut cut = output_cut(p->bytes->data, p->bytes->len, EVENT_BYTES, more_may_come);

    if (cut.n == 0)
        return HTTP_PULL_WAIT;
    Json *o = json_pack("{s:s, s:I}", "stream", stream_name(f, p), "offset", (json_int_t)p->sent);
    if (cut.is_text) {
        json_object_set_new(o, "text", json_stringn((const char *)p->bytes->data, cut.n));
    } else {
        g_autofree char *coded = g_base64_encode(p->bytes->data, cut.n);

        json_object_set_new(o, "base64", json_string(coded));
    }
    g_byte_array_remove_range(p->bytes, 0, (guint)cut.n);
    p->sent += cut.n;
    return put_json(f, out, "output", o);
}

static HttpPull
put_rest(OutputFeed *f, Buf *out, Pending *p)
{
    while (p->bytes->len > 0) {
        if (put_pending(f, out, p, false) == HTTP_PULL_FAIL)
            return HTTP_PULL_FAIL;
    }
    return HTTP_PULL_DATA;
}

static HttpPull
put_gap(OutputFeed *f, Buf *out, const RunPiece *piece)
{
    Pending *p = piece->stream == STREAM_STDERR ? &f->err : &f->out;

    if (put_rest(f, out, p) == HTTP_PULL_FAIL)
        return HTTP_PULL_FAIL;
    Json *o = json_pack("{s:s, s:I, s:I}", "stream", stream_name(f, p), "offset", (json_int_t)piece->offset,
                        "bytes", (json_int_t)piece->n);
    p->sent = piece->offset + piece->n;
    return put_json(f, out, "gap", o);
}

static HttpPull
put_end(OutputFeed *f, Buf *out)
{
    if (put_rest(f, out, &f->out) == HTTP_PULL_FAIL || put_rest(f, out, &f->err) == HTTP_PULL_FAIL)
        return HTTP_PULL_FAIL;
    Json *end = f->run != NULL ? run_end_describe(f->run) : g_steal_pointer(&f->end);
    report_json_shorten(json_object_get(end, "test_results"));
    f->over = true;
    return put_json(f, out, "end", end);
}

/* ---- the source ---- */

static HttpPull
read_next(OutputFeed *f, Buf *out)
{
    RunPiece piece;

    switch (output_reader_next(f->reader, &piece)) {
    case RUN_STEP_DATA:
        f->active = piece.stream == STREAM_STDERR ? &f->err : &f->out;
        g_byte_array_append(f->active->bytes, piece.bytes, (guint)piece.n);
        return HTTP_PULL_DATA;
    case RUN_STEP_GAP:
        return put_gap(f, out, &piece);
    case RUN_STEP_WAIT:
        return HTTP_PULL_WAIT;
    case RUN_STEP_END:
        return put_end(f, out);
    case RUN_STEP_FAILED:
        return HTTP_PULL_FAIL;
    }
    g_assert_not_reached();
}

static HttpPull
pull_one(OutputFeed *f, Buf *out)
{
    if (f->beat_due) {
        f->beat_due = false;
        return buf_puts(out, ":\n\n") ? HTTP_PULL_DATA : HTTP_PULL_FAIL;
    }
    if (f->over)
        return HTTP_PULL_END;
    if (f->sandbox != NULL)
        return put_json(f, out, "sandbox", g_steal_pointer(&f->sandbox));
    if (f->started != NULL)
        return put_json(f, out, "started", g_steal_pointer(&f->started));
    if (f->active != NULL && f->active->bytes->len > 0) {
        HttpPull result = put_pending(f, out, f->active, true);

        if (result != HTTP_PULL_WAIT)
            return result;
        f->active = NULL;
    }
    return read_next(f, out);
}

static HttpPull
pull_output(void *ctx, Buf *out)
{
    OutputFeed *f = ctx;
    size_t start = buf_len(out);

    if (!caller_is_still_known(f->call))
        return HTTP_PULL_END;
    for (;;) {
        HttpPull result = pull_one(f, out);
        bool some = buf_len(out) > start;

        if (result == HTTP_PULL_FAIL || (result != HTTP_PULL_DATA && !some))
            return result;
        if (result != HTTP_PULL_DATA || buf_len(out) - start > BATCH_BYTES)
            return HTTP_PULL_DATA;
    }
}

static void
close_feed(void *ctx)
{
    OutputFeed *f = ctx;

    loop_timer_cancel(f->call->api->loop, &f->beat);
    output_reader_free(f->reader);
    if (f->run != NULL)
        run_unref(f->run);
    json_decref(f->sandbox);
    json_decref(f->started);
    json_decref(f->end);
    g_byte_array_unref(f->out.bytes);
    g_byte_array_unref(f->err.bytes);
    g_free(f);
}

static void
on_wake(void *data)
{
    OutputFeed *f = data;

    http_request_wake(f->call->request);
}

static void
on_beat(LoopTimer *timer)
{
    OutputFeed *f = (OutputFeed *)timer;

    f->beat_due = true;
    loop_timer_set(f->call->api->loop, &f->beat, BEAT_MS);
    http_request_wake(f->call->request);
}

void
call_respond_output_feed(ApiCall *call, const OutputFeedSpec *spec)
{
    static const HttpSource source = {.pull = pull_output, .closed = close_feed};
    OutputFeed *f = g_new0(OutputFeed, 1);
    OutputSpec reader = {
        .loop = call->api->loop,
        .run = spec->run,
        .folder = spec->folder,
        .id = spec->id,
        .out_offset = spec->offsets.out,
        .err_offset = spec->offsets.err,
        .wake = on_wake,
        .data = f,
    };

    f->beat.expired = on_beat;
    f->call = call;
    f->run = spec->run != NULL ? run_ref(spec->run) : NULL;
    f->sandbox = spec->sandbox;
    f->started = spec->started;
    f->end = spec->end;
    f->out = (Pending){.bytes = g_byte_array_new(), .sent = spec->offsets.out};
    f->err = (Pending){.bytes = g_byte_array_new(), .sent = spec->offsets.err};
    f->reader = output_reader_new(&reader);
    loop_timer_set(call->api->loop, &f->beat, BEAT_MS);
    http_response_header(call->request, "Cache-Control", "no-store");
    http_response_header(call->request, "X-Accel-Buffering", "no");
    http_respond_stream(call->request, 200, "text/event-stream", -1, &source, f);
}

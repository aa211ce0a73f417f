/* SPDX-License-Identifier: Apache-2.0 */
#include "api/event-stream.h"

#include "api/call-box.h"
#include "api/state.h"
#include "api/stream-lines.h"
#include "base/clock.h"
#include "base/err.h"
#include "http/sse.h"

enum { BEAT_MS = 15000, BATCH_BYTES = 8 * 1024 };

typedef struct Follower {
    LoopTimer beat; /* first: the timer hands back its address */
    StreamCounts *counts;
    const char *(*name_of)(const char *kind); /* NULL: the kind itself */
    /* Not a reference to its request: the stream ends, and closes us, before that goes. */
    ApiCall *call;
    EventCursor *cursor;
    StreamLines *lines; /* NULL: none */
    Event *held;        /* lines come before it; NULL: none */
    bool beat_due;
    bool lines_next; /* it is their turn */
} Follower;

static void
on_wake(void *data)
{
    Follower *f = data;

    http_request_wake(f->call->request);
}

static void
on_beat(LoopTimer *timer)
{
    Follower *f = (Follower *)timer;

    f->beat_due = true;
    if (f->lines != NULL)
        stream_lines_beat(f->lines);
    loop_timer_set(f->call->api->loop, &f->beat, BEAT_MS);
    http_request_wake(f->call->request);
}

/* Everything before it was told: one that is held was not. */
static gint64
seq_of(const Follower *f)
{
    return f->held != NULL ? f->held->seq - 1 : event_cursor_seq(f->cursor);
}

static HttpPull
put_with_seq(Follower *f, Buf *out, const char *event)
{
    char at[CLOCK_ISO_LEN + 1], id[STREAM_LINES_ID_MAX], data[96];
    gint64 seq = seq_of(f);

    clock_format_iso(clock_wall_us(), at);
    stream_lines_format_id(f->lines, seq, id);
    int n = g_snprintf(data, sizeof data, "{\"at\":\"%s\",\"seq\":%" G_GINT64_FORMAT "}", at, seq);
    return sse_put(out, id, event, data, (size_t)n) ? HTTP_PULL_DATA : HTTP_PULL_FAIL;
}

static HttpPull
put_event(Follower *f, Buf *out, Event *event)
{
    g_autoptr(Event) owned = event;
    const char *name = f->name_of != NULL ? f->name_of(owned->kind) : owned->kind;
    char id[STREAM_LINES_ID_MAX];

    f->counts->events++;
    stream_lines_format_id(f->lines, owned->seq, id);
    return sse_put(out, id, name, owned->json, owned->json_len) ? HTTP_PULL_DATA : HTTP_PULL_FAIL;
}

/* Takes `event`. */
static HttpPull
put_or_hold(Follower *f, Buf *out, Event *event)
{
    if (f->lines != NULL && !stream_lines_take(f->lines, event)) {
        f->held = event;
        return HTTP_PULL_WAIT;
    }
    return put_event(f, out, event);
}

static HttpPull
pull_event(Follower *f, Buf *out)
{
    Event *event;

    if (f->held != NULL)
        return put_or_hold(f, out, g_steal_pointer(&f->held));
    switch (event_cursor_next(f->cursor, &event)) {
    case EVENT_READY:
        return put_or_hold(f, out, event);
    case EVENT_WAIT:
        return HTTP_PULL_WAIT;
    case EVENT_RESYNC:
        f->counts->resyncs++;
        return put_with_seq(f, out, "resync");
    case EVENT_FAILED:
        return HTTP_PULL_FAIL;
    }
    g_assert_not_reached();
}

/* Lines and events take turns, so that neither waits for the end of the other. */
static HttpPull
pull_one(Follower *f, Buf *out)
{
    HttpPull result = HTTP_PULL_WAIT;

    if (f->beat_due) {
        f->beat_due = false;
        f->counts->beats++;
        return put_with_seq(f, out, "beat");
    }
    for (guint turn = 0; turn < 2 && result == HTTP_PULL_WAIT; turn++) {
        f->lines_next = !f->lines_next;
        if (f->lines_next)
            result = pull_event(f, out);
        else if (f->lines != NULL)
            result = stream_lines_pull(f->lines, out, seq_of(f), &f->counts->lines);
    }
    /* The last line of what it waited for was told just now. */
    return result == HTTP_PULL_WAIT && f->held != NULL ? pull_event(f, out) : result;
}

/* Several small events make one chunk; there is always room for a large one beside them. */
static HttpPull
pull_events(void *ctx, Buf *out)
{
    Follower *f = ctx;
    size_t start = buf_len(out);

    if (!caller_is_still_known(f->call))
        return HTTP_PULL_END;
    for (;;) {
        HttpPull result = pull_one(f, out);

        if (result == HTTP_PULL_WAIT && buf_len(out) > start)
            return HTTP_PULL_DATA;
        if (result != HTTP_PULL_DATA || buf_len(out) - start > BATCH_BYTES)
            return result;
    }
}

static void
close_follower(void *ctx)
{
    Follower *f = ctx;

    loop_timer_cancel(f->call->api->loop, &f->beat);
    event_cursor_free(f->cursor);
    stream_lines_free(f->lines);
    g_clear_pointer(&f->held, event_unref);
    f->counts->open--;
    g_free(f);
}

bool
event_stream_read_last_id(const ApiCall *call, gint64 *after, const char **ret_places, GError **error)
{
    const char *text = http_request_header(call->request, "Last-Event-ID");
    char *end;

    if (ret_places != NULL)
        *ret_places = NULL;
    if (text == NULL || text[0] == '\0')
        return true;
    gint64 seq = g_ascii_strtoll(text, &end, 10);
    bool has_places = *end == ';' && ret_places != NULL;

    if (!g_ascii_isdigit(text[0]) || (*end != '\0' && !has_places) || seq == G_MAXINT64)
        return err_set(error, ERR_INVALID, "Last-Event-ID must be a number that came as an id");
    if (has_places)
        *ret_places = end + 1;
    *after = seq;
    return true;
}

/* From now on, or from where the reader was; without places only what starts behind its seq is told. */
static bool
begin_lines(Follower *f, const EventStreamSpec *spec, GError **error)
{
    if (!spec->with_lines)
        return true;
    f->lines = stream_lines_new(f->call, on_wake, f);
    if (spec->places != NULL)
        return stream_lines_resume(f->lines, spec->box_id, spec->places, error);
    stream_lines_begin(f->lines, spec->box_id, spec->after < 0 ? spec->run : 0);
    return true;
}

void
event_stream_follow(ApiCall *call, const EventStreamSpec *spec)
{
    static const HttpSource source = {.pull = pull_events, .closed = close_follower};
    EventFilter filter = *spec->filter;
    Follower *f = g_new0(Follower, 1);
    g_autoptr(GError) error = NULL;

    filter.owner = caller_owner(&call->caller);
    f->beat.expired = on_beat;
    f->call = call;
    f->name_of = spec->name_of;
    if (!begin_lines(f, spec, &error)) {
        call_respond_error(call, error);
        stream_lines_free(f->lines);
        g_free(f);
        return;
    }
    f->counts = &call->api->stream_counts[spec->kind];
    f->counts->opened++;
    f->counts->open++;
    f->cursor = event_cursor_new(call->api->events, &filter, spec->after, on_wake, f);
    f->beat_due = true; /* at once, so that a client knows it is connected */
    loop_timer_set(call->api->loop, &f->beat, BEAT_MS);
    http_response_header(call->request, "Cache-Control", "no-store");
    http_response_header(call->request, "X-Accel-Buffering", "no");
    http_respond_stream(call->request, 200, "text/event-stream", -1, &source, f);
}

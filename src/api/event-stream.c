/* SPDX-License-Identifier: Apache-2.0 */
#include "api/event-stream.h"

#include "api/state.h"
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
    bool beat_due;
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
    loop_timer_set(f->call->api->loop, &f->beat, BEAT_MS);
    http_request_wake(f->call->request);
}

static HttpPull
put_with_seq(Buf *out, const char *event, gint64 seq)
{
    char at[CLOCK_ISO_LEN + 1], id[24], data[96];

    clock_format_iso(clock_wall_us(), at);
    g_snprintf(id, sizeof id, "%" G_GINT64_FORMAT, seq);
    int n = g_snprintf(data, sizeof data, "{\"at\":\"%s\",\"seq\":%" G_GINT64_FORMAT "}", at, seq);
    return sse_put(out, id, event, data, (size_t)n) ? HTTP_PULL_DATA : HTTP_PULL_FAIL;
}

static HttpPull
put_event(Follower *f, Buf *out, Event *event)
{
    g_autoptr(Event) owned = event;
    const char *name = f->name_of != NULL ? f->name_of(owned->kind) : owned->kind;
    char id[24];

    f->counts->events++;
    g_snprintf(id, sizeof id, "%" G_GINT64_FORMAT, owned->seq);
    return sse_put(out, id, name, owned->json, owned->json_len) ? HTTP_PULL_DATA : HTTP_PULL_FAIL;
}

static HttpPull
pull_one(Follower *f, Buf *out)
{
    Event *event;

    if (f->beat_due) {
        f->beat_due = false;
        f->counts->beats++;
        return put_with_seq(out, "beat", event_cursor_seq(f->cursor));
    }
    switch (event_cursor_next(f->cursor, &event)) {
    case EVENT_READY:
        return put_event(f, out, event);
    case EVENT_WAIT:
        return HTTP_PULL_WAIT;
    case EVENT_RESYNC:
        f->counts->resyncs++;
        return put_with_seq(out, "resync", event_cursor_seq(f->cursor));
    case EVENT_FAILED:
        return HTTP_PULL_FAIL;
    }
    g_assert_not_reached();
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
    f->counts->open--;
    g_free(f);
}

bool
event_stream_read_last_id(const ApiCall *call, gint64 *after, GError **error)
{
    const char *text = http_request_header(call->request, "Last-Event-ID");
    char *end;

    if (text == NULL || text[0] == '\0')
        return true;
    gint64 seq = g_ascii_strtoll(text, &end, 10);
    if (!g_ascii_isdigit(text[0]) || *end != '\0' || seq == G_MAXINT64)
        return err_set(error, ERR_INVALID, "Last-Event-ID must be a number that came as an id");
    *after = seq;
    return true;
}

void
event_stream_follow(ApiCall *call, const EventStreamSpec *spec)
{
    static const HttpSource source = {.pull = pull_events, .closed = close_follower};
    Follower *f = g_new0(Follower, 1);

    f->beat.expired = on_beat;
    f->call = call;
    f->name_of = spec->name_of;
    f->counts = &call->api->stream_counts[spec->kind];
    f->counts->opened++;
    f->counts->open++;
    f->cursor = event_cursor_new(call->api->events, spec->filter, spec->after, on_wake, f);
    f->beat_due = true; /* at once, so that a client knows it is connected */
    loop_timer_set(call->api->loop, &f->beat, BEAT_MS);
    http_response_header(call->request, "Cache-Control", "no-store");
    http_response_header(call->request, "X-Accel-Buffering", "no");
    http_respond_stream(call->request, 200, "text/event-stream", -1, &source, f);
}

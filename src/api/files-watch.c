/* SPDX-License-Identifier: Apache-2.0 */
/* What changes in a folder of a box, as it changes.  The head of the answer waits until the
 * watch is in place, so that a folder that is not there is an error and whoever sees `ready`
 * misses nothing. */
#include "api/file-call.h"
#include "api/gate.h"
#include "api/routes.h"
#include "api/state.h"
#include "base/err.h"
#include "box/watch.h"
#include "http/sse.h"
#include "http/url.h"

enum {
    BEAT_MS = 15000,
    FEED_HIGH = 64 * 1024,  /* the box is stopped above this */
    FEED_MAX = 1024 * 1024, /* one frame of short names, spelled out, has room above it */
};

typedef struct WatchFeed {
    LoopTimer beat;  /* first: the timer hands back its address */
    FileCall *file;  /* owned */
    BoxWatch *watch; /* NULL: over */
    Buf waiting;
    bool answered, stopped, beat_due;
    bool lost; /* something did not fit */
    bool held, closed;
} WatchFeed;

static const char *const kind_names[] = {
    [WATCH_CREATED] = "created",       [WATCH_MODIFIED] = "modified", [WATCH_REMOVED] = "removed",
    [WATCH_MOVED_FROM] = "moved_from", [WATCH_MOVED_TO] = "moved_to", [WATCH_ATTRIBUTES] = "attributes",
};

static void
feed_free(WatchFeed *f)
{
    loop_timer_cancel(f->file->call->api->loop, &f->beat);
    if (f->watch != NULL)
        box_watch_cancel(f->watch);
    buf_clear(&f->waiting);
    file_call_free(f->file);
    g_free(f);
}

/* ---- to the client ---- */

static void
put(WatchFeed *f, const char *event, Json *data)
{
    g_autoptr(Json) owned = data;
    g_autofree char *text = json_encode(owned);

    if (!sse_put(&f->waiting, NULL, event, text, strlen(text)))
        f->lost = true;
}

static void
put_change(WatchFeed *f, const BoxChange *change)
{
    const char *folder = f->file->path;
    g_autofree char *path = change->path[0] == '\0'         ? g_strdup(folder)
                            : g_str_has_suffix(folder, "/") ? g_strconcat(folder, change->path, NULL)
                                                            : g_strconcat(folder, "/", change->path, NULL);
    g_autofree char *valid = g_utf8_make_valid(path, -1);
    Json *data = json_pack("{s:s, s:s, s:b}", "kind", kind_names[change->kind], "path", valid, "directory",
                           (int)change->directory);

    if (change->cookie != 0)
        json_object_set_new(data, "move", json_integer((json_int_t)change->cookie));
    if (!g_utf8_validate(path, -1, NULL)) {
        g_autofree char *encoded = url_encode_path(path);

        json_object_set_new(data, "encoded", json_string(encoded));
    }
    put(f, "change", data);
}

static void
put_due(WatchFeed *f)
{
    if (f->lost && buf_len(&f->waiting) < FEED_HIGH) {
        f->lost = false;
        put(f, "overflow", json_object());
    }
    if (f->beat_due && buf_len(&f->waiting) == 0) {
        f->beat_due = false;
        put(f, "beat", json_object());
    }
}

static HttpPull
pull(void *ctx, Buf *out)
{
    WatchFeed *f = ctx;
    size_t n;

    if (!caller_is_still_known(f->file->call))
        return HTTP_PULL_END;
    put_due(f);
    const guint8 *bytes = buf_peek(&f->waiting, &n);
    n = MIN(n, buf_room(out));
    if (n == 0)
        return f->watch != NULL ? HTTP_PULL_WAIT : HTTP_PULL_END;
    bool ok = buf_put(out, bytes, n);
    g_assert(ok); /* looked at its room */
    buf_skip(&f->waiting, n);
    if (f->stopped && !f->held && f->watch != NULL && buf_len(&f->waiting) < FEED_HIGH) {
        f->stopped = false;
        box_watch_resume(f->watch);
    }
    return HTTP_PULL_DATA;
}

static void
on_closed(void *ctx)
{
    WatchFeed *f = ctx;

    f->closed = true;
    if (!f->held)
        feed_free(f);
}

static void
on_beat(LoopTimer *timer)
{
    WatchFeed *f = (WatchFeed *)timer;

    f->beat_due = true;
    loop_timer_set(f->file->call->api->loop, &f->beat, BEAT_MS);
    http_request_wake(f->file->call->request);
}

static void
on_gone(HttpRequest *request, void *data)
{
    feed_free(data);
}

static void
answer(WatchFeed *f)
{
    static const HttpSource source = {.pull = pull, .closed = on_closed};
    HttpRequest *r = f->file->call->request;

    http_request_on_gone(r, NULL, NULL);
    f->answered = true;
    loop_timer_set(f->file->call->api->loop, &f->beat, BEAT_MS);
    http_response_header(r, "Cache-Control", "no-store");
    http_response_header(r, "X-Accel-Buffering", "no");
    http_respond_stream(r, 200, "text/event-stream", -1, &source, f);
}

/* ---- from the box ---- */

static void
on_change(BoxWatch *watch, const BoxChange *change, void *ctx)
{
    WatchFeed *f = ctx;

    switch (change->kind) {
    case WATCH_READY:
        put(f, "ready", json_object());
        break;
    case WATCH_OVERFLOW:
        put(f, "overflow", json_object());
        break;
    case WATCH_CREATED:
    case WATCH_MODIFIED:
    case WATCH_REMOVED:
    case WATCH_MOVED_FROM:
    case WATCH_MOVED_TO:
    case WATCH_ATTRIBUTES:
        put_change(f, change);
        break;
    }
}

static bool
on_pause(BoxWatch *watch, void *ctx)
{
    WatchFeed *f = ctx;

    f->held = true;
    if (f->answered)
        http_request_wake(f->file->call->request);
    else
        answer(f);
    f->held = false;
    if (f->closed) {
        feed_free(f);
        return true;
    }
    f->stopped = buf_len(&f->waiting) >= FEED_HIGH;
    return !f->stopped;
}

static void
on_end(BoxWatch *watch, const GError *error, void *ctx)
{
    WatchFeed *f = ctx;

    f->watch = NULL;
    if (!f->answered) {
        http_request_on_gone(f->file->call->request, NULL, NULL);
        call_respond_error(f->file->call, error);
        feed_free(f);
        return;
    }
    g_autofree char *valid = g_utf8_make_valid(error->message, -1);
    put(f, "end", json_pack("{s:i, s:s}", "code", error_status(error), "message", valid));
    http_request_wake(f->file->call->request);
}

static void
get_watch(ApiCall *call)
{
    static const char *const names[] = {"path", "recursive", NULL};
    static const BoxWatchEvents events = {.change = on_change, .pause = on_pause, .end = on_end};
    g_autoptr(GError) error = NULL;
    gint64 recursive = 1;

    if (!url_query_get_int(http_request_query(call->request), "recursive", 0, 1, &recursive, &error)) {
        call_respond_error(call, error);
        return;
    }
    g_autoptr(FileCall) file = file_call_from_query(call, names);
    /* It is a stream whatever the caller says it accepts. */
    if (file == NULL || (!call->counts_stream && !gate_take_stream(call)))
        return;
    WatchFeed *f = g_new0(WatchFeed, 1);
    f->beat.expired = on_beat;
    f->file = g_steal_pointer(&file);
    buf_init(&f->waiting, FEED_MAX);
    f->watch = box_watch(&f->file->spec, f->file->path, recursive != 0, &events, f, &error);
    if (f->watch != NULL) {
        http_request_on_gone(call->request, on_gone, f);
        return;
    }
    call_respond_error(call, error);
    feed_free(f);
}

const ApiRoute files_watch_routes[] = {
    {"GET", "/api/v1/sandboxes/{id}/files/watch", SCOPE_READ, ROUTE_STREAM, get_watch},
    {NULL},
};

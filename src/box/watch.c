/* SPDX-License-Identifier: Apache-2.0 */
#include "box/watch.h"

#include <errno.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"

enum { IN_MAX = sizeof(BuiltinEvent) + G_MAXUINT16 + FRAME_DATA_MAX };

struct BoxWatch {
    Run *run; /* a reference */
    const BoxWatchEvents *events;
    void *ctx;
    char *path; /* for messages */
    Buf in;     /* less than a record, between two pieces */
    GError *error;
    bool held, cancelled;
};

static void
watch_free(BoxWatch *w)
{
    run_unref(w->run);
    buf_clear(&w->in);
    g_clear_error(&w->error);
    g_free(w->path);
    g_free(w);
}

/* The box's end is the box's: what it says is checked. */
static bool
is_sound(const BuiltinEvent *event, const guint8 *path)
{
    return event->kind >= WATCH_READY && event->kind <= WATCH_ATTRIBUTES &&
           memchr(path, '\0', event->path_bytes) == NULL;
}

static void
tell(BoxWatch *w, const BuiltinEvent *event, const guint8 *path)
{
    g_autofree char *text = g_strndup((const char *)path, event->path_bytes);
    BoxChange change = {
        .kind = (BuiltinEventKind)event->kind,
        .directory = (event->flags & WATCH_IS_DIR) != 0,
        .cookie = event->cookie,
        .path = text,
    };

    w->events->change(w, &change, w->ctx);
}

/* False: nonsense came. */
static bool
take_records(BoxWatch *w)
{
    BuiltinEvent event;
    size_t n;

    for (;;) {
        const guint8 *bytes = buf_peek(&w->in, &n);

        if (w->cancelled || n < sizeof event)
            return true;
        memcpy(&event, bytes, sizeof event);
        if (n < sizeof event + event.path_bytes)
            return true;
        if (!is_sound(&event, bytes + sizeof event))
            return false;
        tell(w, &event, bytes + sizeof event);
        buf_skip(&w->in, sizeof event + event.path_bytes);
    }
}

static bool
on_output(Run *run, FrameStream stream, const guint8 *bytes, size_t n, void *ctx)
{
    BoxWatch *w = ctx;
    bool go_on = true;

    if (stream != STREAM_STDOUT || w->error != NULL)
        return true;
    w->held = true;
    if (!buf_put(&w->in, bytes, n) || !take_records(w))
        err_set(&w->error, ERR_UNAVAILABLE, "the box talks nonsense");
    else if (!w->cancelled)
        go_on = w->events->pause(w, w->ctx);
    w->held = false;
    if (w->cancelled)
        watch_free(w);
    else if (w->error != NULL)
        run_signal(run, 9);
    return go_on;
}

static void
on_ended(Run *run, const RunEnd *end, void *ctx)
{
    BoxWatch *w = ctx;

    w->held = true;
    if (w->error == NULL && end->reason == RUN_EXIT && end->code != 0) {
        errno = end->code;
        err_errno(&w->error, "watch '%s'", w->path);
    } else if (w->error == NULL) {
        err_set(&w->error, ERR_UNAVAILABLE, "the watch of '%s' was ended", w->path);
    }
    w->events->end(w, w->error, w->ctx);
    watch_free(w);
}

BoxWatch *
box_watch(const BoxFileSpec *spec, const char *path, bool recursive, const BoxWatchEvents *events, void *ctx,
          GError **error)
{
    static const RunSink sink = {.output = on_output, .ended = on_ended};
    g_autofree char *depth = g_strdup_printf("%d", recursive ? BUILTIN_DEPTH_MAX : 0);
    const char *argv[] = {"watch", path, depth, NULL};
    BoxWatch *w = g_new0(BoxWatch, 1);
    RunSpec run = {
        .flags = START_BUILTIN,
        .argv = argv,
        .user = spec->user != NULL ? spec->user : "",
        .cwd = "",
        .sink = &sink,
        .ctx = w,
    };

    w->events = events;
    w->ctx = ctx;
    w->path = g_strdup(path);
    buf_init(&w->in, IN_MAX);
    w->run = box_start(spec->box, &run, spec->actor, error);
    if (w->run != NULL)
        return w;
    watch_free(w);
    return NULL;
}

void
box_watch_resume(BoxWatch *watch)
{
    run_resume(watch->run);
}

void
box_watch_cancel(BoxWatch *watch)
{
    run_abandon(watch->run);
    watch->cancelled = true;
    if (!watch->held)
        watch_free(watch);
}

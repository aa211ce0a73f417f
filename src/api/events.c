/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "api/routes.h"
#include "api/state.h"
#include "base/clock.h"
#include "base/err.h"
#include "http/sse.h"
#include "http/url.h"

enum { BEAT_MS = 15000, PAGE_DEFAULT = 100, KINDS_MAX = 32, ID_MAX = 100, BATCH_BYTES = 8 * 1024 };

/* ---- what is asked for ---- */

typedef struct Wanted {
    char *task, *squad, *box, *execution;
    char **kinds; /* NULL: all */
    gint64 after; /* -1: not said */
    gint64 limit;
} Wanted;

static void
wanted_clear(Wanted *w)
{
    g_free(w->task);
    g_free(w->squad);
    g_free(w->box);
    g_free(w->execution);
    g_strfreev(w->kinds);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Wanted, wanted_clear)

static EventFilter
wanted_filter(const Wanted *w)
{
    return (EventFilter){
        .task_id = w->task,
        .squad_id = w->squad,
        .box_id = w->box,
        .execution_id = w->execution,
        .kinds = (const char *const *)w->kinds,
    };
}

static bool
check_kind(const char *kind, GError **error)
{
    size_t n = strlen(kind);

    if (event_kind_is_known(kind))
        return true;
    if (n > 2 && strcmp(kind + n - 2, ".*") == 0) {
        for (const char *const *k = event_kinds(); *k != NULL; k++) {
            if (strncmp(*k, kind, n - 1) == 0)
                return true;
        }
    }
    return err_set(error, ERR_INVALID, "there is no kind of event '%.64s'", kind);
}

static bool
read_kinds(const char *query, Wanted *w, GError **error)
{
    g_autofree char *text = NULL;

    if (!url_query_get(query, "kind", &text, error))
        return false;
    if (text == NULL)
        return true;
    if (text[0] == '\0')
        return err_set(error, ERR_INVALID, "'kind' names no kind of event");
    w->kinds = g_strsplit(text, ",", KINDS_MAX + 1);
    if (g_strv_length(w->kinds) > KINDS_MAX)
        return err_set(error, ERR_INVALID, "at most %d kinds can be named", KINDS_MAX);
    for (char **k = w->kinds; *k != NULL; k++) {
        if (!check_kind(*k, error))
            return false;
    }
    return true;
}

static bool
read_id(const char *query, const char *name, char **ret_id, GError **error)
{
    if (!url_query_get(query, name, ret_id, error))
        return false;
    if (*ret_id != NULL && strlen(*ret_id) > ID_MAX)
        return err_set(error, ERR_INVALID, "'%s' is longer than %d characters", name, ID_MAX);
    return true;
}

static bool
read_wanted(HttpRequest *request, Wanted *w, GError **error)
{
    static const char *const names[] = {"task", "squad", "box", "execution", "kind", "after", "limit", NULL};
    const char *query = http_request_query(request);

    *w = (Wanted){.after = -1, .limit = PAGE_DEFAULT};
    return url_query_only(query, names, error) && read_id(query, "task", &w->task, error) &&
           read_id(query, "squad", &w->squad, error) && read_id(query, "box", &w->box, error) &&
           read_id(query, "execution", &w->execution, error) && read_kinds(query, w, error) &&
           url_query_get_int(query, "after", 0, G_MAXINT64, &w->after, error) &&
           url_query_get_int(query, "limit", 1, EVENT_PAGE_MAX, &w->limit, error);
}

/* ---- pages ---- */

static void
on_page(const EventPage *page, const GError *error, void *data)
{
    ApiCall *call = data;

    if (error != NULL) {
        call_respond_error(call, error);
        http_request_unref(call->request);
        return;
    }
    /* The events are JSON already: they are put together as text. */
    GString *text = g_string_new("{\"events\":[");
    for (guint i = 0; i < page->events->len; i++) {
        const Event *e = page->events->pdata[i];

        if (i > 0)
            g_string_append_c(text, ',');
        g_string_append_len(text, e->json, (gssize)e->json_len);
    }
    g_string_append_printf(text,
                           "],\"next_after\":%" G_GINT64_FORMAT ",\"more\":%s,\"seq\":%" G_GINT64_FORMAT "}",
                           page->next_after, page->more ? "true" : "false", page->seq);
    http_response_header(call->request, "Cache-Control", "no-store");
    http_respond(call->request, 200, "application/json", text->str, text->len);
    g_string_free(text, TRUE);
    http_request_unref(call->request);
}

/* ---- the stream ---- */

typedef struct Follower {
    LoopTimer beat; /* first: the timer hands back its address */
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
put_event(Buf *out, Event *event)
{
    g_autoptr(Event) owned = event;
    char id[24];

    g_snprintf(id, sizeof id, "%" G_GINT64_FORMAT, owned->seq);
    return sse_put(out, id, owned->kind, owned->json, owned->json_len) ? HTTP_PULL_DATA : HTTP_PULL_FAIL;
}

static HttpPull
pull_one(Follower *f, Buf *out)
{
    Event *event;

    if (f->beat_due) {
        f->beat_due = false;
        return put_with_seq(out, "beat", event_cursor_seq(f->cursor));
    }
    switch (event_cursor_next(f->cursor, &event)) {
    case EVENT_READY:
        return put_event(out, event);
    case EVENT_WAIT:
        return HTTP_PULL_WAIT;
    case EVENT_RESYNC:
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
    g_free(f);
}

static bool
read_last_id(HttpRequest *request, gint64 *after, GError **error)
{
    const char *text = http_request_header(request, "Last-Event-ID");
    char *end;

    if (text == NULL || text[0] == '\0')
        return true;
    gint64 seq = g_ascii_strtoll(text, &end, 10);
    if (!g_ascii_isdigit(text[0]) || *end != '\0' || seq == G_MAXINT64)
        return err_set(error, ERR_INVALID, "Last-Event-ID must be a number that came as an id");
    *after = seq;
    return true;
}

static void
follow(ApiCall *call, const Wanted *w)
{
    static const HttpSource source = {.pull = pull_events, .closed = close_follower};
    EventFilter filter = wanted_filter(w);
    Follower *f = g_new0(Follower, 1);

    f->beat.expired = on_beat;
    f->call = call;
    f->cursor = event_cursor_new(call->api->events, &filter, w->after, on_wake, f);
    f->beat_due = true; /* at once, so that a client knows it is connected */
    loop_timer_set(call->api->loop, &f->beat, BEAT_MS);
    http_response_header(call->request, "Cache-Control", "no-store");
    http_response_header(call->request, "X-Accel-Buffering", "no");
    http_respond_stream(call->request, 200, "text/event-stream", -1, &source, f);
}

/* `kinds` (NULL: all) is for a call that names none. */
static void
answer_events(ApiCall *call, const char *const *kinds)
{
    g_autoptr(GError) error = NULL;
    g_auto(Wanted) w = {0};
    bool stream = call_wants_stream(call);

    if (!read_wanted(call->request, &w, &error) ||
        (stream && !read_last_id(call->request, &w.after, &error))) {
        call_respond_error(call, error);
        return;
    }
    if (w.kinds == NULL && kinds != NULL)
        w.kinds = g_strdupv((char **)(guintptr)kinds);
    if (stream) {
        follow(call, &w);
        return;
    }
    EventFilter filter = wanted_filter(&w);
    http_request_ref(call->request);
    event_log_read(call->api->events, &filter, MAX(w.after, 0), (guint)w.limit, on_page, call);
}

static void
get_events(ApiCall *call)
{
    answer_events(call, NULL);
}

static void
get_door_log(ApiCall *call)
{
    static const char *const kinds[] = {"door.*", "model.called", "budget.*", "loop.broken", NULL};

    answer_events(call, kinds);
}

/* ---- the chain ---- */

static void
on_verified(gint64 events, gint64 bad_seq, const GError *error, void *data)
{
    ApiCall *call = data;

    if (error != NULL)
        call_respond_error(call, error);
    else
        call_respond_json(call, 200,
                          json_pack("{s:b, s:I, s:o, s:I}", "sound", (int)(bad_seq == 0), "events",
                                    (json_int_t)events, "bad_seq",
                                    bad_seq == 0 ? json_null() : json_integer((json_int_t)bad_seq), "seq",
                                    (json_int_t)event_log_last_seq(call->api->events)));
    http_request_unref(call->request);
}

static void
verify_events(ApiCall *call)
{
    http_request_ref(call->request);
    event_log_verify(call->api->events, on_verified, call);
}

const ApiRoute events_routes[] = {
    {"GET", "/api/v1/events", SCOPE_READ, ROUTE_STREAM, get_events},
    {"GET", "/api/v1/door/log", SCOPE_ADMIN, ROUTE_STREAM, get_door_log},
    {"GET", "/api/v1/events/verify", SCOPE_ADMIN, 0, verify_events},
    {NULL},
};

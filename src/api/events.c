/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "api/call-box.h"
#include "api/event-stream.h"
#include "api/routes.h"
#include "api/state.h"
#include "base/err.h"
#include "http/url.h"

enum { PAGE_DEFAULT = 100, KINDS_MAX = 32, ID_MAX = 100 };

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
wanted_filter(const Wanted *w, const ApiCall *call)
{
    return (EventFilter){
        .task_id = w->task,
        .squad_id = w->squad,
        .box_id = w->box,
        .execution_id = w->execution,
        .kinds = (const char *const *)w->kinds,
        .owner = caller_owner(&call->caller),
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

/* ---- both ---- */

/* `kinds` (NULL: all) is for a call that names none. */
static void
answer_events(ApiCall *call, const char *const *kinds)
{
    g_autoptr(GError) error = NULL;
    g_auto(Wanted) w = {0};
    bool stream = call_wants_stream(call);

    if (!read_wanted(call->request, &w, &error) ||
        (stream && !event_stream_read_last_id(call, &w.after, NULL, &error))) {
        call_respond_error(call, error);
        return;
    }
    if (w.kinds == NULL && kinds != NULL)
        w.kinds = g_strdupv((char **)(guintptr)kinds);
    EventFilter filter = wanted_filter(&w, call);

    if (stream) {
        event_stream_follow(call,
                            &(EventStreamSpec){.kind = STREAM_LOG, .filter = &filter, .after = w.after});
        return;
    }
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

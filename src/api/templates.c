/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "api/routes.h"
#include "api/state.h"
#include "base/err.h"
#include "http/sse.h"

enum { BEAT_MS = 15000 };

/* Answers itself when this server has no templates. */
static TemplateStore *
store_of(ApiCall *call)
{
    if (call->api->templates == NULL)
        respond_error(call->request, 503, "this server has no templates");
    return call->api->templates;
}

static void
list_templates(ApiCall *call)
{
    TemplateStore *store = store_of(call);

    if (store != NULL)
        call_respond_json(call, 200, json_pack("{s:o}", "templates", template_store_list(store)));
}

static void
show_template(ApiCall *call)
{
    TemplateStore *store = store_of(call);
    g_autoptr(GError) error = NULL;
    Json *object = store != NULL ? template_store_show(store, call_param(call, "name"), &error) : NULL;

    if (object != NULL)
        call_respond_json(call, 200, object);
    else if (error != NULL)
        call_respond_error(call, error);
}

static void
delete_template(ApiCall *call)
{
    TemplateStore *store = store_of(call);
    g_autoptr(GError) error = NULL;

    if (store == NULL)
        return;
    if (template_store_remove(store, call_param(call, "name"), &error))
        call_respond_empty(call);
    else
        call_respond_error(call, error);
}

/* ---- following a build ---- */

/* The store holds it until the build is done, the answer until its reader is gone; the last of
 * the two frees it. */
typedef struct Watcher {
    LoopTimer beat; /* first: the timer hands back its address */
    ApiCall *call;  /* NULL: the reader is gone */
    TemplateStore *store;
    char *name;
    char *progress; /* the newest, not yet sent; NULL: none */
    char *last;     /* the end, not yet sent */
    bool failed, done, ended, beat_due;
} Watcher;

static void
watcher_free(Watcher *w)
{
    g_free(w->name);
    g_free(w->progress);
    g_free(w->last);
    g_free(w);
}

static void
wake(Watcher *w)
{
    if (w->call != NULL)
        http_request_wake(w->call->request);
}

/* A slow reader misses some, never the newest. */
static void
on_progress(const TemplateProgress *p, void *data)
{
    Watcher *w = data;
    g_autoptr(Json) object = json_pack("{s:s, s:s, s:i, s:s?}", "name", p->name, "step", p->step, "percent",
                                       (int)p->percent, "line", p->line);

    if (w->call == NULL)
        return;
    g_free(w->progress);
    w->progress = json_encode(object);
    wake(w);
}

static void
on_done(Template *t, const GError *error, void *data)
{
    Watcher *w = data;

    w->done = true;
    w->failed = error != NULL;
    if (w->call == NULL) {
        watcher_free(w);
        return;
    }
    g_autoptr(Json) object = error == NULL ? template_store_show(w->store, w->name, NULL)
                                           : json_pack("{s:i, s:s}", "code", error_status(error), "message",
                                                       error->message);

    w->last = object != NULL ? json_encode(object) : g_strdup("{}");
    wake(w);
}

static void
on_beat(LoopTimer *timer)
{
    Watcher *w = (Watcher *)timer;

    w->beat_due = true;
    loop_timer_set(w->call->api->loop, &w->beat, BEAT_MS);
    wake(w);
}

static HttpPull
put(Buf *out, const char *event, const char *text)
{
    return sse_put(out, NULL, event, text, strlen(text)) ? HTTP_PULL_DATA : HTTP_PULL_FAIL;
}

static HttpPull
pull(void *ctx, Buf *out)
{
    Watcher *w = ctx;

    if (w->ended || !caller_is_still_known(w->call))
        return HTTP_PULL_END;
    if (w->progress != NULL) {
        g_autofree char *text = g_steal_pointer(&w->progress);

        return put(out, "progress", text);
    }
    if (w->done) {
        w->ended = true;
        return put(out, w->failed ? "failed" : "done", w->last);
    }
    if (w->beat_due) {
        w->beat_due = false;
        return put(out, "beat", "{}");
    }
    return HTTP_PULL_WAIT;
}

static void
on_closed(void *ctx)
{
    Watcher *w = ctx;

    loop_timer_cancel(w->call->api->loop, &w->beat);
    w->call = NULL;
    if (w->done)
        watcher_free(w);
}

static void
follow(ApiCall *call, TemplateStore *store, const char *name, bool update)
{
    static const HttpSource source = {.pull = pull, .closed = on_closed};
    Watcher *w = g_new0(Watcher, 1);

    *w = (Watcher){.beat.expired = on_beat, .call = call, .store = store, .name = g_strdup(name)};
    loop_timer_set(call->api->loop, &w->beat, BEAT_MS);
    template_store_build(store, name, update, on_progress, on_done, w);
    http_response_header(call->request, "Cache-Control", "no-store");
    http_response_header(call->request, "X-Accel-Buffering", "no");
    http_respond_stream(call->request, 200, "text/event-stream", -1, &source, w);
}

static void
build(ApiCall *call, Json *body, void *data)
{
    TemplateStore *store = call->api->templates;
    const char *name = call_param(call, "name");
    bool update = false;
    const JsonField fields[] = {{.name = "update", .kind = JSON_KIND_BOOL, .ret = &update}, {NULL}};
    g_autoptr(GError) error = NULL;
    g_autoptr(Json) known = NULL;

    if (!json_read(body, fields, &error) || (known = template_store_show(store, name, &error)) == NULL) {
        call_respond_error(call, error);
        return;
    }
    if (call_wants_stream(call)) {
        follow(call, store, name, update);
        return;
    }
    template_store_build(store, name, update, NULL, NULL, NULL);
    call_respond_json(call, 202, template_store_show(store, name, NULL));
}

static void
post_build(ApiCall *call)
{
    if (store_of(call) != NULL)
        call_read_json(call, build, NULL);
}

/* Everybody's boxes stand on them: whoever has boxes may have one built, only an admin may take
 * one away. */
const ApiRoute templates_routes[] = {
    {"GET", "/api/v1/templates", SCOPE_READ, 0, list_templates},
    {"GET", "/api/v1/templates/{name}", SCOPE_READ, 0, show_template},
    {"POST", "/api/v1/templates/{name}/build", SCOPE_BOX, ROUTE_STREAM, post_build},
    {"DELETE", "/api/v1/templates/{name}", SCOPE_ADMIN, 0, delete_template},
    {NULL},
};

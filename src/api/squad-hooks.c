/* SPDX-License-Identifier: Apache-2.0 */
/* Webhooks of a squad: for those who may change it.  They are always signed; a secret that nobody gave is
 * made, and shown once. */
#include <sodium.h>
#include <string.h>

#include "api/call-box.h"
#include "api/routes.h"
#include "api/state.h"
#include "api/team-call.h"
#include "base/err.h"
#include "http/url.h"
#include "team/squad.h"

enum { SECRET_BYTES = 32, EVENT_NAME_MAX = 60, EVENTS_MAX = 64 };

typedef struct HookCall HookCall;
typedef void (*HookThen)(HookCall *c, HookOwner squad);

/* One call, while its squad is looked for. */
struct HookCall {
    ApiCall *call; /* with a reference to its request */
    HookThen then;
    gint64 hook, delivery;
    CallPage page;
    Json *body; /* whose texts the spec has; NULL: none */
    HookSpec spec;
    const char **events;
    char secret[2 * SECRET_BYTES + 1]; /* "": none was made */
};

static void
hook_call_free(HookCall *c)
{
    json_decref(c->body);
    g_free(c->events);
    sodium_memzero(c->secret, sizeof c->secret);
    g_free(c);
}

static void
on_squad(Json *squad, const GError *error, void *data)
{
    HookCall *c = data;

    if (error == NULL && c->call->api->hooks != NULL) {
        c->then(c, (HookOwner){HOOK_OF_SQUAD, row_text(squad, "id")});
        return;
    }
    if (error != NULL)
        call_respond_error(c->call, error);
    else
        respond_error(c->call->request, 503, "this server has no webhooks");
    http_request_unref(c->call->request);
    hook_call_free(c);
}

/* An id of the path; absent is 0. */
static bool
read_id(ApiCall *call, const char *name, gint64 *ret_id)
{
    const char *text = call_param(call, name);
    guint64 id = 0;

    if (text != NULL && !g_ascii_string_to_unsigned(text, 10, 1, G_MAXINT64, &id, NULL)) {
        respond_error(call->request, 404, "there is no such hook");
        return false;
    }
    *ret_id = (gint64)id;
    return true;
}

/* Takes `c`, or NULL for a new one. */
static void
begin(ApiCall *call, HookThen then, HookCall *c)
{
    g_autoptr(GError) error = NULL;

    c = c != NULL ? c : g_new0(HookCall, 1);
    c->call = call;
    c->then = then;
    if (call_team(call) == NULL || !read_id(call, "hook", &c->hook) ||
        !read_id(call, "delivery", &c->delivery)) {
        hook_call_free(c);
        return;
    }
    if (!call_read_page(call, &c->page, &error)) {
        call_respond_error(call, error);
        hook_call_free(c);
        return;
    }
    http_request_ref(call->request);
    squad_get_to_change(call_team(call), call_param(call, "squad"), caller_owner(&call->caller), on_squad, c);
}

static ForgePage
page_of(const HookCall *c)
{
    return (ForgePage){(guint)c->page.page, (guint)c->page.per_page};
}

/* ---- hooks ---- */

static void
then_list(HookCall *c, HookOwner squad)
{
    hook_list(c->call->api->hooks, squad, page_of(c), call_on_rows, c->call);
    hook_call_free(c);
}

static void
then_get(HookCall *c, HookOwner squad)
{
    hook_get(c->call->api->hooks, squad, c->hook, call_on_row, c->call);
    hook_call_free(c);
}

static void
on_gone(Json *value, const GError *error, void *data)
{
    call_on_done(data, error);
}

static void
then_remove(HookCall *c, HookOwner squad)
{
    hook_remove(c->call->api->hooks, squad, c->call->caller.actor, c->hook, on_gone, c->call);
    hook_call_free(c);
}

static void
on_made(Json *value, const GError *error, void *data)
{
    HookCall *c = data;
    g_autoptr(Json) shown = value != NULL ? json_copy(value) : NULL;

    if (shown != NULL && c->secret[0] != '\0')
        json_object_set_new(shown, "secret", json_string(c->secret));
    (c->hook == 0 ? call_on_made : call_on_row)(shown, error, c->call);
    hook_call_free(c);
}

static void
then_put(HookCall *c, HookOwner squad)
{
    c->spec.actor = c->call->caller.actor;
    c->spec.id = c->hook;
    hook_put(c->call->api->hooks, squad, &c->spec, on_made, c);
}

static bool
read_events(const Json *list, const char ***ret_events, GError **error)
{
    size_t n = json_array_size(list);

    if (list != NULL && n == 0)
        return err_set(error, ERR_INVALID, "'events' must name one at least");
    g_autofree const char **names = g_new0(const char *, n + 1);

    for (size_t i = 0; i < n; i++) {
        names[i] = json_string_value(json_array_get(list, i));
        if (names[i] == NULL || strlen(names[i]) > EVENT_NAME_MAX)
            return err_set(error, ERR_INVALID, "'events' must be a list of names");
    }
    if (list != NULL)
        *ret_events = g_steal_pointer(&names);
    return true;
}

static bool
read_hook(HookCall *c, bool is_new, GError **error)
{
    HookSpec *spec = &c->spec;
    Json *events = NULL;
    bool active = true;
    const JsonField fields[] = {
        {"url", JSON_KIND_STRING, &spec->url, is_new, 1, HOOK_URL_MAX},
        {"secret", JSON_KIND_STRING, &spec->secret, false, 1, HOOK_SECRET_MAX},
        {"events", JSON_KIND_ARRAY, &events, false, 1, EVENTS_MAX},
        {"active", JSON_KIND_BOOL, &active},
        {NULL},
    };

    if (!json_read(c->body, fields, error) || !read_events(events, &c->events, error))
        return false;
    spec->events = c->events;
    spec->active = json_object_get(c->body, "active") != NULL ? active : -1;
    if (is_new && spec->secret == NULL) {
        guint8 bytes[SECRET_BYTES];

        randombytes_buf(bytes, sizeof bytes);
        spec->secret = sodium_bin2hex(c->secret, sizeof c->secret, bytes, sizeof bytes);
    }
    return true;
}

static void
on_body(ApiCall *call, Json *body, void *data)
{
    HookCall *c = g_new0(HookCall, 1);
    g_autoptr(GError) error = NULL;

    c->body = json_incref(body);
    if (read_hook(c, call_param(call, "hook") == NULL, &error)) {
        begin(call, then_put, c);
        return;
    }
    call_respond_error(call, error);
    hook_call_free(c);
}

static void
list_hooks(ApiCall *call)
{
    begin(call, then_list, NULL);
}

static void
get_hook(ApiCall *call)
{
    begin(call, then_get, NULL);
}

static void
write_hook(ApiCall *call)
{
    call_read_json(call, on_body, NULL);
}

static void
delete_hook(ApiCall *call)
{
    begin(call, then_remove, NULL);
}

/* ---- deliveries ---- */

static void
on_delivery(Json *value, const GError *error, void *data)
{
    const char *text = row_text(value, "body");
    g_autoptr(Json) shown = value != NULL ? json_copy(value) : NULL;
    Json *body = text != NULL ? json_decode(text, strlen(text), NULL) : NULL;

    if (body != NULL)
        json_object_set_new(shown, "body", body);
    call_on_row(shown, error, data);
}

static void
then_ping(HookCall *c, HookOwner squad)
{
    hook_ping(c->call->api->hooks, squad, c->call->caller.actor, c->hook, on_delivery, c->call);
    hook_call_free(c);
}

static void
then_deliveries(HookCall *c, HookOwner squad)
{
    delivery_list(c->call->api->hooks, squad, c->hook, c->delivery, page_of(c),
                  c->delivery > 0 ? on_delivery : call_on_rows, c->call);
    hook_call_free(c);
}

static void
then_again(HookCall *c, HookOwner squad)
{
    delivery_again(c->call->api->hooks, squad, c->call->caller.actor, c->hook, c->delivery, on_delivery,
                   c->call);
    hook_call_free(c);
}

static void
post_ping(ApiCall *call)
{
    begin(call, then_ping, NULL);
}

static void
get_deliveries(ApiCall *call)
{
    begin(call, then_deliveries, NULL);
}

static void
post_again(ApiCall *call)
{
    begin(call, then_again, NULL);
}

#define HOOKS "/api/v1/squads/{squad}/hooks"
#define HOOK HOOKS "/{hook}"

const ApiRoute squad_hooks_routes[] = {
    {"GET", HOOKS, SCOPE_BOX, 0, list_hooks},
    {"POST", HOOKS, SCOPE_BOX, 0, write_hook},
    {"GET", HOOK, SCOPE_BOX, 0, get_hook},
    {"PATCH", HOOK, SCOPE_BOX, 0, write_hook},
    {"DELETE", HOOK, SCOPE_BOX, 0, delete_hook},
    {"POST", HOOK "/ping", SCOPE_BOX, 0, post_ping},
    {"GET", HOOK "/deliveries", SCOPE_BOX, 0, get_deliveries},
    {"GET", HOOK "/deliveries/{delivery}", SCOPE_BOX, 0, get_deliveries},
    {"POST", HOOK "/deliveries/{delivery}/again", SCOPE_BOX, 0, post_again},
    {NULL},
};

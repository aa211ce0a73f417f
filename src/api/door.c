/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "api/call-box.h"
#include "api/routes.h"
#include "api/state.h"
#include "base/err.h"
#include "door/labels.h"
#include "door/policy.h"
#include "door/service.h"
#include "http/url.h"

enum { PATTERN_MAX = 256, MODE_MAX = 16 };

/* Answers itself when boxes have no door, or no longer. */
static DoorService *
service_of(ApiCall *call)
{
    if (call->api->door == NULL)
        respond_error(call->request, 503, "this server has no door");
    return call->api->door;
}

/* ---- reading ---- */

static void
show_status(ApiCall *call)
{
    DoorService *door = service_of(call);

    if (door == NULL)
        return;
    DoorLink *link = door_service_link(door);
    Json *stats = link != NULL ? door_link_stats(link) : NULL;
    Json *own = link != NULL ? door_link_own_providers(link) : NULL;
    g_autoptr(Json) shown = stats != NULL ? json_copy(stats) : json_object();

    json_object_del(shown, "say");
    call_respond_json(call, 200,
                      json_pack("{s:b, s:i, s:O, s:O, s:o}", "up", link != NULL && door_link_is_up(link),
                                "boxes", (int)door_service_boxes(door), "stats", shown, "clients",
                                door_clients_found(door_service_clients(door)), "own_providers",
                                own != NULL ? json_incref(own) : json_array()));
}

/* `?box=ID`: what is true for that box. */
static void
respond_all_or_box(ApiCall *call, Json *(*all)(DoorService *door),
                   Json *(*of_box)(DoorService *door, const char *id))
{
    DoorService *door = service_of(call);
    static const char *const names[] = {"box", NULL};
    const char *query = http_request_query(call->request);
    g_autofree char *id = NULL;
    g_autoptr(GError) error = NULL;

    if (door == NULL)
        return;
    if (!url_query_only(query, names, &error) || !url_query_get(query, "box", &id, &error)) {
        call_respond_error(call, error);
        return;
    }
    if (id == NULL) {
        call_respond_json(call, 200, all(door));
        return;
    }
    Box *box = box_host_find(call->api->boxes, id, caller_owner(&call->caller));
    BoxInfo info;

    if (box != NULL)
        box_info(box, &info);
    Json *answer = box != NULL ? of_box(door, info.id) : NULL;

    if (answer != NULL)
        call_respond_json(call, 200, answer);
    else
        respond_error(call->request, 404, "there is no such box, or it has no door");
}

static Json *
all_rules(DoorService *door)
{
    return door_rules_show(door_service_rules(door));
}

static void
list_rules(ApiCall *call)
{
    respond_all_or_box(call, all_rules, door_service_policy);
}

static Json *
all_limits(DoorService *door)
{
    return door_rules_show_limits(door_service_rules(door));
}

static Json *
limits_of_box(DoorService *door, const char *id)
{
    DoorLimits limits;
    DoorDay used = {0};

    if (!door_service_limits(door, id, &limits) || !door_link_used(door_service_link(door), id, &used))
        return NULL;
    Json *shown = door_limits_json(&limits);

    json_object_set_new(shown, "bytes_today",
                        json_integer(used.day == door_today() ? (json_int_t)used.bytes : 0));
    return shown;
}

static void
list_limits(ApiCall *call)
{
    respond_all_or_box(call, all_limits, limits_of_box);
}

/* ---- changing ---- */

static void
on_changed(void *data, const GError *error)
{
    ApiCall *call = data;

    if (error != NULL)
        call_respond_error(call, error);
    else if (service_of(call) != NULL)
        call_respond_json(call, 200, all_rules(call->api->door));
    http_request_unref(call->request);
}

/* A box may be named in every way in which it can be asked for. */
static bool
find_scope(ApiCall *call, const char *scope, const char **id, RuleScope *ret, GError **error)
{
    if (!rule_scope_from_name(scope, ret))
        return err_set(error, ERR_INVALID, "'scope' is one of server, template, squad and box");
    if (*ret != RULE_BOX)
        return true;
    Box *box = box_host_find(call->api->boxes, *id, caller_owner(&call->caller));
    BoxInfo info;

    if (box == NULL)
        return err_set(error, ERR_NOT_FOUND, "there is no box '%s'", *id);
    box_info(box, &info);
    *id = info.id;
    return true;
}

static void
put_rule(ApiCall *call, Json *body, void *data)
{
    const char *scope = "server", *action = "", *scope_id = "";
    g_autoptr(Json) none = json_array();
    DoorRule rule = {.actor = call->caller.actor, .ports = none};
    const JsonField fields[] = {
        {"action", JSON_KIND_STRING, &action, true, 1, MODE_MAX},
        {"pattern", JSON_KIND_STRING, &rule.pattern, true, 1, PATTERN_MAX},
        {"scope", JSON_KIND_STRING, &scope, false, 1, MODE_MAX},
        {"scope_id", JSON_KIND_STRING, &scope_id, false, 0, RULE_SCOPE_ID_MAX},
        {"ports", JSON_KIND_ARRAY, &rule.ports, false, 0, POLICY_PORTS_MAX},
        {"inside", JSON_KIND_BOOL, &rule.inside, false},
        {"upgrade", JSON_KIND_BOOL, &rule.upgrade, false},
        {"plain", JSON_KIND_BOOL, &rule.plain, false},
        {NULL},
    };
    g_autoptr(GError) error = NULL;

    if (!json_read(body, fields, &error) || !find_scope(call, scope, &scope_id, &rule.scope, &error)) {
        call_respond_error(call, error);
        return;
    }
    rule.allow = strcmp(action, "allow") == 0;
    if (!rule.allow && strcmp(action, "deny") != 0) {
        respond_error(call->request, 400, "'action' is allow or deny");
        return;
    }
    rule.scope_id = scope_id;
    http_request_ref(call->request);
    door_rules_put(door_service_rules(call->api->door), &rule, on_changed, call);
}

static void
post_rule(ApiCall *call)
{
    if (service_of(call) != NULL)
        call_read_json(call, put_rule, NULL);
}

static void
delete_rule(ApiCall *call)
{
    DoorService *door = service_of(call);

    if (door == NULL)
        return;
    http_request_ref(call->request);
    door_rules_remove(door_service_rules(door), call_param(call, "id"), call_on_done, call);
}

static void
set_mode(ApiCall *call, Json *body, void *data)
{
    const char *scope = "server", *scope_id = "", *mode = "";
    RuleScope of;
    const JsonField fields[] = {
        {"mode", JSON_KIND_STRING, &mode, true, 1, MODE_MAX},
        {"scope", JSON_KIND_STRING, &scope, false, 1, MODE_MAX},
        {"scope_id", JSON_KIND_STRING, &scope_id, false, 0, RULE_SCOPE_ID_MAX},
        {NULL},
    };
    g_autoptr(GError) error = NULL;

    if (!json_read(body, fields, &error) || !find_scope(call, scope, &scope_id, &of, &error)) {
        call_respond_error(call, error);
        return;
    }
    http_request_ref(call->request);
    /* "inherit": that of the wider scope. */
    door_rules_set_mode(door_service_rules(call->api->door), of, scope_id,
                        strcmp(mode, "inherit") == 0 ? NULL : mode, on_changed, call);
}

static void
put_mode(ApiCall *call)
{
    if (service_of(call) != NULL)
        call_read_json(call, set_mode, NULL);
}

static void
on_limits(void *data, const GError *error)
{
    ApiCall *call = data;

    if (error != NULL)
        call_respond_error(call, error);
    else if (service_of(call) != NULL)
        call_respond_json(call, 200, all_limits(call->api->door));
    http_request_unref(call->request);
}

/* What is not the scope is limits, which the rules check. */
static void
change_limits(ApiCall *call, Json *body, void *data)
{
    g_autoptr(Json) limits = json_copy(body), whom = json_object();
    const char *const names[] = {"scope", "scope_id"};
    const char *scope = "server", *scope_id = "";
    RuleScope of;
    const JsonField fields[] = {
        {"scope", JSON_KIND_STRING, &scope, false, 1, MODE_MAX},
        {"scope_id", JSON_KIND_STRING, &scope_id, false, 0, RULE_SCOPE_ID_MAX},
        {NULL},
    };
    g_autoptr(GError) error = NULL;

    for (size_t i = 0; i < G_N_ELEMENTS(names); i++) {
        json_object_set(whom, names[i], json_object_get(body, names[i]));
        json_object_del(limits, names[i]);
    }
    if (!json_read(whom, fields, &error) || !find_scope(call, scope, &scope_id, &of, &error)) {
        call_respond_error(call, error);
        return;
    }
    http_request_ref(call->request);
    door_rules_set_limits(door_service_rules(call->api->door), of, scope_id, limits, on_limits, call);
}

static void
patch_limits(ApiCall *call)
{
    if (service_of(call) != NULL)
        call_read_json(call, change_limits, NULL);
}

const ApiRoute door_routes[] = {
    {"GET", "/api/v1/door/status", SCOPE_READ, 0, show_status},
    {"GET", "/api/v1/door/rules", SCOPE_ADMIN, 0, list_rules},
    {"POST", "/api/v1/door/rules", SCOPE_ADMIN, 0, post_rule},
    {"DELETE", "/api/v1/door/rules/{id}", SCOPE_ADMIN, 0, delete_rule},
    {"PUT", "/api/v1/door/mode", SCOPE_ADMIN, 0, put_mode},
    {"GET", "/api/v1/door/limits", SCOPE_ADMIN, 0, list_limits},
    {"PATCH", "/api/v1/door/limits", SCOPE_ADMIN, 0, patch_limits},
    {NULL},
};

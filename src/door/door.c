/* SPDX-License-Identifier: Apache-2.0 */
#include "door/door.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/id.h"
#include "door/door-private.h"

static const char greeting[] =
    "This is the way out of this box.\n"
    "\n"
    "As a proxy (http_proxy, https_proxy) it leads to what the box's rules allow; a refusal says which\n"
    "rule and what would allow it.  Models are at /openai/v1 and /anthropic/v1, the box's repositories\n"
    "below /git.\n";

/* ---- boxes ---- */

DoorBox *
door_box_ref(DoorBox *box)
{
    box->refs++;
    return box;
}

void
door_box_unref(DoorBox *box)
{
    if (box == NULL || --box->refs > 0)
        return;
    breaker_free(box->breaker);
    policy_unref(box->policy);
    g_free(box->agent);
    g_free(box->task);
    g_free(box->squad);
    g_free(box->id);
    g_free(box);
}

static void
cut_streams(DoorBox *box, bool all)
{
    g_autoptr(DoorBox) held = door_box_ref(box);

    for (Stream *s = held->streams, *next; s != NULL; s = next) {
        next = s->next;
        if (all || !stream_is_permitted(s))
            stream_cut(s);
    }
}

static void
on_stop(LoopTimer *timer)
{
    cut_streams((DoorBox *)((char *)timer - G_STRUCT_OFFSET(DoorBox, stop)), true);
}

static bool
check_cookie(int fd, guint64 cookie, GError **error)
{
    guint64 own = 0;
    socklen_t n = sizeof own;

    if (cookie == 0)
        return true;
    if (getsockopt(fd, SOL_SOCKET, SO_NETNS_COOKIE, &own, &n) < 0)
        return err_errno(error, "the network of a listener");
    if (own != cookie)
        return err_set(error, ERR_DENIED, "the listener is of another network than the box");
    return true;
}

static DoorBox *
box_new(Door *door, const DoorBoxSpec *spec)
{
    DoorBox *box = g_new0(DoorBox, 1);

    box->refs = 1;
    box->door = door;
    box->id = g_strdup(spec->id);
    box->cookie = spec->cookie;
    box->policy = policy_ref(spec->policy);
    box->stop.expired = on_stop;
    meter_init(&box->meter, &spec->limits);
    door_set_labels(box, &spec->labels);
    return box;
}

DoorBox *
door_add(Door *door, int fd, const DoorBoxSpec *spec, GError **error)
{
    autofd owned = fd;
    DoorBox *old = door_find(door, spec->id);

    if (!check_cookie(fd, spec->cookie, error))
        return NULL;
    if (old != NULL)
        door_remove(door, old);
    if (g_hash_table_size(door->boxes) == DOOR_BOXES_MAX) {
        err_set(error, ERR_LIMIT, "more than %d boxes at the door", DOOR_BOXES_MAX);
        return NULL;
    }
    g_autoptr(DoorBox) box = box_new(door, spec);
    HttpListenerSpec listener = {.name = box->id, .data = box, .connections = DOOR_BOX_CONNECTIONS};

    box->listener = http_server_listen(door->server, g_steal_fd(&owned), &listener, error);
    if (box->listener == NULL)
        return NULL;
    g_hash_table_insert(door->boxes, box->id, box);
    return g_steal_pointer(&box);
}

DoorBox *
door_find(Door *door, const char *id)
{
    return g_hash_table_lookup(door->boxes, id);
}

void
door_remove(Door *door, DoorBox *box)
{
    g_hash_table_remove(door->boxes, box->id);
    cut_streams(box, true);
    loop_timer_cancel(door->loop, &box->stop);
    if (door->gate != NULL)
        gate_forget_box(door->gate, box->id);
    http_server_unlisten(door->server, g_steal_pointer(&box->listener));
    door_box_unref(box);
}

void
door_set_policy(DoorBox *box, Policy *policy)
{
    Policy *old = box->policy;

    box->policy = policy_ref(policy);
    policy_unref(old);
    cut_streams(box, false);
}

void
door_set_limits(DoorBox *box, const DoorLimits *limits)
{
    meter_set(&box->meter, limits);
    if (meter_day_is_used_up(&box->meter))
        cut_streams(box, true);
}

static void
set_label(char **label, const char *value)
{
    g_free(*label);
    *label = value != NULL ? g_strndup(value, DOOR_LABEL_MAX) : NULL;
}

void
door_box_day(DoorBox *box, DoorDay *ret)
{
    ret->bytes = meter_day(&box->meter, &ret->day);
}

void
door_box_note_day(DoorBox *box, const DoorDay *day)
{
    meter_note_day(&box->meter, day->day, day->bytes);
}

void
door_box_tell(DoorBox *box, Json *fact)
{
    const struct {
        const char *name, *id;
    } labels[] = {{"box", box->id}, {"agent", box->agent}, {"task", box->task}, {"squad", box->squad}};

    for (size_t i = 0; i < G_N_ELEMENTS(labels); i++) {
        if (labels[i].id != NULL)
            json_object_set_new(fact, labels[i].name, json_string(labels[i].id));
    }
    fact_log_add(box->door->facts, fact);
}

void
door_set_labels(DoorBox *box, const DoorLabels *labels)
{
    set_label(&box->agent, labels->agent);
    set_label(&box->task, labels->task);
    set_label(&box->squad, labels->squad);
}

void
door_each(Door *door, void (*func)(DoorBox *box, void *data), void *data)
{
    g_autoptr(GList) boxes = g_hash_table_get_values(door->boxes); /* `func` may remove */

    for (GList *l = boxes; l != NULL; l = l->next)
        func(l->data, data);
}

const char *
door_box_id(const DoorBox *box)
{
    return box->id;
}

/* ---- requests ---- */

static void
call_model(DoorBox *box, HttpRequest *request)
{
    if (box->breaker == NULL)
        box->breaker = breaker_new();
    GateCaller caller = {
        .box = box->id, .agent = box->agent, .task = box->task, .squad = box->squad, .breaker = box->breaker};

    gate_handle(box->door->gate, request, &caller);
}

static void
answer_own(DoorBox *box, HttpRequest *request)
{
    const char *path = http_request_path(request);

    if (box->door->gate != NULL && gate_owns(path))
        call_model(box, request);
    else if (forward_owns(path))
        forward_request(box, request);
    else if (strcmp(path, "/") == 0)
        http_respond_text(request, 200, "text/plain; charset=utf-8", greeting);
    else
        http_respond_text(request, 404, "text/plain; charset=utf-8", "coop: there is nothing here\n");
}

/* A request that has been here before would go round for ever. */
static bool
came_round(const Door *door, const HttpRequest *request)
{
    for (guint i = 0; i < http_request_headers(request); i++) {
        const char *name, *value;

        http_request_header_at(request, i, &name, &value);
        if (g_ascii_strcasecmp(name, "Via") == 0 && strstr(value, door->via) != NULL)
            return true;
    }
    return false;
}

static bool
is_too_large(const HttpRequest *request)
{
    size_t total = strlen(http_request_target(request));

    for (guint i = 0; i < http_request_headers(request); i++) {
        const char *name, *value;

        http_request_header_at(request, i, &name, &value);
        total += strlen(name) + strlen(value) + 4;
    }
    return total > DOOR_HEAD_MAX;
}

static void
on_request(HttpRequest *request, void *data)
{
    DoorBox *box = http_request_listener_data(request);

    if (is_too_large(request))
        answer_refusal(request, 431, "coop: the request's head is too large\n");
    else if (came_round(data, request))
        answer_refusal(request, 508, "coop: this request has come through this door before\n");
    else if (strcmp(http_request_method(request), "CONNECT") == 0)
        tunnel_request(box, request);
    else if (http_request_target(request)[0] == '/')
        answer_own(box, request);
    else
        plain_request(box, request);
}

/* ---- the door ---- */

Door *
door_new(const DoorSpec *spec)
{
    Door *door = g_new0(Door, 1);
    const HttpServerSpec server = {
        .loop = spec->loop, .limits = HTTP_LIMITS_INIT, .handler = on_request, .data = door};
    char id[DOOR_ID_LEN + 1];

    /* splice(2) to a socket that was closed raises it, and has no flag that says not to. */
    signal(SIGPIPE, SIG_IGN);
    door->loop = spec->loop;
    door->dialer = spec->dialer;
    door->facts = spec->facts;
    door->gate = spec->gate;
    door->server = http_server_new(&server);
    door->pipes = pipe_pool_new();
    door->boxes = g_hash_table_new(g_str_hash, g_str_equal);
    id_random_hex(id, DOOR_ID_LEN / 2);
    g_snprintf(door->via, sizeof door->via, "1.1 %s", id);
    return door;
}

static void
remove_box(DoorBox *box, void *data)
{
    door_remove(data, box);
}

void
door_free(Door *door)
{
    if (door == NULL)
        return;
    door_each(door, remove_box, door);
    http_server_free(door->server);
    pipe_pool_free(door->pipes);
    g_hash_table_unref(door->boxes);
    g_free(door);
}

void
door_stats(const Door *door, DoorStats *ret)
{
    HttpStats http;

    http_server_stats(door->server, &http);
    *ret = door->stats;
    ret->boxes = g_hash_table_size(door->boxes);
    ret->connections = http.connections;
}

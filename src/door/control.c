/* SPDX-License-Identifier: Apache-2.0 */
/* 1. A box that is told again is the same one if its listener is the same socket: then only what
 *    was said about it changes, and its streams go on.
 * 2. Policies are counted by the boxes that use them and go with the last one; serve counts in
 *    the same way, so both ends know the same names without saying so.
 * 3. A fact is sent again on the next connection until it was acknowledged. */
#include "door/control.h"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/id.h"
#include "base/log.h"
#include "door/control-private.h"
#include "door/labels.h"
#include "wire/door.h"

enum {
    QUEUE_MAX = 1024,
    FACTS_AHEAD = 256, /* sent and not acknowledged */
    TICK_MS = 1000,
    POLICY_NAME_MAX = 64,
    POLICIES_MAX = DOOR_BOXES_MAX + 64,
    INSTANCE_BYTES = 16,
    COOKIE_DIGITS_MAX = 20,
};

typedef struct ControlPolicy {
    Policy *policy;
    guint users;
    guint64 visit;
} ControlPolicy;

typedef struct ControlBox {
    ino_t socket; /* of its listener */
    guint64 cookie, visit;
    char *policy; /* name */
} ControlBox;

static void
policy_free(gpointer data)
{
    ControlPolicy *p = data;

    policy_unref(p->policy);
    g_free(p);
}

static void
box_free(gpointer data)
{
    ControlBox *box = data;

    g_free(box->policy);
    g_free(box);
}

/* ---- telling ---- */

static void
send_facts(DoorControl *c)
{
    Json *fact;

    while (c->peer != NULL && c->sent < c->acked + FACTS_AHEAD && door_peer_waiting(c->peer) < FACTS_AHEAD &&
           (fact = fact_log_next(c->spec.facts, c->sent)) != NULL) {
        Json *say = json_copy(fact);

        json_object_set_new(say, "say", json_string("fact"));
        guint64 n = (guint64)json_integer_value(json_object_get(fact, "n"));

        if (!door_peer_send(c->peer, say, -1))
            return;
        c->sent = n;
    }
}

static void
on_new_fact(void *data)
{
    send_facts(data);
}

static void
on_drained(void *ctx)
{
    send_facts(ctx);
}

static void
send_stats(DoorControl *c)
{
    DoorStats now;

    door_stats(c->spec.door, &now);
    if (c->peer == NULL || (c->told_any && memcmp(&now, &c->told, sizeof now) == 0))
        return;
    c->told = now;
    c->told_any = true;
    (void)door_peer_send(c->peer,
                         json_pack("{s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "say", "stats", "boxes",
                                   (json_int_t)now.boxes, "connections", (json_int_t)now.connections,
                                   "tunnels", (json_int_t)now.tunnels, "allowed", (json_int_t)now.allowed,
                                   "denied", (json_int_t)now.denied, "observed", (json_int_t)now.observed,
                                   "bytes_in", (json_int_t)now.bytes_in, "bytes_out",
                                   (json_int_t)now.bytes_out),
                         -1);
}

static void
on_tick(LoopTimer *timer)
{
    DoorControl *c = (DoorControl *)(void *)((char *)timer - offsetof(DoorControl, tick));

    loop_timer_set(c->spec.loop, timer, TICK_MS);
    fact_log_settle(c->spec.facts);
    send_stats(c);
}

/* ---- policies ---- */

static void
unuse_policy(DoorControl *c, const char *name)
{
    ControlPolicy *p = name != NULL ? g_hash_table_lookup(c->policies, name) : NULL;

    if (p != NULL && --p->users == 0)
        g_hash_table_remove(c->policies, name);
}

static bool
find_policy(DoorControl *c, const char *name, ControlPolicy **ret, GError **error)
{
    *ret = g_hash_table_lookup(c->policies, name);
    return *ret != NULL || err_set(error, ERR_NOT_FOUND, "there is no policy '%s'", name);
}

static bool
on_policy(ControlCall *call, GError **error)
{
    DoorControl *c = call->control;
    const char *name = NULL;
    Json *object = NULL;
    const JsonField fields[] = {
        {"do", JSON_KIND_STRING, &(const char *){NULL}, true, 1, 16},
        {"name", JSON_KIND_STRING, &name, true, 1, POLICY_NAME_MAX},
        {"policy", JSON_KIND_OBJECT, &object, true},
        {NULL},
    };

    if (!json_read(call->message, fields, error))
        return false;
    call->id = name;
    ControlPolicy *known = g_hash_table_lookup(c->policies, name);

    if (known != NULL) {
        known->visit = c->visit;
        return true;
    }
    if (g_hash_table_size(c->policies) >= POLICIES_MAX)
        return err_set(error, ERR_LIMIT, "the door has %d policies", POLICIES_MAX);
    Policy *policy = policy_new(object, error);

    if (policy == NULL)
        return false;
    ControlPolicy *p = g_new(ControlPolicy, 1);

    *p = (ControlPolicy){.policy = policy, .visit = c->visit};
    g_hash_table_insert(c->policies, g_strdup(name), p);
    return true;
}

static gboolean
is_old_policy(gpointer key, gpointer value, gpointer data)
{
    const ControlPolicy *p = value;

    return p->users == 0 && p->visit != ((DoorControl *)data)->visit;
}

/* ---- boxes ---- */

/* What "box" and "change" have in common; members that are not there are NULL. */
typedef struct BoxWords {
    const char *id, *cookie, *policy;
    Json *labels, *limits;
} BoxWords;

static bool
read_words(Json *message, bool all, BoxWords *w, GError **error)
{
    const JsonField fields[] = {
        {"do", JSON_KIND_STRING, &(const char *){NULL}, true, 1, 16},
        {"id", JSON_KIND_STRING, &w->id, true, 1, DOOR_LABEL_MAX},
        {"policy", JSON_KIND_STRING, &w->policy, all, 1, POLICY_NAME_MAX},
        {"labels", JSON_KIND_OBJECT, &w->labels},
        {"limits", JSON_KIND_OBJECT, &w->limits},
        {all ? "cookie" : NULL, JSON_KIND_STRING, &w->cookie, true, 1, COOKIE_DIGITS_MAX},
        {NULL},
    };

    return json_read(message, fields, error);
}

static void
use_policy(DoorControl *c, ControlBox *box, const char *name, ControlPolicy *p)
{
    p->users++;
    unuse_policy(c, box->policy);
    g_free(box->policy);
    box->policy = g_strdup(name);
}

static bool
change_box(DoorControl *c, DoorBox *door_box, ControlBox *box, const BoxWords *w, GError **error)
{
    ControlPolicy *p = NULL;
    DoorLabels labels = {0};
    DoorLimits limits = DOOR_LIMITS_INIT;

    if ((w->policy != NULL && !find_policy(c, w->policy, &p, error)) ||
        (w->labels != NULL && !door_labels_read(w->labels, &labels, error)) ||
        (w->limits != NULL && !door_limits_read(w->limits, &limits, error)))
        return false;
    if (p != NULL && g_strcmp0(box->policy, w->policy) != 0) {
        use_policy(c, box, w->policy, p);
        door_set_policy(door_box, p->policy);
    }
    if (w->labels != NULL)
        door_set_labels(door_box, &labels);
    if (w->limits != NULL)
        door_set_limits(door_box, &limits);
    return true;
}

static void
forget_box(DoorControl *c, const char *id)
{
    ControlBox *box = g_hash_table_lookup(c->boxes, id);
    DoorBox *door_box = door_find(c->spec.door, id);

    if (door_box != NULL)
        door_remove(c->spec.door, door_box);
    if (box != NULL)
        unuse_policy(c, box->policy);
    g_hash_table_remove(c->boxes, id);
}

static bool
add_box(ControlCall *call, const BoxWords *w, guint64 cookie, ino_t socket, GError **error)
{
    DoorControl *c = call->control;
    ControlPolicy *p;
    DoorBoxSpec spec = {.id = w->id, .cookie = cookie, .limits = DOOR_LIMITS_INIT};

    if (!find_policy(c, w->policy, &p, error) ||
        (w->labels != NULL && !door_labels_read(w->labels, &spec.labels, error)) ||
        (w->limits != NULL && !door_limits_read(w->limits, &spec.limits, error)))
        return false;
    spec.policy = p->policy;
    /* First, so that what is replaced does not take the policy along. */
    ControlBox *box = g_new0(ControlBox, 1);

    use_policy(c, box, w->policy, p);
    *box = (ControlBox){.socket = socket, .cookie = cookie, .visit = c->visit, .policy = box->policy};
    forget_box(c, w->id);
    g_hash_table_insert(c->boxes, g_strdup(w->id), box);
    if (door_add(c->spec.door, g_steal_fd(&call->fd), &spec, error) != NULL)
        return true;
    forget_box(c, w->id);
    return false;
}

static bool
on_box(ControlCall *call, GError **error)
{
    DoorControl *c = call->control;
    BoxWords w = {0};
    guint64 cookie;
    struct stat st;

    if (!read_words(call->message, true, &w, error))
        return false;
    call->id = w.id;
    if (!g_ascii_string_to_unsigned(w.cookie, 10, 0, G_MAXUINT64, &cookie, NULL))
        return err_set(error, ERR_INVALID, "'cookie' is no number");
    if (call->fd < 0 || fstat(call->fd, &st) < 0 || !S_ISSOCK(st.st_mode))
        return err_set(error, ERR_INVALID, "a box comes with its listener");
    ControlBox *box = g_hash_table_lookup(c->boxes, w.id);
    DoorBox *door_box = door_find(c->spec.door, w.id);

    if (box == NULL || door_box == NULL || box->socket != st.st_ino || box->cookie != cookie)
        return add_box(call, &w, cookie, st.st_ino, error);
    box->visit = c->visit;
    return change_box(c, door_box, box, &w, error);
}

static bool
on_change(ControlCall *call, GError **error)
{
    DoorControl *c = call->control;
    BoxWords w = {0};

    if (!read_words(call->message, false, &w, error))
        return false;
    call->id = w.id;
    ControlBox *box = g_hash_table_lookup(c->boxes, w.id);
    DoorBox *door_box = door_find(c->spec.door, w.id);

    if (box == NULL || door_box == NULL)
        return err_set(error, ERR_NOT_FOUND, "there is no box '%s'", w.id);
    return change_box(c, door_box, box, &w, error);
}

static bool
on_gone(ControlCall *call, GError **error)
{
    const char *id = json_string_value(json_object_get(call->message, "id"));

    if (id == NULL)
        return err_set(error, ERR_INVALID, "'id' is missing");
    forget_box(call->control, id);
    return true;
}

/* ---- the rest of the conversation ---- */

static bool
on_hello(ControlCall *call, GError **error)
{
    DoorControl *c = call->control;
    json_int_t version = json_integer_value(json_object_get(call->message, "version"));
    Json *providers = json_array();

    for (size_t i = 0; c->own_providers[i] != NULL; i++)
        json_array_append_new(providers, json_string(c->own_providers[i]));
    (void)door_peer_send(c->peer,
                         json_pack("{s:s, s:i, s:s, s:s, s:o}", "say", "hello", "version", DOOR_VERSION,
                                   "instance", c->instance, "public_key", door_vault_public(c->spec.vault),
                                   "providers", providers),
                         -1);
    if (version != DOOR_VERSION)
        return err_set(error, ERR_INVALID, "the server speaks version %d of the door's protocol, not %d",
                       (int)version, DOOR_VERSION);
    send_facts(c);
    return true;
}

static void
list_unnamed(DoorBox *box, void *data)
{
    GPtrArray *ids = data;

    g_ptr_array_add(ids, g_strdup(door_box_id(box)));
}

static bool
on_synced(ControlCall *call, GError **error)
{
    DoorControl *c = call->control;
    g_autoptr(GPtrArray) ids = g_ptr_array_new_with_free_func(g_free);

    door_each(c->spec.door, list_unnamed, ids);
    for (guint i = 0; i < ids->len; i++) {
        const ControlBox *box = g_hash_table_lookup(c->boxes, ids->pdata[i]);

        if (box == NULL || box->visit != c->visit)
            forget_box(c, ids->pdata[i]);
    }
    g_hash_table_foreach_remove(c->policies, is_old_policy, c);
    control_drop_models(c);
    log_info("door", "synced", log_int("boxes", g_hash_table_size(c->boxes)),
             log_int("policies", g_hash_table_size(c->policies)));
    return true;
}

static bool
on_ack(ControlCall *call, GError **error)
{
    DoorControl *c = call->control;
    json_int_t upto = json_integer_value(json_object_get(call->message, "upto"));

    if (upto < 0 || (guint64)upto > c->sent)
        return err_set(error, ERR_INVALID, "'upto' is a fact that was not sent");
    c->acked = MAX(c->acked, (guint64)upto);
    fact_log_ack(c->spec.facts, (guint64)upto);
    send_facts(c);
    return true;
}

static const struct {
    const char *name;
    bool (*handle)(ControlCall *call, GError **error);
} verbs[] = {
    {"ack", on_ack},
    {"box", on_box},
    {"budget", control_budget},
    {"change", on_change},
    {"gone", on_gone},
    {"hello", on_hello},
    {"no-provider", control_no_provider},
    {"policy", on_policy},
    {"provider", control_provider},
    {"synced", on_synced},
    {"test", control_test},
};

static bool
handle(ControlCall *call, const char *name, GError **error)
{
    for (size_t i = 0; name != NULL && i < G_N_ELEMENTS(verbs); i++) {
        if (strcmp(verbs[i].name, name) == 0)
            return verbs[i].handle(call, error);
    }
    return err_set(error, ERR_INVALID, "an unknown word");
}

static void
on_message(Json *message, int fd, void *ctx)
{
    DoorControl *c = ctx;
    g_autoptr(GError) error = NULL;
    const char *name = json_string_value(json_object_get(message, "do"));
    ControlCall call = {.control = c, .message = message, .fd = fd};

    if (!handle(&call, name, &error)) {
        log_warn("door", "refused what the server said", log_str("do", name), log_str("id", call.id),
                 log_gerror(error));
        (void)door_peer_send(c->peer,
                             json_pack("{s:s, s:s?, s:s?, s:s}", "say", "refused", "do", name, "id", call.id,
                                       "error", error->message),
                             -1);
    }
    auto_close(&call.fd);
}

/* ---- the connection ---- */

static void
on_closed(const char *why, void *ctx)
{
    DoorControl *c = ctx;

    log_info("door", "the server is away", log_str("why", why));
    g_clear_pointer(&c->peer, door_peer_free);
}

static void
take_peer(DoorControl *c, int fd)
{
    g_autoptr(GError) error = NULL;
    uid_t uid;
    DoorPeer *peer = door_peer_new(&(DoorPeerSpec){.loop = c->spec.loop,
                                                   .fd = fd,
                                                   .queue_max = QUEUE_MAX,
                                                   .hear = on_message,
                                                   .drained = on_drained,
                                                   .closed = on_closed,
                                                   .ctx = c},
                                   &error);

    if (peer == NULL) {
        log_warn("door", "a server could not be heard", log_gerror(error));
        return;
    }
    if (!door_peer_uid(peer, &uid) || (uid != c->spec.server_uid && uid != 0)) {
        log_warn("door", "refused a connection of another user", log_int("uid", uid));
        door_peer_free(peer);
        return;
    }
    door_peer_free(c->peer);
    c->peer = peer;
    c->visit++;
    c->sent = c->acked = 0;
    c->told_any = false;
}

static void
on_listener(LoopWatch *watch, uint32_t events)
{
    int fd = accept4(watch->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

    if (fd >= 0)
        take_peer((DoorControl *)watch, fd);
}

DoorControl *
door_control_new(const DoorControlSpec *spec, GError **error)
{
    DoorControl *c = g_new0(DoorControl, 1);

    c->watch = (LoopWatch){.ready = on_listener, .fd = spec->listener};
    c->spec = *spec;
    c->own_providers = g_strdupv((char **)(guintptr)spec->own_providers);
    id_random_hex(c->instance, INSTANCE_BYTES);
    c->boxes = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, box_free);
    c->policies = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, policy_free);
    c->providers = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    c->budgets = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    c->tick.expired = on_tick;
    fact_log_on_new(spec->facts, on_new_fact, c);
    loop_timer_set(spec->loop, &c->tick, TICK_MS);
    if (loop_add(spec->loop, &c->watch, EPOLLIN, error))
        return c;
    door_control_free(c);
    return NULL;
}

void
door_control_free(DoorControl *c)
{
    if (c == NULL)
        return;
    fact_log_on_new(c->spec.facts, NULL, NULL);
    loop_timer_cancel(c->spec.loop, &c->tick);
    door_peer_free(c->peer);
    loop_remove(c->spec.loop, &c->watch);
    close(c->watch.fd);
    g_hash_table_unref(c->boxes);
    g_hash_table_unref(c->policies);
    g_hash_table_unref(c->providers);
    g_hash_table_unref(c->budgets);
    g_strfreev(c->own_providers);
    g_free(c);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* A fact is sent again on the next connection until it was acknowledged. */
#include "door/control.h"

#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/id.h"
#include "base/log.h"
#include "door/control-private.h"
#include "wire/door.h"

enum {
    QUEUE_MAX = 1024,
    FACTS_AHEAD = 256,    /* sent and not acknowledged */
    FORWARDS_AHEAD = 256, /* not yet sent; further ones are refused, or the queue would end with them */
    TICK_MS = 1000,
    INSTANCE_BYTES = 16,
};

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
    control_send_used(c);
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

static bool
on_synced(ControlCall *call, GError **error)
{
    DoorControl *c = call->control;

    control_drop_boxes(c);
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
    {"box", control_box},
    {"budget", control_budget},
    {"change", control_change},
    {"gone", control_gone},
    {"hello", on_hello},
    {"no-provider", control_no_provider},
    {"policy", control_policy},
    {"provider", control_provider},
    {"synced", on_synced},
    {"test", control_test},
    {"try", control_try},
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

static bool
on_forward(const char *box_id, int fd, void *ctx)
{
    DoorControl *c = ctx;

    return c->peer != NULL && door_peer_waiting(c->peer) < FORWARDS_AHEAD &&
           door_peer_send(c->peer, json_pack("{s:s, s:s}", "say", "forward", "box", box_id), fd);
}

DoorControl *
door_control_new(const DoorControlSpec *spec, GError **error)
{
    DoorControl *c = g_new0(DoorControl, 1);

    c->watch = (LoopWatch){.ready = on_listener, .fd = spec->listener};
    c->spec = *spec;
    c->own_providers = g_strdupv((char **)(guintptr)spec->own_providers);
    id_random_hex(c->instance, INSTANCE_BYTES);
    control_boxes_init(c);
    c->providers = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    c->budgets = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    c->tick.expired = on_tick;
    fact_log_on_new(spec->facts, on_new_fact, c);
    door_set_forward(spec->door, on_forward, c);
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
    door_set_forward(c->spec.door, NULL, NULL);
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

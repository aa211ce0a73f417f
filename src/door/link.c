/* SPDX-License-Identifier: Apache-2.0 */
#include "door/link.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/log.h"
#include "door/labels.h"
#include "door/link-private.h"
#include "wire/channel.h"
#include "wire/door.h"

enum {
    DELAY_FIRST_MS = 50,
    DELAY_MAX_MS = 1600,
    GREET_MS = 10000,
    /* Everything that there can be, told at once, and as much again. */
    QUEUE_MAX = 4 * DOOR_BOXES_MAX,
};

/* Counted by boxes, as the door counts (control.c). */
typedef struct LinkPolicy {
    Json *policy;
    guint users;
} LinkPolicy;

typedef struct LinkBox {
    int fd;
    guint64 cookie;
    char *policy;
    Json *labels, *limits;
    DoorDay used;
} LinkBox;

static void
policy_free(gpointer data)
{
    LinkPolicy *p = data;

    json_decref(p->policy);
    g_free(p);
}

static void
box_free(gpointer data)
{
    LinkBox *box = data;

    auto_close(&box->fd);
    g_free(box->policy);
    json_decref(box->labels);
    json_decref(box->limits);
    g_free(box);
}

/* ---- saying ---- */

void
door_link_say(DoorLink *link, Json *message, int fd)
{
    if (link->state != LINK_UP)
        json_decref(message);
    else
        /* A full queue ends the connection, and the next one begins with everything. */
        (void)door_peer_send(link->peer, message, fd);
}

static void
say_policy(DoorLink *link, const char *name, const LinkPolicy *p)
{
    door_link_say(link, json_pack("{s:s, s:s, s:O}", "do", "policy", "name", name, "policy", p->policy), -1);
}

static void
say_box(DoorLink *link, const char *id, const LinkBox *box)
{
    g_autofree char *cookie = g_strdup_printf("%" G_GUINT64_FORMAT, box->cookie);

    door_link_say(link,
                  json_pack("{s:s, s:s, s:s, s:s, s:O, s:O, s:I, s:I}", "do", "box", "id", id, "cookie",
                            cookie, "policy", box->policy, "labels", box->labels, "limits", box->limits,
                            "day", (json_int_t)box->used.day, "day_bytes", (json_int_t)box->used.bytes),
                  box->fd);
}

static void
say_everything(DoorLink *link)
{
    GHashTableIter iter;
    gpointer key, value;

    /* No box is served before its budget is known. */
    link_models_sync(link);
    g_hash_table_iter_init(&iter, link->policies);
    while (g_hash_table_iter_next(&iter, &key, &value))
        say_policy(link, key, value);
    g_hash_table_iter_init(&iter, link->boxes);
    while (g_hash_table_iter_next(&iter, &key, &value))
        say_box(link, key, value);
    door_link_say(link, json_pack("{s:s}", "do", "synced"), -1);
}

/* ---- hearing ---- */

static void
on_hello(DoorLink *link, Json *message)
{
    const char *instance = json_string_value(json_object_get(message, "instance"));
    const char *key = json_string_value(json_object_get(message, "public_key"));

    if (json_integer_value(json_object_get(message, "version")) != DOOR_VERSION || instance == NULL ||
        key == NULL) {
        log_warn("door", "the door speaks another version of its protocol");
        return;
    }
    loop_timer_cancel(link->spec.loop, &link->timer);
    link->state = LINK_UP;
    link->told_down = false;
    link->delay_ms = DELAY_FIRST_MS;
    g_free(link->public_key);
    link->public_key = g_strdup(key);
    json_decref(link->own_providers);
    Json *own = json_object_get(message, "providers");

    link->own_providers = json_is_array(own) ? json_incref(own) : NULL;
    log_info("door", "the door is there", log_int("boxes", g_hash_table_size(link->boxes)));
    say_everything(link);
    link->spec.up(instance, link->spec.ctx);
}

/* Of a box that we have told it of, and no other. */
static void
on_forward(DoorLink *link, Json *message, int *fd)
{
    const char *id = json_string_value(json_object_get(message, "box"));

    if (id != NULL && *fd >= 0 && g_hash_table_contains(link->boxes, id))
        link->spec.forward(id, g_steal_fd(fd), link->spec.ctx);
}

static void
on_used(DoorLink *link, Json *message)
{
    json_int_t day = json_integer_value(json_object_get(message, "day"));
    const char *id;
    Json *bytes;

    json_object_foreach(json_object_get(message, "boxes"), id, bytes)
    {
        LinkBox *box = g_hash_table_lookup(link->boxes, id);

        if (box != NULL && day >= 0 && json_is_integer(bytes) && json_integer_value(bytes) >= 0)
            box->used = (DoorDay){day, (guint64)json_integer_value(bytes)};
    }
}

static void
on_message(Json *message, int fd, void *ctx)
{
    autofd owned = fd;
    DoorLink *link = ctx;
    const char *say = json_string_value(json_object_get(message, "say"));

    /* What comes before its hello is of no process that we know. */
    if (link->state == LINK_GREETING) {
        if (g_strcmp0(say, "hello") == 0)
            on_hello(link, message);
    } else if (g_strcmp0(say, "fact") == 0) {
        if (!link->spec.fact(message, link->spec.ctx))
            door_peer_pause(link->peer, true);
    } else if (g_strcmp0(say, "forward") == 0) {
        on_forward(link, message, &owned);
    } else if (g_strcmp0(say, "stats") == 0) {
        json_decref(link->stats);
        link->stats = json_incref(message);
    } else if (g_strcmp0(say, "used") == 0) {
        on_used(link, message);
    } else if (g_strcmp0(say, "tested") == 0) {
        link_on_tested(link, message);
    } else if (g_strcmp0(say, "refused") == 0) {
        log_warn("door", "the door refused", log_str("do", json_string_value(json_object_get(message, "do"))),
                 log_str("id", json_string_value(json_object_get(message, "id"))),
                 log_str("error", json_string_value(json_object_get(message, "error"))));
    }
}

/* ---- the connection ---- */

static void
lose(DoorLink *link, const char *why)
{
    bool tell = !link->told_down;
    g_autoptr(GError) away = g_error_new_literal(ERR_DOMAIN, ERR_UNAVAILABLE, "the door is away");

    g_clear_pointer(&link->peer, door_peer_free);
    link->state = LINK_AWAY;
    link->told_down = true;
    loop_timer_set(link->spec.loop, &link->timer, link->delay_ms);
    link->delay_ms = MIN(2 * link->delay_ms, (guint)DELAY_MAX_MS);
    if (tell)
        log_warn("door", "the door is away", log_str("why", why));
    link_models_lost(link, away);
    if (tell)
        link->spec.down(why, link->spec.ctx);
}

static void
on_closed(const char *why, void *ctx)
{
    lose(ctx, why);
}

/* Whoever has the folder of the socket is the door: as root that folder is not in ours. */
static bool
is_door(const DoorLink *link)
{
    g_autofree char *folder = g_path_get_dirname(link->socket);
    struct stat st;
    uid_t uid;

    return stat(folder, &st) == 0 && door_peer_uid(link->peer, &uid) && uid == st.st_uid;
}

static void
try_connect(DoorLink *link)
{
    int fd = channel_connect(link->socket);

    if (fd < 0) {
        lose(link, g_strerror(errno));
        return;
    }
    link->peer = door_peer_new(&(DoorPeerSpec){.loop = link->spec.loop,
                                               .fd = fd,
                                               .queue_max = QUEUE_MAX,
                                               .hear = on_message,
                                               .closed = on_closed,
                                               .ctx = link},
                               NULL);
    if (link->peer == NULL) {
        lose(link, "it cannot be watched");
    } else if (!is_door(link)) {
        lose(link, "its socket belongs to another user");
    } else {
        link->state = LINK_GREETING;
        loop_timer_set(link->spec.loop, &link->timer, GREET_MS);
        (void)door_peer_send(link->peer, json_pack("{s:s, s:i}", "do", "hello", "version", DOOR_VERSION), -1);
    }
}

static void
on_timer(LoopTimer *timer)
{
    DoorLink *link = (DoorLink *)(void *)((char *)timer - offsetof(DoorLink, timer));

    if (link->state == LINK_AWAY)
        try_connect(link);
    else
        lose(link, "it does not answer");
}

DoorLink *
door_link_new(const DoorLinkSpec *spec)
{
    DoorLink *link = g_new0(DoorLink, 1);

    link->spec = *spec;
    link->socket = g_strdup(spec->socket);
    link->delay_ms = DELAY_FIRST_MS;
    link->timer.expired = on_timer;
    link->boxes = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, box_free);
    link->policies = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, policy_free);
    link_models_init(link);
    return link;
}

void
door_link_start(DoorLink *link)
{
    if (link->state == LINK_AWAY && link->peer == NULL)
        loop_timer_set(link->spec.loop, &link->timer, 0);
}

void
door_link_free(DoorLink *link)
{
    if (link == NULL)
        return;
    g_autoptr(GError) ended = g_error_new_literal(ERR_DOMAIN, ERR_CANCELLED, "the server ends");

    loop_timer_cancel(link->spec.loop, &link->timer);
    door_peer_free(link->peer);
    link->state = LINK_AWAY;
    link_models_lost(link, ended);
    link_models_clear(link);
    g_hash_table_unref(link->boxes);
    g_hash_table_unref(link->policies);
    json_decref(link->stats);
    json_decref(link->own_providers);
    g_free(link->public_key);
    g_free(link->socket);
    g_free(link);
}

bool
door_link_is_up(const DoorLink *link)
{
    return link->state == LINK_UP;
}

Json *
door_link_stats(const DoorLink *link)
{
    return link->stats;
}

void
door_link_ack(DoorLink *link, guint64 upto)
{
    door_link_say(link, json_pack("{s:s, s:I}", "do", "ack", "upto", (json_int_t)upto), -1);
    if (link->peer != NULL)
        door_peer_pause(link->peer, false);
}

/* ---- boxes ---- */

static void
use_policy(DoorLink *link, LinkBox *box, const char *name, Json *policy)
{
    LinkPolicy *p = g_hash_table_lookup(link->policies, name);

    if (p == NULL) {
        p = g_new(LinkPolicy, 1);
        *p = (LinkPolicy){.policy = json_incref(policy)};
        g_hash_table_insert(link->policies, g_strdup(name), p);
        say_policy(link, name, p);
    }
    p->users++;
    box->policy = g_strdup(name);
}

/* Takes `name`. */
static void
unuse_policy(DoorLink *link, char *name)
{
    LinkPolicy *p = g_hash_table_lookup(link->policies, name);

    if (p != NULL && --p->users == 0)
        g_hash_table_remove(link->policies, name);
    g_free(name);
}

void
door_link_add_box(DoorLink *link, int fd, const DoorLinkBox *spec)
{
    LinkBox *box = g_new0(LinkBox, 1);

    *box = (LinkBox){.fd = fd,
                     .cookie = spec->cookie,
                     .labels = door_labels_json(&spec->labels),
                     .limits = door_limits_json(&spec->limits)};
    door_link_remove_box(link, spec->id);
    use_policy(link, box, spec->policy_name, spec->policy);
    g_hash_table_insert(link->boxes, g_strdup(spec->id), box);
    say_box(link, spec->id, box);
}

void
door_link_set_policy(DoorLink *link, const char *id, const char *policy_name, Json *policy)
{
    LinkBox *box = g_hash_table_lookup(link->boxes, id);

    if (box == NULL || strcmp(box->policy, policy_name) == 0)
        return;
    char *before = g_steal_pointer(&box->policy);

    use_policy(link, box, policy_name, policy);
    door_link_say(link, json_pack("{s:s, s:s, s:s}", "do", "change", "id", id, "policy", policy_name), -1);
    unuse_policy(link, before);
}

void
door_link_set_limits(DoorLink *link, const char *id, const DoorLimits *limits)
{
    LinkBox *box = g_hash_table_lookup(link->boxes, id);
    g_autoptr(Json) said = door_limits_json(limits);

    if (box == NULL || json_equal(box->limits, said))
        return;
    json_decref(box->limits);
    box->limits = json_incref(said);
    door_link_say(link, json_pack("{s:s, s:s, s:O}", "do", "change", "id", id, "limits", said), -1);
}

bool
door_link_used(const DoorLink *link, const char *id, DoorDay *ret)
{
    const LinkBox *box = g_hash_table_lookup(link->boxes, id);

    if (box != NULL)
        *ret = box->used;
    return box != NULL;
}

void
door_link_remove_box(DoorLink *link, const char *id)
{
    LinkBox *box = g_hash_table_lookup(link->boxes, id);

    if (box == NULL)
        return;
    door_link_say(link, json_pack("{s:s, s:s}", "do", "gone", "id", id), -1);
    unuse_policy(link, g_steal_pointer(&box->policy));
    g_hash_table_remove(link->boxes, id);
}

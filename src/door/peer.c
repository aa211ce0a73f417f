/* SPDX-License-Identifier: Apache-2.0 */
#include "door/peer.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "wire/channel.h"
#include "wire/door.h"

enum { HEAR_MAX = 64 /* packets in one turn */ };

typedef struct Packet {
    char *text;
    size_t n;
    int fd; /* -1: none */
} Packet;

struct DoorPeer {
    LoopWatch watch; /* first: the loop hands back its address */
    DoorPeerSpec spec;
    guint refs; /* the owner's, and one while callbacks run */
    bool freed, broken, paused;
    GQueue unsent; /* Packet* */
    char *packet;  /* DOOR_PACKET_MAX bytes */
};

static void
packet_free(gpointer data)
{
    Packet *packet = data;

    auto_close(&packet->fd);
    g_free(packet->text);
    g_free(packet);
}

static void
peer_unref(DoorPeer *peer)
{
    if (--peer->refs > 0)
        return;
    g_free(peer->packet);
    g_free(peer);
}

static void
watch_socket(DoorPeer *peer)
{
    uint32_t events = peer->paused ? 0 : EPOLLIN;

    loop_set(peer->spec.loop, &peer->watch, peer->unsent.length > 0 ? events | EPOLLOUT : events);
}

static bool
send_packet(DoorPeer *peer, const Packet *packet)
{
    return channel_send(peer->watch.fd, packet->text, packet->n, &packet->fd, packet->fd >= 0 ? 1 : 0) == 0;
}

/* False: the connection is of no use any more. */
static bool
flush(DoorPeer *peer)
{
    Packet *packet;

    while ((packet = g_queue_peek_head(&peer->unsent)) != NULL) {
        if (!send_packet(peer, packet)) {
            if (errno != EAGAIN)
                return false;
            break;
        }
        packet_free(g_queue_pop_head(&peer->unsent));
    }
    watch_socket(peer);
    if (peer->unsent.length == 0 && peer->spec.drained != NULL)
        peer->spec.drained(peer->spec.ctx);
    return true;
}

/* False: what came is no message. */
static bool
hear_one(DoorPeer *peer, size_t n, int fd)
{
    autofd mine = fd;
    g_autoptr(Json) message = json_decode(peer->packet, n, NULL);

    if (!json_is_object(message))
        return false;
    peer->spec.hear(message, g_steal_fd(&mine), peer->spec.ctx);
    return true;
}

/* NULL, or why the connection is over. */
static const char *
hear(DoorPeer *peer)
{
    for (int i = 0; i < HEAR_MAX && !peer->freed && !peer->paused; i++) {
        int fd = -1;
        size_t n_fds = 1;
        ssize_t n = channel_recv(peer->watch.fd, peer->packet, DOOR_PACKET_MAX, &fd, &n_fds);

        if (n < 0 && errno == EAGAIN)
            return NULL;
        if (n == 0)
            return "it closed the connection";
        if (n < 0)
            return errno == EMSGSIZE ? "it sent more than a message has room for" : "the connection broke";
        if (!hear_one(peer, (size_t)n, fd))
            return "it sent what is no message";
    }
    return NULL;
}

static void
on_socket(LoopWatch *watch, uint32_t events)
{
    DoorPeer *peer = (DoorPeer *)watch;
    const char *why = NULL;

    peer->refs++;
    if (peer->broken || ((events & EPOLLOUT) != 0 && !flush(peer)))
        why = "the connection broke";
    if (why == NULL && !peer->freed && (events & ~(uint32_t)EPOLLOUT) != 0)
        why = peer->paused ? "it closed the connection" : hear(peer);
    if (why != NULL && !peer->freed) {
        loop_remove(peer->spec.loop, &peer->watch);
        peer->broken = true;
        peer->spec.closed(why, peer->spec.ctx);
    }
    peer_unref(peer);
}

DoorPeer *
door_peer_new(const DoorPeerSpec *spec, GError **error)
{
    DoorPeer *peer = g_new0(DoorPeer, 1);

    *peer = (DoorPeer){.watch = {.ready = on_socket, .fd = spec->fd}, .spec = *spec, .refs = 1};
    g_queue_init(&peer->unsent);
    if (!loop_add(spec->loop, &peer->watch, EPOLLIN, error)) {
        close(spec->fd);
        g_free(peer);
        return NULL;
    }
    peer->packet = g_malloc(DOOR_PACKET_MAX);
    return peer;
}

void
door_peer_free(DoorPeer *peer)
{
    if (peer == NULL)
        return;
    peer->freed = true;
    if (!peer->broken)
        loop_remove(peer->spec.loop, &peer->watch);
    close(peer->watch.fd);
    g_queue_clear_full(&peer->unsent, packet_free);
    peer_unref(peer);
}

/* The loop finds out and tells `closed`: never from inside a call. */
static bool
give_up(DoorPeer *peer)
{
    (void)shutdown(peer->watch.fd, SHUT_RDWR); /* one that is closed already shows in the same way */
    peer->paused = false;
    watch_socket(peer);
    return false;
}

static bool
queue(DoorPeer *peer, Packet *packet)
{
    Packet *copy;

    if (peer->unsent.length >= peer->spec.queue_max)
        return give_up(peer);
    copy = g_new(Packet, 1);
    *copy = (Packet){g_steal_pointer(&packet->text), packet->n, -1};
    if (packet->fd >= 0) {
        copy->fd = fcntl(packet->fd, F_DUPFD_CLOEXEC, 0);
        if (copy->fd < 0) {
            packet_free(copy);
            return give_up(peer);
        }
    }
    g_queue_push_tail(&peer->unsent, copy);
    watch_socket(peer);
    return true;
}

bool
door_peer_send(DoorPeer *peer, Json *message, int fd)
{
    g_autoptr(Json) mine = message;
    g_autofree char *text = json_encode(mine);
    Packet packet = {text, strlen(text), fd};

    if (peer->broken || packet.n > DOOR_PACKET_MAX)
        return false;
    if (peer->unsent.length == 0 && send_packet(peer, &packet))
        return true;
    if (peer->unsent.length == 0 && errno != EAGAIN)
        return give_up(peer);
    bool queued = queue(peer, &packet);

    text = packet.text;
    return queued;
}

guint
door_peer_waiting(const DoorPeer *peer)
{
    return peer->unsent.length;
}

void
door_peer_pause(DoorPeer *peer, bool pause)
{
    peer->paused = pause;
    if (!peer->broken)
        watch_socket(peer);
}

bool
door_peer_uid(const DoorPeer *peer, uid_t *ret_uid)
{
    struct ucred who;
    socklen_t size = sizeof who;

    if (getsockopt(peer->watch.fd, SOL_SOCKET, SO_PEERCRED, &who, &size) < 0)
        return false;
    *ret_uid = who.uid;
    return true;
}

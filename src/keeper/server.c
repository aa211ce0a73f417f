/* SPDX-License-Identifier: Apache-2.0 */
#include "keeper/server.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/log.h"
#include "keeper/keeper.h"
#include "wire/channel.h"

enum {
    /* A LIST of every box, and the end of every box, while the server does not read. */
    QUEUE_MAX = 4 * KEEPER_BOXES_MAX,
    /* No request is taken while more than this waits to be answered. */
    QUEUE_HIGH = KEEPER_BOXES_MAX,
    BACKLOG = 4,
    PEER_BUFFER = 1 << 20,
};

struct Server {
    Keeper *keeper;
    Watch listener, peer;
    KeeperAnswer *queue; /* a ring */
    uint32_t first, n;
};

static void flush(Server *server);

static KeeperAnswer *
queue_at(Server *server, uint32_t i)
{
    return &server->queue[(server->first + i) % QUEUE_MAX];
}

/* What only a server that asked needs goes; the end of a box is told to the next one. */
static void
disconnect(Server *server)
{
    uint32_t kept = 0;
    int fd = server->peer.fd;

    if (fd < 0)
        return;
    loop_remove(&server->keeper->loop, &server->peer);
    close(fd);
    for (uint32_t i = 0; i < server->n; i++) {
        KeeperAnswer *answer = queue_at(server, i);

        if (answer->verb != KEEPER_GONE)
            continue;
        answer->serial = 0;
        *queue_at(server, kept++) = *answer;
    }
    server->n = kept;
}

static void
watch_peer(Server *server)
{
    uint32_t events = server->n < QUEUE_HIGH ? EPOLLIN : 0;

    if (server->peer.fd >= 0)
        (void)loop_change(&server->keeper->loop, &server->peer, server->n > 0 ? events | EPOLLOUT : events);
}

/* The fds of a box and what does not change about it.  False: the box is no more. */
static bool
fill_box(Server *server, KeeperAnswer *answer, int *ret_fds, size_t *ret_n)
{
    const Keeper *keeper = server->keeper;
    Box *box = box_find(server->keeper, answer->box);

    if (box == NULL || box->channel_fd < 0)
        return false;
    answer->degraded = keeper->degraded;
    answer->id_base = ids_base_of(&keeper->ids, box->slot);
    answer->netns_cookie = box->netns_cookie;
    answer->born_us = box->born_us;
    answer->frozen = box->frozen;
    ret_fds[KEEPER_FD_CHANNEL] = box->channel_fd;
    ret_fds[KEEPER_FD_PIDFD] = box->pidfd;
    ret_fds[KEEPER_FD_DOOR] = box->door_fd;
    *ret_n = box->door_fd >= 0 ? KEEPER_FDS : KEEPER_FDS - 1;
    return true;
}

static bool
send_first(Server *server)
{
    KeeperAnswer answer = *queue_at(server, 0);
    int fds[KEEPER_FDS];
    size_t n_fds = 0;

    answer.version = KEEPER_VERSION;
    if (answer.verb == KEEPER_BOX && !fill_box(server, &answer, fds, &n_fds)) {
        answer.verb = KEEPER_FAILED;
        answer.stage = STAGE_EXEC;
        answer.error = ESRCH;
    }
    return channel_send(server->peer.fd, &answer, sizeof answer, fds, n_fds) == 0;
}

static void
flush(Server *server)
{
    while (server->peer.fd >= 0 && server->n > 0) {
        if (!send_first(server)) {
            if (errno != EAGAIN)
                disconnect(server);
            break;
        }
        server->n--;
        /* From the start again, once it is empty: so little of it is ever touched. */
        server->first = server->n > 0 ? (server->first + 1) % QUEUE_MAX : 0;
    }
    watch_peer(server);
}

void
server_answer(Server *server, const KeeperAnswer *answer)
{
    if (server->peer.fd < 0 && answer->verb != KEEPER_GONE)
        return;
    /* A server this far behind has to ask again from the start. */
    if (server->n == QUEUE_MAX) {
        disconnect(server);
        if (server->n == QUEUE_MAX)
            return;
    }
    *queue_at(server, server->n++) = *answer;
    flush(server);
}

void
server_tell(Server *server, KeeperVerb verb, uint32_t serial, const char *box)
{
    KeeperAnswer answer = {.verb = verb, .serial = serial};

    if (box != NULL)
        memcpy(answer.box, box, KEEPER_ID_LEN);
    server_answer(server, &answer);
}

void
server_tell_failure(Server *server, uint32_t serial, const char *box, KeeperStage stage, int error)
{
    KeeperAnswer answer = {.verb = KEEPER_FAILED, .serial = serial, .stage = stage, .error = error};

    if (box != NULL)
        memcpy(answer.box, box, KEEPER_ID_LEN);
    server_answer(server, &answer);
}

void
server_tell_trouble(Server *server, const Box *box)
{
    KeeperAnswer answer = {
        .verb = KEEPER_TROUBLE, .stage = TROUBLE_STORAGE, .error = box->trouble, .frozen = box->frozen};

    memcpy(answer.box, box->id, KEEPER_ID_LEN);
    server_answer(server, &answer);
}

static void
answer_hello(Server *server, const KeeperRequest *r)
{
    KeeperAnswer answer = {.verb = KEEPER_OK, .serial = r->serial, .degraded = server->keeper->degraded};

    server_answer(server, &answer);
}

static void
answer_list(Server *server, const KeeperRequest *r)
{
    for (Box *box = server->keeper->boxes; box != NULL; box = box->next) {
        if (box->state == BOX_RUNNING)
            server_tell(server, KEEPER_BOX, r->serial, box->id);
        if (box->state == BOX_RUNNING && box->trouble != 0)
            server_tell_trouble(server, box);
    }
    server_tell(server, KEEPER_LISTED, r->serial, NULL);
}

static void
answer_kill(Server *server, const KeeperRequest *r)
{
    Box *box = box_find(server->keeper, r->box);

    if (box == NULL) {
        (void)disks_forget(server->keeper->disks, r->box);
        server_tell(server, KEEPER_GONE, r->serial, r->box);
        return;
    }
    if (box->n_killers == BOX_KILLERS_MAX) {
        server_tell_failure(server, r->serial, r->box, STAGE_REQUEST, EBUSY);
        return;
    }
    box->killers[box->n_killers++] = r->serial;
    if (box->state != BOX_KILLING)
        box_fail(box, STAGE_REQUEST, ECANCELED);
}

static void
answer_freeze(Server *server, const KeeperRequest *r)
{
    Box *box = box_find(server->keeper, r->box);
    bool frozen = r->verb == KEEPER_FREEZE;

    if (box == NULL || box->state != BOX_RUNNING) {
        server_tell_failure(server, r->serial, r->box, STAGE_REQUEST, ESRCH);
        return;
    }
    if (!cgroup_freeze(&server->keeper->groups, box->group, frozen)) {
        server_tell_failure(server, r->serial, r->box, STAGE_CGROUP, errno);
        return;
    }
    box->frozen = frozen;
    if (!frozen)
        box->trouble = 0;
    server_tell(server, KEEPER_OK, r->serial, r->box);
}

static void
answer_stat(Server *server, const KeeperRequest *r)
{
    Box *box = box_find(server->keeper, r->box);
    KeeperAnswer answer = {.verb = KEEPER_STATS, .serial = r->serial, .degraded = server->keeper->degraded};
    CgroupUse use;
    struct statfs disk;

    if (box == NULL || box->state != BOX_RUNNING) {
        server_tell_failure(server, r->serial, r->box, STAGE_REQUEST, ESRCH);
        return;
    }
    memcpy(answer.box, box->id, KEEPER_ID_LEN);
    cgroup_use(&server->keeper->groups, box->group, &use);
    answer.memory_bytes = use.memory_bytes;
    answer.memory_peak_bytes = use.memory_peak_bytes;
    answer.cpu_us = use.cpu_us;
    answer.pids = use.pids;
    answer.oom_kills = use.oom_kills;
    answer.id_base = ids_base_of(&server->keeper->ids, box->slot);
    answer.netns_cookie = box->netns_cookie;
    answer.born_us = box->born_us;
    answer.frozen = box->frozen;
    if (box->in_folder) {
        answer.disk_bytes = box->disk_used.bytes;
        answer.inodes = box->disk_used.inodes;
    } else if (fstatfs(box->disk_dir_fd, &disk) == 0) {
        answer.disk_bytes = (uint64_t)(disk.f_blocks - disk.f_bfree) * (uint64_t)disk.f_bsize;
        answer.inodes = (uint32_t)(disk.f_files - disk.f_ffree);
    }
    server_answer(server, &answer);
}

static void
answer_prepare(Server *server, const KeeperRequest *r)
{
    pool_prepare(server->keeper->pool, &r->limits, r->count);
    server_tell(server, KEEPER_OK, r->serial, NULL);
}

static void
dispatch(Server *server, const KeeperRequest *r, int *fd)
{
    switch ((KeeperVerb)r->verb) {
    case KEEPER_HELLO:
        answer_hello(server, r);
        break;
    case KEEPER_CREATE:
        box_create(server->keeper, r);
        break;
    case KEEPER_KILL:
        answer_kill(server, r);
        break;
    case KEEPER_FREEZE:
    case KEEPER_THAW:
        answer_freeze(server, r);
        break;
    case KEEPER_STAT:
        answer_stat(server, r);
        break;
    case KEEPER_LIST:
        answer_list(server, r);
        break;
    case KEEPER_PREPARE:
        answer_prepare(server, r);
        break;
    case KEEPER_ATTACH:
    case KEEPER_DETACH:
        box_attach(server->keeper, r);
        break;
    case KEEPER_HOLD:
        holds_take(server->keeper->holds, r, g_steal_fd(fd));
        break;
    case KEEPER_OK:
    case KEEPER_BOX:
    case KEEPER_FAILED:
    case KEEPER_GONE:
    case KEEPER_STATS:
    case KEEPER_LISTED:
    case KEEPER_TROUBLE:
        g_assert_not_reached();
    }
}

static void
on_peer(void *ctx, uint32_t events)
{
    Server *server = ctx;
    KeeperRequest request;

    if ((events & EPOLLOUT) != 0) {
        flush(server);
        return;
    }
    int came = -1;
    size_t n_fds = 1;
    ssize_t n = channel_recv(server->peer.fd, &request, sizeof request, &came, &n_fds);
    autofd fd = n_fds == 1 ? came : -1;

    if (n < 0 && errno == EAGAIN)
        return;
    if (n == 0 || (n < 0 && errno != EMSGSIZE)) {
        disconnect(server);
        return;
    }
    if (n != sizeof request || !keeper_request_check(&request)) {
        log_warn("keeper", "a request that is none", log_int("bytes", n));
        server_tell_failure(server, n == sizeof request ? request.serial : 0, NULL, STAGE_REQUEST, EINVAL);
        return;
    }
    dispatch(server, &request, &fd);
    watch_peer(server);
}

static bool
peer_may(const Server *server, int fd)
{
    struct ucred peer;
    socklen_t size = sizeof peer;

    return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 &&
           (peer.uid == 0 || peer.uid == server->keeper->config.server_uid);
}

static void
on_connection(void *ctx, uint32_t events)
{
    Server *server = ctx;
    int size = PEER_BUFFER;
    autofd fd = accept4(server->listener.fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

    if (fd < 0)
        return;
    if (!peer_may(server, fd)) {
        log_warn("keeper", "refused a stranger");
        return;
    }
    /* A bound that the kernel lowers to its own is good too. */
    (void)setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof size);
    disconnect(server);
    server->peer = (Watch){.fd = -1, .func = on_peer, .ctx = server};
    if (loop_add(&server->keeper->loop, &server->peer, fd, EPOLLIN))
        (void)g_steal_fd(&fd);
    flush(server);
}

static int
listen_at(const char *path, uid_t owner, GError **error)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};

    if (strlen(path) >= sizeof address.sun_path) {
        err_set(error, ERR_INVALID, "the socket's path '%s' is too long", path);
        return -1;
    }
    memcpy(address.sun_path, path, strlen(path));
    autofd fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    /* The lock on the state folder says that nobody else is using the name. */
    if (fd < 0 || (unlink(path) < 0 && errno != ENOENT) ||
        bind(fd, (struct sockaddr *)&address, sizeof address) < 0 || chmod(path, 0600) < 0 ||
        (owner != geteuid() && chown(path, owner, (gid_t)-1) < 0) || listen(fd, BACKLOG) < 0) {
        err_errno(error, "listen at '%s'", path);
        return -1;
    }
    return g_steal_fd(&fd);
}

Server *
server_new(Keeper *keeper, GError **error)
{
    int fd = listen_at(keeper->config.socket_path, keeper->config.server_uid, error);

    if (fd < 0)
        return NULL;
    Server *server = g_new0(Server, 1);

    server->keeper = keeper;
    server->queue = g_new0(KeeperAnswer, QUEUE_MAX);
    server->peer = (Watch)WATCH_INIT;
    server->listener = (Watch){.fd = -1, .func = on_connection, .ctx = server};
    g_assert(loop_add(&keeper->loop, &server->listener, fd, EPOLLIN));
    return server;
}

void
server_free(Server *server)
{
    int fd = server->listener.fd;

    disconnect(server);
    loop_remove(&server->keeper->loop, &server->listener);
    close(fd);
    g_free(server->queue);
    g_free(server);
}

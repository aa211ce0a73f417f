/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whose command is it?  The run's, from which it was asked for: then a time limit or a kill of
 * the run reaches it like everything else in the run's tree.  So the run's leader forks for it,
 * not pid 1; only for somebody who was left behind by a run that has ended pid 1 does it itself.
 *
 * How many there are at a time is known by leases: one end of a pipe, which the process that
 * serves the client holds, and nobody else.
 */
#include "init/sudo.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "init/sudoer.h"
#include "wire/decimal.h"
#include "wire/sudo.h"

enum { BACKLOG = 16, ACCEPTS_MAX = 16, ANCESTORS_MAX = 256, STAT_TEXT = 512 };

bool
sudo_open(Box *box)
{
    struct sockaddr_un name = {.sun_family = AF_UNIX, .sun_path = "\0" SUDO_SOCKET};
    socklen_t n = offsetof(struct sockaddr_un, sun_path) + sizeof SUDO_SOCKET;

    box->sudo_fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    return box->sudo_fd >= 0 && bind(box->sudo_fd, (struct sockaddr *)&name, n) == 0 &&
           listen(box->sudo_fd, BACKLOG) == 0 &&
           box_watch(box, EPOLL_CTL_ADD, box->sudo_fd, EPOLLIN, watch_data(WATCH_SUDO, 0, 0));
}

void
sudo_on_lease(Box *box, uint32_t slot)
{
    if (slot >= SUDO_MAX || box->leases[slot] == 0)
        return;
    close(box->leases[slot]);
    box->leases[slot] = 0;
}

/* 0: gone.  "PID (NAME) STATE PARENT …", where the name may be anything. */
static pid_t
parent_of(pid_t pid)
{
    char path[sizeof "/proc//stat" + DECIMAL_MAX];
    char text[STAT_TEXT];
    pid_t parent = 0;

    (void)stpcpy(decimal_put(stpcpy(path, "/proc/"), (uint64_t)pid), "/stat");
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return 0;
    ssize_t n = read(fd, text, sizeof text - 1);
    close(fd);
    if (n <= 0)
        return 0;
    text[n] = '\0';
    const char *at = strrchr(text, ')');
    if (at == NULL || strlen(at) < sizeof ") S " - 1)
        return 0;
    for (at += sizeof ") S " - 1; *at >= '0' && *at <= '9' && parent < INT32_MAX / 10; at++)
        parent = parent * 10 + (*at - '0');
    return parent;
}

/* NULL: none that lives.  A caller that dies while we look may lead to a stranger's run; its
 * connection is dead then too. */
static Run *
run_of(Box *box, pid_t pid)
{
    for (int i = 0; i < ANCESTORS_MAX && pid > 1; i++, pid = parent_of(pid)) {
        for (uint32_t slot = 0; slot < box->n_slots; slot++) {
            if (run_is_live(&box->runs[slot]) && box->runs[slot].leader == pid)
                return &box->runs[slot];
        }
    }
    return NULL;
}

static bool
hand_over(Box *box, pid_t client, int connection, int lease)
{
    Run *run = run_of(box, client);
    int fds[] = {connection, lease};

    if (run != NULL && run->report_fd >= 0) {
        /* Its leader looks at its socket whenever this signal wakes it. */
        return channel_send(run->report_fd, "", 1, fds, 2) == 0 && kill(run->leader, SIGCHLD) == 0;
    }
    pid_t pid = fork();
    if (pid == 0)
        sudoer_run(connection, lease);
    return pid > 0;
}

static int
take_lease(Box *box)
{
    int fds[2];

    for (uint32_t slot = 0; slot < SUDO_MAX; slot++) {
        if (box->leases[slot] != 0)
            continue;
        if (pipe2(fds, O_CLOEXEC | O_NONBLOCK) < 0)
            return -1;
        box->leases[slot] = fds[0];
        if (box_watch(box, EPOLL_CTL_ADD, fds[0], EPOLLIN, watch_data(WATCH_LEASE, slot, 0)))
            return fds[1];
        sudo_on_lease(box, slot);
        close(fds[1]);
        return -1;
    }
    errno = EAGAIN;
    return -1;
}

static bool
may_ask(int connection, pid_t *ret_client)
{
    struct ucred who;
    socklen_t n = sizeof who;

    if (getsockopt(connection, SOL_SOCKET, SO_PEERCRED, &who, &n) < 0)
        return false;
    *ret_client = who.pid;
    errno = EPERM;
    return who.uid == PASSWD_DEFAULT_ID || who.uid == 0;
}

/* A client that is refused is told, if it has room for that. */
static void
serve(Box *box, int connection)
{
    SudoSay refusal = {.kind = SUDO_FAILED, .stage = FAIL_LIMIT};
    pid_t client;
    bool may = may_ask(connection, &client);
    int lease = may ? take_lease(box) : -1;
    bool served = lease >= 0 && hand_over(box, client, connection, lease);

    if (!served) {
        refusal.value = errno;
        refusal.stage = may ? FAIL_LIMIT : FAIL_USER;
        (void)channel_send(connection, &refusal, sizeof refusal, NULL, 0);
    }
    if (lease >= 0)
        close(lease);
    close(connection);
}

void
sudo_on_connect(Box *box)
{
    for (int i = 0; i < ACCEPTS_MAX; i++) {
        int fd = accept4(box->sudo_fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

        if (fd >= 0) {
            serve(box, fd);
        } else if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS) {
            /* It would wake us for it without end. */
            box->sudo_paused = box_watch(box, EPOLL_CTL_DEL, box->sudo_fd, 0, 0);
            return;
        } else if (errno != ECONNABORTED && errno != EINTR) {
            return;
        }
    }
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "keeper/net.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"

enum { DOOR_BACKLOG = 256 };

static bool
raise_loopback(void)
{
    struct ifreq request = {.ifr_name = "lo", .ifr_flags = IFF_UP};
    autofd fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

    return fd >= 0 && ioctl(fd, SIOCSIFFLAGS, &request) == 0;
}

/* The file shows the network of whoever opens it. */
static bool
open_low_ports(int proc_fd)
{
    autofd fd = openat(proc_fd, "sys/net/ipv4/ip_unprivileged_port_start", O_WRONLY | O_CLOEXEC);

    return fd >= 0 && write(fd, "0", 1) == 1;
}

static int
listen_for_door(uint16_t port)
{
    struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int on = 1;
    autofd fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) < 0 ||
        bind(fd, (struct sockaddr *)&address, sizeof address) < 0 || listen(fd, DOOR_BACKLOG) < 0)
        return -1;
    return g_steal_fd(&fd);
}

static bool
set_up(const NetSpec *spec, int *ret_door_fd, uint64_t *ret_cookie)
{
    socklen_t size = sizeof *ret_cookie;

    if (!raise_loopback() || (spec->low_ports && !open_low_ports(spec->proc_fd)))
        return false;
    *ret_cookie = 0;
    if (spec->door_port == 0)
        return true;
    autofd fd = listen_for_door(spec->door_port);

    if (fd < 0)
        return false;
    /* Older kernels have no cookie; the door then knows a box by its listener alone. */
    if (getsockopt(fd, SOL_SOCKET, SO_NETNS_COOKIE, ret_cookie, &size) < 0)
        *ret_cookie = 0;
    *ret_door_fd = g_steal_fd(&fd);
    return true;
}

bool
net_open(const NetSpec *spec, int *ret_door_fd, uint64_t *ret_cookie)
{
    if (setns(spec->pidfd, CLONE_NEWNET) < 0)
        return false;
    bool ok = set_up(spec, ret_door_fd, ret_cookie);
    int saved = errno;

    if (setns(spec->home_fd, CLONE_NEWNET) < 0)
        abort();
    errno = saved;
    return ok;
}

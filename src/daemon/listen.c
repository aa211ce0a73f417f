/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/listen.h"

#include <arpa/inet.h>
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"

enum { LISTEN_BACKLOG = 4096 };

int
listen_tcp(const ConfigAddress *address, GError **error)
{
    const struct sockaddr *addr = (const struct sockaddr *)&address->addr;
    autofd fd = socket(addr->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    const int on = 1;

    if (fd < 0) {
        err_errno(error, "open a socket for %s", address->text);
        return -1;
    }
    /* Without V6ONLY an address of one family could take the other's port too. */
    if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) < 0 ||
        (addr->sa_family == AF_INET6 && setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on) < 0) ||
        bind(fd, addr, address->addr_len) < 0 || listen(fd, LISTEN_BACKLOG) < 0) {
        if (errno == EADDRINUSE)
            err_set(error, ERR_CONFLICT,
                    "another program listens on %s\nFIX: stop it, or choose another address with --listen",
                    address->text);
        else
            err_errno(error, "listen on %s", address->text);
        return -1;
    }
    return g_steal_fd(&fd);
}

char *
listen_url(int fd, GError **error)
{
    struct sockaddr_storage addr;
    const struct sockaddr_in *v4 = (const struct sockaddr_in *)&addr;
    const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)&addr;
    socklen_t len = sizeof addr;
    char text[INET6_ADDRSTRLEN];

    if (getsockname(fd, (struct sockaddr *)&addr, &len) < 0) {
        err_errno(error, "ask for the address of a socket");
        return NULL;
    }
    if (addr.ss_family == AF_INET6) {
        const struct in6_addr *a = IN6_IS_ADDR_UNSPECIFIED(&v6->sin6_addr) ? &in6addr_loopback
                                                                           : &v6->sin6_addr;

        inet_ntop(AF_INET6, a, text, sizeof text);
        return g_strdup_printf("http://[%s]:%u", text, ntohs(v6->sin6_port));
    }
    const struct in_addr loopback = {htonl(INADDR_LOOPBACK)};
    inet_ntop(AF_INET, v4->sin_addr.s_addr == htonl(INADDR_ANY) ? &loopback : &v4->sin_addr, text,
              sizeof text);
    return g_strdup_printf("http://%s:%u", text, ntohs(v4->sin_port));
}

int
listen_unix(const char *path, GError **error)
{
    struct sockaddr_un addr = {.sun_family = AF_UNIX};
    autofd fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    if (strlen(path) >= sizeof addr.sun_path) {
        err_set(error, ERR_INVALID,
                "the path '%s' is too long for a socket (%zu characters at most)\nFIX: choose a shorter data "
                "folder with --home",
                path, sizeof addr.sun_path - 1);
        return -1;
    }
    memcpy(addr.sun_path, path, strlen(path) + 1);
    if (unlink(path) < 0 && errno != ENOENT) {
        err_errno(error, "remove the old socket '%s'", path);
        return -1;
    }
    /* The folder is closed to others; the mode of the socket says it a second time. */
    if (fd < 0 || bind(fd, (struct sockaddr *)&addr, sizeof addr) < 0 || chmod(path, 0600) < 0 ||
        listen(fd, LISTEN_BACKLOG) < 0) {
        err_errno(error, "listen on '%s'", path);
        return -1;
    }
    return g_steal_fd(&fd);
}

static bool
is_wildcard(const ConfigAddress *a)
{
    if (a->addr.ss_family == AF_INET)
        return ((const struct sockaddr_in *)&a->addr)->sin_addr.s_addr == htonl(INADDR_ANY);
    return IN6_IS_ADDR_UNSPECIFIED(&((const struct sockaddr_in6 *)&a->addr)->sin6_addr);
}

char **
listen_host_names(const Config *config)
{
    GStrvBuilder *names = g_strv_builder_new();

    for (const char *const *h = config->http.allowed_hosts; h != NULL && *h != NULL; h++)
        g_strv_builder_add(names, *h);
    for (guint i = 0; i < config->addresses->len; i++) {
        const ConfigAddress *a = &g_array_index(config->addresses, ConfigAddress, i);

        if (!is_wildcard(a))
            g_strv_builder_add(names, a->text);
    }
    char **list = g_strv_builder_end(names);
    g_strv_builder_unref(names);
    return list;
}

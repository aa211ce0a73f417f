/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/log.h"
#include "base/privilege.h"
#include "daemon/home.h"
#include "daemon/listen.h"
#include "daemon/serve-private.h"
#include "daemon/space.h"

static void
raise_fd_limit(void)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
        return;
    limit.rlim_cur = limit.rlim_max;
    (void)setrlimit(RLIMIT_NOFILE, &limit); /* fewer connections then */
}

/* A machine without IPv6 has no [::1] and no [::], which "localhost" and "*" stand for too. */
static bool
may_lack(const ConfigAddress *a, int problem)
{
    const struct in6_addr *v6 = &((const struct sockaddr_in6 *)&a->addr)->sin6_addr;

    return a->addr.ss_family == AF_INET6 && (problem == EADDRNOTAVAIL || problem == EAFNOSUPPORT) &&
           (IN6_IS_ADDR_LOOPBACK(v6) || IN6_IS_ADDR_UNSPECIFIED(v6));
}

static bool
open_tcp(Server *s, GError **error)
{
    for (guint i = 0; i < s->config->addresses->len; i++) {
        const ConfigAddress *a = &g_array_index(s->config->addresses, ConfigAddress, i);
        g_autoptr(GError) failed = NULL;
        int fd = listen_tcp(a, &failed);

        if (fd < 0 && may_lack(a, errno)) {
            log_info("daemon", "no IPv6 here", log_str("address", a->text));
            continue;
        }
        if (fd < 0) {
            g_propagate_error(error, g_steal_pointer(&failed));
            return false;
        }
        g_array_append_val(s->tcp_fds, fd);
    }
    if (s->tcp_fds->len == 0)
        return err_set(error, ERR_INVALID, "there is no address to listen on");
    s->address = listen_url(g_array_index(s->tcp_fds, int, 0), error);
    return s->address != NULL;
}

bool
serve_take_place(Server *s, GError **error)
{
    g_auto(RunAs) as = {0};

    umask(0077);
    raise_fd_limit();
    if (!run_as_find(s->options->user, &as, error) || !home_prepare(s->config->home, as.uid, as.gid, error))
        return false;
    s->lock_fd = home_lock(s->config->home, as.uid, as.gid, error);
    if (s->lock_fd < 0 || !open_tcp(s, error) || !run_as_enter(&as, error))
        return false;
    if (s->config->boxes.enabled)
        s->space_fd = build_space_open();
    if (!run_as_seal(error))
        return false;
    /* After the change of user, which clears it. */
    if (s->options->supervised && prctl(PR_SET_PDEATHSIG, SIGTERM) < 0)
        return err_errno(error, "follow the supervisor");
    return true;
}

static bool
add_listener(Server *s, int fd, const char *name, GError **error)
{
    HttpListenerSpec spec = {.name = name};

    return http_server_listen(s->http, fd, &spec, error) != NULL;
}

bool
serve_open_http(Server *s, GError **error)
{
    const ConfigHttp *h = &s->config->http;
    HttpServerSpec spec = {
        .loop = s->loop, .limits = HTTP_LIMITS_INIT, .handler = api_handle, .data = s->api};
    g_autofree char *path = home_control_socket(s->config->home);

    spec.limits.connections = (guint)h->max_connections;
    spec.limits.header_ms = (guint)h->header_timeout_ms;
    spec.limits.idle_ms = (guint)h->idle_timeout_ms;
    s->http = http_server_new(&spec);
    api_set_server(s->api, s->http);
    int control = listen_unix(path, error);
    if (control < 0 || !add_listener(s, control, "control", error))
        return false;
    for (guint i = 0; i < s->tcp_fds->len; i++) {
        int *fd = &g_array_index(s->tcp_fds, int, i);

        if (!add_listener(s, g_steal_fd(fd), "tcp", error))
            return false;
    }
    return true;
}

void
serve_leave_place(Server *s)
{
    for (guint i = 0; i < s->tcp_fds->len; i++) {
        if (g_array_index(s->tcp_fds, int, i) >= 0)
            close(g_array_index(s->tcp_fds, int, i));
    }
    g_array_unref(s->tcp_fds);
    g_free(s->address);
    if (s->space_fd >= 0)
        close(s->space_fd);
    if (s->lock_fd >= 0)
        close(s->lock_fd);
}

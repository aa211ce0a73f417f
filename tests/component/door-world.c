/* SPDX-License-Identifier: Apache-2.0 */
#include "door-world-private.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sched.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "http-fixture.h"
#include "wire/door.h"

static const guint16 far_ports[] = {22, 25, 53, 80, 443, 8080};

/* Made once by world_enter(), before any test. */
static struct {
    int far, near, box;
} nets = {-1, -1, -1};

/* ---- the networks ---- */

static int
net_fd(const char *net)
{
    return strcmp(net, "far") == 0 ? nets.far : strcmp(net, "box") == 0 ? nets.box : nets.near;
}

static void
go(const char *net)
{
    g_assert_cmpint(setns(net_fd(net), CLONE_NEWNET), ==, 0);
}

static bool
run_ip(const char *arguments)
{
    g_autofree char *line = g_strconcat("ip ", arguments, NULL);
    g_autofree char *errors = NULL;
    g_autoptr(GError) error = NULL;
    int status;

    if (!g_spawn_command_line_sync(line, NULL, &errors, &status, &error))
        return false;
    if (status != 0)
        g_test_message("%s: %s", line, errors);
    return status == 0;
}

void
world_ip(const char *net, const char *arguments)
{
    go(net);
    g_assert_true(run_ip(arguments));
    go("near");
}

void
world_name_servers(const char *text)
{
    static const char path[] = "/etc/resolv.conf";
    static bool ours; /* the file is one that only this process sees */

    if (!ours) {
        g_autofree char *file = NULL;
        autofd fd = g_file_open_tmp("coop-XXXXXX", &file, NULL);

        g_assert_cmpint(mount(file, path, NULL, MS_BIND, NULL), ==, 0);
        g_assert_cmpint(unlink(file), ==, 0);
        ours = true;
    }
    autofd fd = open(path, O_WRONLY | O_TRUNC | O_CLOEXEC);
    g_assert_cmpint(write(fd, text, strlen(text)), ==, (ssize_t)strlen(text));
}

static bool
become_root_of_a_namespace(void)
{
    g_autofree char *map = g_strdup_printf("0 %d 1", (int)geteuid());

    return unshare(CLONE_NEWUSER) == 0 &&
           g_file_set_contents_full("/proc/self/setgroups", "deny", 4, G_FILE_SET_CONTENTS_NONE, 0600,
                                    NULL) &&
           g_file_set_contents_full("/proc/self/uid_map", map, -1, G_FILE_SET_CONTENTS_NONE, 0600, NULL);
}

static int
new_net(void)
{
    if (unshare(CLONE_NEWNET) < 0 || !run_ip("link set lo up"))
        return -1;
    return open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
}

static bool
join_near_and_far(void)
{
    g_autofree char *move = g_strdup_printf("link set near0 netns /proc/%d/fd/%d", (int)getpid(), nets.near);

    go("far");
    if (!run_ip("link add far0 type veth peer name near0") || !run_ip(move) ||
        !run_ip("addr add 11.255.0.2/24 dev far0") || !run_ip("-6 addr add 2a00:ff::2/64 dev far0 nodad") ||
        !run_ip("link set far0 up") || !run_ip("route add local default dev lo table main") ||
        !run_ip("-6 route add local default dev lo table main"))
        return false;
    go("near");
    return run_ip("addr add 11.255.0.1/24 dev near0") &&
           run_ip("-6 addr add 2a00:ff::1/64 dev near0 nodad") && run_ip("link set near0 up") &&
           run_ip("route add default via 11.255.0.2") && run_ip("-6 route add default via 2a00:ff::2");
}

static bool
make_networks(void)
{
    if (geteuid() != 0 && !become_root_of_a_namespace())
        return false;
    if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
        return false;
    nets.far = new_net();
    nets.box = nets.far >= 0 ? new_net() : -1;
    nets.near = nets.box >= 0 ? new_net() : -1;
    return nets.near >= 0 && join_near_and_far();
}

bool
world_enter(int *argc, char ***argv)
{
    bool ok = make_networks();

    g_test_init(argc, argv, NULL);
    if (!ok)
        g_print("1..0 # SKIP networks cannot be made here\n");
    return ok;
}

/* ---- servers ---- */

typedef struct Visit {
    LoopWatch watch; /* first */
    World *world;
    char *place;
    GByteArray *unsent;
    bool answered;
    bool ends; /* when all was sent */
} Visit;

static void
visit_close(Visit *v)
{
    v->world->server_closed++;
    loop_remove(v->world->loop, &v->watch);
    close(v->watch.fd);
    v->watch.fd = -1;
}

/* Sends what it can; nothing more is read before the rest is gone. */
static void
visit_send(Visit *v)
{
    ssize_t n = send(v->watch.fd, v->unsent->data, v->unsent->len, MSG_NOSIGNAL | MSG_DONTWAIT);

    if (n > 0)
        g_byte_array_remove_range(v->unsent, 0, (guint)n);
    if ((n < 0 && errno != EAGAIN) || (v->ends && v->unsent->len == 0))
        visit_close(v);
    else
        loop_set(v->world->loop, &v->watch, v->unsent->len > 0 ? EPOLLOUT : EPOLLIN);
}

static void
answer_visit(Visit *v, const char *bytes, size_t n)
{
    World *w = v->world;
    g_autofree char *text = NULL;

    if (w->script == NULL && !g_str_has_suffix(v->place, " 80")) {
        g_byte_array_append(v->unsent, (const guint8 *)bytes, (guint)n);
    } else if (!v->answered && w->got->len >= w->patience) {
        g_autofree char *body = g_strdup_printf("canary %s\n%.*s", v->place, (int)n, bytes);

        v->answered = true;
        v->ends = w->script != NULL && w->script_ends;
        text = w->script != NULL
                   ? g_strdup(w->script)
                   : g_strdup_printf("HTTP/1.1 200 OK\r\nContent-Length: %zu\r\n\r\n%s", strlen(body), body);
        g_byte_array_append(v->unsent, (const guint8 *)text, (guint)strlen(text));
    }
    visit_send(v);
}

static void
on_visit(LoopWatch *watch, uint32_t events)
{
    Visit *v = (Visit *)watch;
    char bytes[4096];

    if (v->unsent->len > 0) {
        visit_send(v);
        return;
    }
    ssize_t n = recv(watch->fd, bytes, sizeof bytes, 0);
    if (n > 0) {
        g_string_append_len(v->world->got, bytes, n);
        answer_visit(v, bytes, (size_t)n);
    } else if (n == 0 || errno != EAGAIN) {
        visit_close(v);
    }
}

static char *
describe(const struct sockaddr_in6 *a)
{
    char text[INET6_ADDRSTRLEN];

    if (IN6_IS_ADDR_V4MAPPED(&a->sin6_addr))
        inet_ntop(AF_INET, a->sin6_addr.s6_addr + 12, text, sizeof text);
    else
        inet_ntop(AF_INET6, &a->sin6_addr, text, sizeof text);
    return g_strdup_printf("%s %d", text, ntohs(a->sin6_port));
}

static void
on_visitor(LoopWatch *watch, uint32_t events)
{
    World *w = ((Server *)watch)->world;
    struct sockaddr_in6 a;
    socklen_t n = sizeof a;
    int fd = accept4(watch->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

    if (fd < 0)
        return;
    g_assert_cmpint(getsockname(fd, (struct sockaddr *)&a, &n), ==, 0);
    Visit *v = g_new0(Visit, 1);
    v->watch = (LoopWatch){.ready = on_visit, .fd = fd};
    v->world = w;
    v->place = describe(&a);
    v->unsent = g_byte_array_new();
    g_ptr_array_add(w->reached, g_strdup(v->place));
    g_ptr_array_add(w->watches, v);
    g_assert_true(loop_add(w->loop, &v->watch, EPOLLIN, NULL));
}

static int
bound_socket(int type, guint16 port)
{
    struct sockaddr_in6 a = {.sin6_family = AF_INET6, .sin6_port = htons(port)};
    int off = 0, on = 1;
    int fd = socket(AF_INET6, type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

    g_assert_cmpint(fd, >=, 0);
    g_assert_cmpint(setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off), ==, 0);
    g_assert_cmpint(setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on), ==, 0);
    g_assert_cmpint(bind(fd, (struct sockaddr *)&a, sizeof a), ==, 0);
    return fd;
}

static void
add_server(World *w, int fd, void (*ready)(LoopWatch *watch, uint32_t events))
{
    Server *s = g_new0(Server, 1);

    s->watch = (LoopWatch){.ready = ready, .fd = fd};
    s->world = w;
    g_ptr_array_add(w->watches, s);
    g_assert_true(loop_add(w->loop, &s->watch, EPOLLIN, NULL));
}

static void
open_servers(World *w, const char *net)
{
    go(net);
    for (size_t i = 0; i < G_N_ELEMENTS(far_ports); i++) {
        int fd = bound_socket(SOCK_STREAM, far_ports[i]);

        g_assert_cmpint(listen(fd, 64), ==, 0);
        add_server(w, fd, on_visitor);
    }
    go("near");
}

/* ---- the door ---- */

Policy *
world_policy(const char *json)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(Json) object = json_decode(json, strlen(json), &error);

    g_assert_no_error(error);
    Policy *policy = policy_new(object, &error);
    g_assert_no_error(error);
    return policy;
}

guint64
world_cookie(const char *net)
{
    guint64 cookie = 0;
    socklen_t n = sizeof cookie;

    go(net);
    autofd fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    go("near");
    g_assert_cmpint(getsockopt(fd, SOL_SOCKET, SO_NETNS_COOKIE, &cookie, &n), ==, 0);
    return cookie;
}

int
world_listen(const char *net)
{
    struct sockaddr_in a = {
        .sin_family = AF_INET, .sin_port = htons(DOOR_PORT), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int on = 1;

    go(net);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    go("near");
    g_assert_cmpint(setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on), ==, 0);
    g_assert_cmpint(bind(fd, (struct sockaddr *)&a, sizeof a), ==, 0);
    g_assert_cmpint(listen(fd, 256), ==, 0);
    return fd;
}

static void
open_door(World *w, const char *policy_json)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(Policy) policy = world_policy(policy_json);
    const DialerSpec dialer = {.loop = w->loop,
                               .own = w->own,
                               .servers = "11.255.0.2",
                               .resolve_ms = 3000,
                               .connect_ms = 2000,
                               .dead_ms = WORLD_DEAD_MS};

    w->dialer = dialer_new(&dialer, &error);
    g_assert_no_error(error);
    w->door = door_new(&(DoorSpec){.loop = w->loop, .dialer = w->dialer, .facts = w->facts});
    const DoorBoxSpec box = {
        .id = WORLD_BOX, .cookie = world_cookie("box"), .policy = policy, .limits = DOOR_LIMITS_INIT};
    w->box = door_add(w->door, world_listen("box"), &box, &error);
    g_assert_no_error(error);
}

void
world_init(World *w, const char *policy_json)
{
    *w = (World){.loop = loop_new(NULL), .own = own_addresses_new(), .facts = fact_log_new()};
    w->reached = g_ptr_array_new_with_free_func(g_free);
    w->asked = g_ptr_array_new_with_free_func(g_free);
    w->names = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, (GDestroyNotify)g_ptr_array_unref);
    w->watches = g_ptr_array_new();
    w->got = g_string_new(NULL);
    open_servers(w, "near");
    open_servers(w, "far");
    go("far");
    add_server(w, bound_socket(SOCK_DGRAM, 53), name_server_ready);
    go("near");
    open_door(w, policy_json);
}

void
world_clear(World *w)
{
    door_free(w->door);
    w->door = NULL;
    dialer_free(w->dialer);
    for (guint i = 0; i < w->watches->len; i++) {
        Server *s = w->watches->pdata[i]; /* or a Visit: the watch is first in both */

        if (s->watch.fd >= 0) {
            loop_remove(w->loop, &s->watch);
            close(s->watch.fd);
        }
        if (s->watch.ready == on_visit) {
            g_free(((Visit *)(void *)s)->place);
            g_byte_array_unref(((Visit *)(void *)s)->unsent);
        }
        g_free(s);
    }
    fact_log_free(w->facts);
    own_addresses_free(w->own);
    loop_free(w->loop);
    g_ptr_array_unref(w->reached);
    g_ptr_array_unref(w->asked);
    g_ptr_array_unref(w->watches);
    g_hash_table_unref(w->names);
    g_string_free(w->got, TRUE);
}

/* ---- clients ---- */

int
world_connect(World *w)
{
    struct sockaddr_in a = {
        .sin_family = AF_INET, .sin_port = htons(DOOR_PORT), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};

    go("box");
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    go("near");
    g_assert_cmpint(connect(fd, (struct sockaddr *)&a, sizeof a), ==, 0);
    g_assert_cmpint(fcntl(fd, F_SETFL, O_NONBLOCK), ==, 0);
    return fd;
}

char *
world_ask(World *w, const char *request, const char *until)
{
    autofd fd = world_connect(w);

    client_sends(fd, request);
    return g_string_free(client_read(fd, until), FALSE);
}

int
world_tunnel(World *w, const char *authority, char **ret_answer)
{
    g_autofree char *request = g_strdup_printf("CONNECT %s HTTP/1.1\r\nHost: %s\r\n\r\n", authority,
                                               authority);
    autofd fd = world_connect(w);

    client_sends(fd, request);
    g_autofree char *answer = g_string_free(client_read(fd, "\r\n\r\n"), FALSE);
    bool open = answer_status(answer) == 200;

    if (!open) { /* the text too */
        g_autofree char *rest = g_string_free(client_read(fd, NULL), FALSE);
        char *whole = g_strconcat(answer, rest, NULL);

        g_free(answer);
        answer = whole;
    }
    if (ret_answer != NULL)
        *ret_answer = g_steal_pointer(&answer);
    return open ? g_steal_fd(&fd) : -1;
}

bool
world_was_reached(const World *w, const char *address)
{
    for (guint i = 0; i < w->reached->len; i++) {
        if (g_str_has_prefix(w->reached->pdata[i], address) &&
            ((const char *)w->reached->pdata[i])[strlen(address)] == ' ')
            return true;
    }
    return false;
}

Json *
world_fact(const World *w, const char *kind, const char *host)
{
    Json *found = NULL, *fact;

    for (guint64 n = 0; (fact = fact_log_next(w->facts, n)) != NULL;) {
        const char *its_host = json_string_value(json_object_get(fact, "host"));

        n = (guint64)json_integer_value(json_object_get(fact, "n"));
        if (g_str_equal(json_string_value(json_object_get(fact, "kind")), kind) &&
            (host == NULL || g_strcmp0(its_host, host) == 0))
            found = fact;
    }
    return found;
}

/* ---- TLS ---- */

static void
append_number(GByteArray *to, guint bytes, size_t n)
{
    while (bytes-- > 0) {
        guint8 b = (guint8)(n >> (8 * bytes));

        g_byte_array_append(to, &b, 1);
    }
}

GByteArray *
world_hello(const char *name)
{
    g_autoptr(GByteArray) extensions = g_byte_array_new();
    GByteArray *hello = g_byte_array_new();
    size_t n = name != NULL ? strlen(name) : 0;
    guint8 random[32] = {7};

    if (name != NULL) {
        append_number(extensions, 2, 0);
        append_number(extensions, 2, n + 5);
        append_number(extensions, 2, n + 3);
        append_number(extensions, 1, 0);
        append_number(extensions, 2, n);
        g_byte_array_append(extensions, (const guint8 *)name, (guint)n);
    }
    append_number(extensions, 2, 43); /* supported_versions: TLS 1.3 */
    append_number(extensions, 2, 3);
    append_number(extensions, 3, 0x020304);
    size_t body = 2 + sizeof random + 1 + 4 + 2 + 2 + extensions->len;

    append_number(hello, 3, 0x160301);
    append_number(hello, 2, body + 4);
    append_number(hello, 1, 1);
    append_number(hello, 3, body);
    append_number(hello, 2, 0x0303);
    g_byte_array_append(hello, random, sizeof random);
    append_number(hello, 1, 0);
    append_number(hello, 4, 0x00021301);
    append_number(hello, 2, 0x0100);
    append_number(hello, 2, extensions->len);
    g_byte_array_append(hello, extensions->data, extensions->len);
    return hello;
}

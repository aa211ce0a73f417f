/* SPDX-License-Identifier: Apache-2.0 */
#include "support/control-bench.h"

#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "http/address.h"
#include "wire/channel.h"
#include "wire/door.h"

static ControlBench *
bench_new(void)
{
    ControlBench *b = g_new0(ControlBench, 1);

    b->loop = loop_new(NULL);
    b->folder = g_dir_make_tmp("coop-XXXXXX", NULL);
    b->path = g_build_filename(b->folder, "socket", NULL);
    b->listener = -1;
    return b;
}

static int
listen_at(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    g_assert_cmpuint(g_strlcpy(address.sun_path, path, sizeof address.sun_path), <, sizeof address.sun_path);
    g_assert_true(fd >= 0 && bind(fd, (struct sockaddr *)&address, sizeof address) == 0 &&
                  listen(fd, 8) == 0);
    return fd;
}

/* ---- the door's end ---- */

static void
on_gate_fact(Json *fact, void *ctx)
{
    fact_log_add(((ControlBench *)ctx)->facts, fact);
}

static bool
may_tell(void *ctx)
{
    return true;
}

ControlBench *
control_bench_new_door(void)
{
    static const char *const none[] = {NULL};
    ControlBench *b = bench_new();

    b->own = own_addresses_new();
    b->dialer = dialer_new(&(DialerSpec){.loop = b->loop, .own = b->own, .servers = "127.0.0.1:1"}, NULL);
    b->facts = fact_log_new();
    b->prices = price_table_new(NULL);
    b->budgets = budgets_new();
    b->gate = gate_new(&(GateSpec){.loop = b->loop,
                                   .budgets = b->budgets,
                                   .prices = b->prices,
                                   .recordings = b->folder,
                                   .tell = on_gate_fact,
                                   .may_tell = may_tell,
                                   .ctx = b});
    b->vault = door_vault_open(b->folder, NULL);
    b->door = door_new(&(DoorSpec){.loop = b->loop, .dialer = b->dialer, .facts = b->facts, .gate = b->gate});
    b->control = door_control_new(&(DoorControlSpec){.loop = b->loop,
                                                     .door = b->door,
                                                     .facts = b->facts,
                                                     .gate = b->gate,
                                                     .budgets = b->budgets,
                                                     .vault = b->vault,
                                                     .own_providers = none,
                                                     .listener = listen_at(b->path),
                                                     .server_uid = geteuid()},
                                  NULL);
    g_assert_nonnull(b->control);
    return b;
}

/* ---- the server's end ---- */

static void
on_up(const char *instance, void *ctx)
{
    ((ControlBench *)ctx)->ups++;
}

static void
on_down(const char *why, void *ctx)
{
    ((ControlBench *)ctx)->downs++;
}

static bool
on_fact(Json *fact, void *ctx)
{
    ((ControlBench *)ctx)->heard++;
    return true;
}

static void
on_forward(const char *box, int fd, void *ctx)
{
    ((ControlBench *)ctx)->forwarded++;
    close(fd);
}

ControlBench *
control_bench_new_link(void)
{
    static const char *const boxes[] = {"one", "two"};
    ControlBench *b = bench_new();
    g_autoptr(Json) policy = json_pack("{s:s, s:[]}", "mode", "deny", "rules");

    b->listener = listen_at(b->path);
    b->link = door_link_new(&(DoorLinkSpec){.loop = b->loop,
                                            .socket = b->path,
                                            .up = on_up,
                                            .down = on_down,
                                            .fact = on_fact,
                                            .forward = on_forward,
                                            .ctx = b});
    for (size_t i = 0; i < G_N_ELEMENTS(boxes); i++)
        door_link_add_box(
            b->link, control_bench_listener(NULL),
            &(DoorLinkBox){.id = boxes[i], .policy_name = "p", .policy = policy, .limits = DOOR_LIMITS_INIT});
    door_link_start(b->link);
    return b;
}

/* ---- both ---- */

void
control_bench_free(ControlBench *b)
{
    door_link_free(b->link);
    door_control_free(b->control);
    door_free(b->door);
    gate_free(b->gate);
    dialer_free(b->dialer);
    if (b->own != NULL)
        own_addresses_free(b->own);
    budgets_free(b->budgets);
    price_table_free(b->prices);
    fact_log_free(b->facts);
    door_vault_free(b->vault);
    loop_free(b->loop);
    if (b->listener >= 0)
        close(b->listener);
    g_autoptr(GDir) dir = g_dir_open(b->folder, 0, NULL);

    for (const char *name; (name = g_dir_read_name(dir)) != NULL;) {
        g_autofree char *path = g_build_filename(b->folder, name, NULL);

        g_assert_cmpint(unlink(path), ==, 0);
    }
    g_assert_cmpint(rmdir(b->folder), ==, 0);
    g_free(b->folder);
    g_free(b->path);
    g_free(b);
}

void
control_bench_turn(ControlBench *b)
{
    while (g_main_context_iteration(NULL, FALSE))
        continue;
}

int
control_bench_join(ControlBench *b)
{
    int fd = -1;

    if (b->control != NULL) {
        fd = channel_connect(b->path);
        g_assert_cmpint(fd, >=, 0);
        control_bench_turn(b);
        return fd;
    }
    while ((fd = accept4(b->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK)) < 0)
        g_main_context_iteration(NULL, TRUE);
    return fd;
}

Json *
control_bench_hear(int fd)
{
    g_autofree char *packet = g_malloc(DOOR_PACKET_MAX);
    ssize_t n = channel_recv(fd, packet, DOOR_PACKET_MAX, NULL, NULL);

    return n > 0 ? json_decode(packet, (size_t)n, NULL) : NULL;
}

void
control_bench_say(int fd, const char *text, int with)
{
    (void)channel_send(fd, text, strlen(text), &with, with >= 0 ? 1 : 0); /* the other end may be gone */
}

int
control_bench_listener(char **ret_cookie)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    guint64 cookie = 0;
    socklen_t n = sizeof cookie;

    g_assert_true(fd >= 0 && bind(fd, (struct sockaddr *)&address, sizeof address) == 0 &&
                  listen(fd, 8) == 0);
    (void)getsockopt(fd, SOL_SOCKET, SO_NETNS_COOKIE, &cookie, &n); /* 0: this kernel has none */
    if (ret_cookie != NULL)
        *ret_cookie = g_strdup_printf("%" G_GUINT64_FORMAT, cookie);
    return fd;
}

guint
control_bench_fds(void)
{
    g_autoptr(GDir) dir = g_dir_open("/proc/self/fd", 0, NULL);
    guint n = 0;

    while (g_dir_read_name(dir) != NULL)
        n++;
    return n;
}

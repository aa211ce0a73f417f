/* SPDX-License-Identifier: Apache-2.0 */
/* What the door costs, in a network of its own whose loopback answers at 11.0.0.0/8.
 *
 * usage: door-bench tunnel MIB ROUNDS | boxes COUNT | decide TIMES
 *
 * tunnel: MIB mebibytes from a server, directly and through a CONNECT in turns; a line each with
 * the seconds of both, and at the end the processor seconds of the door.
 * boxes: the memory that COUNT boxes without connections add, in bytes.
 * decide: microseconds of a decision among POLICY_RULES_MAX rules. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/io.h"
#include "door/door.h"
#include "wire/door.h"

enum { SERVER_PORT = 8080, PIECE = 256 * 1024, MIB = 1024 * 1024 };

static int
socket_at(const char *address, guint16 port, bool server)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(port)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int on = 1;

    inet_pton(AF_INET, address, &a.sin_addr);
    if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) < 0 ||
        (server ? bind(fd, (struct sockaddr *)&a, sizeof a) < 0 || listen(fd, 64) < 0
                : connect(fd, (struct sockaddr *)&a, sizeof a) < 0))
        g_error("%s port %d: %s", address, port, g_strerror(errno));
    return fd;
}

static void
run_ip(const char *arguments)
{
    g_autofree char *line = g_strconcat("ip ", arguments, NULL);
    int status;

    if (!g_spawn_command_line_sync(line, NULL, NULL, &status, NULL) || status != 0)
        g_error("%s failed", line);
}

static Policy *
make_policy(const char *text)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(Json) object = json_decode(text, strlen(text), &error);
    Policy *policy = object != NULL ? policy_new(object, &error) : NULL;

    if (policy == NULL)
        g_error("%s", error->message);
    return policy;
}

/* ---- tunnel ---- */

/* To each client as many mebibytes as the line it sends says. */
static void
serve(int listener)
{
    g_autofree char *piece = g_strnfill(PIECE, 'x');

    for (;;) {
        char line[32] = "";
        autofd fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);

        if (fd < 0 || read(fd, line, sizeof line - 1) <= 0)
            continue;
        for (guint64 left = g_ascii_strtoull(line, NULL, 10) * MIB; left > 0; left -= MIN(left, PIECE)) {
            if (!io_write_all(fd, piece, MIN(left, PIECE)))
                break;
        }
    }
}

static void
run_door(int listener)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(Policy) policy = make_policy("{\"rules\": [{\"allow\": \"11.0.0.1\", \"ports\": [8080]}]}");
    Loop *loop = loop_new(NULL);
    const DialerSpec spec = {.loop = loop, .own = own_addresses_new()};
    Dialer *dialer = dialer_new(&spec, &error);
    Door *door = door_new(&(DoorSpec){.loop = loop, .dialer = dialer, .facts = fact_log_new()});
    const DoorBoxSpec box = {.id = "bench", .policy = policy};

    if (door_add(door, listener, &box, &error) == NULL)
        g_error("%s", error->message);
    for (;;)
        g_main_context_iteration(NULL, TRUE);
}

static pid_t
start(void (*func)(int listener), int listener)
{
    pid_t pid = fork();

    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        func(listener);
        _exit(0);
    }
    close(listener);
    return pid;
}

static double
fetch(int fd, guint64 mib)
{
    g_autofree char *piece = g_malloc(PIECE);
    gint64 begun = clock_mono_us();
    char line[32];
    guint64 got = 0;
    ssize_t n;

    g_snprintf(line, sizeof line, "%" G_GUINT64_FORMAT "\n", mib);
    if (!io_write_all(fd, line, strlen(line)))
        g_error("write: %s", g_strerror(errno));
    while ((n = read(fd, piece, PIECE)) > 0)
        got += (guint64)n;
    if (got != mib * MIB)
        g_error("%" G_GUINT64_FORMAT " bytes came", got);
    return (double)(clock_mono_us() - begun) / G_USEC_PER_SEC;
}

static int
connect_through(void)
{
    static const char request[] = "CONNECT 11.0.0.1:8080 HTTP/1.1\r\nHost: 11.0.0.1:8080\r\n\r\n";
    int fd = socket_at("127.0.0.1", DOOR_PORT, false);
    char answer[1024] = "";

    for (size_t n = 0; strstr(answer, "\r\n\r\n") == NULL; n++) {
        if ((n == 0 && !io_write_all(fd, request, sizeof request - 1)) || n == sizeof answer - 1 ||
            read(fd, answer + n, 1) != 1)
            g_error("no tunnel: %s", answer);
    }
    if (!g_str_has_prefix(answer, "HTTP/1.1 200"))
        g_error("no tunnel: %s", answer);
    return fd;
}

static double
cpu_seconds(pid_t pid)
{
    struct rusage usage;

    kill(pid, SIGTERM);
    if (wait4(pid, NULL, 0, &usage) != pid)
        g_error("wait: %s", g_strerror(errno));
    return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / G_USEC_PER_SEC;
}

static void
measure_tunnel(guint64 mib, guint rounds)
{
    pid_t server = start(serve, socket_at("11.0.0.1", SERVER_PORT, true));
    pid_t door = start(run_door, socket_at("127.0.0.1", DOOR_PORT, true));

    for (guint i = 0; i < rounds; i++) {
        autofd direct = socket_at("11.0.0.1", SERVER_PORT, false);
        double direct_s = fetch(direct, mib);
        autofd tunnel = connect_through();

        printf("%.6f %.6f\n", direct_s, fetch(tunnel, mib));
    }
    printf("%.6f\n", cpu_seconds(door));
    (void)cpu_seconds(server);
}

/* ---- boxes ---- */

static size_t
rss(void)
{
    g_autofree char *text = NULL;
    unsigned long size, pages;

    if (!g_file_get_contents("/proc/self/statm", &text, NULL, NULL) ||
        sscanf(text, "%lu %lu", &size, &pages) != 2)
        g_error("no memory?");
    return pages * (size_t)getpagesize();
}

static void
measure_boxes(guint count)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(Policy) policy = make_policy("{}");
    Loop *loop = loop_new(NULL);
    const DialerSpec spec = {.loop = loop, .own = own_addresses_new()};
    Dialer *dialer = dialer_new(&spec, &error);
    Door *door = door_new(&(DoorSpec){.loop = loop, .dialer = dialer, .facts = fact_log_new()});
    size_t before = rss();

    for (guint i = 0; i < count; i++) {
        g_autofree char *id = g_strdup_printf("box%017u", i);
        const DoorBoxSpec box = {.id = id, .policy = policy, .labels = {"agent", "task", "squad"}};

        if (door_add(door, socket_at("127.0.0.1", (guint16)(10000 + i), true), &box, &error) == NULL)
            g_error("%s", error->message);
    }
    printf("%zu\n", rss() - before);
}

/* ---- decide ---- */

static void
measure_decision(guint times)
{
    g_autoptr(GString) rules = g_string_new("{\"rules\": [");
    DoorName name;
    PolicyVerdict verdict;

    for (guint i = 0; i < POLICY_RULES_MAX; i++)
        g_string_append_printf(rules, "%s{\"allow\": \"%shost-%u.example.test\"}", i > 0 ? "," : "",
                               i % 2 == 0 ? "*." : "", i);
    g_string_append(rules, "]}");
    g_autoptr(Policy) policy = make_policy(rules->str);
    if (!door_name_read("a.deep.name.below.host-510.example.test:443", 0, &name, NULL))
        g_error("a bad name");
    gint64 begun = clock_mono_us();
    for (guint i = 0; i < times; i++)
        policy_decide(policy, &name, &verdict);
    printf("%.4f\n", (double)(clock_mono_us() - begun) / times);
}

int
main(int argc, char **argv)
{
    guint number = argc > 2 ? (guint)g_ascii_strtoull(argv[2], NULL, 10) : 0;

    if (number == 0)
        g_error("usage: door-bench tunnel MIB ROUNDS | boxes COUNT | decide TIMES");
    if (strcmp(argv[1], "decide") == 0) {
        measure_decision(number);
        return 0;
    }
    if (unshare(geteuid() == 0 ? CLONE_NEWNET : CLONE_NEWUSER | CLONE_NEWNET) < 0)
        g_error("a network of its own: %s", g_strerror(errno));
    run_ip("link set lo up");
    run_ip("route add local 11.0.0.0/8 dev lo");
    if (strcmp(argv[1], "tunnel") == 0)
        measure_tunnel(number, argc > 3 ? (guint)g_ascii_strtoull(argv[3], NULL, 10) : 1);
    else
        measure_boxes(number);
    return 0;
}

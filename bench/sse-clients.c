/* SPDX-License-Identifier: Apache-2.0 */
/* Many event streams from one process.  usage: sse-clients PORT KEY COUNT
 *
 * Opens COUNT streams, says "ready" when each has had its first beat, then reads a line from
 * standard input for every event it shall wait for and answers with one line of latencies in
 * microseconds: from the event's own `at` to the moment each stream had read it. */
#include <arpa/inet.h>
#include <errno.h>
#include <glib.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

enum { TEXT_MAX = 4096, EVENTS = 256, WAIT_MS = 30000 };

typedef struct Stream {
    int fd;
    bool heard;
    gint64 latency_us;
} Stream;

static int
open_stream(guint16 port, const char *key)
{
    struct sockaddr_in a = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    g_autofree char *request = g_strdup_printf(
        "GET /api/v1/events HTTP/1.1\r\nHost: localhost:%u\r\nX-API-Key: %s\r\n"
        "Accept: text/event-stream\r\n\r\n",
        port, key);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (fd < 0 || connect(fd, (struct sockaddr *)&a, sizeof a) < 0 ||
        send(fd, request, strlen(request), MSG_NOSIGNAL) != (ssize_t)strlen(request))
        g_error("stream: %s", g_strerror(errno));
    return fd;
}

/* The microsecond of the day of "2026-01-31T12:00:00.123456Z". */
static gint64
us_of_day(const char *iso)
{
    unsigned h, m, s, us;

    if (sscanf(iso + 11, "%2u:%2u:%2u.%6u", &h, &m, &s, &us) != 4)
        g_error("no time in '%s'", iso);
    return ((gint64)h * 3600 + m * 60 + s) * G_USEC_PER_SEC + us;
}

static void
read_stream(Stream *s, const char *wanted)
{
    char text[TEXT_MAX + 1];
    ssize_t n = recv(s->fd, text, TEXT_MAX, 0);

    if (n <= 0)
        g_error("a stream ended");
    text[n] = '\0';
    const char *at = strstr(text, wanted) != NULL ? strstr(strstr(text, wanted), "\"at\":\"") : NULL;
    if (at == NULL)
        return;
    s->heard = true;
    s->latency_us = g_get_real_time() % (G_GINT64_CONSTANT(86400) * G_USEC_PER_SEC) - us_of_day(at + 6);
}

static void
wait_for_all(int epoll, Stream *streams, guint n, const char *wanted)
{
    struct epoll_event events[EVENTS];
    guint left = n;

    for (guint i = 0; i < n; i++)
        streams[i].heard = false;
    while (left > 0) {
        int got = epoll_wait(epoll, events, EVENTS, WAIT_MS);

        if (got <= 0)
            g_error("%u streams heard nothing", left);
        for (int i = 0; i < got; i++) {
            Stream *s = events[i].data.ptr;
            bool before = s->heard;

            read_stream(s, wanted);
            left -= s->heard && !before;
        }
    }
}

int
main(int argc, char **argv)
{
    if (argc != 4)
        return 2;
    guint n = (guint)g_ascii_strtoull(argv[3], NULL, 10);
    g_autofree Stream *streams = g_new0(Stream, n);
    int epoll = epoll_create1(EPOLL_CLOEXEC);
    struct rlimit fds = {.rlim_cur = n + 64, .rlim_max = n + 64};
    char line[64];

    getrlimit(RLIMIT_NOFILE, &fds);
    fds.rlim_cur = fds.rlim_max;
    setrlimit(RLIMIT_NOFILE, &fds);
    for (guint i = 0; i < n; i++) {
        streams[i].fd = open_stream((guint16)g_ascii_strtoull(argv[1], NULL, 10), argv[2]);
        struct epoll_event e = {.events = EPOLLIN, .data.ptr = &streams[i]};
        epoll_ctl(epoll, EPOLL_CTL_ADD, streams[i].fd, &e);
    }
    wait_for_all(epoll, streams, n, "event: beat");
    puts("ready");
    fflush(stdout);
    while (fgets(line, sizeof line, stdin) != NULL) {
        wait_for_all(epoll, streams, n, g_strchomp(line));
        for (guint i = 0; i < n; i++)
            printf("%" G_GINT64_FORMAT "%c", streams[i].latency_us, i + 1 < n ? ' ' : '\n');
        fflush(stdout);
    }
    return 0;
}

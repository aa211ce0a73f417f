/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <glib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "wire/channel.h"
#include "wire/frame.h"

static void
make_pair(int pair[2])
{
    g_assert_cmpint(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair), ==, 0);
}

static void
test_channel_packets(void)
{
    char got[64];
    int pair[2];

    make_pair(pair);
    g_assert_cmpint(channel_recv(pair[1], got, sizeof got, NULL, NULL), ==, -1);
    g_assert_cmpint(errno, ==, EAGAIN);
    g_assert_cmpint(channel_send(pair[0], "one", 3, NULL, 0), ==, 0);
    g_assert_cmpint(channel_send2(pair[0], "tw", 2, "o", 1, NULL, 0), ==, 0);
    g_assert_cmpint(channel_recv(pair[1], got, sizeof got, NULL, NULL), ==, 3);
    g_assert_cmpmem(got, 3, "one", 3);
    g_assert_cmpint(channel_recv(pair[1], got, sizeof got, NULL, NULL), ==, 3);
    g_assert_cmpmem(got, 3, "two", 3);
    /* What does not fit is gone, and the next one is whole. */
    g_assert_cmpint(channel_send(pair[0], "0123456789", 10, NULL, 0), ==, 0);
    g_assert_cmpint(channel_send(pair[0], "next", 4, NULL, 0), ==, 0);
    g_assert_cmpint(channel_recv(pair[1], got, 4, NULL, NULL), ==, -1);
    g_assert_cmpint(errno, ==, EMSGSIZE);
    g_assert_cmpint(channel_recv(pair[1], got, 4, NULL, NULL), ==, 4);
    g_assert_cmpint(channel_send(pair[0], "", 0, NULL, 0), ==, -1);
    g_assert_cmpint(errno, ==, EINVAL);
    close(pair[0]);
    g_assert_cmpint(channel_recv(pair[1], got, sizeof got, NULL, NULL), ==, 0);
    g_assert_cmpint(channel_send(pair[1], "x", 1, NULL, 0), ==, -1);
    g_assert_cmpint(errno, ==, EPIPE);
    close(pair[1]);
}

/* Whoever goes without having read everything has still said what it said. */
static void
test_channel_last_words(void)
{
    char got[64];
    int pair[2];

    make_pair(pair);
    g_assert_cmpint(channel_send(pair[1], "unread", 6, NULL, 0), ==, 0);
    g_assert_cmpint(channel_send(pair[0], "last", 4, NULL, 0), ==, 0);
    close(pair[0]);
    g_assert_cmpint(channel_recv(pair[1], got, sizeof got, NULL, NULL), ==, 4);
    g_assert_cmpmem(got, 4, "last", 4);
    g_assert_cmpint(channel_recv(pair[1], got, sizeof got, NULL, NULL), ==, 0);
    close(pair[1]);
}

static void
test_channel_full(void)
{
    char packet[1024] = {0};
    int pair[2];
    guint sent = 0;

    make_pair(pair);
    while (channel_send(pair[0], packet, sizeof packet, NULL, 0) == 0)
        g_assert_cmpuint(++sent, <, 1u << 20);
    g_assert_cmpint(errno, ==, EAGAIN);
    for (guint i = 0; i < sent; i++)
        g_assert_cmpint(channel_recv(pair[1], packet, sizeof packet, NULL, NULL), ==, sizeof packet);
    g_assert_cmpint(channel_send(pair[0], packet, sizeof packet, NULL, 0), ==, 0);
    close(pair[0]);
    close(pair[1]);
}

static guint
count_fds(void)
{
    g_autoptr(GDir) folder = g_dir_open("/proc/self/fd", 0, NULL);
    guint n = 0;

    while (g_dir_read_name(folder) != NULL)
        n++;
    return n;
}

static void
test_channel_fds(void)
{
    int pair[2];
    int fds[CHANNEL_FDS_MAX];
    int got[CHANNEL_FDS_MAX];
    size_t n = CHANNEL_FDS_MAX;
    char byte;

    make_pair(pair);
    for (guint i = 0; i < CHANNEL_FDS_MAX; i++)
        fds[i] = open("/dev/null", O_RDONLY | O_CLOEXEC);
    guint before = count_fds();
    g_assert_cmpint(channel_send(pair[0], "x", 1, fds, CHANNEL_FDS_MAX), ==, 0);
    g_assert_cmpint(channel_recv(pair[1], &byte, 1, got, &n), ==, 1);
    g_assert_cmpuint(n, ==, CHANNEL_FDS_MAX);
    for (guint i = 0; i < n; i++) {
        g_assert_cmpint(fcntl(got[i], F_GETFD), ==, FD_CLOEXEC);
        close(got[i]);
    }
    /* Too few places, none at all, a packet that was dropped: nothing leaks. */
    g_assert_cmpint(channel_send(pair[0], "x", 1, fds, 3), ==, 0);
    n = 1;
    g_assert_cmpint(channel_recv(pair[1], &byte, 1, got, &n), ==, 1);
    g_assert_cmpuint(n, ==, 1);
    close(got[0]);
    g_assert_cmpint(channel_send(pair[0], "x", 1, fds, 3), ==, 0);
    g_assert_cmpint(channel_recv(pair[1], &byte, 1, NULL, NULL), ==, 1);
    g_assert_cmpint(channel_send(pair[0], "xy", 2, fds, 3), ==, 0);
    n = 3;
    g_assert_cmpint(channel_recv(pair[1], &byte, 1, got, &n), ==, -1);
    g_assert_cmpuint(n, ==, 0);
    g_assert_cmpuint(count_fds(), ==, before);
    g_assert_cmpint(channel_send(pair[0], "x", 1, fds, CHANNEL_FDS_MAX + 1), ==, -1);
    for (guint i = 0; i < CHANNEL_FDS_MAX; i++)
        close(fds[i]);
    close(pair[0]);
    close(pair[1]);
}

static FrameStart *
sample_start(void)
{
    FrameStart *start = g_new0(FrameStart, 1);

    *start = (FrameStart){.flags = START_TTY | START_BLOCK,
                          .timeout_ms = 1500,
                          .rows = 24,
                          .columns = 80,
                          .ring_bytes = 65536,
                          .spill_bytes = 1 << 20,
                          .user = "user",
                          .cwd = "",
                          .argc = 3,
                          .envc = 1,
                          .argv = {"sh", "-c", ""},
                          .envp = {"A=b c"}};
    return start;
}

static void
test_start_whole(void)
{
    g_autofree FrameStart *start = sample_start();
    g_autofree FrameStart *back = g_new0(FrameStart, 1);
    char bytes[256];
    size_t n = frame_start_pack(start, bytes, sizeof bytes);

    g_assert_cmpuint(n, >, 0);
    g_assert_true(frame_start_unpack(bytes, n, back));
    g_assert_cmpuint(back->flags, ==, start->flags);
    g_assert_cmpuint(back->timeout_ms, ==, 1500);
    g_assert_cmpuint(back->rows, ==, 24);
    g_assert_cmpuint(back->columns, ==, 80);
    g_assert_cmpuint(back->ring_bytes, ==, 65536);
    g_assert_cmpuint(back->spill_bytes, ==, 1 << 20);
    g_assert_cmpstr(back->user, ==, "user");
    g_assert_cmpstr(back->cwd, ==, "");
    g_assert_cmpstr(back->argv[0], ==, "sh");
    g_assert_cmpstr(back->argv[2], ==, "");
    g_assert_null(back->argv[3]);
    g_assert_cmpstr(back->envp[0], ==, "A=b c");
    g_assert_null(back->envp[1]);
    for (size_t size = 0; size < n; size++)
        g_assert_cmpuint(frame_start_pack(start, bytes, size), ==, 0);
}

/* A descriptor stands for what would be framed, of a built-in, and there is one. */
static void
test_start_flags(void)
{
    static const struct {
        uint32_t flags;
        bool fine;
    } cases[] = {
        {START_BUILTIN | START_IN_FD, true},
        {START_BUILTIN | START_OUT_FD | START_BLOCK, true},
        {START_BUILTIN | START_OUT_FD | START_ROOT, true},
        {START_IN_FD, false},
        {START_OUT_FD, false},
        {START_BUILTIN | START_IN_FD | START_OUT_FD, false},
        {START_BUILTIN | START_IN_FD | START_STDIN, false},
        {START_BUILTIN | START_OUT_FD | START_TTY, false},
        {START_OUT_FD << 1, false},
    };
    g_autofree FrameStart *start = sample_start();
    g_autofree FrameStart *back = g_new0(FrameStart, 1);
    char bytes[256];

    for (guint i = 0; i < G_N_ELEMENTS(cases); i++) {
        start->flags = cases[i].flags;
        size_t n = frame_start_pack(start, bytes, sizeof bytes);

        g_assert_true(frame_start_unpack(bytes, n, back) == cases[i].fine);
    }
}

/* Each length in memory of its exact size, so that a read past it is seen. */
static void
test_start_malformed(void)
{
    g_autofree FrameStart *start = sample_start();
    g_autofree FrameStart *back = g_new0(FrameStart, 1);
    char bytes[256];
    size_t n = frame_start_pack(start, bytes, sizeof bytes - 1);

    for (size_t less = 0; less < n; less++) {
        g_autofree char *exact = g_memdup2(bytes, MAX(less, 1));

        g_assert_false(frame_start_unpack(exact, less, back));
    }
    bytes[n] = 'x';
    g_assert_false(frame_start_unpack(bytes, n + 1, back));
    bytes[3] = 0x40; /* a flag nobody knows */
    g_assert_false(frame_start_unpack(bytes, n, back));
    start->argc = 0;
    g_assert_cmpuint(frame_start_pack(start, bytes, sizeof bytes), ==, 0);
    start->argc = FRAME_ARGS_MAX + 1;
    g_assert_cmpuint(frame_start_pack(start, bytes, sizeof bytes), ==, 0);
}

static void
test_start_many(void)
{
    g_autofree FrameStart *start = sample_start();
    g_autofree FrameStart *back = g_new0(FrameStart, 1);
    g_autofree char *bytes = g_malloc(CHANNEL_PACKET_MAX);

    start->argc = start->envc = FRAME_ARGS_MAX;
    for (guint i = 0; i < FRAME_ARGS_MAX; i++)
        start->argv[i] = start->envp[i] = "x";
    size_t n = frame_start_pack(start, bytes, CHANNEL_PACKET_MAX);
    g_assert_true(frame_start_unpack(bytes, n, back));
    g_assert_null(back->argv[FRAME_ARGS_MAX]);
    g_assert_null(back->envp[FRAME_ARGS_MAX]);
    g_assert_cmpstr(back->envp[FRAME_ARGS_MAX - 1], ==, "x");
}

static const struct {
    const char *what;
    FrameHead head;
    size_t bytes; /* of the whole packet */
    bool good;
} frames[] = {
    {"stdin", {.type = FRAME_STDIN, .run = 1, .length = 4}, 28, true},
    {"stdin, empty", {.type = FRAME_STDIN, .run = 1}, 24, false},
    {"stdin, long",
     {.type = FRAME_STDIN, .run = 1, .length = FRAME_DATA_MAX + 1},
     25 + FRAME_DATA_MAX,
     false},
    {"stdin, full", {.type = FRAME_STDIN, .run = 1, .length = FRAME_DATA_MAX}, 24 + FRAME_DATA_MAX, true},
    {"length too small", {.type = FRAME_STDIN, .run = 1, .length = 3}, 28, false},
    {"length too large", {.type = FRAME_STDIN, .run = 1, .length = 5}, 28, false},
    {"length wraps", {.type = FRAME_STDIN, .run = 1, .length = 0xffffffff}, 23, false},
    {"no run", {.type = FRAME_STDIN, .length = 4}, 28, false},
    {"no type", {.type = 0, .run = 1}, 24, false},
    {"unknown type", {.type = 40, .run = 1}, 24, false},
    {"ack", {.type = FRAME_ACK, .run = 1, .stream = STREAM_STDERR}, 24, true},
    {"ack without a stream", {.type = FRAME_ACK, .run = 1}, 24, false},
    {"ack of a third stream", {.type = FRAME_ACK, .run = 1, .stream = 3}, 24, false},
    {"ack with a payload", {.type = FRAME_ACK, .run = 1, .stream = 1, .length = 1}, 25, false},
    {"hello", {.type = FRAME_HELLO}, 24, true},
    {"hello, two runs",
     {.type = FRAME_HELLO, .length = 2 * sizeof(FrameRun)},
     24 + 2 * sizeof(FrameRun),
     true},
    {"hello, half a run", {.type = FRAME_HELLO, .length = 8}, 32, false},
    {"end", {.type = FRAME_ENDED, .run = 1, .length = sizeof(FrameEnd)}, 24 + sizeof(FrameEnd), true},
    {"end, cut", {.type = FRAME_ENDED, .run = 1, .length = 4}, 28, false},
    {"start, cut", {.type = FRAME_START, .run = 1, .length = 4}, 28, false},
};

static void
test_check(void)
{
    for (size_t i = 0; i < G_N_ELEMENTS(frames); i++) {
        g_autofree char *packet = g_malloc0(frames[i].bytes);

        memcpy(packet, &frames[i].head, MIN(frames[i].bytes, sizeof(FrameHead)));
        if (frame_check(packet, frames[i].bytes) != frames[i].good)
            g_error("%s", frames[i].what);
    }
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/wire/channel/packets", test_channel_packets);
    g_test_add_func("/wire/channel/last-words", test_channel_last_words);
    g_test_add_func("/wire/channel/full", test_channel_full);
    g_test_add_func("/wire/channel/fds", test_channel_fds);
    g_test_add_func("/wire/start/whole", test_start_whole);
    g_test_add_func("/wire/start/flags", test_start_flags);
    g_test_add_func("/wire/start/malformed", test_start_malformed);
    g_test_add_func("/wire/start/many", test_start_many);
    g_test_add_func("/wire/check", test_check);
    return g_test_run();
}

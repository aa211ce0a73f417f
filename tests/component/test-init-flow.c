/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes between a command and a server that is slow, absent or new: none lost, none twice. */
#include <arpa/inet.h>
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "init-fixture.h"
#include "room.h"
#include "wire/channel.h"

/* Lines of 8 digits, so that every offset has one right byte. */
enum { RESTARTS = 200, LINE = 9, FIRST = 10000000, BIG_LINES = 11650844, SMALL_LINES = 1000000 };

static void
check_digits(TestRun *run, int stream, uint64_t offset, const guint8 *bytes, size_t n)
{
    char line[16];
    uint64_t at = offset;

    while (at < offset + n) {
        size_t col = at % LINE;
        size_t part = MIN(LINE - col, (size_t)(offset + n - at));

        g_snprintf(line, sizeof line, "%d\n", (int)(FIRST + at / LINE));
        if (memcmp(line + col, bytes + (at - offset), part) != 0)
            g_error("wrong bytes at %" G_GUINT64_FORMAT, at);
        at += part;
    }
}

static TestRun *
start_digits(TestBox *box, uint32_t id, uint32_t flags, guint lines)
{
    g_autofree char *line = g_strdup_printf("exec seq %d %d", FIRST, (int)(FIRST + lines - 1));
    TestRun *run = box_shell(box, id, flags, line);

    run->keep = false;
    run->on_data = check_digits;
    return run;
}

static void
test_blocking(void)
{
    if (!room_possible())
        return;
    TestBox *box = box_new();
    TestRun *run = start_digits(box, 1, START_BLOCK, BIG_LINES);

    box_until_ended(box, run);
    g_assert_cmpuint(run->end.out_bytes, ==, (uint64_t)BIG_LINES * LINE);
    g_assert_cmpuint(run->dropped[0], ==, 0);
    g_assert_cmpint(run->end.code, ==, 0);
    g_assert_cmpint(box_free(box), ==, 0);
}

/* The server takes nothing for a while: a blocking writer waits, the box goes on. */
static void
test_blocking_waits(void)
{
    if (!room_possible())
        return;
    TestBox *box = box_new();

    box->hold_acks = true;
    TestRun *run = start_digits(box, 1, START_BLOCK, SMALL_LINES);
    box_until_bytes(box, run, FRAME_WINDOW);
    TestRun *other = box_shell(box, 2, 0, "echo alive");
    box_until_ended(box, other);
    g_assert_cmpuint(run->offset[0], ==, FRAME_WINDOW);
    box->hold_acks = false;
    run->flying[0] = 0;
    box_send(box, (FrameHead){.type = FRAME_ACK, .run = 1, .stream = STREAM_STDOUT, .offset = run->offset[0]},
             NULL);
    box_until_ended(box, run);
    g_assert_cmpuint(run->end.out_bytes, ==, (uint64_t)SMALL_LINES * LINE);
    g_assert_cmpuint(run->dropped[0], ==, 0);
    g_assert_cmpint(box_free(box), ==, 0);
}

/* It ends though nobody takes its output; head and tail are there, one marker between. */
static void
test_dropping(void)
{
    if (!room_possible())
        return;
    TestBox *box = box_new();
    uint64_t total = (uint64_t)BIG_LINES * LINE;

    box->hold_acks = true;
    TestRun *run = start_digits(box, 1, 0, BIG_LINES);
    box_until_bytes(box, run, FRAME_WINDOW);
    g_autofree char *line = g_strdup_printf("while kill -0 %u 2>/dev/null; do :; done", run->pid);
    TestRun *other = box_shell(box, 2, 0, line);
    box_until_ended(box, other);
    box->hold_acks = false;
    run->flying[0] = 0;
    box_send(box, (FrameHead){.type = FRAME_ACK, .run = 1, .stream = STREAM_STDOUT, .offset = run->offset[0]},
             NULL);
    box_until_ended(box, run);
    g_assert_cmpuint(run->end.out_bytes, ==, total);
    /* 1 MiB of spill and 256 KiB of ring, of which an eighth may be free. */
    g_assert_cmpuint(total - run->dropped[0], >=, 1024 * 1024 + 224 * 1024);
    g_assert_cmpuint(total - run->dropped[0], <=, 1024 * 1024 + 256 * 1024);
    g_assert_cmpint(box_free(box), ==, 0);
}

/* A reader that is there but too slow sees many holes, and right bytes between them. */
static void
test_slow_reader(void)
{
    if (!room_possible())
        return;
    TestBox *box = box_new();
    g_autofree FrameStart *start = box_spec(0, "exec yes");

    start->ring_bytes = 16 * 1024;
    start->spill_bytes = 64 * 1024;
    start->timeout_ms = 1000;
    TestRun *run = box_start(box, 1, start);
    run->keep = false;
    while (!run->ended) {
        if (box_hear_some(box, 1) == 0)
            g_usleep(500);
    }
    g_assert_cmpuint(run->end.reason, ==, REASON_TIMEOUT);
    g_assert_cmpuint(run->dropped[0], >, 0);
    g_assert_cmpuint(run->end.out_bytes, ==, run->offset[0]);
    g_assert_cmpint(box_free(box), ==, 0);
}

/* The server dies at some frame and knows only what it had written down. */
static void
test_restarts(void)
{
    g_autoptr(GRand) rand = g_rand_new_with_seed(g_test_rand_int());

    if (!room_possible())
        return;
    TestBox *box = box_new();
    TestRun *run = start_digits(box, 1, START_BLOCK, SMALL_LINES);
    TestRun *failed = box_shell(box, 2, 0, "exit 7");
    gint64 deadline = g_get_monotonic_time() + 60 * G_USEC_PER_SEC;
    guint restarts = 0;

    /* An ended run that was not forgotten is told of again, so restarts go on past the end: how
     * many fit before it depends on the machine. */
    while (restarts < RESTARTS || !(run->ended && failed->ended) || box->wait_hello) {
        guint some = (guint)g_rand_int_range(rand, 1, 64);

        g_assert_cmpint(g_get_monotonic_time(), <, deadline);
        box->hold_acks = g_rand_boolean(rand);
        if (box_hear_some(box, some) == 0)
            g_thread_yield();
        if (restarts < RESTARTS && g_rand_int_range(rand, 0, 4) == 0) {
            box_restart_server(box);
            restarts++;
        } else if (!box->hold_acks && !box->wait_hello) {
            run->flying[0] = 0;
            box_send(
                box,
                (FrameHead){.type = FRAME_ACK, .run = 1, .stream = STREAM_STDOUT, .offset = run->offset[0]},
                NULL);
        }
    }
    g_assert_cmpuint(run->end.out_bytes, ==, (uint64_t)SMALL_LINES * LINE);
    g_assert_cmpuint(run->dropped[0], ==, 0);
    g_assert_cmpint(failed->end.code, ==, 7);
    g_assert_cmpuint(box->n_hello, ==, 2);
    /* Forgotten is forgotten. */
    box_forget(box, run);
    box_restart_server(box);
    box_until_ended(box, failed);
    g_assert_cmpuint(box->n_hello, ==, 1);
    g_assert_cmpint(box_free(box), ==, 0);
}

typedef struct Feed {
    TestRun *run;
    uint64_t sent, total;
} Feed;

static void
feed_some(TestBox *box, Feed *feed)
{
    guint8 bytes[FRAME_DATA_MAX];

    while (feed->sent < feed->total && feed->sent - feed->run->in_acked + sizeof bytes <= FRAME_WINDOW) {
        size_t n = MIN(sizeof bytes, feed->total - feed->sent);

        for (size_t i = 0; i < n; i++)
            bytes[i] = (guint8)((feed->sent + i) * 2654435761u >> 24);
        /* What was sent before is skipped, what leaves a hole is dropped. */
        if (feed->sent > 100)
            box_write(box, feed->run, feed->sent - 100, "stale", 5);
        box_write(box, feed->run, feed->sent + 1, "early", 5);
        box_write(box, feed->run, feed->sent, bytes, n);
        feed->sent += n;
        if (feed->sent == feed->total)
            box_send(box, (FrameHead){.type = FRAME_STDIN_CLOSE, .run = feed->run->id}, NULL);
    }
}

static bool
feed_until_ended(TestBox *box, void *data)
{
    Feed *feed = data;

    feed_some(box, feed);
    return feed->run->ended;
}

static void
test_stdin(void)
{
    if (!room_possible())
        return;
    TestBox *box = box_new();
    Feed feed = {.total = 10 * 1024 * 1024};

    feed.run = box_shell(box, 1, START_STDIN | START_BLOCK, "exec cat");
    box_until(box, feed_until_ended, &feed);
    g_assert_cmpuint(feed.run->out[0]->len, ==, feed.total);
    for (size_t i = 0; i < feed.total; i++)
        g_assert_cmpuint(feed.run->out[0]->data[i], ==, (guint8)(i * 2654435761u >> 24));
    /* A reader that goes away does not close the window. */
    Feed vain = {.total = 4 * 1024 * 1024};
    vain.run = box_shell(box, 2, START_STDIN, "exec <&-; exec sleep 0.3");
    box_until(box, feed_until_ended, &vain);
    g_assert_cmpint(vain.run->end.code, ==, 0);
    g_assert_cmpint(box_free(box), ==, 0);
}

/* The server hears of an end only after it has sent more: init has nothing to say to that. */
static void
test_late_input(void)
{
    if (!room_possible())
        return;
    TestBox *box = box_new();
    TestRun *ended = box_shell(box, 1, START_STDIN, "exit 0");
    g_autofree FrameStart *start = box_spec(START_STDIN, "exit 0");

    start->cwd = "/nowhere";
    TestRun *failed = box_start(box, 2, start);
    box_until_ended(box, ended);
    box_until_ended(box, failed);
    box_write(box, ended, 0, "late", 4);
    box_write(box, failed, 0, "late", 4);
    box_send(box, (FrameHead){.type = FRAME_STDIN_CLOSE, .run = ended->id}, NULL);
    box_expect(box, "echo alive", "alive\n");
    g_assert_cmpuint(ended->in_acked, ==, 0);
    g_assert_cmpuint(failed->in_acked, ==, 0);
    g_assert_cmpint(box_free(box), ==, 0);
}

static bool
says(TestBox *box, void *data)
{
    const char **want = data;
    const TestRun *run = g_hash_table_lookup(box->runs, GUINT_TO_POINTER(1));
    g_autofree char *text = test_run_text(run);

    return strstr(text, *want) != NULL || run->ended;
}

static void
expect(TestBox *box, const char *text)
{
    box_until(box, says, &text);
    const TestRun *run = g_hash_table_lookup(box->runs, GUINT_TO_POINTER(1));
    if (run->ended) {
        g_autofree char *got = test_run_text(run);

        if (strstr(got, text) == NULL)
            g_error("no '%s' in '%s'", text, got);
    }
}

static void
type(TestBox *box, TestRun *run, const char *text)
{
    box_write(box, run, run->in_acked, text, strlen(text));
}

static void
test_terminal(void)
{
    if (!room_possible())
        return;
    TestBox *box = box_new();
    g_autofree FrameStart *start = box_spec(
        START_TTY, "trap 'echo size $(stty size)' WINCH; tty; stty size; stty -echo; echo ready; "
                   "until read a; [ -n \"$a\" ]; do :; done; echo got $a; trap : INT; (trap 'echo int; exit' "
                   "INT; echo armed; while :; do "
                   "sleep 0.01; done); "
                   "read b; echo end of input $?");
    start->rows = 30;
    start->columns = 100;
    start->envc = 1;
    start->envp[0] = "TERM=dumb";
    TestRun *run = box_start(box, 1, start);

    expect(box, "/dev/pts/");
    expect(box, "30 100\r\n");
    expect(box, "ready\r\n");
    box_send(box, (FrameHead){.type = FRAME_RESIZE, .run = 1, .value = 50u << 16 | 120u}, NULL);
    type(box, run, "word\n");
    expect(box, "got word\r\n");
    expect(box, "size 50 120\r\n");
    expect(box, "armed\r\n");
    type(box, run, "\003");
    expect(box, "int\r\n");
    box_send(box, (FrameHead){.type = FRAME_STDIN_CLOSE, .run = 1}, NULL);
    expect(box, "end of input 1\r\n");
    box_until_ended(box, run);
    g_assert_cmpuint(run->out[1]->len, ==, 0);
    g_assert_cmpint(box_free(box), ==, 0);
}

static bool
connected(TestBox *box, void *data)
{
    return box->connect_done;
}

static void
test_connect(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t n = sizeof address;
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    char got[6] = {0};

    if (!room_possible())
        return;
    TestBox *box = box_new();

    g_assert_cmpint(bind(listener, (struct sockaddr *)&address, sizeof address), ==, 0);
    g_assert_cmpint(listen(listener, 1), ==, 0);
    g_assert_cmpint(getsockname(listener, (struct sockaddr *)&address, &n), ==, 0);
    box_send(box, (FrameHead){.type = FRAME_CONNECT, .run = 9, .value = ntohs(address.sin_port)}, NULL);
    box_until(box, connected, NULL);
    g_assert_cmpint(box->connect_error, ==, 0);
    int peer = accept(listener, NULL, NULL);
    g_assert_cmpint(write(peer, "hello", 5), ==, 5);
    while (read(box->connected_fd, got, 5) < 0)
        g_assert_cmpint(errno, ==, EAGAIN);
    g_assert_cmpstr(got, ==, "hello");
    close(peer);
    close(listener);
    close(box->connected_fd);
    box->connected_fd = -1;
    uint32_t closed[] = {ntohs(address.sin_port), 0, 65536};
    for (guint i = 0; i < G_N_ELEMENTS(closed); i++) {
        box->connect_done = false;
        box_send(box, (FrameHead){.type = FRAME_CONNECT, .run = 9, .value = closed[i]}, NULL);
        box_until(box, connected, NULL);
        g_assert_cmpint(box->connect_error, ==, i == 0 ? ECONNREFUSED : EINVAL);
    }
    g_assert_cmpint(box_free(box), ==, 0);
}

/* Bytes of all kinds, and frames at the wrong time, about runs that live, ended or never were. */
static void
test_hostile(void)
{
    g_autoptr(GRand) rand = g_rand_new_with_seed(g_test_rand_int());
    guint8 packet[512];

    if (!room_possible())
        return;
    TestBox *box = box_new();
    TestRun *run = box_shell(box, 1, START_STDIN | START_BLOCK, "exec cat");
    TestRun *ended = box_shell(box, 2, 0, "true");

    box_until_started(box, run);
    box_until_ended(box, ended);
    box->reuses_runs = true;
    for (guint i = 0; i < 20000; i++) {
        size_t n = (size_t)g_rand_int_range(rand, 1, sizeof packet);
        FrameHead head = {.type = (uint16_t)g_rand_int_range(rand, 0, 80),
                          .stream = (uint8_t)g_rand_int_range(rand, 0, 4),
                          .run = (uint32_t)g_rand_int_range(rand, 2, 5),
                          .offset = (uint64_t)g_rand_int(rand) << g_rand_int_range(rand, 0, 40),
                          .value = g_rand_int(rand)};

        for (size_t k = 0; k < n; k++)
            packet[k] = (guint8)g_rand_int(rand);
        /* Those two end things by right. */
        if (head.type == FRAME_SHUTDOWN || head.type == FRAME_HELLO)
            head.type = FRAME_ACK;
        if (n >= sizeof head) {
            head.length = (uint32_t)(n - sizeof head) + (g_rand_int_range(rand, 0, 8) == 0 ? 1 : 0);
            memcpy(packet, &head, sizeof head);
        }
        while (channel_send(box->channel, packet, n, NULL, 0) < 0 && errno == EAGAIN)
            box_hear_some(box, 64);
        box_hear_some(box, 64);
    }
    g_autofree guint8 *huge = g_malloc0(CHANNEL_PACKET_MAX + 1000);
    while (channel_send(box->channel, huge, CHANNEL_PACKET_MAX + 1000, NULL, 0) < 0 && errno == EAGAIN)
        box_hear_some(box, 64);
    type(box, run, "still here\n");
    box_send(box, (FrameHead){.type = FRAME_STDIN_CLOSE, .run = 1}, NULL);
    box_until_ended(box, run);
    g_autofree char *text = test_run_text(run);
    g_assert_cmpstr(text, ==, "still here\n");
    g_assert_cmpint(box_free(box), ==, 0);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/init/flow/blocking", test_blocking);
    g_test_add_func("/init/flow/blocking-waits", test_blocking_waits);
    g_test_add_func("/init/flow/dropping", test_dropping);
    g_test_add_func("/init/flow/slow-reader", test_slow_reader);
    g_test_add_func("/init/flow/restarts", test_restarts);
    g_test_add_func("/init/flow/stdin", test_stdin);
    g_test_add_func("/init/flow/late-input", test_late_input);
    g_test_add_func("/init/flow/terminal", test_terminal);
    g_test_add_func("/init/flow/connect", test_connect);
    g_test_add_func("/init/flow/hostile", test_hostile);
    return g_test_run();
}

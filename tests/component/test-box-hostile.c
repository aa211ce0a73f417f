/* SPDX-License-Identifier: Apache-2.0 */
/* An init that is not ours: what cannot be ends the link, and nothing else. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/err.h"
#include "link-fixture.h"
#include "wire/channel.h"

typedef struct Peer {
    LinkBox *box;
    int fd;
    guint64 number;
    Run *logged, *streamed;
    guint32 stream_id;
    guint8 *packet;
} Peer;

static ssize_t
hear(Peer *peer)
{
    return channel_recv(peer->fd, peer->packet, CHANNEL_PACKET_MAX, NULL, NULL);
}

/* Until a frame of this type comes. */
static FrameHead
hear_until(Peer *peer, guint16 type)
{
    FrameHead head = {0};

    for (int i = 0; i < 10000; i++) {
        while (hear(peer) > 0) {
            memcpy(&head, peer->packet, sizeof head);
            if (head.type == type)
                return head;
        }
        g_main_context_iteration(NULL, FALSE);
    }
    g_error("no frame of type %u", type);
    return head;
}

static bool
say_fd(Peer *peer, FrameHead head, const void *body, int fd)
{
    return channel_send2(peer->fd, &head, sizeof head, body, head.length, &fd, fd >= 0 ? 1 : 0) == 0;
}

static bool
say(Peer *peer, FrameHead head, const void *body)
{
    return say_fd(peer, head, body, -1);
}

static bool
on_output(Run *run, FrameStream stream, const guint8 *bytes, size_t n, void *ctx)
{
    return true;
}

static void
on_ended(Run *run, const RunEnd *end, void *ctx)
{
    (*(guint *)ctx)++;
}

static const RunSink sink = {on_output, on_ended, NULL};

/* Run 1 is logged, with input; another is streamed. */
static void
peer_init(Peer *peer, guint *ended)
{
    *peer = (Peer){.packet = g_malloc(CHANNEL_PACKET_MAX)};
    peer->box = link_box_scripted(&peer->fd);
    peer->logged = link_box_shell(peer->box, START_STDIN, "true");
    peer->streamed = link_box_stream(peer->box, 0, "true", &sink, ended);
    peer->stream_id = run_id(peer->streamed);
    peer->number = hear_until(peer, FRAME_HELLO).offset;
    say(peer, (FrameHead){.type = FRAME_HELLO, .offset = peer->number, .value = FRAME_VERSION}, NULL);
    (void)hear_until(peer, FRAME_START);
    (void)hear_until(peer, FRAME_START);
    turn_until_count(&peer->box->ready, 1);
}

static void
peer_clear(Peer *peer)
{
    run_unref(peer->logged);
    run_unref(peer->streamed);
    close(peer->fd);
    (void)link_box_free(peer->box);
    g_free(peer->packet);
}

#define OUT(r, o, n)                                                                                         \
    {                                                                                                        \
        .type = FRAME_OUTPUT, .stream = STREAM_STDOUT, .run = (r), .offset = (o), .length = (n)              \
    }
#define STREAMED 0xffffffff /* stands for the id of the streamed run */

static void
test_frames(void)
{
    static const FrameEnd fine = {.reason = REASON_EXIT}, bad_reason = {.reason = 77},
                          bad_code = {.reason = REASON_EXIT, .code = 256},
                          bad_signal = {.reason = REASON_SIGNAL, .code = 0},
                          more = {.reason = REASON_EXIT, .out_bytes = 1},
                          less = {.reason = REASON_EXIT, .err_bytes = G_MAXUINT64};
    static const guint8 bytes[FRAME_DATA_MAX];
    static const struct {
        const char *name;
        FrameHead frames[2];
        const void *bodies[2];
    } cases[] = {
        {"from the server's side", {{.type = FRAME_START, .run = 1, .length = 28}}, {bytes}},
        {"unknown type", {{.type = 999, .run = 1}}, {NULL}},
        {"short payload", {{.type = FRAME_ENDED, .run = 1, .length = 3}}, {bytes}},
        {"no run", {{.type = FRAME_OUTPUT, .stream = 1, .length = 5}}, {bytes}},
        {"no stream", {{.type = FRAME_OUTPUT, .stream = 3, .run = 1, .length = 5}}, {bytes}},
        {"run that never was", {OUT(2, 0, 5)}, {bytes}},
        {"streamed run that never was", {OUT((1u << 30) - 1, 0, 5)}, {bytes}},
        {"hole", {OUT(1, 5, 5)}, {bytes}},
        {"back", {OUT(1, 0, 5), OUT(1, 4, 5)}, {bytes, bytes}},
        {"offset at the end", {OUT(1, G_MAXUINT64 - 2, 5)}, {bytes}},
        {"empty gap", {{.type = FRAME_GAP, .stream = 1, .run = 1}}, {NULL}},
        {"gap in a streamed run", {{.type = FRAME_GAP, .stream = 1, .run = STREAMED, .value = 1}}, {NULL}},
        {"input acknowledged that was never sent",
         {{.type = FRAME_STDIN_ACK, .run = 1, .offset = 1}},
         {NULL}},
        {"started twice",
         {{.type = FRAME_STARTED, .run = 1, .value = 5}, {.type = FRAME_STARTED, .run = 1, .value = 5}},
         {NULL, NULL}},
        {"started as nobody", {{.type = FRAME_STARTED, .run = 1}}, {NULL}},
        {"failed after it started",
         {{.type = FRAME_STARTED, .run = 1, .value = 5},
          {.type = FRAME_FAILED, .run = 1, .stage = FAIL_EXEC, .value = 2}},
         {NULL, NULL}},
        {"failed at nothing",
         {{.type = FRAME_FAILED, .run = 1, .stage = FAIL_STAGE_MAX, .value = 2}},
         {NULL}},
        {"ended for no reason", {{.type = FRAME_ENDED, .run = 1, .length = sizeof fine}}, {&bad_reason}},
        {"exit code", {{.type = FRAME_ENDED, .run = 1, .length = sizeof fine}}, {&bad_code}},
        {"signal", {{.type = FRAME_ENDED, .run = 1, .length = sizeof fine}}, {&bad_signal}},
        {"ended with more", {{.type = FRAME_ENDED, .run = 1, .length = sizeof fine}}, {&more}},
        {"ended with far more", {{.type = FRAME_ENDED, .run = 1, .length = sizeof fine}}, {&less}},
        {"ended with less",
         {OUT(STREAMED, 0, 5), {.type = FRAME_ENDED, .run = STREAMED, .length = sizeof fine}},
         {bytes, &fine}},
        {"connected to nothing", {{.type = FRAME_CONNECTED, .run = (1u << 31) + 1}}, {NULL}},
        {"refused what was not asked",
         {{.type = FRAME_FAILED, .run = (1u << 31) + 1, .stage = FAIL_CONNECT}},
         {NULL}},
        {"hello again", {{.type = FRAME_HELLO, .value = FRAME_VERSION}}, {NULL}},
    };

    for (guint i = 0; i < G_N_ELEMENTS(cases); i++) {
        guint ended = 0;
        Peer peer;

        g_test_message("%s", cases[i].name);
        peer_init(&peer, &ended);
        for (guint k = 0; k < 2; k++) {
            FrameHead head = cases[i].frames[k];

            head.run = head.run == STREAMED ? peer.stream_id : head.run;
            if (head.type == FRAME_HELLO)
                head.offset = peer.number;
            if (head.type != 0)
                g_assert_true(say(&peer, head, cases[i].bodies[k]));
        }
        turn_until_count(&peer.box->closed, 1);
        if (peer.box->error == NULL)
            g_error("'%s' was taken", cases[i].name);
        g_assert_cmpint(run_end(peer.logged)->reason, ==, RUN_LOST);
        g_assert_cmpuint(ended, ==, 1);
        peer_clear(&peer);
    }
}

static void
test_end_twice(void)
{
    FrameEnd end = {.reason = REASON_EXIT};
    FrameHead head = {.type = FRAME_ENDED, .run = 1, .length = sizeof end};
    guint ended = 0;
    Peer peer;

    peer_init(&peer, &ended);
    peer.box->forget = false;
    say(&peer, head, &end);
    turn_until_ended(peer.logged);
    say(&peer, head, &end);
    turn_until_count(&peer.box->closed, 1);
    g_assert_nonnull(peer.box->error);
    g_assert_cmpint(run_end(peer.logged)->reason, ==, RUN_EXIT);
    g_assert_cmpuint(peer.box->ended, ==, 1);
    peer_clear(&peer);
}

/* More than was granted, all of it there before a byte can have been written down: the window is
 * what bounds our memory. */
static void
test_window(void)
{
    guint8 bytes[FRAME_DATA_MAX] = {0};
    int room = FRAME_WINDOW;
    guint ended = 0;
    Peer peer;

    peer_init(&peer, &ended);
    g_assert_cmpint(setsockopt(peer.fd, SOL_SOCKET, SO_SNDBUF, &room, sizeof room), ==, 0);
    for (guint i = 0; i <= FRAME_WINDOW / sizeof bytes; i++) {
        FrameHead head = OUT(1, i * sizeof bytes, sizeof bytes);

        g_assert_true(say(&peer, head, bytes));
    }
    turn_until_count(&peer.box->closed, 1);
    g_assert_nonnull(peer.box->error);
    g_assert_cmpuint(run_end(peer.logged)->out_bytes, ==, FRAME_WINDOW);
    peer_clear(&peer);
}

static bool
stop_at_once(Run *run, FrameStream stream, const guint8 *bytes, size_t n, void *ctx)
{
    return false;
}

static void
test_window_paused(void)
{
    static const RunSink stopped = {stop_at_once, on_ended, NULL};
    guint8 bytes[FRAME_DATA_MAX] = {0};
    guint ended = 0, frames = 0;
    Peer peer;

    peer_init(&peer, &ended);
    g_autoptr(Run) run = link_box_stream(peer.box, 0, "true", &stopped, &ended);
    (void)hear_until(&peer, FRAME_START);
    while (peer.box->closed == 0) {
        FrameHead head = OUT(run_id(run), (guint64)frames * sizeof bytes, sizeof bytes);

        if (say(&peer, head, bytes))
            frames++;
        g_main_context_iteration(NULL, FALSE);
        g_assert_cmpuint(frames, <, 100);
    }
    g_assert_nonnull(peer.box->error);
    /* One was taken, a window's worth was kept. */
    g_assert_cmpuint(frames, >=, FRAME_WINDOW / sizeof bytes + 1);
    peer_clear(&peer);
}

/* Single bytes and gaps in turn cost memory in no proportion to the window. */
static void
test_crumbs(void)
{
    guint ended = 0, frames = 0;
    guint64 at[2] = {0};
    Peer peer;

    peer_init(&peer, &ended);
    while (frames < 60000) {
        guint s = frames % 2;
        FrameHead head = {.type = frames % 4 < 2 ? FRAME_OUTPUT : FRAME_GAP,
                          .stream = (guint8)(s + 1),
                          .run = 1,
                          .offset = at[s],
                          .value = 1,
                          .length = frames % 4 < 2 ? 1 : 0};

        if (say(&peer, head, "x")) {
            frames++;
            at[s]++;
        } else {
            g_main_context_iteration(NULL, TRUE);
        }
        while (hear(&peer) > 0)
            ;
        g_assert_cmpuint(peer.box->closed, ==, 0);
    }
    FrameEnd end = {.reason = REASON_EXIT, .out_bytes = at[0], .err_bytes = at[1]};
    while (!say(&peer, (FrameHead){.type = FRAME_ENDED, .run = 1, .length = sizeof end}, &end))
        g_main_context_iteration(NULL, TRUE);
    turn_until_ended(peer.logged);
    g_assert_cmpuint(run_end(peer.logged)->out_bytes, ==, 30000);
    peer_clear(&peer);
}

typedef struct Jam {
    GMutex mutex;
    GCond cond;
    bool over;
    guint left;
} Jam;

static void
wait_in_jam(void *data)
{
    Jam *jam = data;

    g_mutex_lock(&jam->mutex);
    while (!jam->over)
        g_cond_wait(&jam->cond, &jam->mutex);
    g_mutex_unlock(&jam->mutex);
}

static void
left_jam(void *data)
{
    ((Jam *)data)->left++;
}

static void
end_jam(Jam *jam)
{
    g_mutex_lock(&jam->mutex);
    jam->over = true;
    g_cond_broadcast(&jam->cond);
    g_mutex_unlock(&jam->mutex);
    while (jam->left < LOOP_OFFLOAD_THREADS)
        g_main_context_iteration(NULL, TRUE);
}

static void
jam_begin(Jam *jam, Loop *loop)
{
    g_mutex_init(&jam->mutex);
    g_cond_init(&jam->cond);
    for (int i = 0; i < LOOP_OFFLOAD_THREADS; i++)
        loop_offload(loop, wait_in_jam, left_jam, jam);
}

/* What was acknowledged of a stream; 0: nothing. */
static guint64
hear_ack(Peer *peer, guint32 run)
{
    guint64 offset = 0;
    FrameHead head;

    turn_some(50);
    while (hear(peer) > 0) {
        memcpy(&head, peer->packet, sizeof head);
        if (head.type == FRAME_ACK && head.run == run)
            offset = head.offset;
    }
    return offset;
}

/* Only what is on the disk is acknowledged, and only then has a run ended; whoever follows sees it
 * before. */
static void
test_acks(void)
{
    guint8 bytes[FRAME_DATA_MAX] = {0};
    guint ended = 0;
    Followed f;
    Peer peer;
    Jam jam = {.over = false};

    peer_init(&peer, &ended);
    jam_begin(&jam, peer.box->loop);
    followed_begin(&f, peer.logged, 0, 0);
    say(&peer, (FrameHead)OUT(1, 0, sizeof bytes), bytes);
    say(&peer, (FrameHead)OUT(1, sizeof bytes, sizeof bytes), bytes);
    g_assert_cmpuint(hear_ack(&peer, 1), ==, 0);
    while (followed_step(&f))
        ;
    g_assert_cmpuint(f.out[0]->len, ==, 2 * sizeof bytes);
    end_jam(&jam);
    while (hear_ack(&peer, 1) != 2 * sizeof bytes)
        ;
    /* Little is not worth a word; a gap is, since init keeps track of only a few. */
    say(&peer, (FrameHead)OUT(1, 2 * sizeof bytes, 10), bytes);
    g_assert_cmpuint(hear_ack(&peer, 1), ==, 0);
    say(&peer,
        (FrameHead){.type = FRAME_GAP, .stream = 1, .run = 1, .offset = 2 * sizeof bytes + 10, .value = 7},
        NULL);
    while (hear_ack(&peer, 1) != 2 * sizeof bytes + 17)
        ;
    /* The end. */
    jam.over = false;
    jam.left = 0;
    jam_begin(&jam, peer.box->loop);
    FrameEnd end = {.reason = REASON_EXIT, .out_bytes = 2 * sizeof bytes + 17 + 5};
    say(&peer, (FrameHead)OUT(1, 2 * sizeof bytes + 17, 5), bytes);
    say(&peer, (FrameHead){.type = FRAME_ENDED, .run = 1, .length = sizeof end}, &end);
    turn_some(50);
    g_assert_cmpuint(peer.box->ended, ==, 0);
    end_jam(&jam);
    turn_until_ended(peer.logged);
    followed_clear(&f);
    /* A streamed run is acknowledged as its sink takes it; one that was abandoned at once. */
    say(&peer, (FrameHead)OUT(peer.stream_id, 0, sizeof bytes), bytes);
    g_assert_cmpuint(hear_ack(&peer, peer.stream_id), ==, sizeof bytes);
    run_abandon(peer.streamed);
    (void)hear_until(&peer, FRAME_FORGET);
    say(&peer, (FrameHead)OUT(peer.stream_id, sizeof bytes, 3), bytes);
    g_assert_cmpuint(hear_ack(&peer, peer.stream_id), ==, sizeof bytes + 3);
    g_assert_null(peer.box->error);
    peer_clear(&peer);
}

/* Nothing can be written down, and init does not read what it is told: what waits is bounded, and
 * then all goes on. */
static void
test_jam(void)
{
    guint ended = 0, n = 0;
    Peer peer;
    Jam jam = {.over = false};

    peer_init(&peer, &ended);
    jam_begin(&jam, peer.box->loop);
    g_autofree char *line = g_strnfill(60000, ' ');
    g_autoptr(GPtrArray) runs = g_ptr_array_new_with_free_func((GDestroyNotify)run_unref);
    while (runs->len < 40)
        g_ptr_array_add(runs, link_box_shell(peer.box, 0, line));
    for (guint quiet = 0; quiet < 1000; quiet++) {
        FrameHead head = {.type = n % 2 == 0 ? FRAME_OUTPUT : FRAME_GAP, .stream = 1, .run = 1, .offset = n};

        head.length = n % 2 == 0 ? 1 : 0;
        head.value = 1;
        if (say(&peer, head, "x")) {
            n++;
            quiet = 0;
        }
        g_main_context_iteration(NULL, FALSE);
        g_assert_cmpuint(n, <, 10000);
    }
    end_jam(&jam);
    FrameEnd end = {.reason = REASON_EXIT, .out_bytes = n};
    bool said = false;
    gint64 deadline = g_get_monotonic_time() + 60 * G_USEC_PER_SEC;
    while (!run_has_ended(peer.logged)) {
        said = said || say(&peer, (FrameHead){.type = FRAME_ENDED, .run = 1, .length = sizeof end}, &end);
        (void)hear(&peer);
        g_main_context_iteration(NULL, FALSE);
        g_assert_cmpint(g_get_monotonic_time(), <, deadline);
    }
    g_assert_null(peer.box->error);
    peer_clear(&peer);
    g_mutex_clear(&jam.mutex);
    g_cond_clear(&jam.cond);
}

/* Frames before HELLO, of any kind, and descriptors nobody asked for. */
static void
test_before_hello(void)
{
    LinkBox *box;
    Peer peer = {.packet = g_malloc(CHANNEL_PACKET_MAX)};

    box = peer.box = link_box_scripted(&peer.fd);
    for (guint i = 0; i < 100; i++) {
        FrameHead head = OUT(1 + i % 3, i * 1000, 5);

        say_fd(&peer, head, "bytes", i % 2 == 0 ? peer.fd : -1);
        say(&peer, (FrameHead){.type = FRAME_HELLO, .offset = i, .value = FRAME_VERSION}, NULL);
        turn_some(1);
    }
    peer.number = hear_until(&peer, FRAME_HELLO).offset;
    g_assert_cmpuint(box->ready, ==, 0);
    FrameRun row = {.run = 1u << 31, .state = RUN_RUNNING};
    say(&peer,
        (FrameHead){.type = FRAME_HELLO, .offset = peer.number, .value = FRAME_VERSION, .length = sizeof row},
        &row);
    turn_until_count(&box->closed, 1);
    g_assert_nonnull(box->error);
    close(peer.fd);
    g_free(peer.packet);
    (void)link_box_free(box);
}

/* What a predecessor had is not known, but it has bounds. */
static void
test_found(void)
{
    static const struct {
        guint64 in_offset, offset;
        bool fine;
    } cases[] = {
        {0, 0, true},
        {0, 5000, true},
        {G_MAXINT64, 1, true},
        {0, (guint64)G_MAXINT64 + 1, false},
        {0, G_MAXUINT64 - 2, false},
        {0, G_MAXINT64 - 2, false},
        {G_MAXUINT64, 0, false},
    };

    for (guint i = 0; i < G_N_ELEMENTS(cases); i++) {
        Peer peer = {.packet = g_malloc(CHANNEL_PACKET_MAX)};
        FrameRun row = {.run = 9, .state = RUN_RUNNING, .in_offset = cases[i].in_offset};
        FrameEnd end = {.reason = REASON_EXIT, .out_bytes = cases[i].offset + 5, .duration_us = G_MAXUINT64};
        FrameHead output = OUT(9, cases[i].offset, 5);

        peer.box = link_box_scripted(&peer.fd);
        peer.number = hear_until(&peer, FRAME_HELLO).offset;
        say(&peer,
            (FrameHead){
                .type = FRAME_HELLO, .offset = peer.number, .value = FRAME_VERSION, .length = sizeof row},
            &row);
        say(&peer, output, "bytes");
        say(&peer, (FrameHead){.type = FRAME_ENDED, .run = 9, .length = sizeof end}, &end);
        turn_until_count(cases[i].fine ? &peer.box->ended : &peer.box->closed, 1);
        g_assert_true((peer.box->error == NULL) == cases[i].fine);
        if (cases[i].fine) {
            Followed f;

            g_assert_cmpuint(run_end(peer.box->last_found)->duration_us, <=, G_GUINT64_CONSTANT(1) << 53);
            followed_begin(&f, peer.box->last_found, 0, 0);
            followed_to_end(&f);
            g_assert_cmpuint(f.gaps[0], ==, cases[i].offset);
            g_assert_cmpuint(f.out[0]->len, ==, 5);
            followed_clear(&f);
        }
        close(peer.fd);
        g_free(peer.packet);
        (void)link_box_free(peer.box);
    }
}

/* The caller knows of it, so it is in the channel: a server that ends now has lost nothing.  An
 * init that is quick names it in HELLO already. */
static void
test_early_start(void)
{
    Peer peer = {.packet = g_malloc(CHANNEL_PACKET_MAX)};
    LinkBox *box = peer.box = link_box_scripted(&peer.fd);
    g_autoptr(Run) run = link_box_shell(box, 0, "true");

    peer.number = hear_until(&peer, FRAME_HELLO).offset;
    g_assert_cmpuint(hear_until(&peer, FRAME_START).run, ==, run_id(run));
    g_assert_cmpuint(box->ready, ==, 0);
    FrameRun row = {.run = run_id(run), .state = RUN_RUNNING};
    say(&peer,
        (FrameHead){.type = FRAME_HELLO, .offset = peer.number, .value = FRAME_VERSION, .length = sizeof row},
        &row);
    turn_until_count(&box->ready, 1);
    g_assert_cmpuint(box->found, ==, 0);
    g_assert_cmpuint(box->closed, ==, 0);
    g_assert_false(run_has_ended(run));
    close(peer.fd);
    g_free(peer.packet);
    (void)link_box_free(box);
}

static void
on_fd(int fd, const GError *error, void *data)
{
    g_assert_cmpint(fd, ==, -1);
    g_assert_error(error, ERR_DOMAIN, ERR_UNAVAILABLE);
    (*(guint *)data)++;
}

/* A descriptor that is no connection is not handed on. */
static void
test_wrong_fd(void)
{
    guint ended = 0, answered = 0;
    Peer peer;

    peer_init(&peer, &ended);
    box_link_connect(peer.box->link, 80, on_fd, &answered);
    FrameHead asked = hear_until(&peer, FRAME_CONNECT);
    int file = open("/dev/null", O_RDWR | O_CLOEXEC);
    g_assert_true(say_fd(&peer, (FrameHead){.type = FRAME_CONNECTED, .run = asked.run}, NULL, file));
    close(file);
    turn_until_count(&answered, 1);
    turn_until_count(&peer.box->closed, 1);
    g_assert_nonnull(peer.box->error);
    peer_clear(&peer);
}

/* An init that does not read: what is said waits, and is bounded. */
static void
test_deaf(void)
{
    guint ended = 0;
    Peer peer;
    size_t taken = 0, n;
    g_autofree guint8 *bytes = g_malloc0(100000);

    peer_init(&peer, &ended);
    while ((n = run_write(peer.logged, bytes, 100000)) > 0)
        taken += n;
    g_assert_cmpuint(taken, <=, 2 * FRAME_WINDOW);
    for (int i = 0; i < 10000; i++) {
        run_signal(peer.logged, 1 + i % 30);
        run_resize(peer.logged, (guint16)i, 80);
        g_assert_cmpuint(run_write(peer.logged, bytes, 1), ==, 0);
    }
    GPtrArray *runs = g_ptr_array_new_with_free_func((GDestroyNotify)run_unref);
    const char *const argv[] = {"true", NULL};
    RunSpec spec = {.argv = argv};
    Run *run;
    g_autoptr(GError) error = NULL;
    while ((run = box_link_start(peer.box->link, &spec, &error)) != NULL)
        g_ptr_array_add(runs, run);
    g_assert_cmpint(err_kind(error), ==, ERR_LIMIT);
    g_assert_cmpuint(runs->len, ==, FRAME_RUNS_MAX - 2);
    /* It reads after all, and everything comes in order. */
    guint starts = 0;
    guint64 input = 0;
    for (int i = 0; i < 100000 && starts < runs->len; i++) {
        FrameHead head;

        if (hear(&peer) <= 0) {
            g_main_context_iteration(NULL, FALSE);
            continue;
        }
        memcpy(&head, peer.packet, sizeof head);
        starts += head.type == FRAME_START;
        if (head.type == FRAME_STDIN) {
            g_assert_cmpuint(head.offset, ==, input);
            input += head.length;
        }
    }
    g_assert_cmpuint(starts, ==, runs->len);
    g_assert_cmpuint(input, ==, FRAME_WINDOW);
    g_ptr_array_unref(runs);
    peer_clear(&peer);
}

/* ---- the other end of a file's pipe ---- */

typedef struct Transfer {
    Peer peer;
    guint ended; /* of peer's own run */
    int fd;      /* the box's end */
    guint32 run;
    GString *got;
    guint entries, ends;
    int kind; /* -1: no error */
} Transfer;

static void
on_transfer_entry(BoxRead *read, const BoxEntry *entry, void *ctx)
{
    ((Transfer *)ctx)->entries++;
}

static void
on_transfer_ready(BoxRead *read, void *ctx)
{
    Transfer *t = ctx;
    char bytes[64];
    gssize n;

    while ((n = box_read_bytes(read, bytes, sizeof bytes)) > 0)
        g_string_append_len(t->got, bytes, n);
    g_assert_cmpint(errno, ==, EAGAIN);
}

static void
transfer_ended(Transfer *t, const GError *error)
{
    t->ends++;
    t->kind = error != NULL ? (int)err_kind(error) : -1;
}

static void
on_read_end(BoxRead *read, const GError *error, void *ctx)
{
    transfer_ended(ctx, error);
}

static void
on_write_end(BoxWrite *write, const GError *error, void *ctx)
{
    transfer_ended(ctx, error);
}

static void
transfer_init(Transfer *t)
{
    *t = (Transfer){.fd = -1, .got = g_string_new(NULL)};
    peer_init(&t->peer, &t->ended);
}

/* The start, and what comes along with it. */
static void
transfer_hear(Transfer *t, guint32 flag)
{
    g_autofree FrameStart *start = g_new0(FrameStart, 1);
    size_t n_fds = 1;
    FrameHead head;
    ssize_t n = channel_recv(t->peer.fd, t->peer.packet, CHANNEL_PACKET_MAX, &t->fd, &n_fds);

    g_assert_cmpint(n, >, sizeof head);
    memcpy(&head, t->peer.packet, sizeof head);
    g_assert_cmpuint(head.type, ==, FRAME_START);
    g_assert_true(frame_start_unpack(t->peer.packet + sizeof head, head.length, start));
    g_assert_cmpuint(start->flags & (START_IN_FD | START_OUT_FD), ==, flag);
    g_assert_cmpuint(n_fds, ==, 1);
    t->run = head.run;
}

static void
transfer_end(Transfer *t, int code)
{
    FrameEnd end = {.reason = REASON_EXIT, .code = code};

    say(&t->peer, (FrameHead){.type = FRAME_STARTED, .run = t->run, .value = 7}, NULL);
    say(&t->peer, (FrameHead){.type = FRAME_ENDED, .run = t->run, .length = sizeof end}, &end);
    turn_until_count(&t->ends, 1);
    g_assert_null(t->peer.box->error);
    close(t->fd);
    g_string_free(t->got, TRUE);
    peer_clear(&t->peer);
}

/* Nothing is left to do: who waits does not turn in circles. */
static void
expect_quiet(void)
{
    for (int i = 0; i < 100; i++) {
        if (!g_main_context_iteration(NULL, FALSE))
            return;
    }
    g_error("the loop finds no rest");
}

static void
test_pipe_out(void)
{
    static const BoxReadEvents events = {on_transfer_entry, on_transfer_ready, on_read_end};
    static const BuiltinEntry good = {.size = 3, .name_bytes = 1}, huge = {.name_bytes = 65535};
    static const struct {
        const char *name;
        const BuiltinEntry *entry;
        const char *bytes;
        bool hang_up;
        int code, kind;
        const char *got;
    } cases[] = {
        {"held open after the end", &good, "nabc", false, 0, -1, "abc"},
        {"closed before the end", &good, "nabc", true, 0, -1, "abc"},
        {"no entry, held open", NULL, "", false, 0, ERR_INTERNAL, ""},
        {"half an entry", &good, "", true, 0, ERR_INTERNAL, ""},
        {"an entry without end", &huge, "n", false, 0, ERR_INTERNAL, ""},
        {"an error, held open", NULL, "", false, ENOENT, ERR_NOT_FOUND, ""},
        {"an error after bytes", &good, "na", false, EIO, ERR_INTERNAL, "a"},
    };

    for (guint i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *filler = g_strnfill(10000, 'x');
        Transfer t;

        g_test_message("%s", cases[i].name);
        transfer_init(&t);
        FilePlace place = link_box_place(t.peer.box);
        g_assert_nonnull(
            file_read(&place, (const char *const[]){"read", "f", "0", "-", NULL}, true, &events, &t, NULL));
        transfer_hear(&t, START_OUT_FD);
        if (cases[i].entry != NULL)
            g_assert_cmpint(write(t.fd, cases[i].entry, sizeof good), ==, sizeof good);
        g_assert_cmpint(write(t.fd, cases[i].bytes, strlen(cases[i].bytes)), >=, 0);
        if (cases[i].entry == &huge) {
            (void)!write(t.fd, filler, 10000);
            turn_some(20);
            /* Whoever writes on is not kept waiting. */
            g_assert_cmpint(write(t.fd, filler, 10000), ==, -1);
            g_assert_cmpint(errno, ==, EPIPE);
        }
        if (cases[i].hang_up) {
            close(t.fd);
            t.fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
        }
        turn_some(20);
        expect_quiet();
        g_assert_cmpuint(t.ends, ==, 0);
        g_assert_cmpstr(t.got->str, ==, cases[i].got);
        transfer_end(&t, cases[i].code);
        g_assert_cmpint(t.kind, ==, cases[i].kind);
    }
}

/* More than the entry, of which nobody wants a byte. */
static void
test_pipe_out_unwanted(void)
{
    static const BoxReadEvents events = {.entry = on_transfer_entry, .end = on_read_end};
    struct {
        BuiltinEntry entry;
        char bytes[4];
    } said = {{.size = 3, .name_bytes = 1}, "nabc"};
    Transfer t;

    transfer_init(&t);
    FilePlace place = link_box_place(t.peer.box);
    g_assert_nonnull(
        file_read(&place, (const char *const[]){"read", "f", "0", "0", NULL}, true, &events, &t, NULL));
    transfer_hear(&t, START_OUT_FD);
    g_assert_cmpint(write(t.fd, &said, sizeof said.entry + 4), ==, sizeof said.entry + 4);
    turn_until_count(&t.entries, 1);
    turn_some(20);
    expect_quiet();
    g_assert_cmpuint(t.ends, ==, 0);
    transfer_end(&t, 0);
    g_assert_cmpint(t.kind, ==, ERR_INTERNAL);
}

static void
count_room(BoxWrite *write, void *ctx)
{
    Transfer *t = ctx;

    t->entries++;
    if (t->fd < 0)
        g_assert_cmpuint(box_write_data(write, "x", 1), ==, 0);
}

/* It stops reading, goes on, and goes away. */
static void
test_pipe_in(void)
{
    static const BoxWriteEvents events = {count_room, on_write_end};
    g_autofree char *bytes = g_malloc0(FILE_PIPE_BYTES);
    Transfer t;
    size_t given = 0, n;

    transfer_init(&t);
    FilePlace place = link_box_place(t.peer.box);
    BoxWrite *write = file_write(&place, (const char *const[]){"write", "f", "-", "9999999", NULL}, true,
                                 &events, &t, NULL);
    transfer_hear(&t, START_IN_FD);
    g_assert_cmpint(fcntl(t.fd, F_SETFL, O_NONBLOCK), ==, 0);
    while ((n = box_write_data(write, bytes, FILE_PIPE_BYTES)) > 0)
        given += n;
    g_assert_cmpuint(given, <=, FILE_PIPE_BYTES);
    turn_some(20);
    expect_quiet();
    g_assert_cmpuint(t.entries, ==, 0);
    while (read(t.fd, bytes, FILE_PIPE_BYTES) > 0)
        ;
    turn_until_count(&t.entries, 1);
    expect_quiet();
    /* Its end comes when it says so. */
    while (box_write_data(write, bytes, FILE_PIPE_BYTES) > 0)
        ;
    close(t.fd);
    t.fd = -1;
    turn_some(20);
    g_assert_cmpuint(box_write_data(write, bytes, 1), ==, 0);
    expect_quiet();
    g_assert_cmpuint(t.ends, ==, 0);
    transfer_end(&t, ENOSPC);
    g_assert_cmpint(t.kind, ==, ERR_FULL);
}

int
main(int argc, char **argv)
{
    (void)signal(SIGPIPE, SIG_IGN);
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/box/hostile/frames", test_frames);
    g_test_add_func("/box/hostile/end-twice", test_end_twice);
    g_test_add_func("/box/hostile/window", test_window);
    g_test_add_func("/box/hostile/window-paused", test_window_paused);
    g_test_add_func("/box/hostile/crumbs", test_crumbs);
    g_test_add_func("/box/hostile/acks", test_acks);
    g_test_add_func("/box/hostile/jam", test_jam);
    g_test_add_func("/box/hostile/found", test_found);
    g_test_add_func("/box/hostile/before-hello", test_before_hello);
    g_test_add_func("/box/hostile/early-start", test_early_start);
    g_test_add_func("/box/hostile/wrong-fd", test_wrong_fd);
    g_test_add_func("/box/hostile/deaf", test_deaf);
    g_test_add_func("/box/hostile/pipe-out", test_pipe_out);
    g_test_add_func("/box/hostile/pipe-out-unwanted", test_pipe_out_unwanted);
    g_test_add_func("/box/hostile/pipe-in", test_pipe_in);
    return g_test_run();
}

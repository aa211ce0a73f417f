/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/log.h"
#include "base/loop.h"
#include "box/link.h"
#include "fuzz.h"
#include "wire/channel.h"

/* The input is a script for the other end of a box's channel, eight bytes a step: what to say,
 * about which run, and by how much to be wrong.  Whatever it says, each run ends once, its bytes
 * are those that were said, and the link closes once. */

enum { STEP = 8, RUNS = 4, STEPS_MAX = 256 };

typedef struct Said {
    guint64 at[2];
    guint64 heard;
    guint ended;
    bool pause;
    Run *run;
    RunFollower *follower;
} Said;

typedef struct Fuzz {
    Loop *loop;
    BoxLink *link;
    int fd;
    guint64 number;
    Said said[RUNS]; /* the first two are logged */
    guint closed, answered;
} Fuzz;

static bool
on_output(Run *run, FrameStream stream, const guint8 *bytes, size_t n, void *ctx)
{
    Said *said = ctx;

    g_assert(said->ended == 0);
    for (size_t i = 0; i < n; i++)
        g_assert(bytes[i] == 'x');
    said->heard += n;
    return !said->pause;
}

static void
on_ended(Run *run, const RunEnd *end, void *ctx)
{
    Said *said = ctx;

    g_assert(said->ended++ == 0);
    g_assert(end->reason > 0 && end->reason < RUN_REASON_MAX);
}

static void
on_logged_ended(BoxLink *link, Run *run, void *ctx)
{
    Fuzz *f = ctx;

    for (int i = 0; i < 2; i++) {
        if (f->said[i].run == run)
            on_ended(run, run_end(run), &f->said[i]);
    }
    if (run_id(run) % 2 == 0)
        box_link_forget(link, run);
}

static void
on_closed(BoxLink *link, const GError *error, void *ctx)
{
    Fuzz *f = ctx;

    g_assert(f->closed++ == 0);
}

static void
on_connected(int fd, const GError *error, void *data)
{
    Fuzz *f = data;

    g_assert((fd < 0) == (error != NULL));
    if (fd >= 0)
        close(fd);
    f->answered++;
}

static void
on_wake(void *data)
{
    RunPiece piece;
    Said *said = data;
    RunStep step;

    while ((step = run_follower_next(said->follower, &piece)) == RUN_STEP_DATA || step == RUN_STEP_GAP)
        g_assert(piece.n > 0);
}

static void
begin(Fuzz *f)
{
    static const RunSink sink = {on_output, on_ended, NULL};
    static const char *const argv[] = {"true", NULL};
    BoxLinkSpec spec = {.loop = f->loop,
                        .folder = "/proc/nowhere",
                        .events = {.ended = on_logged_ended, .closed = on_closed},
                        .ctx = f};
    int pair[2];

    g_assert(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) == 0);
    spec.fd = pair[0];
    f->fd = pair[1];
    f->link = box_link_new(&spec, NULL);
    for (int i = 0; i < RUNS; i++) {
        Said *said = &f->said[i];
        RunSpec run = {.flags = START_STDIN, .argv = argv, .sink = i < 2 ? NULL : &sink, .ctx = said};

        said->run = box_link_start(f->link, &run, NULL);
        g_assert(said->run != NULL);
    }
    f->said[0].follower = run_follow(f->said[0].run, 0, 0, on_wake, &f->said[0]);
    on_wake(&f->said[0]);
    box_link_connect(f->link, 80, on_connected, f);
}

static void
end(Fuzz *f)
{
    guint ended[RUNS];

    for (int i = 0; i < RUNS; i++)
        ended[i] = f->said[i].ended;
    box_link_free(f->link);
    for (int i = 0; i < RUNS; i++) {
        g_assert(f->said[i].ended == ended[i]);
        g_assert(run_has_ended(f->said[i].run));
        run_follower_free(f->said[i].follower);
        run_unref(f->said[i].run);
    }
    g_assert(f->answered == 1);
    close(f->fd);
    /* Work under way holds what it writes. */
    while (g_main_context_iteration(NULL, FALSE))
        ;
}

static void
turn(Fuzz *f)
{
    guint8 packet[CHANNEL_PACKET_MAX];
    ssize_t n;

    while (g_main_context_iteration(NULL, FALSE))
        ;
    while ((n = channel_recv(f->fd, packet, sizeof packet, NULL, NULL)) > 0) {
        FrameHead head;

        g_assert(frame_check(packet, (size_t)n));
        memcpy(&head, packet, sizeof head);
        if (head.type == FRAME_HELLO)
            f->number = head.offset;
    }
}

static void
say(Fuzz *f, FrameHead head, const void *body)
{
    (void)!channel_send2(f->fd, &head, sizeof head, body, head.length, NULL, 0);
}

static void
say_output(Fuzz *f, const guint8 *step, Said *said)
{
    static guint8 bytes[FRAME_DATA_MAX];
    guint s = step[2] % 2;
    guint32 n = (guint32)step[4] << 8 | step[5];
    bool gap = step[0] == 'g';

    memset(bytes, 'x', sizeof bytes);
    n = gap ? n : MIN(n, (guint32)sizeof bytes);
    say(f,
        (FrameHead){.type = gap ? FRAME_GAP : FRAME_OUTPUT,
                    .stream = (guint8)(s + 1),
                    .run = run_id(said->run),
                    .offset = said->at[s] + (guint64)(gint64)(gint8)step[3],
                    .value = gap ? n : 0,
                    .length = gap ? 0 : n},
        bytes);
    said->at[s] += n;
}

static void
say_end(Fuzz *f, const guint8 *step, Said *said)
{
    FrameEnd how = {.reason = step[2],
                    .code = (gint8)step[3],
                    .out_bytes = said->at[0] + step[4],
                    .err_bytes = said->at[1] + step[5]};

    say(f, (FrameHead){.type = FRAME_ENDED, .run = run_id(said->run), .length = sizeof how}, &how);
}

static void
say_hello(Fuzz *f, const guint8 *step)
{
    FrameRun row = {.run = (guint32)step[2] << (step[3] & 31), .state = step[4], .in_offset = step[5]};

    say(f,
        (FrameHead){.type = FRAME_HELLO,
                    .offset = f->number + step[1],
                    .value = FRAME_VERSION,
                    .length = step[2] != 0 ? sizeof row : 0},
        &row);
}

static void
do_step(Fuzz *f, const guint8 *step)
{
    Said *said = &f->said[step[1] % RUNS];
    FrameHead head = {.run = run_id(said->run), .stage = step[2], .value = step[3], .offset = step[4]};

    switch (step[0]) {
    case 'h':
        say_hello(f, step);
        break;
    case 'o':
    case 'g':
        say_output(f, step, said);
        break;
    case 'e':
        say_end(f, step, said);
        break;
    case 's':
        head.type = FRAME_STARTED;
        say(f, head, NULL);
        break;
    case 'f':
        head.type = FRAME_FAILED;
        say(f, head, NULL);
        break;
    case 'c':
        head.type = FRAME_FAILED;
        head.run = (1u << 31) + step[1];
        say(f, head, NULL);
        break;
    case 'i':
        head.type = FRAME_STDIN_ACK;
        say(f, head, NULL);
        break;
    case 'w':
        (void)!run_write(said->run, step, step[2] % STEP);
        break;
    case 'p':
        said->pause = step[2] % 2 == 1;
        run_resume(said->run);
        break;
    case 'a':
        said->ended += !run_has_ended(said->run);
        run_abandon(said->run);
        break;
    case 't':
        turn(f);
        break;
    default:
        (void)!channel_send(f->fd, step, STEP, NULL, 0);
    }
}

void
fuzz_input(const guint8 *data, size_t n, size_t cut)
{
    static Loop *loop;
    Fuzz f = {0};

    if (loop == NULL) {
        loop = loop_new(NULL);
        (void)log_set_levels("error");
    }
    f.loop = loop;
    begin(&f);
    turn(&f);
    for (size_t at = 0, steps = 0; at + STEP <= n && steps < STEPS_MAX; at += STEP, steps++) {
        do_step(&f, data + at);
        if (cut == FUZZ_EACH_BYTE || at == cut)
            turn(&f);
    }
    turn(&f);
    end(&f);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "init/run.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "init/leader.h"
#include "init/pty.h"

enum {
    MSEC = 1000,
    DRAIN_FILLS_MAX = 32,
    FILE_PIPE_BYTES = 256 * 1024, /* whole files go through: fewer turns for as many bytes */
};

#define TO(state) (1u << (state))

static const struct {
    const char *name;
    unsigned next;
} states[RUN_STATE_MAX] = {
    [RUN_STATE_FREE] = {"free", TO(RUN_STATE_STARTING)},
    [RUN_STATE_STARTING] = {"starting", TO(RUN_STATE_RUNNING) | TO(RUN_STATE_FAILED)},
    [RUN_STATE_RUNNING] = {"running", TO(RUN_STATE_DRAINING)},
    [RUN_STATE_DRAINING] = {"draining", TO(RUN_STATE_ENDED)},
    [RUN_STATE_ENDED] = {"ended", TO(RUN_STATE_FREE)},
    [RUN_STATE_FAILED] = {"failed", TO(RUN_STATE_FREE)},
};

void
run_set_state(Run *run, RunState to)
{
    /* Our own mistake; assert() would bring stdio and its buffers into pid 1. */
    if ((states[run->state].next & TO(to)) == 0)
        __builtin_trap();
    run->state = to;
}

const char *
run_state_name(RunState state)
{
    return states[state].name;
}

static void
close_fd(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

static void
run_fail(Run *run, FrameStage stage, int error)
{
    run->fail_stage = (uint32_t)stage;
    run->fail_error = error;
    run->deadline_us = run->give_up_us = 0;
    run->owed = OWE_FAILED;
    stream_clear(&run->streams[0]);
    stream_clear(&run->streams[1]);
    input_clear(&run->input);
    close_fd(&run->report_fd);
    close_fd(&run->slave_fd);
    run_set_state(run, RUN_STATE_FAILED);
}

/* The ends that go to the run, and ours.  -1: none. */
typedef struct Ends {
    StartFds theirs;
    int in, out, err, report;
} Ends;

static bool
make_pipe(int *ret_read, int *ret_write)
{
    int fds[2];

    if (pipe2(fds, O_CLOEXEC) < 0)
        return false;
    *ret_read = fds[0];
    *ret_write = fds[1];
    return true;
}

static bool
unblock(int fd)
{
    return fcntl(fd, F_SETFL, O_NONBLOCK) == 0;
}

static bool
make_output(int *ret_mine, int *ret_theirs)
{
    return make_pipe(ret_mine, ret_theirs) && unblock(*ret_mine);
}

static bool
make_input(Ends *ends, bool with_input)
{
    if (with_input)
        return make_pipe(&ends->theirs.in, &ends->in) && unblock(ends->in);
    ends->theirs.in = open("/dev/null", O_RDONLY | O_CLOEXEC);
    return ends->theirs.in >= 0;
}

/* What the server has brought is there already. */
static bool
make_pipes(Ends *ends, const FrameStart *start)
{
    if ((ends->theirs.out < 0 && !make_output(&ends->out, &ends->theirs.out)) ||
        !make_output(&ends->err, &ends->theirs.err) ||
        (ends->theirs.in < 0 && !make_input(ends, (start->flags & START_STDIN) != 0)))
        return false;
    if ((start->flags & START_BUILTIN) != 0) {
        (void)fcntl(ends->out, F_SETPIPE_SZ, FILE_PIPE_BYTES);
        (void)fcntl(ends->in, F_SETPIPE_SZ, FILE_PIPE_BYTES);
    }
    return true;
}

/* The master is read through one descriptor and written through another, because the loop
 * watches each by itself. */
static bool
make_terminal(Ends *ends, const FrameStart *start)
{
    if (!pty_open(start->rows, start->columns, &ends->out, &ends->theirs.in))
        return false;
    ends->in = fcntl(ends->out, F_DUPFD_CLOEXEC, 0);
    ends->theirs.out = ends->theirs.err = ends->theirs.in;
    return ends->in >= 0;
}

static void
close_theirs(Ends *ends)
{
    if (ends->theirs.out != ends->theirs.in)
        close_fd(&ends->theirs.out);
    if (ends->theirs.err != ends->theirs.in)
        close_fd(&ends->theirs.err);
    close_fd(&ends->theirs.in);
    close_fd(&ends->theirs.report);
}

static bool
make_report(Ends *ends)
{
    int fds[2];

    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds) < 0)
        return false;
    ends->report = fds[0];
    ends->theirs.report = fds[1];
    return true;
}

static bool
make_ends(Ends *ends, const FrameStart *start)
{
    return make_report(ends) &&
           ((start->flags & START_TTY) != 0 ? make_terminal(ends, start) : make_pipes(ends, start));
}

static void
take_fd(Ends *ends, uint32_t flags, int *fd)
{
    if ((flags & START_IN_FD) != 0)
        ends->theirs.in = *fd;
    else if ((flags & START_OUT_FD) != 0)
        ends->theirs.out = *fd;
    else
        return;
    *fd = -1;
}

void
run_begin(Run *run, uint32_t id, const FrameStart *start, int *fd, uint64_t now_us)
{
    Ends ends = {.theirs = {-1, -1, -1, -1}, .in = -1, .out = -1, .err = -1, .report = -1};
    bool tty = (start->flags & START_TTY) != 0;
    bool block = (start->flags & START_BLOCK) != 0;

    *run = (Run){.id = id,
                 .flags = start->flags,
                 .memory = run->memory,
                 .way = run->way,
                 .report_fd = -1,
                 .slave_fd = -1,
                 .began_us = now_us};
    run->state = RUN_STATE_FREE;
    run_set_state(run, RUN_STATE_STARTING);
    take_fd(&ends, start->flags, fd);
    bool made = make_ends(&ends, start);
    int error = errno;
    pid_t leader = made ? start_run(start, run->way, run->memory, &ends.theirs) : -1;
    if (made && leader < 0)
        error = errno;
    if (tty && leader > 0)
        run->slave_fd = fcntl(ends.theirs.in, F_DUPFD_CLOEXEC, 0);
    close_theirs(&ends);
    stream_init(&run->streams[0], ends.out, start->ring_bytes, start->spill_bytes, block, 0);
    stream_init(&run->streams[1], ends.err, start->ring_bytes, start->spill_bytes, block, 0);
    input_init(&run->input, ends.in, tty);
    run->report_fd = ends.report;
    run->leader = leader;
    if (leader < 0)
        run_fail(run, made || !tty ? FAIL_FORK : FAIL_TTY, error);
    else if (start->timeout_ms > 0)
        run->deadline_us = now_us + (uint64_t)start->timeout_ms * MSEC;
}

void
run_kill(Run *run, FrameReason why, uint64_t now_us)
{
    if (!run_is_live(run) || run->killed_for != 0)
        return;
    run->killed_for = why;
    run->deadline_us = 0;
    run->give_up_us = now_us + (uint64_t)RUN_KILL_GIVE_UP_MS * MSEC;
    if ((run->flags & START_BUILTIN) != 0)
        (void)kill(run->leader, SIGKILL);
    else
        leader_ask_kill(run->leader);
}

static void
set_reason(Run *run, int status)
{
    run->end.reason = WIFEXITED(status) ? REASON_EXIT : REASON_SIGNAL;
    run->end.code = WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status);
    if (run->killed_for != 0)
        run->end.reason = run->killed_for;
}

static void
run_end(Run *run, int status, uint64_t cpu_us, uint64_t rss_bytes, uint64_t now_us)
{
    set_reason(run, status);
    run->end.duration_us = now_us - run->began_us;
    run->end.cpu_us = cpu_us;
    run->end.max_rss_bytes = rss_bytes;
    run->give_up_us = 0;
    run->deadline_us = now_us + (uint64_t)RUN_DRAIN_MS * MSEC;
    input_clear(&run->input);
    close_fd(&run->slave_fd);
    close_fd(&run->report_fd);
    run_set_state(run, RUN_STATE_DRAINING);
}

static void
run_started(Run *run, const Report *report)
{
    run->main = report->pid;
    run->owed |= OWE_STARTED;
    run->streams[0].uid = run->streams[1].uid = report->uid;
    run_set_state(run, RUN_STATE_RUNNING);
}

static void
take_user(Run *run, const UserMemory *found)
{
    *run->memory = *found;
    run->memory->wanted[USER_WANTED_MAX] = '\0';
    user_tame(&run->memory->user);
}

void
run_on_report(Run *run, uint64_t now_us)
{
    union {
        Report report;
        UserMemory user;
    } packet;
    ssize_t n;

    while (run->report_fd >= 0 && (n = read(run->report_fd, &packet, sizeof packet)) != 0) {
        const Report report = packet.report;

        /* It ended with something unread, which is said once before what it sent. */
        if (n < 0 && errno == ECONNRESET)
            continue;
        if (n < 0)
            return;
        if (n == (ssize_t)sizeof packet.user && run->state == RUN_STATE_RUNNING) {
            take_user(run, &packet.user);
            continue;
        }
        if (n != (ssize_t)sizeof report)
            break;
        if (report.kind == REPORT_STARTED && run->state == RUN_STATE_STARTING)
            run_started(run, &report);
        else if (report.kind == REPORT_FAILED && run->state == RUN_STATE_STARTING)
            run_fail(run, (FrameStage)report.stage, report.error);
        else if (report.kind == REPORT_ENDED && run->state == RUN_STATE_RUNNING)
            run_end(run, report.status, report.cpu_us, report.max_rss_bytes, now_us);
    }
    close_fd(&run->report_fd);
}

void
run_on_leader_exit(Run *run, int status, uint64_t cpu_us, uint64_t rss_bytes, uint64_t now_us)
{
    run->leader = 0;
    /* What it said before it went. */
    if (run->report_fd >= 0)
        run_on_report(run, now_us);
    if (run->state == RUN_STATE_STARTING) {
        run_fail(run, FAIL_FORK, ECHILD);
    } else if (run->state == RUN_STATE_RUNNING) {
        /* A built-in is its own leader; another leader was killed, and its command with it as
         * far as its group goes. */
        if ((run->flags & START_BUILTIN) == 0 && run->main > 1)
            (void)kill(-run->main, SIGKILL);
        run_end(run, status, cpu_us, rss_bytes, now_us);
    }
}

/* At the deadline: what lies in the pipe is still the command's.  A terminal is closed, which
 * tells who stayed behind that it is gone. */
static bool
give_away(Run *run, Stream *s, int *ret_sink)
{
    for (int i = 0; i < DRAIN_FILLS_MAX && s->fd >= 0; i++) {
        if (!stream_wants_more(s))
            return false;
        if (stream_fill(s) == FILL_NONE)
            break;
    }
    *ret_sink = s->fd;
    s->fd = -1;
    if ((run->flags & START_TTY) != 0)
        close_fd(ret_sink);
    return true;
}

bool
run_finish_drain(Run *run, uint64_t now_us, int ret_sinks[2])
{
    ret_sinks[0] = ret_sinks[1] = -1;
    if (run->streams[0].fd >= 0 || run->streams[1].fd >= 0) {
        if (now_us < run->deadline_us)
            return false;
        bool first = give_away(run, &run->streams[0], &ret_sinks[0]);
        bool second = give_away(run, &run->streams[1], &ret_sinks[1]);

        /* A blocking stream waits for its reader however long that takes. */
        if (!first || !second) {
            run->deadline_us = now_us + (uint64_t)RUN_DRAIN_MS * MSEC;
            return false;
        }
    }
    run->deadline_us = 0;
    run->end.out_bytes = run->streams[0].end;
    run->end.err_bytes = run->streams[1].end;
    run->owed |= OWE_ENDED;
    run_set_state(run, RUN_STATE_ENDED);
    return true;
}

void
run_drain_input(Run *run)
{
    input_drain(&run->input);
    /* What was on its way when the run ended is swallowed: nothing is said after an end. */
    if (run_is_live(run) && run->input.written != run->acked_input)
        run->owed |= OWE_STDIN_ACK;
}

void
run_clear(Run *run)
{
    stream_clear(&run->streams[0]);
    stream_clear(&run->streams[1]);
    input_clear(&run->input);
    close_fd(&run->report_fd);
    close_fd(&run->slave_fd);
    run_set_state(run, RUN_STATE_FREE);
    *run = (Run){0};
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The loop.  One turn: wait; read what came, a bounded piece from each; reap; let what is due
 * happen; say what is owed; then ask the kernel to wake us for exactly what can still move.
 * The last step compares each run's wishes with what is watched, so no other code has to think
 * of it.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stddef.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "init/box.h"
#include "init/init.h"
#include "init/sudo.h"

enum {
    EVENTS_MAX = 64,
    PACKETS_MAX = 32, /* heard in one turn */
    SINK_MAX = 64 * 1024,
    USEC_PER_SEC = 1000000,
    RETRY_US = 10000, /* after the kernel had no memory for a packet, or no descriptor */
};

uint64_t
now_us(void)
{
    struct timespec t;

    clock_gettime(CLOCK_BOOTTIME, &t);
    return (uint64_t)t.tv_sec * USEC_PER_SEC + (uint64_t)t.tv_nsec / 1000;
}

/* kind, slot, id: a slot may have changed hands since the kernel noted the event. */
uint64_t
watch_data(WatchKind kind, uint32_t slot, uint32_t id)
{
    return (uint64_t)kind << 56 | (uint64_t)(slot & 0xffffff) << 32 | id;
}

bool
box_watch(Box *box, int op, int fd, uint32_t events, uint64_t data)
{
    struct epoll_event event = {.events = events, .data.u64 = data};

    return epoll_ctl(box->epoll_fd, op, fd, &event) == 0;
}

static void
sink_add(Box *box, int fd)
{
    uint64_t data = watch_data(WATCH_SINK, (uint32_t)fd, 0);

    if (fd < 0)
        return;
    if (box->n_sinks == SINKS_MAX || (!box_watch(box, EPOLL_CTL_MOD, fd, EPOLLIN, data) &&
                                      !box_watch(box, EPOLL_CTL_ADD, fd, EPOLLIN, data))) {
        close(fd);
        return;
    }
    box->n_sinks++;
}

static void
sink_on_event(Box *box, int fd)
{
    ssize_t n = read(fd, box->packet, sizeof box->packet);

    if (n > 0 || (n < 0 && (errno == EAGAIN || errno == EINTR)))
        return;
    close(fd);
    box->n_sinks--;
}

static void
hear(Box *box)
{
    for (int i = 0; i < PACKETS_MAX; i++) {
        int fd = -1;
        size_t n_fds = 1;
        ssize_t n = channel_recv(INIT_CHANNEL_FD, box->packet, sizeof box->packet, &fd, &n_fds);

        if (n > 0) {
            box_hear(box, (size_t)n, fd);
        } else if (n == 0) {
            box->gone = true;
            return;
        } else if (errno != EMSGSIZE) {
            return;
        }
    }
}

static uint64_t
usec(struct timeval t)
{
    return (uint64_t)t.tv_sec * USEC_PER_SEC + (uint64_t)t.tv_usec;
}

/* Leaders, and whatever in the box lost its parents. */
static void
reap(Box *box)
{
    struct rusage usage;
    int status;
    pid_t pid;

    while ((pid = wait4(-1, &status, WNOHANG | __WALL, &usage)) > 0) {
        for (uint32_t i = 0; i < box->n_slots; i++) {
            Run *run = &box->runs[i];

            if (run->state != RUN_STATE_FREE && run->leader == pid)
                run_on_leader_exit(run, status, usec(usage.ru_utime) + usec(usage.ru_stime),
                                   (uint64_t)usage.ru_maxrss * 1024, now_us());
        }
    }
}

static void
on_signal_fd(Box *box)
{
    struct signalfd_siginfo info;

    while (read(box->signal_fd, &info, sizeof info) > 0)
        ;
    reap(box);
}

static void
run_on_event(Box *box, uint32_t slot, RunFd which, uint32_t id)
{
    Run *run = &box->runs[slot % FRAME_RUNS_MAX];

    if (run->state == RUN_STATE_FREE || run->id != id)
        return;
    if (which == RUN_FD_REPORT && run->report_fd >= 0)
        run_on_report(run, now_us());
    else if (which == RUN_FD_IN)
        run_drain_input(run);
    else if (which <= RUN_FD_ERR && stream_wants_more(&run->streams[which]))
        (void)stream_fill(&run->streams[which]);
}

static void
dispatch(Box *box, uint64_t data)
{
    uint32_t slot = (uint32_t)(data >> 32) & 0xffffff;
    uint32_t id = (uint32_t)data;

    switch ((WatchKind)(data >> 56)) {
    case WATCH_CHANNEL:
        hear(box);
        break;
    case WATCH_SIGNAL:
        on_signal_fd(box);
        break;
    case WATCH_TIMER:
        (void)!read(box->timer_fd, &(uint64_t){0}, sizeof(uint64_t));
        box->timer_us = 0;
        if (box->sudo_paused)
            box->sudo_paused = !box_watch(box, EPOLL_CTL_ADD, box->sudo_fd, EPOLLIN,
                                          watch_data(WATCH_SUDO, 0, 0));
        break;
    case WATCH_RUN:
        run_on_event(box, slot & 0xffff, (RunFd)(slot >> 16), id);
        break;
    case WATCH_CONNECT:
        if (box->connects[slot].used && box->connects[slot].asked == id)
            connect_on_event(box, &box->connects[slot]);
        break;
    case WATCH_SINK:
        sink_on_event(box, (int)slot);
        break;
    case WATCH_SUDO:
        sudo_on_connect(box);
        break;
    case WATCH_LEASE:
        sudo_on_lease(box, slot);
        break;
    }
}

static void
run_on_time(Box *box, Run *run, uint64_t now)
{
    int sinks[2] = {-1, -1};

    if (run_is_live(run) && run->deadline_us != 0 && now >= run->deadline_us)
        run_kill(run, REASON_TIMEOUT, now);
    /* Its leader cannot keep up with what it has to kill.  This the kernel does in one go. */
    if (run->give_up_us != 0 && now >= run->give_up_us) {
        run->give_up_us = now + (uint64_t)RUN_KILL_GIVE_UP_MS * 1000;
        (void)kill(-1, SIGKILL);
    }
    if (run->state == RUN_STATE_DRAINING)
        (void)run_finish_drain(run, now, sinks);
    for (int i = 0; i < 2; i++) {
        if (sinks[i] >= 0)
            run->watched &= ~(1u << (i == 0 ? RUN_FD_OUT : RUN_FD_ERR));
        sink_add(box, sinks[i]);
    }
    if (run->forget && (run->state == RUN_STATE_ENDED || run->state == RUN_STATE_FAILED))
        run_clear(run);
}

static bool
any_run(const Box *box, bool (*is)(const Run *))
{
    for (uint32_t i = 0; i < box->n_slots; i++) {
        if (box->runs[i].state != RUN_STATE_FREE && is(&box->runs[i]))
            return true;
    }
    return false;
}

static bool
has_to_say(const Run *run)
{
    return run->state == RUN_STATE_DRAINING || run->owed != 0;
}

/* TERM -> KILL -> SAY -> true: pid 1 may end, and with it the box. */
static bool
stop_on_time(Box *box, uint64_t now)
{
    bool live = any_run(box, run_is_live);

    if (box->stop == STOP_TERM && (!live || now >= box->stop_us)) {
        for (uint32_t i = 0; i < box->n_slots; i++)
            run_kill(&box->runs[i], REASON_STOPPED, now);
        box->stop = STOP_KILL;
        box->stop_us = now + (uint64_t)RUN_KILL_GIVE_UP_MS * 1000;
    }
    if (box->stop == STOP_KILL && (!live || now >= box->stop_us)) {
        box->stop = STOP_SAY;
        box->stop_us = now + (uint64_t)SHUTDOWN_SAY_MS * 1000;
    }
    return box->stop == STOP_SAY && (now >= box->stop_us || !any_run(box, has_to_say));
}

static void
watch_run_fd(Box *box, Run *run, RunFd which, int fd, bool wanted)
{
    uint32_t bit = 1u << which;
    bool watched = (run->watched & bit) != 0;
    uint64_t data = watch_data(WATCH_RUN, (uint32_t)(run - box->runs) | (uint32_t)which << 16, run->id);

    /* The kernel forgets a descriptor when it is closed. */
    if (fd < 0)
        run->watched &= ~bit;
    else if (wanted && !watched &&
             box_watch(box, EPOLL_CTL_ADD, fd, which == RUN_FD_IN ? EPOLLOUT : EPOLLIN, data))
        run->watched |= bit;
    else if (!wanted && watched && box_watch(box, EPOLL_CTL_DEL, fd, 0, 0))
        run->watched &= ~bit;
}

static void
watch_run(Box *box, Run *run)
{
    watch_run_fd(box, run, RUN_FD_OUT, run->streams[0].fd, stream_wants_more(&run->streams[0]));
    watch_run_fd(box, run, RUN_FD_ERR, run->streams[1].fd, stream_wants_more(&run->streams[1]));
    watch_run_fd(box, run, RUN_FD_IN, run->input.fd, input_wants_room(&run->input));
    watch_run_fd(box, run, RUN_FD_REPORT, run->report_fd, true);
}

static void
sooner(uint64_t *ret_next, uint64_t when)
{
    if (when != 0 && (*ret_next == 0 || when < *ret_next))
        *ret_next = when;
}

static void
set_timer(Box *box, uint64_t when)
{
    struct itimerspec spec = {
        .it_value = {(time_t)(when / USEC_PER_SEC), (long)(when % USEC_PER_SEC) * 1000}};

    if (when == box->timer_us)
        return;
    box->timer_us = when;
    (void)timerfd_settime(box->timer_fd, TFD_TIMER_ABSTIME, &spec, NULL);
}

static void
watch_channel(Box *box)
{
    uint32_t events = box->channel_full ? EPOLLIN | EPOLLOUT : EPOLLIN;

    if (events != box->channel_events &&
        box_watch(box, EPOLL_CTL_MOD, INIT_CHANNEL_FD, events, watch_data(WATCH_CHANNEL, 0, 0)))
        box->channel_events = events;
}

static void
plan_next_turn(Box *box)
{
    uint64_t next = box->stop != STOP_NOT ? box->stop_us : 0;

    for (uint32_t i = 0; i < box->n_slots; i++) {
        Run *run = &box->runs[i];

        if (run->state == RUN_STATE_FREE)
            continue;
        watch_run(box, run);
        sooner(&next, run->deadline_us);
        sooner(&next, run->give_up_us);
    }
    for (size_t i = 0; i < CONNECTS_MAX; i++) {
        if (box->connects[i].used && !box->connects[i].done)
            sooner(&next, box->connects[i].deadline_us);
    }
    if (box->retry || box->sudo_paused)
        sooner(&next, now_us() + RETRY_US);
    watch_channel(box);
    set_timer(box, next);
}

/* True: it was the last. */
static bool
turn(Box *box)
{
    struct epoll_event events[EVENTS_MAX];
    int n = epoll_wait(box->epoll_fd, events, EVENTS_MAX, -1);

    for (int i = 0; i < n; i++)
        dispatch(box, events[i].data.u64);
    uint64_t now = now_us();
    for (uint32_t i = 0; i < box->n_slots; i++) {
        if (box->runs[i].state != RUN_STATE_FREE)
            run_on_time(box, &box->runs[i], now);
    }
    connect_on_time(box, now);
    box_say(box);
    bool last = stop_on_time(box, now);
    plan_next_turn(box);
    return box->gone || last;
}

/* Every signal is blocked: what concerns pid 1 comes through a descriptor, and EPIPE and EFBIG
 * are return values.  What each does is the default, as exec leaves it: the keeper ignores none. */
static int
open_signals(void)
{
    sigset_t all, wanted;

    sigfillset(&all);
    sigemptyset(&wanted);
    sigaddset(&wanted, SIGCHLD);
    if (sigprocmask(SIG_SETMASK, &all, NULL) < 0)
        return -1;
    return signalfd(-1, &wanted, SFD_NONBLOCK | SFD_CLOEXEC);
}

static bool
box_open(Box *box)
{
    box->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    box->signal_fd = open_signals();
    box->timer_fd = timerfd_create(CLOCK_BOOTTIME, TFD_NONBLOCK | TFD_CLOEXEC);
    return box->epoll_fd >= 0 && box->signal_fd >= 0 && box->timer_fd >= 0 &&
           fcntl(INIT_CHANNEL_FD, F_SETFD, FD_CLOEXEC) == 0 &&
           box_watch(box, EPOLL_CTL_ADD, INIT_CHANNEL_FD, EPOLLIN, watch_data(WATCH_CHANNEL, 0, 0)) &&
           box_watch(box, EPOLL_CTL_ADD, box->signal_fd, EPOLLIN, watch_data(WATCH_SIGNAL, 0, 0)) &&
           box_watch(box, EPOLL_CTL_ADD, box->timer_fd, EPOLLIN, watch_data(WATCH_TIMER, 0, 0));
}

int
init_run(bool sudo)
{
    Box *box = mmap(NULL, sizeof *box, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    /* It kills and reaps everybody it sees: anywhere but in a box of its own that is the host. */
    if (getpid() != 1)
        return 1;
    /* No command can trace pid 1 or read its memory, and none gains rights by exec. */
    if (box == MAP_FAILED || prctl(PR_SET_DUMPABLE, 0) < 0 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
        !box_open(box) || (sudo && !sudo_open(box)))
        return 1;
    /* The keeper's may be lower, so that the host takes anybody before it. */
    oom_score_set(OOM_SCORE_INIT);
    box->way = start_way();
    while (!turn(box))
        ;
    return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The caller's side while the command runs.  Without a terminal the command has the caller's own
 * descriptors, and only signals are passed on.  With one the command has a terminal of its own,
 * since it cannot be part of the caller's session; then the caller's is set to pass every byte
 * and they are carried to and fro.
 *
 * In the background the caller's terminal is not touched.  When the command stops we stop, and
 * when we are continued the command is.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <termios.h>
#include <unistd.h>

#include "init/sudo-client.h"
#include "wire/channel.h"
#include "wire/frame.h"

enum { COPY_BYTES = 4096 };

static const int passed[] = {SIGHUP,  SIGINT,  SIGQUIT, SIGTERM, SIGUSR1,
                             SIGUSR2, SIGALRM, SIGTSTP, SIGCONT, SIGWINCH};

typedef struct Relay {
    int connection, signals, master;
    bool raw, input_ended, started;
    struct termios mode; /* the caller's, to be put back */
    size_t n;            /* of input that the master has no room for */
    char input[COPY_BYTES];
    bool ended;
    int status;
    const char *problem;
    SudoSay failed;
} Relay;

static bool
wait_for(int fd, short events)
{
    struct pollfd p = {fd, events, 0};

    while (poll(&p, 1, -1) < 0) {
        if (errno != EINTR)
            return false;
    }
    return true;
}

static bool
send_all(int connection, const void *packet, size_t n, const int *fds, size_t n_fds)
{
    while (channel_send(connection, packet, n, fds, n_fds) < 0) {
        if (errno != EAGAIN || !wait_for(connection, POLLOUT))
            return false;
    }
    return true;
}

static bool
send_request(int connection, const SudoRequest *request, const char *text)
{
    static const int fds[SUDO_FDS] = {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO};

    if (!send_all(connection, request, sizeof *request, fds, SUDO_FDS))
        return false;
    for (size_t at = 0; at < request->bytes; at += SUDO_PACKET_MAX) {
        size_t n = request->bytes - at < SUDO_PACKET_MAX ? request->bytes - at : SUDO_PACKET_MAX;

        if (!send_all(connection, text + at, n, NULL, 0))
            return false;
    }
    return true;
}

static bool
in_foreground(void)
{
    return tcgetpgrp(STDIN_FILENO) == getpgrp();
}

static void
set_raw(Relay *r)
{
    struct termios raw;

    if (r->raw || r->master < 0 || !in_foreground() || tcgetattr(STDIN_FILENO, &r->mode) < 0)
        return;
    raw = r->mode;
    cfmakeraw(&raw);
    r->raw = tcsetattr(STDIN_FILENO, TCSADRAIN, &raw) == 0;
}

static void
unset_raw(Relay *r)
{
    if (r->raw)
        (void)tcsetattr(STDIN_FILENO, TCSADRAIN, &r->mode);
    r->raw = false;
}

static void
pass_size(const Relay *r)
{
    struct winsize size;

    if (r->master >= 0 && ioctl(STDIN_FILENO, TIOCGWINSZ, &size) == 0)
        (void)ioctl(r->master, TIOCSWINSZ, &size);
}

static void
pass_signals(Relay *r)
{
    struct signalfd_siginfo info;

    while (read(r->signals, &info, sizeof info) == (ssize_t)sizeof info) {
        SudoSay packet = {.kind = SUDO_SIGNAL, .value = (int32_t)info.ssi_signo};

        if (packet.value == SIGWINCH)
            pass_size(r);
        if (packet.value == SIGCONT)
            set_raw(r);
        /* A terminal of its own gets its changes of size from the kernel. */
        if (packet.value != SIGWINCH || r->master < 0)
            (void)channel_send(r->connection, &packet, sizeof packet, NULL, 0);
    }
}

static void
stop(Relay *r)
{
    unset_raw(r);
    (void)raise(SIGSTOP);
    set_raw(r);
}

static void
hear(Relay *r)
{
    SudoSay packet = {0};
    int fd = -1;
    size_t n_fds = 1;
    ssize_t n = channel_recv(r->connection, &packet, sizeof packet, &fd, &n_fds);

    if (n < 0 && errno == EAGAIN)
        return;
    r->ended = n != (ssize_t)sizeof packet || packet.kind == SUDO_FAILED || packet.kind == SUDO_EXITED;
    if (n == (ssize_t)sizeof packet && packet.kind == SUDO_STARTED) {
        r->started = true;
        r->master = n_fds == 1 ? fd : -1;
        if (r->master >= 0)
            (void)fcntl(r->master, F_SETFL, O_NONBLOCK);
        pass_size(r);
        set_raw(r);
    } else if (n == (ssize_t)sizeof packet && packet.kind == SUDO_STOPPED) {
        stop(r);
    } else if (n == (ssize_t)sizeof packet && packet.kind == SUDO_EXITED) {
        r->status = packet.value;
    } else if (n == (ssize_t)sizeof packet && packet.kind == SUDO_FAILED) {
        r->failed = packet;
    } else if (r->ended) {
        r->problem = r->started ? "the command was killed" : "there was no process to be had for the command";
    }
}

/* What the terminal shows; false at its end. */
static bool
copy_output(Relay *r)
{
    char bytes[COPY_BYTES];
    ssize_t n = read(r->master, bytes, sizeof bytes);

    for (ssize_t at = 0; at < n;) {
        ssize_t put = write(STDOUT_FILENO, bytes + at, (size_t)(n - at));

        if (put < 0 && errno == EAGAIN)
            (void)wait_for(STDOUT_FILENO, POLLOUT);
        else if (put < 0 && errno != EINTR)
            return false;
        at += put > 0 ? put : 0;
    }
    return n > 0 || (n < 0 && errno == EINTR);
}

static void
copy_input(Relay *r)
{
    if (r->n == 0) {
        ssize_t n = read(STDIN_FILENO, r->input, sizeof r->input);

        r->input_ended = n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR);
        r->n = n > 0 ? (size_t)n : 0;
    }
    ssize_t put = r->n > 0 ? write(r->master, r->input, r->n) : 0;
    if (put > 0) {
        r->n -= (size_t)put;
        memmove(r->input, r->input + put, r->n);
    }
}

static void
turn(Relay *r)
{
    bool reads = r->raw && !r->input_ended;
    struct pollfd p[] = {{r->connection, POLLIN, 0},
                         {r->signals, POLLIN, 0},
                         {r->master, (short)(POLLIN | (r->n > 0 ? POLLOUT : 0)), 0},
                         {reads && r->n == 0 ? STDIN_FILENO : -1, POLLIN, 0}};

    if (poll(p, sizeof p / sizeof p[0], -1) < 0)
        return;
    if (p[1].revents != 0)
        pass_signals(r);
    if (p[3].revents != 0 || (p[2].revents & POLLOUT) != 0)
        copy_input(r);
    if ((p[2].revents & (POLLIN | POLLHUP)) != 0 && !copy_output(r) && errno != EAGAIN) {
        close(r->master);
        r->master = -1;
    }
    if (p[0].revents != 0)
        hear(r);
}

static int
open_signals(void)
{
    sigset_t set;

    sigemptyset(&set);
    for (size_t i = 0; i < sizeof passed / sizeof passed[0]; i++)
        sigaddset(&set, passed[i]);
    /* Raw or not is decided before the terminal is touched, and may have changed since. */
    (void)signal(SIGTTOU, SIG_IGN);
    (void)signal(SIGPIPE, SIG_IGN);
    if (sigprocmask(SIG_BLOCK, &set, NULL) < 0)
        return -1;
    return signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
}

static const char *
problem_of(const SudoSay *failed)
{
    static const char *const texts[] = {
        [FAIL_FRAME] = "the request was not understood",
        [FAIL_LIMIT] = "there are too many commands by sudo at once",
        [FAIL_FORK] = "there is no process to be had",
        [FAIL_USER] = "there is no such user, or you may not use sudo",
        [FAIL_TTY] = "there is no terminal to be had",
        [FAIL_CWD] = "the folder cannot be entered",
        [FAIL_EXEC] = "the command cannot be run",
    };

    return failed->stage > 0 && failed->stage < sizeof texts / sizeof texts[0] ? texts[failed->stage]
                                                                               : "the command was refused";
}

int
sudo_relay(int connection, const SudoRequest *request, const char *text, SudoSay *ret_failed,
           const char **ret_problem)
{
    Relay r = {.connection = connection, .master = -1, .signals = open_signals()};

    if (r.signals < 0)
        r.problem = "there is no descriptor to be had";
    else
        /* Whoever does not take it says why. */
        (void)send_request(connection, request, text);
    while (!r.ended && r.problem == NULL)
        turn(&r);
    /* What it wrote last. */
    while (r.master >= 0 && copy_output(&r))
        ;
    unset_raw(&r);
    if (r.failed.kind != 0)
        r.problem = problem_of(&r.failed);
    *ret_failed = r.failed;
    *ret_problem = r.problem;
    return r.problem != NULL ? -1 : r.status;
}

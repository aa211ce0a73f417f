/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The life of one command that was asked for by sudo.  This process is uid 0 with a box's few
 * capabilities; what it reads comes from a client that is not.
 *
 * It is the session's first process and the command a child in a group of its own: so the command
 * is no orphan in the terminal's eyes, and can be stopped and continued.  It is a subreaper: what
 * the command leaves behind is its own until it ends, and the leader's (or init's) afterwards.
 */
#include "init/sudoer.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include "init/box.h"
#include "init/offspring.h"
#include "init/pty.h"
#include "init/start.h"
#include "wire/sudo.h"

enum { CONNECTION_FD = 3, LEASE_FD = 4, FIRST_FREE_FD = 5, HIGH_FD = 64, TEXTS_FIXED = 2, SHELL_ARGS = 4 };

typedef struct Sudoer {
    SudoRequest request;
    int fds[SUDO_FDS]; /* the client's */
    int slave, master; /* of the command's terminal, or -1 */
    char *text;
    const char *user, *cwd;
    const char **argv, **envp;
    User as;
    Program program;
    const char *shell_argv[SHELL_ARGS];
    char shell_name[PASSWD_PATH_MAX + 2];
    pid_t main;
    bool ended;
    int status;
} Sudoer;

static void
say(SudoKind kind, uint32_t stage, int value, int fd)
{
    SudoSay packet = {.kind = kind, .stage = stage, .value = value};

    /* A client that does not read what it is told loses it. */
    (void)channel_send(CONNECTION_FD, &packet, sizeof packet, &fd, fd >= 0 ? 1 : 0);
}

static _Noreturn void
refuse(FrameStage stage, int error)
{
    say(SUDO_FAILED, (uint32_t)stage, error, -1);
    _exit(1);
}

/* Of what init or a leader had open nothing stays. */
static void
place_fds(int connection, int lease)
{
    int high = fcntl(connection, F_DUPFD_CLOEXEC, HIGH_FD);
    int high_lease = fcntl(lease, F_DUPFD_CLOEXEC, HIGH_FD);
    int fd;

    /* Theirs may be the numbers that are filled below. */
    close(connection);
    close(lease);
    if (high < 0 || high_lease < 0 || dup3(high, CONNECTION_FD, O_CLOEXEC) < 0 ||
        dup3(high_lease, LEASE_FD, O_CLOEXEC) < 0 || syscall(SYS_close_range, FIRST_FREE_FD, ~0U, 0) < 0)
        _exit(1);
    do {
        fd = open("/dev/null", O_RDWR | O_CLOEXEC);
    } while (fd >= 0 && fd < FIRST_FREE_FD);
    if (fd < 0)
        _exit(1);
    close(fd);
}

/* False: nothing came in time, or the client is gone. */
static bool
await_packet(uint64_t deadline_us)
{
    struct pollfd p = {CONNECTION_FD, POLLIN, 0};
    uint64_t now = now_us();

    return now < deadline_us && poll(&p, 1, (int)((deadline_us - now) / 1000) + 1) > 0;
}

static bool
receive_request(Sudoer *s, uint64_t deadline_us)
{
    size_t n_fds = SUDO_FDS;
    const SudoRequest *r = &s->request;

    if (!await_packet(deadline_us) ||
        channel_recv(CONNECTION_FD, &s->request, sizeof s->request, s->fds, &n_fds) != sizeof s->request)
        return false;
    return n_fds == SUDO_FDS && r->version == SUDO_VERSION &&
           (r->flags & ~(uint32_t)(SUDO_TTY | SUDO_SHELL | SUDO_LOGIN)) == 0 && r->bytes > 0 &&
           r->bytes <= SUDO_TEXT_MAX && r->argc <= SUDO_TEXTS_MAX && r->envc <= SUDO_TEXTS_MAX &&
           ((r->flags & (SUDO_SHELL | SUDO_LOGIN)) != 0 ? r->argc <= 1 : r->argc >= 1);
}

static bool
receive_text(Sudoer *s, uint64_t deadline_us)
{
    size_t n = 0;

    s->text = malloc(s->request.bytes);
    while (s->text != NULL && n < s->request.bytes) {
        ssize_t got = await_packet(deadline_us)
                          ? channel_recv(CONNECTION_FD, s->text + n, s->request.bytes - n, NULL, NULL)
                          : -1;

        if (got <= 0)
            return false;
        n += (size_t)got;
    }
    return s->text != NULL && s->text[n - 1] == '\0';
}

/* As many texts as were announced, and nothing behind them. */
static bool
split_text(Sudoer *s)
{
    uint32_t argc = s->request.argc;
    uint32_t n = TEXTS_FIXED + argc + s->request.envc;
    const char *at = s->text;
    const char *end = s->text + s->request.bytes;

    s->argv = calloc((size_t)argc + 1, sizeof *s->argv);
    s->envp = calloc((size_t)s->request.envc + 1, sizeof *s->envp);
    if (s->argv == NULL || s->envp == NULL)
        return false;
    for (uint32_t i = 0; i < n; i++) {
        if (at == end)
            return false;
        if (i >= TEXTS_FIXED + argc)
            s->envp[i - TEXTS_FIXED - argc] = at;
        else if (i >= TEXTS_FIXED)
            s->argv[i - TEXTS_FIXED] = at;
        else
            *(i == 0 ? &s->user : &s->cwd) = at;
        at += strlen(at) + 1;
    }
    return at == end;
}

/* The shell is the user's, a login is said by a dash before its name. */
static void
make_program(Sudoer *s)
{
    uint32_t flags = s->request.flags;
    const char *shell = s->as.shell[0] == '/' ? s->as.shell : "/bin/sh";
    const char *slash = strrchr(shell, '/');
    size_t n = 0;

    s->program = (Program){.file = s->argv[0],
                           .cwd = (flags & SUDO_LOGIN) != 0 ? "" : s->cwd,
                           .argv = s->argv,
                           .envp = s->envp,
                           .envc = s->request.envc,
                           .keep_capabilities = s->as.uid == 0};
    if ((flags & (SUDO_SHELL | SUDO_LOGIN)) == 0)
        return;
    (void)stpcpy(stpcpy(s->shell_name, (flags & SUDO_LOGIN) != 0 ? "-" : ""), slash + 1);
    s->shell_argv[n++] = s->shell_name;
    if (s->request.argc == 1) {
        s->shell_argv[n++] = "-c";
        s->shell_argv[n++] = s->argv[0];
    }
    s->program.file = shell;
    s->program.argv = s->shell_argv;
}

/* A terminal like the client's, of which the command is the master's other end. */
static bool
make_terminal(Sudoer *s)
{
    struct termios mode;
    struct winsize size;

    s->slave = s->master = -1;
    if ((s->request.flags & SUDO_TTY) == 0)
        return true;
    if (!pty_open(0, 0, &s->master, &s->slave))
        return false;
    if (tcgetattr(s->fds[0], &mode) == 0)
        (void)tcsetattr(s->slave, TCSANOW, &mode);
    if (ioctl(s->fds[0], TIOCGWINSZ, &size) == 0)
        (void)ioctl(s->slave, TIOCSWINSZ, &size);
    return fchown(s->slave, s->as.uid, s->as.gid) == 0 && ioctl(s->slave, TIOCSCTTY, 0) == 0;
}

static _Noreturn void
be_command(const Sudoer *s, int failed_fd)
{
    bool tty = s->slave >= 0;

    (void)setpgid(0, 0);
    /* Allowed in the background too, since the signal against it is blocked. */
    if (tty && tcsetpgrp(s->slave, getpid()) < 0)
        start_fail(failed_fd, FAIL_TTY);
    for (int i = 0; i < SUDO_FDS; i++) {
        bool own = tty && (i < 2 || isatty(s->fds[i]) == 1);

        if (dup2(own ? s->slave : s->fds[i], i) < 0)
            start_fail(failed_fd, FAIL_FORK);
    }
    start_program(&s->program, &s->as, failed_fd);
}

/* The run of one that is gone may have been ended before init took its request out of the queue.  Nothing
 * would hold what its command leaves behind. */
static bool
client_is_there(void)
{
    struct pollfd p = {CONNECTION_FD, 0, 0};

    return poll(&p, 1, 0) == 0;
}

static void
start(Sudoer *s)
{
    Report failed;
    int fds[2];
    ssize_t n;

    if (pipe2(fds, O_CLOEXEC) < 0)
        refuse(FAIL_FORK, errno);
    s->main = fork();
    if (s->main < 0)
        refuse(FAIL_FORK, errno);
    if (s->main == 0)
        be_command(s, fds[1]);
    (void)setpgid(s->main, s->main);
    close(fds[1]);
    for (int i = 0; i < SUDO_FDS; i++)
        close(s->fds[i]);
    do {
        n = read(fds[0], &failed, sizeof failed);
    } while (n < 0 && errno == EINTR);
    close(fds[0]);
    if (n == (ssize_t)sizeof failed)
        refuse((FrameStage)failed.stage, failed.error);
    say(SUDO_STARTED, 0, s->main, s->master);
    if (s->master >= 0)
        close(s->master);
}

static void
reap(void *ctx)
{
    Sudoer *s = ctx;
    int status;
    pid_t pid;

    while ((pid = waitpid(-1, &status, WNOHANG | WUNTRACED | __WALL)) > 0) {
        if (pid != s->main)
            continue;
        if (WIFSTOPPED(status)) {
            say(SUDO_STOPPED, 0, WSTOPSIG(status), -1);
        } else {
            s->ended = true;
            s->status = status;
        }
    }
}

static void
pass_on(const Sudoer *s, int number)
{
    if (number <= 0 || number >= SIGRTMIN)
        return;
    if (number == SIGCONT && s->slave >= 0)
        (void)tcsetpgrp(s->slave, s->main);
    (void)kill(-s->main, number);
}

/* False: the client is gone. */
static bool
hear(const Sudoer *s)
{
    SudoSay packet;
    ssize_t n = channel_recv(CONNECTION_FD, &packet, sizeof packet, NULL, NULL);

    if (n < 0)
        return errno == EAGAIN || errno == EINTR || errno == EMSGSIZE;
    if (n == sizeof packet && packet.kind == SUDO_SIGNAL)
        pass_on(s, packet.value);
    return n > 0;
}

static _Noreturn void
serve(Sudoer *s)
{
    struct signalfd_siginfo info;
    sigset_t chld;

    sigemptyset(&chld);
    sigaddset(&chld, SIGCHLD);
    struct pollfd p[2] = {{CONNECTION_FD, POLLIN, 0},
                          {signalfd(-1, &chld, SFD_NONBLOCK | SFD_CLOEXEC), POLLIN, 0}};
    reap(s);
    while (!s->ended) {
        if (p[1].fd < 0 || (poll(p, 2, -1) < 0 && errno != EINTR) || (p[0].revents != 0 && !hear(s))) {
            offspring_kill(reap, s);
            _exit(1);
        }
        while (read(p[1].fd, &info, sizeof info) > 0)
            ;
        reap(s);
    }
    say(SUDO_EXITED, 0, s->status, -1);
    _exit(0);
}

void
sudoer_run(int connection, int lease)
{
    Sudoer s = {0};
    uint64_t deadline_us = now_us() + (uint64_t)SUDO_REQUEST_MS * 1000;

    place_fds(connection, lease);
    (void)setsid();
    if (prctl(PR_SET_CHILD_SUBREAPER, 1) < 0)
        refuse(FAIL_FORK, errno);
    if (!receive_request(&s, deadline_us) || !receive_text(&s, deadline_us) || !split_text(&s))
        refuse(FAIL_FRAME, EINVAL);
    if (!user_lookup(s.user, false, &s.as))
        refuse(FAIL_USER, errno);
    make_program(&s);
    if (!make_terminal(&s))
        refuse(FAIL_TTY, errno);
    if (!client_is_there())
        _exit(1);
    start(&s);
    serve(&s);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/run.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/io.h"
#include "base/spawn.h"

enum { SIGNAL_BASE = 128, READ_SIZE = 16 * 1024 };

/* The first bytes, and a ring of the last. */
typedef struct Kept {
    GString *head;
    char tail[RUN_TAIL_MAX];
    guint64 total;
} Kept;

/* One of a command's two streams, which goes on to ours of the same number. */
typedef struct Stream {
    int fd, to; /* fd -1: it was closed */
    size_t echoed;
    char last; /* of what was echoed */
} Stream;

enum { OUT, ERR, STREAMS };

typedef struct Running {
    const RunSpec *spec;
    pid_t pid;
    int pidfd;
    gint64 deadline_us;
    bool ended, timed_out;
    Stream streams[STREAMS];
    Kept both; /* as it came, as a person would see it */
    Kept err;
} Running;

void
run_result_clear(RunResult *result)
{
    g_free(result->output);
    g_free(result->err);
    *result = (RunResult){0};
}

/* ---- output ---- */

static void
keep(Kept *kept, const char *bytes, size_t n)
{
    size_t to_head = MIN(n, (size_t)RUN_HEAD_MAX - kept->head->len);

    g_string_append_len(kept->head, bytes, (gssize)to_head);
    kept->total += to_head;
    for (size_t i = to_head; i < n; i++)
        kept->tail[(kept->total++ - RUN_HEAD_MAX) % RUN_TAIL_MAX] = bytes[i];
}

static char *
join(const Kept *kept)
{
    g_autoptr(GString) text = g_string_new_len(kept->head->str, (gssize)kept->head->len);
    guint64 beyond = kept->total - kept->head->len;
    guint64 dropped = beyond > RUN_TAIL_MAX ? beyond - RUN_TAIL_MAX : 0;

    if (dropped > 0)
        g_string_append_printf(text, "\n[… %" G_GUINT64_FORMAT " bytes left out …]\n", dropped);
    for (guint64 i = dropped; i < beyond; i++)
        g_string_append_c(text, kept->tail[i % RUN_TAIL_MAX]);
    /* A NUL would end the text for whoever reads it. */
    for (gsize i = 0; i < text->len; i++) {
        if (text->str[i] == '\0')
            text->str[i] = ' ';
    }
    return g_utf8_make_valid(text->str, (gssize)text->len);
}

/* What comes next begins a line. */
static void
end_echo(Stream *s)
{
    if (s->echoed > 0 && s->last != '\n')
        (void)io_write_all(s->to, "\n", 1);
    s->last = '\n';
}

/* Who follows the agent's work sees it as it comes; nothing else depends on it. */
static void
echo(Stream *s, const char *bytes, size_t n)
{
    static const char more[] = "[… more is not shown]\n";
    size_t part = MIN(n, (size_t)RUN_ECHO_MAX - s->echoed);

    if (part == 0)
        return;
    (void)io_write_all(s->to, bytes, part);
    s->echoed += part;
    s->last = bytes[part - 1];
    if (s->echoed < RUN_ECHO_MAX)
        return;
    end_echo(s);
    (void)io_write_all(s->to, more, sizeof more - 1);
}

/* ---- running ---- */

static void
read_stream(Running *r, Stream *s)
{
    char bytes[READ_SIZE];
    ssize_t n = read(s->fd, bytes, sizeof bytes);

    if (n > 0) {
        keep(&r->both, bytes, (size_t)n);
        if (s == &r->streams[ERR])
            keep(&r->err, bytes, (size_t)n);
        if (r->spec->echo)
            echo(s, bytes, (size_t)n);
    } else if (n == 0 || (errno != EINTR && errno != EAGAIN)) {
        close(s->fd);
        s->fd = -1;
    }
}

/* One wait; false: we are asked to end. */
static bool
turn(Running *r, GError **error)
{
    struct pollfd fds[] = {{.fd = r->streams[OUT].fd, .events = POLLIN},
                           {.fd = r->streams[ERR].fd, .events = POLLIN},
                           {.fd = r->ended ? -1 : r->pidfd, .events = POLLIN},
                           {.fd = r->spec->cancel_fd, .events = POLLIN}};
    gint64 left_ms = (r->deadline_us - clock_mono_us() + 999) / 1000;

    if (poll(fds, G_N_ELEMENTS(fds), (int)CLAMP(left_ms, 0, G_MAXINT)) < 0)
        return errno == EINTR || err_errno(error, "poll");
    if (fds[STREAMS + 1].revents != 0)
        return err_set(error, ERR_CANCELLED, "asked to end");
    for (int i = OUT; i < STREAMS; i++) {
        if (fds[i].revents != 0)
            read_stream(r, &r->streams[i]);
    }
    if (fds[STREAMS].revents != 0) {
        r->ended = true;
        /* What it left behind ends with it, or would hold the pipe open. */
        (void)kill(-r->pid, SIGKILL);
        r->deadline_us = clock_mono_us() + RUN_DRAIN_MS * 1000;
    }
    return true;
}

static bool
follow(Running *r, GError **error)
{
    while (!r->ended || r->streams[OUT].fd >= 0 || r->streams[ERR].fd >= 0) {
        if (clock_mono_us() >= r->deadline_us) {
            r->timed_out = !r->ended;
            return true;
        }
        if (!turn(r, error))
            return false;
    }
    return true;
}

static int
reap(Running *r)
{
    siginfo_t info = {0};

    (void)kill(-r->pid, SIGKILL); /* nobody may be left */
    while (waitid(P_PIDFD, (id_t)r->pidfd, &info, WEXITED) < 0) {
        if (errno != EINTR)
            return -1;
    }
    return info.si_code == CLD_EXITED ? info.si_status : SIGNAL_BASE + info.si_status;
}

/* As a file, so that nobody has to feed a pipe. */
static int
make_input(const char *text, GError **error)
{
    int fd = io_open_memory("input", text, strlen(text));

    if (fd < 0)
        err_errno(error, "the command's input");
    return fd;
}

/* Two pipes: what is said on standard error is told apart, at the price of the exact order of both. */
static int
open_stream(Stream *s, GError **error)
{
    int fds[2];

    if (pipe2(fds, O_CLOEXEC) < 0) {
        err_errno(error, "pipe");
        return -1;
    }
    s->fd = fds[0];
    if (fcntl(s->fd, F_SETFL, O_NONBLOCK) == 0)
        return fds[1];
    err_errno(error, "pipe");
    close(fds[1]);
    return -1;
}

static bool
start(Running *r, GError **error)
{
    autofd input = r->spec->input != NULL ? make_input(r->spec->input, error) : -1;

    if (r->spec->input != NULL && input < 0)
        return false;
    autofd out = open_stream(&r->streams[OUT], error);
    autofd err = out >= 0 ? open_stream(&r->streams[ERR], error) : -1;

    if (err < 0)
        return false;
    const SpawnSpec spawn = {.argv = r->spec->argv,
                             .cwd = r->spec->cwd,
                             .stdin_fd = input,
                             .stdout_fd = out,
                             .stderr_fd = err,
                             .new_session = true};
    r->pid = spawn_held(&spawn, &r->pidfd, error);
    return r->pid >= 0;
}

static void
running_clear(Running *r)
{
    for (int i = OUT; i < STREAMS; i++) {
        end_echo(&r->streams[i]);
        auto_close(&r->streams[i].fd);
    }
    auto_close(&r->pidfd);
    g_string_free(r->both.head, TRUE);
    g_string_free(r->err.head, TRUE);
}

bool
run_command(const RunSpec *spec, RunResult *ret_result, GError **error)
{
    gint64 begun_us = clock_mono_us();
    g_autofree Running *r = g_new0(Running, 1);

    *r = (Running){
        .spec = spec,
        .pid = -1,
        .pidfd = -1,
        .streams = {[OUT] = {.fd = -1, .to = STDOUT_FILENO}, [ERR] = {.fd = -1, .to = STDERR_FILENO}}};
    r->deadline_us = begun_us + spec->timeout_ms * 1000;
    r->both.head = g_string_new(NULL);
    r->err.head = g_string_new(NULL);
    bool good = start(r, error) && follow(r, error);
    if (r->pid >= 0)
        ret_result->exit_code = reap(r);
    if (good) {
        ret_result->timed_out = r->timed_out;
        ret_result->output = join(&r->both);
        ret_result->err = join(&r->err);
        ret_result->output_bytes = r->both.total;
        ret_result->duration_ms = (clock_mono_us() - begun_us) / 1000;
    }
    running_clear(r);
    return good;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* One run of git, from a thread that may wait.
 *
 * The child leads a session of its own and its filter lets nothing leave it, so one signal to the
 * group reaches everything it started.  That signal is sent before the leader is reaped, while its
 * number cannot be another's, and also after a good end: whoever outlives git is no use to us. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/io.h"
#include "base/log.h"
#include "base/spawn.h"
#include "forge/git-hold.h"
#include "forge/git-private.h"

enum {
    READ_SIZE = 64 << 10,
    CANCEL_LOOK_MS = 100,
    PROGRESS_MAX = 1024, /* of progress; what is longer comes in pieces */
};

typedef struct Run {
    const GitRepo *repo;
    const GitCall *call;
    GitEnd *end;
    pid_t pid;
    int pidfd, out, err;
    int gate; /* -1: none */
    gint64 deadline_us;
    size_t output_max;
    GString *line; /* of progress, unfinished */
    guint8 *bytes; /* READ_SIZE */
} Run;

static void
run_clear(Run *run)
{
    auto_close(&run->pidfd);
    auto_close(&run->out);
    auto_close(&run->err);
    auto_close(&run->gate);
    if (run->line != NULL)
        g_string_free(run->line, TRUE);
    g_free(run->bytes);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Run, run_clear)

/* A file in memory, so that nobody has to write while reading.  `bytes` NULL: none. */
static bool
open_bytes(const void *bytes, size_t len, int *ret_fd, GError **error)
{
    if (bytes == NULL)
        return true;
    *ret_fd = io_open_memory("git-input", bytes, len);
    return *ret_fd >= 0 || err_errno(error, "write the input of git");
}

static bool
open_pipe(int *ret_ours, int *ret_theirs, GError **error)
{
    int ends[2];

    if (pipe2(ends, O_CLOEXEC) < 0)
        return err_errno(error, "make a pipe for git");
    *ret_ours = ends[0];
    *ret_theirs = ends[1];
    /* Only our end: the other is a standard stream of git's. */
    (void)fcntl(*ret_ours, F_SETFL, O_NONBLOCK);
    return true;
}

static bool
is_held(const Run *run)
{
    return run->repo->holder != NULL && (run->call->heavy || run->call->access == GIT_REMOTE);
}

static bool
open_gate(Run *run, int *ret_end, GError **error)
{
    int ends[2];

    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0)
        return err_errno(error, "make a socket for git");
    run->gate = ends[0];
    *ret_end = ends[1];
    return true;
}

/* The child waits behind the gate until it is in its group.  A machine without a keeper has none. */
static bool
let_begin(Run *run, GError **error)
{
    g_autoptr(GError) why = NULL;

    if (!is_held(run))
        return true;
    if (!git_holder_hold(run->repo->holder, run->pidfd, run->call->cancel, &why)) {
        if (g_error_matches(why, ERR_DOMAIN, ERR_CANCELLED)) {
            g_propagate_error(error, g_steal_pointer(&why));
            return false;
        }
        if (!g_error_matches(why, ERR_DOMAIN, ERR_UNAVAILABLE))
            log_warn("forge", "git runs in no group of its own", log_gerror(why));
    }
    /* One that has ended already says why on its streams. */
    (void)send(run->gate, "", 1, MSG_NOSIGNAL);
    return true;
}

static bool
start(Run *run, GError **error)
{
    g_auto(GStrv) argv = git_call_argv(run->repo, run->call, is_held(run));
    g_auto(GStrv) env = git_call_env(run->repo, run->call);
    const char *config = run->call->config;
    autofd in = -1, config_fd = -1, out = -1, err = -1, gate = -1;
    SpawnSpec spec = SPAWN_SPEC_INIT;

    if (!open_bytes(run->call->input, run->call->input_len, &in, error) ||
        !open_bytes(config, config != NULL ? strlen(config) : 0, &config_fd, error) ||
        !open_pipe(&run->out, &out, error) || !open_pipe(&run->err, &err, error) ||
        (is_held(run) && !open_gate(run, &gate, error)))
        return false;
    spec.argv = (const char *const *)argv;
    spec.env = (const char *const *)env;
    spec.stdin_fd = in;
    spec.stdout_fd = out;
    spec.stderr_fd = err;
    spec.new_session = true;
    spec.extra_fd = MAX(gate, 0);
    spec.second_fd = MAX(config_fd, 0);
    g_autoptr(GError) why = NULL;

    run->pid = spawn_held(&spec, &run->pidfd, &why);
    return run->pid > 0 || err_set(error, ERR_UNAVAILABLE, "git cannot be started: %s", why->message);
}

static bool
keep_output(Run *run, size_t n, GError **error)
{
    if (run->call->take != NULL) {
        run->end->stopped = !run->call->take(run->bytes, n, run->call->ctx);
        return true;
    }
    if (n > run->output_max - run->end->output->len)
        return err_set(error, ERR_LIMIT, "git's answer has more than %zu bytes", run->output_max);
    g_byte_array_append(run->end->output, run->bytes, (guint)n);
    return true;
}

static void
tell_progress(Run *run, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        char c = (char)run->bytes[i];
        bool ends = c == '\n' || c == '\r';

        if (!ends)
            g_string_append_c(run->line, c);
        if (run->line->len > 0 && (ends || run->line->len == PROGRESS_MAX)) {
            run->call->progress(run->line->str, run->call->ctx);
            g_string_truncate(run->line, 0);
        }
    }
}

/* The end is what tells why it failed, so the start makes room. */
static void
keep_said(Run *run, size_t n)
{
    GString *said = run->end->said;

    if (run->call->progress != NULL)
        tell_progress(run, n);
    g_string_append_len(said, (const char *)run->bytes, (gssize)n);
    if (said->len > GIT_ERROR_MAX)
        g_string_erase(said, 0, (gssize)(said->len - GIT_ERROR_MAX));
}

/* Reads what is there; closes at the end of the stream. */
static bool
read_stream(Run *run, int *fd, GError **error)
{
    while (*fd >= 0 && !run->end->stopped) {
        ssize_t n = read(*fd, run->bytes, READ_SIZE);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EAGAIN)
            break;
        if (n <= 0) {
            close(g_steal_fd(fd));
            break;
        }
        if (fd == &run->err)
            keep_said(run, (size_t)n);
        else if (!keep_output(run, (size_t)n, error))
            return false;
    }
    return true;
}

static bool
may_go_on(const Run *run, GError **error)
{
    if (run->call->cancel != NULL && __atomic_load_n(run->call->cancel, __ATOMIC_ACQUIRE) != 0)
        return err_set(error, ERR_CANCELLED, "git was cancelled");
    if (clock_mono_us() < run->deadline_us)
        return true;
    return err_set(error, ERR_TIMEOUT, "git took longer than %u s",
                   (guint)((run->call->timeout_ms != 0 ? run->call->timeout_ms : GIT_TIMEOUT_MS) / 1000));
}

static int
wait_ms(const Run *run)
{
    gint64 left = MAX(0, run->deadline_us - clock_mono_us()) / 1000 + 1;

    return (int)MIN(left, run->call->cancel != NULL ? CANCEL_LOOK_MS : G_MAXINT);
}

/* True when it has ended, or `take` had enough. */
static bool
follow(Run *run, GError **error)
{
    bool ended = false;

    while (!ended && !run->end->stopped) {
        struct pollfd fds[] = {{.fd = run->pidfd, .events = POLLIN},
                               {.fd = run->out, .events = POLLIN},
                               {.fd = run->err, .events = POLLIN}};

        if (!may_go_on(run, error))
            return false;
        if (poll(fds, G_N_ELEMENTS(fds), wait_ms(run)) < 0 && errno != EINTR)
            return err_errno(error, "wait for git");
        /* Before the streams are read: what it wrote before it ended is in them then. */
        ended = fds[0].revents != 0;
        if (!read_stream(run, &run->out, error) || !read_stream(run, &run->err, error))
            return false;
    }
    return true;
}

static void
finish(Run *run)
{
    siginfo_t how = {0};

    (void)kill(-run->pid, SIGKILL);
    while (waitid(P_PIDFD, (id_t)run->pidfd, &how, WEXITED) < 0 && errno == EINTR)
        continue;
    run->end->code = how.si_code == CLD_EXITED ? how.si_status : GIT_CODE_FATAL + how.si_status;
}

bool
git_child_run(const GitRepo *repo, const GitCall *call, GitEnd *ret_end, GError **error)
{
    guint timeout = call->timeout_ms != 0 ? call->timeout_ms : GIT_TIMEOUT_MS;
    g_auto(Run) run = {.repo = repo,
                       .call = call,
                       .end = ret_end,
                       .pidfd = -1,
                       .out = -1,
                       .err = -1,
                       .gate = -1,
                       .deadline_us = clock_mono_us() + (gint64)timeout * 1000,
                       .output_max = call->output_max != 0 ? call->output_max : GIT_OUTPUT_MAX,
                       .line = g_string_new(NULL),
                       .bytes = g_malloc(READ_SIZE)};

    ret_end->said = g_string_new(NULL);
    ret_end->output = call->take == NULL ? g_byte_array_new() : NULL;
    if (!start(&run, error))
        return false;
    bool done = let_begin(&run, error) && follow(&run, error);

    finish(&run);
    if (ret_end->output != NULL) {
        g_byte_array_append(ret_end->output, (const guint8 *)"", 1);
        g_byte_array_set_size(ret_end->output, ret_end->output->len - 1);
    }
    return done;
}

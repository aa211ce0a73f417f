/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/supervisor.h"

#include <errno.h>
#include <fcntl.h>
#include <glib-unix.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/io.h"
#include "base/log.h"
#include "base/spawn.h"

/*          +--------------------- delay --------------------+
 *          v                                                |
 * IDLE -> WAITING -> STARTING -> READY -> (ended) ----------+
 *                       |          |
 *                       +----------+-> STOPPING -> (ended) -> WAITING, or IDLE at the end
 *
 * `timer` belongs to the state: the delay, the deadline for "ready", the deadline of the
 * stop.  The one setter removes it. */
typedef enum ProgramState {
    PROGRAM_IDLE, /* not wanted: not yet, or no more */
    PROGRAM_WAITING,
    PROGRAM_STARTING,
    PROGRAM_READY,
    PROGRAM_STOPPING,
    PROGRAM_STATE_MAX,
} ProgramState;

#define TO(state) (1u << (state))
static const struct {
    const char *name;
    unsigned next;
} states[PROGRAM_STATE_MAX] = {
    [PROGRAM_IDLE] = {"idle", TO(PROGRAM_WAITING)},
    [PROGRAM_WAITING] = {"waiting", TO(PROGRAM_STARTING) | TO(PROGRAM_IDLE) | TO(PROGRAM_WAITING)},
    [PROGRAM_STARTING] = {"starting",
                          TO(PROGRAM_READY) | TO(PROGRAM_STOPPING) | TO(PROGRAM_WAITING) | TO(PROGRAM_IDLE)},
    [PROGRAM_READY] = {"ready", TO(PROGRAM_STOPPING) | TO(PROGRAM_WAITING) | TO(PROGRAM_IDLE)},
    [PROGRAM_STOPPING] = {"stopping", TO(PROGRAM_WAITING) | TO(PROGRAM_IDLE)},
};

typedef struct Program {
    Supervisor *owner;
    const SupervisorProgram *spec;
    ProgramState state;
    Child *child;
    int line_fd;
    guint line_source;
    guint timer;
    Buf line;
    guint failures; /* in a row */
    bool was_ready; /* ever */
    gint64 ready_us;
} Program;

struct Supervisor {
    SupervisorSpec spec;
    Program programs[SUPERVISOR_PROGRAMS_MAX];
    bool stopping;
    bool killing;
    bool done;
    guint idle;
    ExitCode code;
    char *message;
};

static void go_on_stopping(Supervisor *s);
static void program_start(Program *p);

static void
set_state(Program *p, ProgramState to)
{
    g_assert((states[p->state].next & TO(to)) != 0);
    log_debug("supervisor", "state", log_str("program", p->spec->name),
              log_str("from", states[p->state].name), log_str("to", states[to].name));
    p->state = to;
    if (p->timer != 0)
        g_source_remove(p->timer);
    p->timer = 0;
}

static void give_up(Supervisor *s, ExitCode code, const char *fmt, ...) G_GNUC_PRINTF(3, 4);

static void
give_up(Supervisor *s, ExitCode code, const char *fmt, ...)
{
    va_list ap;

    if (s->stopping)
        return;
    va_start(ap, fmt);
    s->message = g_strdup_vprintf(fmt, ap);
    va_end(ap);
    s->code = code;
    s->stopping = true;
}

static gboolean
on_delay_over(gpointer data)
{
    Program *p = data;

    p->timer = 0;
    program_start(p);
    return G_SOURCE_REMOVE;
}

static void
start_after(Program *p, guint delay_ms)
{
    set_state(p, PROGRAM_WAITING);
    p->timer = g_timeout_add(delay_ms, on_delay_over, p);
}

static guint
delay_ms(const Program *p)
{
    const SupervisorTimes *t = &p->owner->spec.times;
    guint64 delay = t->first_delay_ms;

    for (guint i = 1; i < p->failures && delay < t->max_delay_ms; i++)
        delay *= 2;
    return (guint)MIN(delay, t->max_delay_ms);
}

static void
start_next(Program *p)
{
    Supervisor *s = p->owner;

    if (!s->stopping && p + 1 < s->programs + s->spec.n_programs && p[1].state == PROGRAM_IDLE)
        start_after(p + 1, 0);
}

static void
signal_child(Program *p, int signal)
{
    g_autoptr(GError) error = NULL;

    /* Ended meanwhile: the exit callback is on its way. */
    if (!child_signal(p->child, signal, &error) && err_kind(error) != ERR_NOT_FOUND)
        log_error("supervisor", "cannot signal", log_str("program", p->spec->name), log_gerror(error));
}

static gboolean
on_stop_deadline(gpointer data)
{
    Program *p = data;

    p->timer = 0;
    log_warn("supervisor", "did not stop in time, killing it", log_str("program", p->spec->name));
    signal_child(p, SIGKILL);
    return G_SOURCE_REMOVE;
}

static void
program_stop(Program *p)
{
    set_state(p, PROGRAM_STOPPING);
    p->timer = g_timeout_add(p->owner->spec.times.stop_ms, on_stop_deadline, p);
    signal_child(p, p->owner->killing ? SIGKILL : SIGTERM);
}

static gboolean
on_ready_deadline(gpointer data)
{
    Program *p = data;

    p->timer = 0;
    log_warn("supervisor", "was not ready in time", log_str("program", p->spec->name));
    program_stop(p);
    return G_SOURCE_REMOVE;
}

static void
watch_ready(Program *p)
{
    if (p->timer != 0)
        g_source_remove(p->timer);
    p->timer = g_timeout_add(p->owner->spec.times.ready_ms, on_ready_deadline, p);
}

/* Lines are worth less than the work of a supervisor: where nobody reads, they are dropped.
 * A pipe that polls writable takes PIPE_BUF bytes without blocking. */
static void
pass_on(const Supervisor *s, const char *text, size_t len)
{
    struct pollfd fd = {.fd = s->spec.out_fd, .events = POLLOUT};

    G_STATIC_ASSERT(SUPERVISOR_LINE_MAX <= PIPE_BUF);
    if (poll(&fd, 1, 0) == 1 && (fd.revents & POLLOUT) != 0)
        (void)io_write_all(s->spec.out_fd, text, len);
}

static bool
is_ready_line(const char *line, size_t len)
{
    size_t word = strlen("ready");

    return len > word && memcmp(line, "ready", word) == 0 && (line[word] == '\n' || line[word] == ' ');
}

static void
take_line(Program *p, const char *line, size_t len)
{
    bool ready = is_ready_line(line, len);

    if (!ready || line[strlen("ready")] != '\n')
        pass_on(p->owner, line, len);
    if (p->state != PROGRAM_STARTING)
        return;
    if (!ready) {
        watch_ready(p);
        return;
    }
    set_state(p, PROGRAM_READY);
    p->was_ready = true;
    p->ready_us = clock_mono_us();
    start_next(p);
}

/* With `rest`, also what has no newline yet. */
static void
take_lines(Program *p, bool rest)
{
    for (;;) {
        size_t n;
        const char *text = (const char *)buf_peek(&p->line, &n);
        const char *end = n > 0 ? memchr(text, '\n', n) : NULL;

        if (n == 0 || (end == NULL && !rest && buf_room(&p->line) > 0))
            return;
        size_t len = end != NULL ? (size_t)(end - text) + 1 : n;
        take_line(p, text, len);
        buf_skip(&p->line, len);
    }
}

/* False at the end of the stream. */
static bool
read_lines(Program *p)
{
    for (;;) {
        size_t room = buf_room(&p->line);
        ssize_t n = read(p->line_fd, buf_reserve(&p->line, room), room);

        if (n <= 0)
            return n < 0 && (errno == EAGAIN || errno == EINTR);
        buf_grow(&p->line, (size_t)n);
        take_lines(p, false);
    }
}

static gboolean
on_lines(int fd, GIOCondition condition, gpointer data)
{
    Program *p = data;

    if (read_lines(p))
        return G_SOURCE_CONTINUE;
    p->line_source = 0;
    return G_SOURCE_REMOVE;
}

static void
close_lines(Program *p)
{
    if (p->line_fd < 0)
        return;
    (void)read_lines(p); /* what came before the end */
    take_lines(p, true);
    if (p->line_source != 0)
        g_source_remove(p->line_source);
    p->line_source = 0;
    close(p->line_fd);
    p->line_fd = -1;
}

/* True when starting it again cannot help. */
static bool
judge_failure(Program *p, ChildExit how)
{
    Supervisor *s = p->owner;
    const char *name = p->spec->name;

    if (p->spec->optional)
        return false;
    if (!how.signalled && (how.value == EXIT_CODE_USAGE || how.value == EXIT_CODE_CONFIG))
        give_up(s, (ExitCode)how.value, "%s cannot run with this configuration (exit code %d)", name,
                how.value);
    else if (!how.signalled && how.value == EXIT_CODE_CONFLICT && !p->was_ready)
        give_up(s, EXIT_CODE_CONFLICT, "%s could not start: what it needs is in use (exit code %d)", name,
                how.value);
    else if (!p->was_ready && p->failures >= SUPERVISOR_FIRST_TRIES)
        give_up(s, EXIT_CODE_FAILED, "%s failed %u times in a row and was never ready", name, p->failures);
    return s->stopping;
}

static void
on_exit_of_child(Child *child, ChildExit how, void *data)
{
    Program *p = data;
    Supervisor *s = p->owner;

    close_lines(p);
    child_free(child);
    p->child = NULL;
    bool stable = p->ready_us != 0 &&
                  clock_mono_us() - p->ready_us >= (gint64)s->spec.times.stable_ms * G_TIME_SPAN_MILLISECOND;
    p->ready_us = 0;
    p->failures = stable ? 1 : p->failures + 1;
    bool finished = p->spec->restart == RESTART_ON_FAILURE && !how.signalled && how.value == 0;
    if (finished)
        s->stopping = true;
    if (s->stopping || judge_failure(p, how)) {
        set_state(p, PROGRAM_IDLE);
        go_on_stopping(s);
        return;
    }
    log_warn("supervisor", "ended, will be started again", log_str("program", p->spec->name),
             log_int(how.signalled ? "signal" : "code", how.value), log_int("delay_ms", delay_ms(p)));
    start_after(p, delay_ms(p));
    if (p->spec->optional)
        start_next(p);
}

static bool
spawn_program(Program *p, GError **error)
{
    SpawnSpec spec = SPAWN_SPEC_INIT;
    int fds[2];

    if (pipe2(fds, O_CLOEXEC) < 0)
        return err_errno(error, "make a pipe for '%s'", p->spec->name);
    autofd write_end = fds[1];
    p->line_fd = fds[0];
    spec.argv = p->spec->argv;
    spec.env = p->spec->env;
    spec.stdout_fd = write_end;
    spec.new_session = true;
    if (!g_unix_set_fd_nonblocking(p->line_fd, TRUE, error))
        return false;
    p->child = child_spawn(&spec, on_exit_of_child, p, error);
    return p->child != NULL;
}

static void
program_start(Program *p)
{
    g_autoptr(GError) error = NULL;

    if (!spawn_program(p, &error)) {
        close_lines(p);
        p->failures++;
        log_error("supervisor", "cannot start", log_str("program", p->spec->name), log_gerror(error));
        if (!p->was_ready && !p->spec->optional) {
            give_up(p->owner, EXIT_CODE_FAILED, "%s", error->message);
            go_on_stopping(p->owner);
            return;
        }
        start_after(p, delay_ms(p));
        if (p->spec->optional)
            start_next(p);
        return;
    }
    set_state(p, PROGRAM_STARTING);
    watch_ready(p);
    p->line_source = g_unix_fd_add(p->line_fd, G_IO_IN | G_IO_HUP, on_lines, p);
    log_info("supervisor", "started", log_str("program", p->spec->name), log_int("pid", child_pid(p->child)));
}

static gboolean
on_all_gone(gpointer data)
{
    Supervisor *s = data;

    s->idle = 0;
    s->spec.on_done(s->code, s->message, s->spec.data);
    return G_SOURCE_REMOVE;
}

/* Stops the last one that still runs; its end brings us back here. */
static void
go_on_stopping(Supervisor *s)
{
    for (size_t i = s->spec.n_programs; i > 0; i--) {
        Program *p = &s->programs[i - 1];

        if (p->state == PROGRAM_WAITING)
            set_state(p, PROGRAM_IDLE);
        if (p->state == PROGRAM_STARTING || p->state == PROGRAM_READY)
            program_stop(p);
        if (p->state == PROGRAM_STOPPING)
            return;
    }
    if (!s->done)
        s->idle = g_idle_add(on_all_gone, s);
    s->done = true;
}

void
supervisor_stop(Supervisor *s)
{
    s->killing = s->stopping;
    s->stopping = true;
    for (size_t i = 0; s->killing && i < s->spec.n_programs; i++) {
        if (s->programs[i].child != NULL)
            signal_child(&s->programs[i], SIGKILL);
    }
    go_on_stopping(s);
}

Supervisor *
supervisor_new(const SupervisorSpec *spec)
{
    Supervisor *s = g_new0(Supervisor, 1);

    g_assert(spec->n_programs > 0 && spec->n_programs <= SUPERVISOR_PROGRAMS_MAX && spec->on_done != NULL);
    s->spec = *spec;
    for (size_t i = 0; i < spec->n_programs; i++) {
        Program *p = &s->programs[i];

        *p = (Program){.owner = s, .spec = &spec->programs[i], .line_fd = -1};
        buf_init(&p->line, SUPERVISOR_LINE_MAX);
    }
    start_after(&s->programs[0], 0);
    return s;
}

void
supervisor_free(Supervisor *s)
{
    if (s == NULL)
        return;
    for (size_t i = 0; i < s->spec.n_programs; i++) {
        Program *p = &s->programs[i];

        g_assert(p->child == NULL);
        if (p->timer != 0)
            g_source_remove(p->timer);
        buf_clear(&p->line);
    }
    if (s->idle != 0)
        g_source_remove(s->idle);
    g_free(s->message);
    g_free(s);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/log.h"
#include "forge/forge-private.h"
#include "forge/smart-private.h"

static bool
make_pipe(LoopWatch *ours, int *theirs, bool child_reads, GError **error)
{
    int ends[2];

    if (pipe2(ends, O_CLOEXEC) < 0)
        return err_errno(error, "make a pipe for git");
    ours->fd = ends[child_reads ? 1 : 0];
    *theirs = ends[child_reads ? 0 : 1];
    (void)fcntl(ours->fd, F_SETFL, O_NONBLOCK);
    return true;
}

/* One byte to it lets the child begin; lines from it are the hook's. */
static bool
make_report(Exchange *x, int *theirs, GError **error)
{
    int ends[2];

    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0)
        return err_errno(error, "make a pair of sockets for git");
    x->report.fd = ends[0];
    *theirs = ends[1];
    (void)fcntl(ends[0], F_SETFL, O_NONBLOCK);
    return true;
}

static bool
make_pipes(Exchange *x, int theirs[4], GError **error)
{
    return make_pipe(&x->in, &theirs[0], true, error) && make_pipe(&x->out, &theirs[1], false, error) &&
           make_pipe(&x->err, &theirs[2], false, error) && make_report(x, &theirs[3], error);
}

bool
exchange_spawn(Exchange *x, ChildExitFunc on_end, GError **error)
{
    g_auto(GStrv) settings = smart_settings(&x->ask);
    g_auto(GStrv) more = smart_env(&x->ask);
    const GitCall call = {.access = smart_service_writes(x->ask.service) ? GIT_WRITE : GIT_READ,
                          .args = smart_args(x->ask.service),
                          .env = (const char *const *)more,
                          .settings = (const char *const *)settings};
    g_auto(GStrv) argv = git_call_argv(repo_git(x->repo), &call, true);
    g_auto(GStrv) env = git_call_env(repo_git(x->repo), &call);
    int theirs[4] = {-1, -1, -1, -1};
    SpawnSpec spec = SPAWN_SPEC_INIT;

    if (make_pipes(x, theirs, error)) {
        spec.argv = (const char *const *)argv;
        spec.env = (const char *const *)env;
        spec.stdin_fd = theirs[0];
        spec.stdout_fd = theirs[1];
        spec.stderr_fd = theirs[2];
        spec.extra_fd = theirs[3];
        spec.new_session = true;
        x->child = child_spawn(&spec, on_end, x, error);
        x->group = x->child != NULL ? child_pid(x->child) : 0;
    }
    for (size_t i = 0; i < G_N_ELEMENTS(theirs); i++)
        auto_close(&theirs[i]);
    return x->child != NULL;
}

static void
let_begin(Exchange *x)
{
    /* One that has ended already says so by the end of its output. */
    if (!x->cut)
        (void)send(x->report.fd, "", 1, MSG_NOSIGNAL);
}

/* Without a keeper, or on a machine without such groups, its own limits have to do. */
static void
on_held(const GError *error, void *data)
{
    Exchange *x = data;

    x->holding = false;
    if (x->smart == NULL) {
        exchange_free(x);
        return;
    }
    if (error != NULL && err_kind(error) != ERR_UNAVAILABLE) {
        log_warn("forge", "a push could not be put into a group", log_gerror(error));
        smart_exchange_refuse(x, 503, "git cannot be started");
        exchange_cut(x);
    }
    if (x->ask.service != SMART_PUSH)
        let_begin(x);
    exchange_flush(x);
    exchange_settle(x);
}

void
exchange_let_begin(Exchange *x)
{
    static const KeeperLimits limits = {.memory_bytes = (guint64)SMART_MEMORY_MIB << 20,
                                        .pids = SMART_PROCESSES,
                                        .cpu_milli = SMART_CPU_MILLI};
    BoxHost *boxes = x->smart->forge->spec.boxes;

    if (boxes == NULL || x->ask.service == SMART_ADVERTISE_FETCH || x->ask.service == SMART_ADVERTISE_PUSH) {
        let_begin(x);
        return;
    }
    /* receive-pack reads what it is to do before it starts anybody.  So it may come up beside the keeper's
     * work, which takes longer, and is given its input behind that. */
    if (x->ask.service == SMART_PUSH)
        let_begin(x);
    x->holding = true;
    box_host_hold(boxes, child_pidfd(x->child), &limits, on_held, x);
}

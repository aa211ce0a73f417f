/* SPDX-License-Identifier: Apache-2.0 */
/* coop-keeper: the only privileged program.  It makes boxes and holds them, at the request of
 * one server; it outlives the server, and boxes die with it. */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/exitcode.h"
#include "base/io.h"
#include "base/log.h"
#include "keeper/keeper.h"
#include "keeper/open.h"
#include "keeper/reconcile.h"

enum {
    RECONCILE_US = 60 * G_USEC_PER_SEC,
    STOP_US = 10 * G_USEC_PER_SEC,
    US_PER_MS = 1000,
};

typedef struct Signals {
    Watch watch;
    bool stop;
} Signals;

int64_t
keeper_mono_us(void)
{
    return clock_mono_us();
}

static void
on_signal(void *ctx, uint32_t events)
{
    Signals *signals = ctx;
    struct signalfd_siginfo info;

    if (read(signals->watch.fd, &info, sizeof info) == sizeof info)
        signals->stop = true;
}

static bool
watch_signals(Keeper *keeper, Signals *signals, GError **error)
{
    sigset_t set;

    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    sigprocmask(SIG_BLOCK, &set, NULL);
    /* A reader of our messages that has gone is no reason to end. */
    sigset_t pipe;

    sigemptyset(&pipe);
    sigaddset(&pipe, SIGPIPE);
    sigprocmask(SIG_BLOCK, &pipe, NULL);
    int fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);

    *signals = (Signals){.watch = {.fd = -1, .func = on_signal, .ctx = signals}};
    return (fd >= 0 && loop_add(&keeper->loop, &signals->watch, fd, EPOLLIN)) ||
           err_errno(error, "watch for signals");
}

static int
next_timeout_ms(const Keeper *keeper, int64_t due_us)
{
    int64_t refill_us = pool_due_us(keeper->pool);
    int64_t look_us = MIN(storage_due_us(keeper->storage), folder_watch_due_us(keeper->folders));

    due_us = MIN(MIN(due_us, devices_due_us(keeper->devices)), MIN(refill_us, look_us));
    due_us = MIN(due_us, MIN(holds_due_us(keeper->holds), disks_due_us(keeper->disks)));
    for (const Box *box = keeper->boxes; box != NULL; box = box->next) {
        if (box->state != BOX_RUNNING && box->deadline_us < due_us)
            due_us = box->deadline_us;
    }
    int64_t left = due_us - keeper_mono_us();

    return left <= 0 ? 0 : (int)(left / US_PER_MS) + 1;
}

static void
retry_disks(Keeper *keeper)
{
    if (keeper_mono_us() >= disks_due_us(keeper->disks))
        disks_retry(keeper->disks);
}

static void
run(Keeper *keeper, const Signals *signals)
{
    int64_t due_us = keeper_mono_us() + RECONCILE_US;

    while (!signals->stop && loop_turn(&keeper->loop, next_timeout_ms(keeper, due_us))) {
        box_check_deadlines(keeper);
        holds_look(keeper->holds);
        retry_disks(keeper);
        if (keeper_mono_us() >= pool_due_us(keeper->pool))
            pool_refill(keeper->pool);
        if (keeper_mono_us() >= storage_due_us(keeper->storage))
            storage_look(keeper->storage);
        if (keeper_mono_us() >= folder_watch_due_us(keeper->folders))
            folder_watch_look(keeper->folders);
        if (keeper_mono_us() >= devices_due_us(keeper->devices))
            devices_trim(keeper->devices);
        if (keeper_mono_us() >= due_us) {
            reconcile_again(keeper);
            due_us = keeper_mono_us() + RECONCILE_US;
        }
    }
}

/* Asked to end: every box ends first, and nothing is left. */
static void
stop(Keeper *keeper)
{
    int64_t due_us = keeper_mono_us() + STOP_US;

    for (Box *box = keeper->boxes, *next; box != NULL; box = next) {
        next = box->next;
        box_kill(box);
    }
    holds_end(keeper->holds);
    while ((keeper->boxes != NULL || holds_busy(keeper->holds)) && keeper_mono_us() < due_us &&
           loop_turn(&keeper->loop, next_timeout_ms(keeper, due_us))) {
        box_check_deadlines(keeper);
        holds_look(keeper->holds);
        retry_disks(keeper);
    }
    holds_free(keeper->holds);
    folder_watch_free(keeper->folders);
    storage_free(keeper->storage);
    pool_free(keeper->pool);
    disks_free(keeper->disks);
    server_free(keeper->server);
    devices_free(keeper->devices);
    (void)unlink(keeper->config.socket_path);
    cgroups_close(&keeper->groups);
    loop_clear(&keeper->loop);
}

static void
keeper_clear(Keeper *keeper)
{
    ids_clear(&keeper->ids);
    proc_view_clear(&keeper->proc);
    g_free(keeper->instance);
    g_free(keeper->stage_dir);
    config_clear(&keeper->config);
}

/* Ends with whoever started us, so that the next start finds the state folder free.  After the
 * last change of credentials, which clears it. */
static bool
follow(pid_t supervisor, GError **error)
{
    if (prctl(PR_SET_PDEATHSIG, SIGTERM) < 0)
        return err_errno(error, "follow the supervisor");
    return getppid() == supervisor || err_set(error, ERR_CANCELLED, "the supervisor has ended");
}

static bool
serve(Keeper *keeper, int argc, char **argv, GError **error)
{
    Signals signals;

    pid_t supervisor = getppid();

    if (!config_parse(&keeper->config, argc, argv, error) || !keeper_open(keeper, error) ||
        !follow(supervisor, error) || !watch_signals(keeper, &signals, error))
        return false;
    log_info("keeper", "ready", log_int("degraded", keeper->degraded),
             log_int("landlock", keeper->landlock_abi));
    /* The supervisor waits for this line. */
    if (!io_write_all(STDOUT_FILENO, "ready\n", strlen("ready\n")))
        return err_errno(error, "say that we are ready");
    run(keeper, &signals);
    stop(keeper);
    return true;
}

int
main(int argc, char **argv)
{
    Keeper keeper = {.groups = {{0}}, .proc = PROC_VIEW_INIT, .generation_fd = -1};
    g_autoptr(GError) error = NULL;
    const char *levels = g_getenv("COOP_LOG");

    if (levels != NULL && !log_set_levels(levels))
        fprintf(stderr, "coop-keeper: COOP_LOG is malformed\n");
    bool ok = serve(&keeper, argc, argv, &error);

    if (!ok)
        fprintf(stderr, "coop-keeper: %s\n", error->message);
    keeper_clear(&keeper);
    return ok ? EXIT_CODE_OK : exit_code_of(error);
}

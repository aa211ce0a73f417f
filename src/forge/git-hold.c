/* SPDX-License-Identifier: Apache-2.0 */
#include "forge/git-hold.h"

#include <fcntl.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"

enum { CANCEL_LOOK_MS = 100 };

const KeeperLimits git_hold_limits = {
    .memory_bytes = G_GUINT64_CONSTANT(2) << 30, .pids = 128, .cpu_milli = 4000};

struct GitHolder {
    gatomicrefcount refs;
    GMainContext *context; /* of the loop */
    BoxHost *boxes;        /* loop only; NULL: closed */
};

/* One wish, between a thread that may have given up and a loop that may answer late. */
typedef struct Wish {
    gatomicrefcount refs;
    GitHolder *holder;
    int pidfd;
    GMutex mutex;
    GCond cond;
    bool answered;
    GError *error;
} Wish;

GitHolder *
git_holder_new(BoxHost *boxes)
{
    GitHolder *holder = g_new0(GitHolder, 1);

    g_atomic_ref_count_init(&holder->refs);
    holder->context = g_main_context_ref_thread_default();
    holder->boxes = boxes;
    return holder;
}

void
git_holder_close(GitHolder *holder)
{
    holder->boxes = NULL;
}

GitHolder *
git_holder_ref(GitHolder *holder)
{
    g_atomic_ref_count_inc(&holder->refs);
    return holder;
}

void
git_holder_unref(GitHolder *holder)
{
    if (holder == NULL || !g_atomic_ref_count_dec(&holder->refs))
        return;
    g_main_context_unref(holder->context);
    g_free(holder);
}

static Wish *
wish_ref(Wish *wish)
{
    g_atomic_ref_count_inc(&wish->refs);
    return wish;
}

static void
wish_unref(void *data)
{
    Wish *wish = data;

    if (!g_atomic_ref_count_dec(&wish->refs))
        return;
    auto_close(&wish->pidfd);
    git_holder_unref(wish->holder);
    g_mutex_clear(&wish->mutex);
    g_cond_clear(&wish->cond);
    g_clear_error(&wish->error);
    g_free(wish);
}

static void
on_held(const GError *error, void *data)
{
    Wish *wish = data;

    g_mutex_lock(&wish->mutex);
    wish->answered = true;
    wish->error = error != NULL ? g_error_copy(error) : NULL;
    g_cond_signal(&wish->cond);
    g_mutex_unlock(&wish->mutex);
    wish_unref(wish);
}

static gboolean
ask_on_loop(gpointer data)
{
    Wish *wish = wish_ref(data);

    if (wish->holder->boxes != NULL) {
        box_host_hold(wish->holder->boxes, wish->pidfd, &git_hold_limits, on_held, wish);
    } else {
        g_autoptr(GError) error = g_error_new_literal(ERR_DOMAIN, ERR_UNAVAILABLE, "there is no keeper");

        on_held(error, wish);
    }
    return G_SOURCE_REMOVE;
}

static bool
wish_wait(Wish *wish, const gint *cancel, GError **error)
{
    gint64 deadline_us = clock_mono_us() + GIT_HOLD_MS * G_TIME_SPAN_MILLISECOND;

    while (!wish->answered) {
        if (cancel != NULL && __atomic_load_n(cancel, __ATOMIC_ACQUIRE) != 0)
            return err_set(error, ERR_CANCELLED, "git was cancelled");
        if (clock_mono_us() >= deadline_us)
            return err_set(error, ERR_TIMEOUT, "the keeper took longer than %d ms", GIT_HOLD_MS);
        (void)g_cond_wait_until(&wish->cond, &wish->mutex,
                                g_get_monotonic_time() + CANCEL_LOOK_MS * G_TIME_SPAN_MILLISECOND);
    }
    if (wish->error == NULL)
        return true;
    g_propagate_error(error, g_steal_pointer(&wish->error));
    return false;
}

bool
git_holder_hold(GitHolder *holder, int pidfd, const gint *cancel, GError **error)
{
    Wish *wish = g_new0(Wish, 1);

    g_atomic_ref_count_init(&wish->refs);
    wish->holder = git_holder_ref(holder);
    wish->pidfd = fcntl(pidfd, F_DUPFD_CLOEXEC, 0);
    g_mutex_init(&wish->mutex);
    g_cond_init(&wish->cond);
    /* Not g_main_context_invoke(), which takes the loop's place where that is not inside an iteration. */
    g_autoptr(GSource) source = g_idle_source_new();

    g_source_set_priority(source, G_PRIORITY_DEFAULT);
    g_source_set_callback(source, ask_on_loop, wish_ref(wish), wish_unref);
    g_source_attach(source, holder->context);
    g_mutex_lock(&wish->mutex);
    bool held = wish_wait(wish, cancel, error);

    g_mutex_unlock(&wish->mutex);
    wish_unref(wish);
    return held;
}

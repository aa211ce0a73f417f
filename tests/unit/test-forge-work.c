/* SPDX-License-Identifier: Apache-2.0 */
#include <glib/gstdio.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "forge/work.h"

enum { REPOS = 4, WRITES = 250, READS = FORGE_THREADS };

typedef struct World {
    Loop *loop;
    WorkQueue *queue;
    GitRepo *repos[REPOS];
} World;

static void
world_open(World *w)
{
    GitHostSpec host = {.launcher = "/nonexistent"};

    w->loop = loop_new(NULL);
    w->queue = work_queue_new(w->loop);
    for (int i = 0; i < REPOS; i++) {
        g_autofree char *id = g_strdup_printf("repo-%d", i);

        w->repos[i] = git_repo_new(&host, id, "/nonexistent");
    }
}

static void
world_close(World *w)
{
    work_queue_free(w->queue);
    for (int i = 0; i < REPOS; i++)
        git_repo_unref(w->repos[i]);
    loop_free(w->loop);
}

static void
turn_until(const guint *count, guint want)
{
    while (*count < want)
        g_main_context_iteration(NULL, TRUE);
}

static void
count_done(void *data, const GError *error)
{
    guint *n = data;

    g_assert_no_error(error);
    ++*n;
}

/* ---- a gate that work waits at ---- */

typedef struct Gate {
    GMutex mutex;
    GCond cond;
    guint inside;
    bool open;
    guint done;
} Gate;

static bool
wait_at_gate(GitRepo *git, void *data, GError **error)
{
    Gate *g = data;

    g_mutex_lock(&g->mutex);
    g->inside++;
    g_cond_broadcast(&g->cond);
    while (!g->open)
        g_cond_wait(&g->cond, &g->mutex);
    g->inside--;
    g_mutex_unlock(&g->mutex);
    return true;
}

static void
wait_inside(Gate *g, guint n)
{
    g_mutex_lock(&g->mutex);
    while (g->inside < n)
        g_cond_wait(&g->cond, &g->mutex);
    g_assert_cmpuint(g->inside, ==, n);
    g_mutex_unlock(&g->mutex);
}

static void
open_gate(Gate *g)
{
    g_mutex_lock(&g->mutex);
    g->open = true;
    g_cond_broadcast(&g->cond);
    g_mutex_unlock(&g->mutex);
}

static void
on_gate_done(void *data, const GError *error)
{
    Gate *g = data;

    g_assert_no_error(error);
    g->done++;
}

static void
add_at_gate(World *w, Gate *g, GitRepo *repo, unsigned flags)
{
    work_queue_add(w->queue, &(WorkSpec){.git = repo,
                                         .name = "a/b",
                                         .what = "wait",
                                         .flags = flags,
                                         .work = wait_at_gate,
                                         .done = on_gate_done,
                                         .data = g});
}

/* ---- writes ---- */

typedef struct Writer {
    gint *inside; /* of its repository, atomic */
    guint *next;  /* the number that must come now */
    guint number;
    gint fails; /* tries that are still to fail */
    guint *done;
} Writer;

static bool
write_work(GitRepo *git, void *data, GError **error)
{
    Writer *w = data;

    g_assert_cmpint(g_atomic_int_add(w->inside, 1), ==, 0);
    g_thread_yield();
    bool fails = w->fails > 0 && w->fails-- > 0;
    if (!fails) {
        g_assert_cmpuint(*w->next, ==, w->number);
        ++*w->next;
    }
    g_atomic_int_add(w->inside, -1);
    return !fails || err_set(error, ERR_UNAVAILABLE, "no process could be started");
}

static void
on_write_done(void *data, const GError *error)
{
    Writer *w = data;

    g_assert_no_error(error);
    ++*w->done;
}

static void
test_writes_keep_their_order(void)
{
    World w;
    gint inside[REPOS] = {0};
    guint next[REPOS] = {0}, done = 0;
    WorkStats stats;

    world_open(&w);
    for (guint n = 0; n < WRITES; n++) {
        for (guint r = 0; r < REPOS; r++) {
            Writer *writer = g_new(Writer, 1);

            *writer = (Writer){&inside[r], &next[r], n, n == 7 ? 1 : 0, &done};
            work_queue_add(w.queue, &(WorkSpec){.git = w.repos[r],
                                                .name = "a/b",
                                                .what = "write",
                                                .flags = WORK_WRITES | (n % 5 == 0 ? WORK_SLOW : 0),
                                                .work = write_work,
                                                .done = on_write_done,
                                                .data = writer,
                                                .destroy = g_free});
        }
    }
    turn_until(&done, REPOS * WRITES);
    for (guint r = 0; r < REPOS; r++)
        g_assert_cmpuint(next[r], ==, WRITES);
    work_queue_stats(w.queue, &stats);
    g_assert_cmpuint(stats.waiting, ==, 0);
    g_assert_cmpuint(stats.tried_again, ==, REPOS);
    world_close(&w);
}

/* ---- reads, and the share of slow work ---- */

static void
test_reads_go_side_by_side(void)
{
    World w;
    Gate g = {0};

    world_open(&w);
    for (guint i = 0; i < READS; i++)
        add_at_gate(&w, &g, w.repos[0], 0);
    wait_inside(&g, READS);
    open_gate(&g);
    turn_until(&g.done, READS);
    world_close(&w);
}

static void
test_slow_work_has_a_share(void)
{
    World w;
    Gate slow = {0}, quick = {0};

    world_open(&w);
    for (guint i = 0; i < REPOS; i++)
        add_at_gate(&w, &slow, w.repos[i], WORK_WRITES | WORK_SLOW);
    /* Behind one that waits for its turn, so it waits too: an order is an order. */
    add_at_gate(&w, &slow, w.repos[REPOS - 1], WORK_WRITES);
    for (guint i = 0; i < FORGE_THREADS - WORK_SLOW_MAX; i++)
        add_at_gate(&w, &quick, w.repos[0], 0);
    wait_inside(&quick, FORGE_THREADS - WORK_SLOW_MAX);
    wait_inside(&slow, WORK_SLOW_MAX);
    open_gate(&quick);
    turn_until(&quick.done, FORGE_THREADS - WORK_SLOW_MAX);
    wait_inside(&slow, WORK_SLOW_MAX);
    open_gate(&slow);
    turn_until(&slow.done, REPOS + 1);
    world_close(&w);
}

/* ---- the bound ---- */

typedef struct Refusal {
    bool adding;
    guint done;
} Refusal;

static void
on_refused(void *data, const GError *error)
{
    Refusal *r = data;

    g_assert_false(r->adding);
    g_assert_error(error, ERR_DOMAIN, ERR_LIMIT);
    r->done++;
}

static void
test_what_waits_is_bounded(void)
{
    World w;
    Gate g = {0};
    Refusal refusal = {.adding = true};
    WorkStats stats;

    world_open(&w);
    for (guint i = 0; i < FORGE_QUEUE_MAX + FORGE_THREADS; i++)
        add_at_gate(&w, &g, w.repos[i % REPOS], 0);
    wait_inside(&g, FORGE_THREADS);
    work_queue_add(w.queue, &(WorkSpec){.git = w.repos[0],
                                        .name = "a/b",
                                        .what = "one too many",
                                        .work = wait_at_gate,
                                        .done = on_refused,
                                        .data = &refusal});
    refusal.adding = false;
    turn_until(&refusal.done, 1);
    work_queue_stats(w.queue, &stats);
    g_assert_cmpuint(stats.waiting, ==, FORGE_QUEUE_MAX);
    g_assert_cmpuint(stats.running, ==, FORGE_THREADS);
    g_autoptr(Json) list = work_queue_json(w.queue);
    g_assert_cmpuint(json_array_size(list), ==, FORGE_QUEUE_MAX + FORGE_THREADS);
    g_assert_cmpstr(json_string_value(json_object_get(json_array_get(list, 0), "state")), ==, "running");
    open_gate(&g);
    turn_until(&g.done, FORGE_QUEUE_MAX + FORGE_THREADS);
    world_close(&w);
}

/* ---- tries ---- */

typedef struct Try {
    ErrKind kind;
    const char *message;
    gint fails;
    gint tried; /* atomic */
    guint done;
    GError *error;
} Try;

static bool
try_work(GitRepo *git, void *data, GError **error)
{
    Try *t = data;

    return g_atomic_int_add(&t->tried, 1) >= t->fails || err_set(error, t->kind, "%s", t->message);
}

static void
on_tried(void *data, const GError *error)
{
    Try *t = data;

    t->error = error != NULL ? g_error_copy(error) : NULL;
    t->done++;
}

static void
test_tries(void)
{
    static const struct {
        const char *message;
        ErrKind kind;
        gint fails, tried;
        bool ends_well;
    } cases[] = {
        {"no process", ERR_UNAVAILABLE, 1, 2, true},
        {"no process", ERR_UNAVAILABLE, FORGE_TRIES, FORGE_TRIES, false},
        {"Unable to create 'x.lock': File exists.", ERR_INVALID, 1, 2, true},
        {"not a commit", ERR_INVALID, 1, 1, false},
        {"two wrote", ERR_CONFLICT, 1, 1, false},
        {"no room", ERR_FULL, 1, 1, false},
    };
    World w;
    Try tries[G_N_ELEMENTS(cases)] = {0};

    world_open(&w);
    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        tries[i] = (Try){.kind = cases[i].kind, .message = cases[i].message, .fails = cases[i].fails};
        work_queue_add(w.queue, &(WorkSpec){.git = w.repos[0],
                                            .name = "a/b",
                                            .what = "try",
                                            .work = try_work,
                                            .done = on_tried,
                                            .data = &tries[i]});
    }
    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_test_message("%s, %d times", cases[i].message, cases[i].fails);
        turn_until(&tries[i].done, 1);
        g_assert_cmpint(tries[i].tried, ==, cases[i].tried);
        if (cases[i].ends_well)
            g_assert_no_error(tries[i].error);
        else
            g_assert_error(tries[i].error, ERR_DOMAIN, (gint)cases[i].kind);
        g_clear_error(&tries[i].error);
    }
    world_close(&w);
}

/* ---- stale locks ---- */

static bool
lock_work(GitRepo *git, void *data, GError **error)
{
    g_autofree char *lock = g_build_filename(git_repo_path(git), "packed-refs.lock", NULL);

    return access(lock, F_OK) < 0 ||
           err_set(error, ERR_INVALID, "Unable to create 'packed-refs.lock': File exists.");
}

static void
test_stale_lock_goes(void)
{
    g_autofree char *folder = g_dir_make_tmp("coop-work-XXXXXX", NULL);
    g_autofree char *lock = g_build_filename(folder, "packed-refs.lock", NULL);
    GitHostSpec host = {.launcher = "/nonexistent"};
    g_autoptr(GitRepo) repo = git_repo_new(&host, "one", folder);
    World w;
    guint done = 0;

    g_assert_true(g_file_set_contents(lock, "", 0, NULL));
    world_open(&w);
    work_queue_add(w.queue, &(WorkSpec){.git = repo,
                                        .name = "a/b",
                                        .what = "write",
                                        .flags = WORK_WRITES,
                                        .work = lock_work,
                                        .done = count_done,
                                        .data = &done});
    turn_until(&done, 1);
    g_assert_cmpint(access(lock, F_OK), <, 0);
    world_close(&w);
    g_rmdir(folder);
}

/* ---- the end ---- */

typedef struct Ending {
    World *world;
    const gint *cancel;
    guint cancelled, ran;
} Ending;

static bool
until_cancelled(GitRepo *git, void *data, GError **error)
{
    const Ending *e = data;

    while (__atomic_load_n(e->cancel, __ATOMIC_SEQ_CST) == 0)
        g_thread_yield();
    return true;
}

static void
on_ending(void *data, const GError *error)
{
    Ending *e = data;

    if (error == NULL) {
        e->ran++;
        /* Somebody goes on with the next step; there is no next one. */
        work_queue_add(e->world->queue, &(WorkSpec){.git = e->world->repos[0],
                                                    .name = "a/b",
                                                    .what = "more",
                                                    .work = until_cancelled,
                                                    .done = on_ending,
                                                    .data = e});
        return;
    }
    g_assert_error(error, ERR_DOMAIN, ERR_CANCELLED);
    e->cancelled++;
}

static void
test_end(void)
{
    World w;

    world_open(&w);
    Ending e = {.world = &w, .cancel = work_queue_cancel(w.queue)};

    for (guint i = 0; i < 3 * FORGE_THREADS; i++)
        work_queue_add(w.queue, &(WorkSpec){.git = w.repos[0],
                                            .name = "a/b",
                                            .what = "long",
                                            .work = until_cancelled,
                                            .done = on_ending,
                                            .data = &e});
    world_close(&w);
    g_assert_cmpuint(e.ran, ==, FORGE_THREADS);
    g_assert_cmpuint(e.cancelled, ==, 3 * FORGE_THREADS);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/forge/queue/writes-keep-their-order", test_writes_keep_their_order);
    g_test_add_func("/forge/queue/reads-go-side-by-side", test_reads_go_side_by_side);
    g_test_add_func("/forge/queue/slow-work-has-a-share", test_slow_work_has_a_share);
    g_test_add_func("/forge/queue/what-waits-is-bounded", test_what_waits_is_bounded);
    g_test_add_func("/forge/queue/tries", test_tries);
    g_test_add_func("/forge/queue/stale-lock-goes", test_stale_lock_goes);
    g_test_add_func("/forge/queue/end", test_end);
    return g_test_run();
}

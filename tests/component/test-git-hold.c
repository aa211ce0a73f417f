/* SPDX-License-Identifier: Apache-2.0 */
/* A heavy git waits for its group; the keeper is the test. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "forge/git-hold.h"
#include "support/git-world.h"

typedef enum Mood { MOOD_HOLDS, MOOD_REFUSES, MOOD_SILENT } Mood;

static struct {
    Mood mood;
    guint asked;
    bool was_waiting;
    BoxHeldFunc done;
    void *data;
    gint cancel;
} keeper;

static char *
program_of(int pidfd)
{
    g_autofree char *path = g_strdup_printf("/proc/self/fdinfo/%d", pidfd);
    g_autofree char *text = NULL;
    int pid = 0;

    g_assert_true(g_file_get_contents(path, &text, NULL, NULL));
    g_assert_cmpint(sscanf(strstr(text, "\nPid:"), "\nPid:\t%d", &pid), ==, 1);
    g_autofree char *exe = g_strdup_printf("/proc/%d/exe", pid);

    return g_file_read_link(exe, NULL);
}

/* In the place of the one that asks the keeper. */
void
box_host_hold(BoxHost *host, int pidfd, const KeeperLimits *limits, BoxHeldFunc done, void *data)
{
    g_autofree char *program = program_of(pidfd);
    g_autoptr(GError) error = g_error_new_literal(ERR_DOMAIN, ERR_LIMIT, "too many");

    keeper.asked++;
    keeper.was_waiting = g_str_has_suffix(program, "/coop-git") ||
                         g_str_has_suffix(program, "/test-git-hold");
    g_assert_cmpuint(limits->memory_bytes, >, 0);
    if (keeper.mood == MOOD_SILENT) {
        keeper.done = done;
        keeper.data = data;
        g_atomic_int_set(&keeper.cancel, 1);
        return;
    }
    done(keeper.mood == MOOD_REFUSES ? error : NULL, data);
}

typedef struct Work {
    GitRepo *repo;
    GitCall call;
    bool worked;
    GError *error;
    gint over;
} Work;

static gpointer
work_run(gpointer data)
{
    Work *work = data;

    work->worked = git_run(work->repo, &work->call, NULL, &work->error);
    g_atomic_int_set(&work->over, 1);
    g_main_context_wakeup(NULL);
    return NULL;
}

static void
run(Work *work)
{
    GThread *thread = g_thread_new("git", work_run, work);

    while (g_atomic_int_get(&work->over) == 0)
        g_main_context_iteration(NULL, TRUE);
    g_thread_join(thread);
}

static void
test_moods(void)
{
    static const struct {
        Mood mood;
        GitCall call;
        guint asked;
        int kind; /* -1: it works */
    } cases[] = {
        {MOOD_HOLDS, {.access = GIT_WRITE, .heavy = true}, 1, -1},
        {MOOD_HOLDS, {.access = GIT_REMOTE}, 1, -1},
        {MOOD_HOLDS, {.access = GIT_WRITE}, 0, -1},
        {MOOD_REFUSES, {.heavy = true}, 1, -1},
        {MOOD_SILENT, {.heavy = true, .cancel = &keeper.cancel}, 1, ERR_CANCELLED},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(GitWorld) world = git_world_new();
        BoxHost *boxes = (BoxHost *)(void *)&keeper; /* nobody looks inside */
        GitHolder *holder = git_holder_new(boxes);
        GitHostSpec host = {.launcher = g_getenv("COOP_GIT"), .holder = holder};
        g_autoptr(GitRepo) repo = git_repo_new(&host, "x", world->path);
        Work work = {.repo = repo, .call = cases[i].call};

        memset(&keeper, 0, sizeof keeper);
        keeper.mood = cases[i].mood;
        work.call.args = GIT_ARGS("count-objects");
        run(&work);
        g_assert_cmpuint(keeper.asked, ==, cases[i].asked);
        g_assert_cmpint(keeper.was_waiting, ==, cases[i].asked > 0);
        g_assert_cmpint(work.worked, ==, cases[i].kind < 0);
        if (!work.worked)
            g_assert_error(work.error, ERR_DOMAIN, cases[i].kind);
        g_clear_error(&work.error);
        /* The answer comes when nobody waits any more. */
        if (keeper.done != NULL)
            keeper.done(NULL, keeper.data);
        git_holder_close(holder);
        git_holder_unref(holder);
    }
}

/* The forge has ended, its threads have not. */
static void
test_closed(void)
{
    g_autoptr(GitWorld) world = git_world_new();
    GitHolder *holder = git_holder_new((BoxHost *)(void *)&keeper);
    GitHostSpec host = {.launcher = g_getenv("COOP_GIT"), .holder = holder};
    g_autoptr(GitRepo) repo = git_repo_new(&host, "x", world->path);
    Work work = {.repo = repo, .call = {.heavy = true, .args = GIT_ARGS("count-objects")}};

    memset(&keeper, 0, sizeof keeper);
    git_holder_close(holder);
    git_holder_unref(holder);
    run(&work);
    g_assert_no_error(work.error);
    g_assert_cmpuint(keeper.asked, ==, 0);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/git/hold/moods", test_moods);
    g_test_add_func("/git/hold/closed", test_closed);
    return g_test_run();
}

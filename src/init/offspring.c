/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Killing is a loop: kill every descendant that /proc shows, reap, until wait() says that there
 * is no child left.  That condition is the proof: no child means no descendant.  What a walk
 * misses (it was forked behind the walk's back, or by a thread other than the first) is a child
 * of a process that the walk did kill, so it comes up to the caller and the next walk sees it.
 * Before they are killed the processes are stopped: a stopped one cannot fork, and it holds its
 * place under the limit of processes, so that a fork bomb has no room to go on in.  A process
 * that forks and dies in turns can be missed again and again, but each walk is a new chance of
 * better than one half.  Should it last, init kills everything in the box at once, which the
 * kernel does without a gap (loop.c).
 */
#include "init/offspring.h"

#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "wire/decimal.h"

enum {
    TREE_MAX = 8192,         /* processes of one walk; the rest is the next one's */
    CHILDREN_TEXT = 4096,    /* read at a time */
    STOP_ROUNDS_MAX = 4,     /* walks that stop before the one that kills */
    KILL_PAUSE_NS = 1000000, /* for the killed to die, when no SIGCHLD says so */
};

typedef struct Tree {
    size_t n;
    pid_t pids[TREE_MAX];
} Tree;

/* "/proc/PID/task/PID/children" */
static void
children_path(pid_t pid, char *out)
{
    out = decimal_put(stpcpy(out, "/proc/"), (uint64_t)pid);
    out = decimal_put(stpcpy(out, "/task/"), (uint64_t)pid);
    (void)stpcpy(out, "/children");
}

static void
tree_add(Tree *tree, pid_t pid)
{
    if (pid > 1 && tree->n < TREE_MAX)
        tree->pids[tree->n++] = pid;
}

/* Numbers with a space behind each. */
static void
tree_add_children(Tree *tree, pid_t parent)
{
    char path[64];
    char text[CHILDREN_TEXT];
    pid_t pid = 0;
    ssize_t n;

    children_path(parent, path);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return;
    while ((n = read(fd, text, sizeof text)) > 0) {
        for (ssize_t i = 0; i < n; i++) {
            if (text[i] >= '0' && text[i] <= '9') {
                pid = pid * 10 + (text[i] - '0');
                continue;
            }
            tree_add(tree, pid);
            pid = 0;
        }
    }
    close(fd);
}

static void
tree_walk(Tree *tree)
{
    tree->n = 0;
    tree_add_children(tree, getpid());
    for (size_t i = 0; i < tree->n; i++)
        tree_add_children(tree, tree->pids[i]);
}

/* A pid that was reaped meanwhile and taken by a stranger would be hit in its place; but the
 * leader alone reaps what it could mistake, and inside one walk it does not.  A grandchild's
 * number can change hands only after the whole range of pids was used up. */
static void
tree_signal(const Tree *tree, pid_t except_group, int signal)
{
    for (size_t i = 0; i < tree->n; i++) {
        if (except_group == 0 || getpgid(tree->pids[i]) != except_group)
            (void)kill(tree->pids[i], signal);
    }
}

static bool
has_children(void)
{
    siginfo_t info;

    return waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT | __WALL) == 0;
}

void
offspring_signal(pid_t except_group, int signal)
{
    Tree tree;

    tree_walk(&tree);
    tree_signal(&tree, except_group, signal);
}

void
offspring_kill(void (*reap)(void *ctx), void *ctx)
{
    static const struct timespec pause = {0, KILL_PAUSE_NS};
    Tree tree;
    sigset_t chld;

    sigemptyset(&chld);
    sigaddset(&chld, SIGCHLD);
    while (has_children()) {
        size_t before = 0;

        tree_walk(&tree);
        for (int round = 0; round < STOP_ROUNDS_MAX && tree.n > before; round++) {
            before = tree.n;
            tree_signal(&tree, 0, SIGSTOP);
            tree_walk(&tree);
        }
        tree_signal(&tree, 0, SIGKILL);
        (void)sigtimedwait(&chld, NULL, &pause);
        reap(ctx);
    }
}

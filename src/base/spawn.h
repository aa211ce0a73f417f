/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <glib.h>
#include <stdbool.h>
#include <sys/types.h>

/* A child program on the main loop, held by pidfd, so that no signal can hit a process that
 * took over the number.  The child gets the fds named here and no other. */
typedef struct Child Child;

enum { SPAWN_EXTRA_FD = 3, SPAWN_SECOND_FD = 4 };

typedef struct SpawnSpec {
    const char *const *argv; /* argv[0] is looked up in PATH unless it has a slash */
    const char *const *env;  /* NULL: ours */
    const char *cwd;         /* NULL: ours */
    int stdin_fd;            /* borrowed; -1: /dev/null */
    int stdout_fd;           /* borrowed; -1: ours */
    int stderr_fd;           /* borrowed; -1: ours */
    int extra_fd;            /* borrowed, becomes 3; 0: none */
    int second_fd;           /* borrowed, becomes 4; 0: none */
    bool new_session;        /* also a process group of its own */
} SpawnSpec;
#define SPAWN_SPEC_INIT                                                                                      \
    {                                                                                                        \
        .stdin_fd = -1, .stdout_fd = -1, .stderr_fd = -1                                                     \
    }

typedef struct ChildExit {
    bool signalled;
    int value; /* exit code, or the signal's number; -1: somebody else has reaped it */
} ChildExit;

/* Called once, from the main loop; the child is reaped then.  child_free() is allowed
 * inside. */
typedef void (*ChildExitFunc)(Child *child, ChildExit how, void *data);

/* Starts it without a loop, for threads that wait for it themselves.  The caller owns the pidfd and
 * reaps the process.  -1: `error` is set. */
pid_t spawn_held(const SpawnSpec *spec, int *ret_pidfd, GError **error);

Child *child_spawn(const SpawnSpec *spec, ChildExitFunc on_exit, void *data, GError **error);

/* Forgets the child: no callback any more.  A running child keeps running and is reaped by
 * whoever inherits it. */
void child_free(Child *child);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Child, child_free)

pid_t child_pid(const Child *child);
int child_pidfd(const Child *child); /* borrowed */
/* False with ERR_NOT_FOUND when it has ended. */
bool child_signal(Child *child, int signal, GError **error);

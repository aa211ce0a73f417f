/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <linux/sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* clone3() as fork() is: 0 in the child, -1 with errno.  `flags` and the cgroup come on top of
 * a pidfd, which is close-on-exec and set only where there is a child. */
pid_t fork_held(uint64_t flags, int cgroup_fd, int *ret_pidfd);

/* A table of fds costs a fork its copy and the child the closing of each, and a keeper of many boxes
 * holds thousands.  So what it holds for long is above FORK_LOW_FDS, and a child that keeps only fds
 * below it may share the table (CLONE_FILES) until it detaches, which copies the lower part alone.
 * Until then the keeper must not close what the child keeps. */
enum { FORK_LOW_FDS = 256 };
bool fork_may_share(const int *keep, int n);
/* The fd, at a number above; as it is where that cannot be. */
int fork_raise_fd(int fd);

/* The child's status is taken; to be called when the pidfd is readable.  The exit code, or
 * 128 + the signal. */
int fork_reap(int pidfd);
/* For one that cannot be watched: it is killed and waited for, its pidfd closed.  errno stays. */
void fork_give_up(int pidfd);

/* For a child that has to die with the keeper and hold nothing of it: closes every fd but
 * these, and ends when the keeper is gone already, or the table cannot be its own.  Sorts `keep`. */
void fork_detach(int *keep, int n);

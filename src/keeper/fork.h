/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <linux/sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* clone3() as fork() is: 0 in the child, -1 with errno.  `flags` and the cgroup come on top of
 * a pidfd, which is close-on-exec. */
pid_t fork_held(uint64_t flags, int cgroup_fd, int *ret_pidfd);

/* The child's status is taken; to be called when the pidfd is readable.  The exit code, or
 * 128 + the signal. */
int fork_reap(int pidfd);

/* For a child that has to die with the keeper and hold nothing of it: closes every fd but
 * these, and ends when the keeper is gone already.  Sorts `keep`. */
void fork_detach(int *keep, int n);

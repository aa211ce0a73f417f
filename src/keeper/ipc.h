/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <stdbool.h>
#include <stdint.h>

/* The IPC namespace of a box: what there can be of System V shared memory, queues and semaphores.
 * All of it is charged to the box's memory too.  These allocate nothing and set errno. */
bool ipc_enter(int pidfd);
/* Whoever cannot go back is of no use to anybody, and ends. */
void ipc_leave(int home_fd);
/* In the namespace we are in, through the /proc of `proc_fd`.  False: these are not ours to set. */
bool ipc_bound(int proc_fd, uint64_t memory_bytes);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <stdbool.h>
#include <stdint.h>

/* The IPC namespace of a box: what there can be of System V shared memory, queues and semaphores.
 * All of it is charged to the box's memory too.  These allocate nothing and set errno. */
bool ipc_enter(int pidfd);
/* Whoever cannot go back is of no use to anybody, and ends. */
void ipc_leave(int home_fd);

typedef enum IpcBound {
    IPC_BOUND,
    IPC_NOT_OURS, /* we may not set these, or not through this /proc; the next time neither */
    IPC_FAILED,
} IpcBound;
/* In the namespace we are in, through the /proc of `proc_fd`. */
IpcBound ipc_bound(int proc_fd, uint64_t memory_bytes);

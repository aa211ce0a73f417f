/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <sys/types.h>

#include "init/start.h"

enum { LEADER_REPORT_FD = 3 };

/* The life of a leader, in the process that start_run() forked: descriptors 0…2 are the run's,
 * LEADER_REPORT_FD leads to init, no other is open. */
_Noreturn void leader_run(const FrameStart *start, StartWay way, const UserMemory *memory);

/* From init.  They reach the leader in order and none is lost; a leader that is gone already is
 * no error. */
void leader_ask_signal(pid_t leader, int signal);
void leader_ask_kill(pid_t leader);

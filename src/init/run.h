/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "init/input.h"
#include "init/output.h"
#include "init/start.h"
#include "wire/frame.h"

/* The life of a run:
 *
 *   FREE -> STARTING -> RUNNING -> DRAINING -> ENDED -> FREE
 *              |            `--------------------^
 *              `------> FAILED -> FREE
 *
 * STARTING: the leader has not said STARTED.  DRAINING: the command is gone, its pipes may hold
 * more.  ENDED and FAILED stay until FORGET, so that no exit code is lost with a server. */
typedef enum RunState {
    RUN_STATE_FREE,
    RUN_STATE_STARTING,
    RUN_STATE_RUNNING,
    RUN_STATE_DRAINING,
    RUN_STATE_ENDED,
    RUN_STATE_FAILED,
    RUN_STATE_MAX,
} RunState;

/* What the server has yet to be told. */
typedef enum RunOwed {
    OWE_STARTED = 1 << 0,
    OWE_STDIN_ACK = 1 << 1,
    OWE_ENDED = 1 << 2,
    OWE_FAILED = 1 << 3,
} RunOwed;

/* Which of a run's descriptors the loop watches. */
typedef enum RunFd { RUN_FD_OUT, RUN_FD_ERR, RUN_FD_IN, RUN_FD_REPORT, RUN_FDS } RunFd;

typedef struct Run {
    uint32_t id;
    RunState state;
    uint32_t flags, owed;
    uint32_t watched; /* 1 << RunFd */
    pid_t leader, main;
    UserMemory *memory; /* init's; set before run_begin() */
    StartWay way;       /* too */
    int report_fd;
    int slave_fd; /* held until the command ends, so that the terminal does not hang up between
                     two programs that have it open */
    Stream streams[2];
    Input input;
    uint64_t acked_input; /* what STDIN_ACK said last */
    uint64_t began_us;
    uint64_t deadline_us;   /* of the state: time limit, or the end of draining; 0: none */
    uint64_t give_up_us;    /* a kill that takes longer is the whole box's; 0: none asked */
    FrameReason killed_for; /* why it was asked to die, or 0 */
    bool forget;            /* as soon as it has ended */
    FrameEnd end;
    uint32_t fail_stage;
    int32_t fail_error;
} Run;

enum {
    RUN_DRAIN_MS = 250, /* for output after the command's end, when others hold its pipes */
    RUN_KILL_GIVE_UP_MS = 5000,
};

void run_set_state(Run *run, RunState to);
const char *run_state_name(RunState state);
static inline bool
run_is_live(const Run *run)
{
    return run->state == RUN_STATE_STARTING || run->state == RUN_STATE_RUNNING;
}

/* A run that was FREE begins; on failure it is FAILED.  *fd is taken where START_IN_FD or
 * START_OUT_FD says so, and then -1. */
void run_begin(Run *run, uint32_t id, const FrameStart *start, int *fd, uint64_t now_us);
/* Asks the leader to kill the tree; the end comes as a report. */
void run_kill(Run *run, FrameReason why, uint64_t now_us);
/* Something came over report_fd, or its end. */
void run_on_report(Run *run, uint64_t now_us);
/* The leader was reaped. */
void run_on_leader_exit(Run *run, int status, uint64_t cpu_us, uint64_t rss_bytes, uint64_t now_us);
/* DRAINING ends when both streams are at their end, or at the deadline; then fds that are still
 * open are handed out through `ret_sinks`, to be read and thrown away: closing them would kill
 * what was left in the background. */
bool run_finish_drain(Run *run, uint64_t now_us, int ret_sinks[2]);
/* Writes what the pipe takes, and owes the server word of it. */
void run_drain_input(Run *run);
/* To FREE; closes everything. */
void run_clear(Run *run);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "init/user.h"
#include "wire/frame.h"

/* Starting a run takes up to three forks of pid 1's small image:
 *
 *   init -> leader -> lookup (ends at once: reads passwd as nobody; where the leader cannot)
 *                  -> main   (the command)
 *
 * The leader (leader.h) is what makes a run's tree one thing that can be killed. */

/* What the leader tells init over its socket, in this order: STARTED or FAILED, and after STARTED
 * the user that it has found, where that is new (a UserMemory, known by its size), and at most one
 * ENDED.  Silence before the end: the leader was killed.  The other way
 * come the connections of sudo (sudo.h). */
typedef enum ReportKind { REPORT_STARTED = 1, REPORT_FAILED, REPORT_ENDED } ReportKind;

typedef struct Report {
    uint32_t kind;
    int32_t pid;    /* STARTED */
    uint32_t stage; /* FAILED: FrameStage */
    int32_t error;
    int32_t status; /* ENDED: as wait() gives it */
    uint32_t uid;   /* STARTED */
    uint64_t cpu_us, max_rss_bytes;
} Report;

/* Descriptors that a run begins with; borrowed. */
typedef struct StartFds {
    int in, out, err;
    int report;
} StartFds;

/* How main is made.  SHARED is cheaper: it has the leader's memory until it has become its
 * program, and the leader itself can be nobody for a while. */
typedef enum StartWay { START_WAY_COPIED, START_WAY_SHARED } StartWay;
/* What this machine allows.  To be asked before anything of the box runs. */
StartWay start_way(void);

/* The leader's pid; -1 with errno.  `start` and `memory` are only read, in the child's copy. */
pid_t start_run(const FrameStart *start, StartWay way, const UserMemory *memory, const StartFds *fds);

/* Changes to the user, for good. */
bool start_become(const User *user, bool keep_capabilities);

/* Between fork and exec, and the end of the process. */
_Noreturn void start_exec(const FrameStart *start, const User *user, int failed_fd);
_Noreturn void start_builtin(const FrameStart *start, const User *user);

/* What becomes of a process whose descriptors, session and terminal are as they should be.
 * Strings are borrowed. */
typedef struct Program {
    const char *file; /* looked for in PATH */
    const char *cwd;  /* "": the user's home */
    const char *const *argv, *const *envp;
    size_t envc;
    bool keep_capabilities;
} Program;
_Noreturn void start_program(const Program *program, const User *user, int failed_fd);
/* A FAILED report with errno, and the end of the process. */
_Noreturn void start_fail(int failed_fd, FrameStage stage);

/* Who goes first when memory runs out: pid 1 last, its commands before it. */
#define OOM_SCORE_INIT "0"
#define OOM_SCORE_COMMAND "500"
/* Of this process, as uid 0: while one is not dumpable the file is root's.  A box without it dies
 * as a whole when memory runs out, which is bearable. */
void oom_score_set(const char *score);

void report_send(int fd, const Report *report);

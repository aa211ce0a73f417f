/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <glib.h>
#include <stdbool.h>

#include "base/exitcode.h"

/* Starts a few programs in order, keeps them running and stops them in reverse order.
 *
 * A program says that it works by a line "ready" on its standard output, which is a pipe to
 * us; the next program is started then.  Its other lines are passed on.  "ready" with more
 * text behind it counts too and is passed on.
 *
 * A program that ends is started again after a delay that doubles with each failure and
 * falls back once it has been ready for a while.  It is given up, and everything is
 * stopped, when trying again cannot help: its configuration is wrong (EXIT_CODE_USAGE,
 * EXIT_CODE_CONFIG), what it needs is taken (EXIT_CODE_CONFLICT before it was ever ready),
 * or it was never ready in SUPERVISOR_FIRST_TRIES starts.
 *
 * Programs are sessions of their own, so that Ctrl-C reaches only us and the order of the
 * stop is ours. */
typedef struct Supervisor Supervisor;

enum {
    SUPERVISOR_FIRST_TRIES = 5,
    SUPERVISOR_LINE_MAX = 4096, /* longer lines are passed on in pieces */
    SUPERVISOR_PROGRAMS_MAX = 8,
};

typedef enum SupervisorRestart {
    RESTART_ALWAYS,
    RESTART_ON_FAILURE, /* an end with code 0 is the end of everything */
} SupervisorRestart;

typedef struct SupervisorProgram {
    const char *name;
    const char *const *argv;
    SupervisorRestart restart;
    const char *const *env; /* NULL: ours */
    /* The others work without it, less well: they are started also when it fails, and it is
     * tried again for ever, whatever its exit code. */
    bool optional;
} SupervisorProgram;

typedef struct SupervisorTimes {
    guint first_delay_ms; /* before the second start */
    guint max_delay_ms;
    guint stable_ms; /* ready for this long: its failures are forgotten */
    guint ready_ms;  /* from the start or its latest line to "ready" */
    guint stop_ms;   /* from SIGTERM to SIGKILL */
} SupervisorTimes;
#define SUPERVISOR_TIMES_INIT                                                                                \
    {                                                                                                        \
        .first_delay_ms = 500, .max_delay_ms = 30000, .stable_ms = 60000, .ready_ms = 60000,                 \
        .stop_ms = 10000                                                                                     \
    }

typedef struct SupervisorSpec {
    const SupervisorProgram *programs; /* borrowed, with their argv, as long as the supervisor lives */
    size_t n_programs;
    SupervisorTimes times;
    int out_fd; /* where lines go; borrowed */
    /* Called once, from the loop, when every program is gone.  `message` says why, or is
     * NULL after supervisor_stop(). */
    void (*on_done)(ExitCode code, const char *message, void *data);
    void *data;
} SupervisorSpec;

/* The first program is started from the loop. */
Supervisor *supervisor_new(const SupervisorSpec *spec);
/* The second call does not wait any longer. */
void supervisor_stop(Supervisor *supervisor);
/* Only after on_done, or before the loop has run. */
void supervisor_free(Supervisor *supervisor);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Supervisor, supervisor_free)

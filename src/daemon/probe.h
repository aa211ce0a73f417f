/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <glib.h>
#include <stdbool.h>

/* What this machine offers.  Nothing is taken on trust: a user namespace is made, a filter
 * is installed, an overlay is mounted.  What cannot be undone in a process happens in a child
 * of its own, the hidden command `coop __probe NAME`. */

typedef enum ProbeState { PROBE_OK, PROBE_DEGRADED, PROBE_MISSING, PROBE_STATE_MAX } ProbeState;

typedef enum ProbeNeed {
    PROBE_NEEDED, /* without it there are no boxes */
    PROBE_WANTED, /* without it something is weaker, and is said to be */
    PROBE_ADVICE, /* hardening of the host */
    PROBE_NEED_MAX,
} ProbeNeed;

typedef struct ProbeResult {
    const char *name;
    ProbeNeed need;
    ProbeState state;
    char *detail; /* one line */
    char *fix;    /* a command to run, or what else to do; NULL if all is well */
} ProbeResult;

const char *probe_state_name(ProbeState state);
const char *probe_need_name(ProbeNeed need);

typedef struct ProbeSpec {
    const char *program; /* the coop program that runs `__probe`; copied */
    const char *home;    /* the data folder; copied */
    guint child_ms;      /* for one trial; 0: ten seconds */
} ProbeSpec;

typedef struct ProbeRun ProbeRun;

/* `results` are ProbeResult *, in a fixed order, borrowed for the call.  Called once, from
 * the loop. */
typedef void (*ProbeDone)(const GPtrArray *results, void *data);

ProbeRun *probe_run_new(const ProbeSpec *spec, ProbeDone done, void *data);
void probe_run_free(ProbeRun *run);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(ProbeRun, probe_run_free)

/* The child's side: runs one probe and writes its result to standard output.  False for a
 * name that is not one. */
bool probe_child(const char *name, const char *home);

/* Nothing that is needed is missing. */
bool probe_all_needed(const GPtrArray *results);

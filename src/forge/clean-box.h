/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include "forge/check-output.h"
#include "forge/check-plan.h"
#include "forge/forge.h"

/* A box that gets one tree and runs the commands of a plan on it, one after the other, and is ended
 * then, whatever happens. */
typedef struct CleanBox CleanBox;

typedef struct CommandResult {
    const char *conclusion; /* success, failure, timed_out, skipped */
    const char *reason;     /* exit, signal, timeout, oom, not_started (run.h); skipped */
    int exit_code;          /* as a shell would say; -1: it did not run */
    gint64 started_us, ended_us;
    guint64 duration_us;
    CheckOutputEnd output; /* `text` NULL: it did not run */
} CommandResult;

typedef struct CleanBoxSpec {
    Forge *forge; /* borrowed, as is all */
    BoxHost *boxes;
    Repo *repo;
    const char *lease; /* of this try alone */
    const char *tree;
    gint64 time_s;     /* of its files */
    const char *links; /* submodules, as `git update-index --index-info` reads them */
    const CheckPlan *plan;
} CleanBoxSpec;

typedef struct CleanBoxEvents {
    /* It has the tree.  `compared`: git in the box has found it to be that tree; else the template has
     * no git. */
    void (*filled)(const BoxInfo *info, bool compared, void *ctx);
    void (*began)(guint command, void *ctx);
    void (*ended)(guint command, const CommandResult *result, void *ctx);
    /* Once, last.  `error`: it could not be found out (ERR_UNAVAILABLE, ERR_LIMIT: there is no box just now).
     */
    void (*done)(const GError *error, void *ctx);
} CleanBoxEvents;

CleanBox *clean_box_start(const CleanBoxSpec *spec, const CleanBoxEvents *events, void *ctx);
void clean_box_cancel(CleanBox *box); /* no event any more; NULL is fine */

/* Ends every box that an earlier life of the server had for this. */
void clean_box_sweep(BoxHost *boxes);

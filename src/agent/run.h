/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <glib.h>
#include <stdbool.h>

/* A command of the agent's: its output kept at both ends, nothing of its process group left when it is over.
 */

enum {
    RUN_HEAD_MAX = 6 * 1024,
    RUN_TAIL_MAX = 10 * 1024,
    RUN_ECHO_MAX = 256 * 1024,
    RUN_DRAIN_MS = 200, /* for what is still in the pipe when the first process has ended */
};

typedef struct RunSpec {
    const char *const *argv;
    const char *cwd;
    const char *input; /* NULL: none */
    gint64 timeout_ms;
    int cancel_fd; /* readable: end; -1: none */
    bool echo;     /* what it prints is printed here too, as it comes, up to RUN_ECHO_MAX */
} RunSpec;

typedef struct RunResult {
    int exit_code; /* 128 + the signal's number */
    bool timed_out;
    char *output; /* UTF-8; both streams */
    char *err;    /* what of it came on standard error */
    guint64 output_bytes;
    gint64 duration_ms;
} RunResult;
void run_result_clear(RunResult *result);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(RunResult, run_result_clear)

/* ERR_CANCELLED: the caller was asked to end. */
bool run_command(const RunSpec *spec, RunResult *ret_result, GError **error);

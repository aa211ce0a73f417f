/* SPDX-License-Identifier: Apache-2.0 */
/* How a run ended, in words and in a shell's numbers. */
#include <errno.h>
#include <string.h>

#include "box/run.h"

enum { EXIT_TIMEOUT = 124, EXIT_NOT_EXECUTABLE = 126, EXIT_NOT_FOUND = 127, EXIT_SIGNAL_BASE = 128 };

const char *
run_reason_name(RunReason reason)
{
    static const char *const names[RUN_REASON_MAX] = {
        [RUN_EXIT] = "exit", [RUN_SIGNAL] = "signal",   [RUN_TIMEOUT] = "timeout",
        [RUN_OOM] = "oom",   [RUN_STOPPED] = "stopped", [RUN_NOT_STARTED] = "not-started",
        [RUN_LOST] = "lost",
    };

    return reason > 0 && reason < RUN_REASON_MAX ? names[reason] : "unknown";
}

int
run_end_exit_code(const RunEnd *end)
{
    switch (end->reason) {
    case RUN_EXIT:
        return end->code;
    case RUN_SIGNAL:
        return EXIT_SIGNAL_BASE + end->code;
    case RUN_TIMEOUT:
        return EXIT_TIMEOUT;
    case RUN_NOT_STARTED:
        return end->code == ENOENT ? EXIT_NOT_FOUND : EXIT_NOT_EXECUTABLE;
    case RUN_OOM:
    case RUN_STOPPED:
    case RUN_LOST:
    case RUN_REASON_MAX:
        break;
    }
    return EXIT_SIGNAL_BASE + 9;
}

static const char *
stage_name(guint stage)
{
    static const char *const names[FAIL_STAGE_MAX] = {
        [FAIL_FRAME] = "the request", [FAIL_LIMIT] = "too many commands",
        [FAIL_FORK] = "new process",  [FAIL_USER] = "user",
        [FAIL_TTY] = "terminal",      [FAIL_CWD] = "working folder",
        [FAIL_EXEC] = "program",      [FAIL_CONNECT] = "connection",
    };

    return stage > 0 && stage < FAIL_STAGE_MAX ? names[stage] : "start";
}

char *
run_end_dup_message(const RunEnd *end)
{
    const char *name;

    switch (end->reason) {
    case RUN_SIGNAL:
        name = sigabbrev_np(end->code);
        return name != NULL ? g_strdup_printf("killed by SIG%s", name)
                            : g_strdup_printf("killed by signal %d", end->code);
    case RUN_TIMEOUT:
        return g_strdup("the time limit was reached");
    case RUN_OOM:
        return g_strdup("killed: the box has no more memory");
    case RUN_STOPPED:
        return g_strdup("the box was ended");
    case RUN_NOT_STARTED:
        return g_strdup_printf("%s: %s", stage_name(end->stage), g_strerror(end->code));
    case RUN_LOST:
        return g_strdup("the box is gone");
    case RUN_EXIT:
    case RUN_REASON_MAX:
        break;
    }
    return NULL;
}

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <glib.h>

/* What other agents call: plan, room, ask, done.  Each prints its answer and returns an exit code. */
typedef struct AgentCommand {
    const char *name, *usage, *what;
    int (*run)(int argc, char **argv); /* argv[0] is the name */
} AgentCommand;

extern const AgentCommand agent_commands[]; /* ended by one without a name */

/* Says what went wrong; the exit code for it. */
int agent_fail(const GError *error);

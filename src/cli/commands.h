/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include "cli/cli.h"

/* Every command, in the order of the help.  Each has a file of its own name that defines
 * command_NAME. */
#define COMMANDS(X)                                                                                          \
    X(start)                                                                                                 \
    X(serve)                                                                                                 \
    X(status)                                                                                                \
    X(run)                                                                                                   \
    X(shell)                                                                                                 \
    X(ps)                                                                                                    \
    X(top)                                                                                                   \
    X(exec)                                                                                                  \
    X(logs)                                                                                                  \
    X(cp)                                                                                                    \
    X(rm)                                                                                                    \
    X(sandbox)                                                                                               \
    X(template)                                                                                              \
    X(squad)                                                                                                 \
    X(task)                                                                                                  \
    X(plan)                                                                                                  \
    X(agent)                                                                                                 \
    X(repo)                                                                                                  \
    X(pr)                                                                                                    \
    X(issue)                                                                                                 \
    X(room)                                                                                                  \
    X(verify)                                                                                                \
    X(queue)                                                                                                 \
    X(github)                                                                                                \
    X(door)                                                                                                  \
    X(provider)                                                                                              \
    X(budget)                                                                                                \
    X(report)                                                                                                \
    X(cost)                                                                                                  \
    X(link)                                                                                                  \
    X(identity)                                                                                              \
    X(key)                                                                                                   \
    X(events)                                                                                                \
    X(backup)                                                                                                \
    X(restore)                                                                                               \
    X(demo)                                                                                                  \
    X(doctor)                                                                                                \
    X(config)                                                                                                \
    X(completion)                                                                                            \
    X(help)                                                                                                  \
    X(version)                                                                                               \
    X(probe)                                                                                                 \
    X(sub_ids)                                                                                               \
    X(routes)

#define COMMAND_DECLARE(name) extern const Command command_##name;
COMMANDS(COMMAND_DECLARE)
#undef COMMAND_DECLARE

extern const Command command_root;

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include "cli/remote.h"

/* What happened in a task, in words: the seven steps that everybody wants to see (the plan, a sandbox, code,
 * tests, their success, the feature, the end of the sandbox) and what lies between them.  With `follow` until
 * the task is over.  `task_id` is its UUID. */
ExitCode task_log(Cli *cli, Remote *remote, const char *task_id, bool follow);

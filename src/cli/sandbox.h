/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include "cli/cli.h"

/* The subcommands of `coop sandbox`. */
extern const Command sandbox_create, sandbox_ls, sandbox_show, sandbox_exec, sandbox_logs, sandbox_cp,
    sandbox_git, sandbox_stats, sandbox_pause, sandbox_resume, sandbox_rm;

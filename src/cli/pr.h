/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include "cli/cli.h"

/* The subcommands of `coop pr` that have a file of their own. */
extern const Command pr_diff, pr_merge, pr_checks, pr_receipt;

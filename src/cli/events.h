/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include "cli/cli.h"

/* Shows the events that `path` gives, by the options follow, task, squad, box, kind, after and
 * limit, as far as the command has them. */
ExitCode events_show(Cli *cli, const char *path);

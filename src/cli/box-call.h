/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include "cli/cli.h"
#include "cli/remote.h"
#include "json/json.h"

/* What the commands on boxes share. */

/* "/api/v1/sandboxes/ID" + rest; the id is escaped. */
char *box_path(const char *id, const char *rest);

/* Makes a box from the options.  The id is the caller's. */
ExitCode box_make(Cli *cli, Remote *remote, Json **ret_box, char **ret_id);

/* Runs a command there with the terminal, input and output of ours.  What it ended with is what
 * we end with.  Without an id in a box made from the options, which goes with the command. */
ExitCode box_exec(Cli *cli, Remote *remote, const char *id, const char *const *words, guint n);

/* The same at our terminal, whatever the options say. */
ExitCode box_exec_terminal(Cli *cli, Remote *remote, const char *id, const char *const *words, guint n);

/* Starts it in a box made from the options, prints the box and leaves it. */
ExitCode box_run_detached(Cli *cli, Remote *remote, const char *const *words, guint n);

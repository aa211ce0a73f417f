/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include "cli/cli.h"
#include "daemon/config.h"

/* Adds the options that stand for settings of the configuration, and --set. */
void cli_settings_append(GArray *options, CliSettings which);

/* The configuration with the options of this invocation.  Prints what is wrong and returns
 * EXIT_CODE_CONFIG, or EXIT_CODE_OK. */
ExitCode cli_config(Cli *cli, Config **ret_config);

/* The settings' options of this invocation, to hand on to another command: words for an
 * argument vector are added to `argv`. */
void cli_settings_forward(const Cli *cli, GPtrArray *argv);

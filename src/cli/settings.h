/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include "cli/cli.h"

/* Adds the options that stand for settings of the configuration. */
void cli_settings_append(GArray *options, CliSettings which);

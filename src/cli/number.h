/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include "cli/cli.h"
#include "daemon/setting.h"

/* The value of an option, as settings are written: "8MiB", "30s".  False with the error set; true with
 * *ret_value untouched when the option was not given. */
bool cli_read_number(Cli *cli, const char *option, SettingType type, gint64 min, gint64 max,
                     gint64 *ret_value, GError **error);

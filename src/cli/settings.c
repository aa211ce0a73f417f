/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/settings.h"

void
cli_settings_append(GArray *options, CliSettings which)
{
    static const CliOption home = {.name = "home", .value = "FOLDER", .help = "the data folder (COOP_HOME)"};

    if (which != CLI_SETTINGS_NONE)
        g_array_append_val(options, home);
}

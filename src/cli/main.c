/* SPDX-License-Identifier: Apache-2.0 */
#include <unistd.h>

#include "cli/commands.h"

int
main(int argc, char **argv)
{
    return (int)cli_main(&command_root, argc, (const char *const *)argv, STDOUT_FILENO, STDERR_FILENO);
}

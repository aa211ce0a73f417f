/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include "cli/cli.h"

enum { CLI_DEPTH_MAX = 4 }; /* "coop sandbox git clone" */

typedef struct CliGiven {
    char *name;
    char *value;
} CliGiven;

typedef struct CliParsed {
    const Command *path[CLI_DEPTH_MAX]; /* from the root to the command */
    guint depth;
    GArray *given;   /* of CliGiven, in order */
    GPtrArray *args; /* NULL-terminated */
    bool help;
} CliParsed;

void cli_parsed_clear(CliParsed *parsed);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(CliParsed, cli_parsed_clear)

static inline const Command *
cli_parsed_command(const CliParsed *parsed)
{
    return parsed->path[parsed->depth - 1];
}

/* "coop config show" */
char *cli_parsed_path(const CliParsed *parsed);

/* Options may stand anywhere after their command; "--" ends them.  On failure `parsed` holds
 * what was understood so far, so that the message can point to the right help. */
bool cli_parse(const Command *root, int argc, const char *const *argv, CliParsed *parsed, GError **error);

/* The format asked for anywhere on the line, right or wrong: errors in the line itself are
 * printed in it too. */
OutFormat cli_guess_format(int argc, const char *const *argv);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <glib.h>
#include <stdbool.h>

#include "base/exitcode.h"
#include "cli/out.h"

/* A command is one const entry in one file; commands.h lists them all.  Parsing, help,
 * completion and the JSON description are made from the entries, so none of them can be
 * forgotten. */
typedef struct Cli Cli;
typedef struct Command Command;

enum { CLI_ARGS_MANY = 4096 };

typedef struct CliOption {
    const char *name;  /* without the dashes; NULL ends a list */
    char letter;       /* its short form, or 0 */
    const char *value; /* name of its value in the help; NULL: a switch */
    const char *help;
    const char *const *choices; /* the only values allowed, NULL-terminated; NULL: any */
} CliOption;

/* Which settings of the configuration a command takes as options. */
typedef enum CliSettings {
    CLI_SETTINGS_NONE,
    CLI_SETTINGS_HOME,
    CLI_SETTINGS_CLIENT, /* what is needed to find a server */
    CLI_SETTINGS_ALL,    /* what a server is run with */
} CliSettings;

struct Command {
    const char *name;
    const char *summary;            /* one line, no full stop */
    const char *args;               /* positional arguments in the help: "FILE", "[NAME]" */
    guint args_min, args_max;       /* CLI_ARGS_MANY: as many as come */
    const char *details;            /* more help; may be NULL */
    const CliOption *options;       /* its own; may be NULL */
    const Command *const *commands; /* subcommands, NULL-terminated; may be NULL */
    CliSettings settings;
    bool hidden; /* not in help and completion */
    /* The arguments are a command of somebody else: from the first on nothing is an option of
     * ours any more, also without "--". */
    bool rest;
    /* NULL: only with a subcommand. */
    ExitCode (*run)(Cli *cli);
};

/* What one invocation gave. */
const Command *cli_command(const Cli *cli);
Out *cli_out(const Cli *cli);
/* The last value of an option, NULL without one; for a switch, "". */
const char *cli_option(const Cli *cli, const char *name);
/* Every value, in order. */
GPtrArray *cli_option_all(const Cli *cli, const char *name);
const char *const *cli_args(const Cli *cli);
guint cli_n_args(const Cli *cli);

/* Prints and returns, so that a failing path is one statement. */
ExitCode cli_fail(Cli *cli, ExitCode code, const char *fmt, ...) G_GNUC_PRINTF(3, 4);
ExitCode cli_fail_error(Cli *cli, const GError *error);

/* Runs a whole invocation against a tree of commands. */
ExitCode cli_main(const Command *root, int argc, const char *const *argv, int out_fd, int error_fd);

/* The root of the tree that is running, for help and completion. */
const Command *cli_root(const Cli *cli);

/* The options that a command takes, as CliOption values: its own, those of its settings,
 * and the two that all have. */
GArray *cli_command_options(const Command *command);

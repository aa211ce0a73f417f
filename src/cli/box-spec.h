/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include "cli/cli.h"
#include "json/json.h"

/* The options that describe a box and a command, and the bodies of calls made from them. */

/* Rows for an array of CliOption. */
#define BOX_OPTIONS                                                                                          \
    {.name = "template", .value = "NAME", .help = "what it starts from (default: the server's)"},            \
        {.name = "name", .value = "NAME", .help = "a name for people"},                                      \
        {.name = "lease", .value = "KEY", .help = "the same key gets its live box back"},                    \
        {.name = "cpus", .value = "N", .help = "cores, such as 0.5 or 2"},                                   \
        {.name = "memory", .letter = 'm', .value = "SIZE", .help = "such as 512MiB"},                        \
        {.name = "disk", .value = "SIZE", .help = "such as 2GiB"},                                           \
        {.name = "processes", .value = "N", .help = "most processes at a time"},                             \
        {.name = "lifetime", .value = "TIME", .help = "how long it lives, such as 10m"},                     \
        {.name = "idle", .value = "TIME", .help = "how long it lives unused"},                               \
    {                                                                                                        \
        .name = "keep", .help = "at its end it is paused and kept for a while, not destroyed"                \
    }
#define COMMAND_OPTIONS                                                                                      \
    {.name = "env", .letter = 'e', .value = "NAME=VALUE", .help = "a variable; NAME alone passes ours on"},  \
        {.name = "user", .letter = 'u', .value = "USER", .help = "a name or number inside"},                 \
        {.name = "workdir", .letter = 'w', .value = "FOLDER", .help = "where it runs"},                      \
        {.name = "root", .help = "as root inside"},                                                          \
        {.name = "timeout", .value = "TIME", .help = "kills the command and what it started after that"},    \
        {.name = "interactive", .letter = 'i', .help = "pass standard input on"},                            \
    {                                                                                                        \
        .name = "tty", .letter = 't', .help = "give it a terminal"                                           \
    }

/* NULL with the error set: an option makes no sense. */
Json *box_spec_body(Cli *cli, GError **error);
/* `words` become the command: several are its arguments, one is a line for the shell. */
Json *command_spec_body(Cli *cli, const char *const *words, guint n, GError **error);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include "cli/cli.h"

/* How far something is, on standard error: a bar on a terminal, else a line now and then. */
typedef struct Bar {
    Cli *cli;
    bool draws; /* standard error is a terminal and text is wanted */
    bool drawn;
    guint told; /* percent */
} Bar;

Bar bar_make(Cli *cli);
/* `line` is what it says of itself beside that; both may be NULL. */
void bar_show(Bar *bar, guint percent, const char *step, const char *line);
void bar_clear(Bar *bar);

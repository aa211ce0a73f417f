/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include "cli/cli.h"
#include "cli/remote.h"
#include "json/json.h"

/* A command in a box, as if it ran here: its output comes out of us byte by byte, our input and
 * signals go there, and a lost connection is taken up again where it broke. */
typedef struct AttachSpec {
    Cli *cli;
    Remote *remote;
    const char *box;     /* its id; NULL: `create` makes it */
    const Json *create;  /* a box, with the command in it */
    const Json *command; /* to start; NULL: `number` is followed, or it is in `create` */
    gint64 number;
    bool input;    /* pass standard input on */
    bool terminal; /* and ours is one */
    bool watch;    /* only look: an interrupt ends us, not the command */
} AttachSpec;

/* Until the command ends or Ctrl-P Ctrl-Q is typed at its terminal.  EXIT_CODE_OK with
 * *ret_exit: what a shell would say of its end, 0 after a detach.  *ret_made, also after a failure:
 * the id of a box that was made, the caller's; NULL: none. */
ExitCode attach_run(const AttachSpec *spec, int *ret_exit, char **ret_made);

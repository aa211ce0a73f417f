/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Ways out of a box.  Each is tried for real, and harmless where it works. */
typedef struct Attempt {
    const char *name;
    const char *what; /* what a box could do then */
    /* 0: refused, errno says how; 1: it worked. */
    int (*try)(void);
} Attempt;

extern const Attempt attempts[]; /* a NULL name ends the table */

/* A file of the host, given on the command line, that no box may see. */
void attempts_set_host_file(const char *path);

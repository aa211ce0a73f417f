/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <glib.h>
#include <stdbool.h>

/* A program of somebody else's, in namespaces of its own inside the space: users (root and the
 * lent ids; the id of the server's user does not exist, so none of its files can be opened),
 * mounts, processes, ipc, names and, unless it fetches packages, an empty network.  It cannot
 * gain privileges, and when it ends everything it started is gone. */

enum {
    CELL_BINDS_MAX = 8,
    CELL_TAIL_LINES = 12, /* of its output, for the message of a failure */
    CELL_LINE_MAX = 4096,
};

typedef struct CellBind {
    const char *from; /* in the space */
    const char *to;   /* below the cell's /tmp: "npm" */
} CellBind;

typedef struct CellSpec {
    const char *root;  /* NULL: the host's files, as the least of its users sees them */
    const char *inner; /* NULL, or a root into which a program with the host's files goes by itself */
    const char *const *argv;
    int (*call)(void *data); /* in place of argv: its result is the exit code */
    void *data;
    const char *const *env;
    const char *cwd; /* NULL: "/" */
    guint uid, gid;
    bool network;
    bool mounts;           /* it may make mounts of its own (mmdebstrap) */
    const CellBind *binds; /* folders and files that it finds below /tmp */
    size_t n_binds;
    /* Each line of its output, both streams; may be NULL. */
    void (*line)(const char *line, void *data);
    void *line_data;
    GString *output; /* all of it, up to a bound; NULL: not wanted */
} CellSpec;

/* True when it ended with 0; else the error has the last lines of what it said. */
bool cell_run(const CellSpec *spec, GError **error);
/* As cell_run(), but an exit code is no error; -1 with one when it did not run. */
int cell_code(const CellSpec *spec, GError **error);

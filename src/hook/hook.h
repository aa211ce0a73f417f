/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <stdbool.h>
#include <stddef.h>

#include "wire/hook.h"

/* What the files of coop-hook share.  libc only, one process, over in a moment. */

enum {
    OID_LEN = 40,
    COMMITS_MAX = 500, /* of one push whose messages are read */
    SAID_MAX = 5,      /* commits that are named when messages are wrong */
};

/* One line of a push; strings are in the input. */
typedef struct Update {
    const char *old, *new, *ref;
} Update;

typedef struct Push {
    Update *updates;
    size_t n;
    char *input;
} Push;

bool is_zero(const char *oid);

/* To whoever pushes; false, so that a refusal is one statement. */
bool refuse(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* ---- ask.c: git, as a child ---- */

/* Its exit code; -1: it could not be started. */
int ask_code(const char *const argv[]);
/* What it prints, up to `max` bytes and NUL-terminated behind them; NULL: it failed. */
char *ask_text(const char *const argv[], size_t max, size_t *ret_n);

/* ---- commits.c: what a push brings ---- */

/* One that the repository does not have yet; strings are in the text. */
typedef struct Commit {
    const char *oid;
    const char *parents; /* with blanks between them */
    const char *message;
    size_t len;
    bool seen;
} Commit;

/* The newest first; none where nobody looks at messages. */
typedef struct Commits {
    Commit all[COMMITS_MAX];
    size_t n;
    char *text;
} Commits;

bool commits_read(const Push *push, Commits *ret);
/* True: `old` is an ancestor of `new`.  False: these alone do not show it. */
bool commits_lead(Commits *commits, const char *new, const char *old);
bool commits_check(const Commits *commits);

/* ---- refs.c: may they be moved? ---- */

/* Names and rights, which need nothing of what is pushed. */
bool refs_check(const Push *push);
bool refs_check_moves(const Push *push, Commits *commits);

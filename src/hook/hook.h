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

/* ---- refs.c, commits.c: may it be? ---- */

bool refs_check(const Push *push);
bool commits_check(const Push *push);

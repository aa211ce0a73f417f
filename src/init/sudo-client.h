/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/sudo.h"

/* coop-sudo: what `sudo` is inside a box (wire/sudo.h).  It has no rights of its own and checks
 * none: it turns a command line into a request, and is the command's stand-in for its caller. */

enum { SUDO_EXIT_FAILED = 1, SUDO_SETS_MAX = 64, SUDO_KEEPS_MAX = 64 };

typedef enum SudoAction {
    SUDO_RUN,
    SUDO_VALIDATE,
    SUDO_NOTHING,
    SUDO_LIST,
    SUDO_HELP,
    SUDO_VERSION_TEXT
} SudoAction;

typedef struct SudoOptions {
    SudoAction action;
    uint32_t flags;   /* SudoFlags */
    const char *user; /* "0" unless said */
    const char *cwd;  /* NULL: the caller's */
    bool keep_env, set_home, background;
    const char *keeps[SUDO_KEEPS_MAX]; /* names from --preserve-env=LIST, each up to a comma */
    size_t n_keeps;
    const char *sets[SUDO_SETS_MAX]; /* NAME=VALUE before the command */
    size_t n_sets;
    char **argv; /* ends with NULL */
    int argc;
} SudoOptions;

/* sudo-options.c.  False: *ret_problem says why. */
bool sudo_options_parse(int argc, char **argv, SudoOptions *ret_options, const char **ret_problem);
extern const char sudo_help[];

/* sudo-env.c: the texts of the request, to be freed.  NULL: too much, or no memory. */
char *sudo_request_make(const SudoOptions *options, char **environment, SudoRequest *ret_request);

/* sudo-relay.c: the command goes on until it ends; its status as wait() gives it, or -1 with
 * *ret_problem and what was said of it. */
int sudo_relay(int connection, const SudoRequest *request, const char *text, SudoSay *ret_failed,
               const char **ret_problem);

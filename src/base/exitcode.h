/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <glib.h>

/* How every program of Coop ends, so that scripts and the supervisor can tell failures
 * apart.  `coop help` prints this table. */
#define EXIT_CODES(X)                                                                                        \
    X(OK, 0, "done")                                                                                         \
    X(FAILED, 1, "it did not work; the message says why")                                                    \
    X(USAGE, 2, "the command line is wrong")                                                                 \
    X(UNREACHABLE, 3, "no server answered")                                                                  \
    X(NOT_FOUND, 4, "what was named does not exist")                                                         \
    X(DENIED, 5, "the key or the user may not do this")                                                      \
    X(CONFLICT, 6, "not in this state: already running, address in use, ...")                                \
    X(TIMEOUT, 7, "no answer in time")                                                                       \
    X(UNPROVEN, 8, "nothing speaks against it, but not all that was asked could be established")             \
    X(CONFIG, 78, "the configuration is wrong; trying again will not help")

#define EXIT_CODE_ENUM(name, code, meaning) EXIT_CODE_##name = (code),
typedef enum ExitCode { EXIT_CODES(EXIT_CODE_ENUM) } ExitCode;
#undef EXIT_CODE_ENUM

ExitCode exit_code_of(const GError *error);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Runs the operation argv[0] in this process, which is the user's: input on descriptor 0,
 * output on 1.  0 or an errno, which becomes the exit code of the run. */
int builtin_run(int argc, const char *const *argv);

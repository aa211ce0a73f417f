/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <glib.h>

/* The user namespace in which templates are built, made by the builder before this process
 * gives up new privileges: newuidmap, which it needs, is a set-id program.  Blocks for a moment;
 * -1: templates cannot be built, and the log says why. */
int build_space_open(void);

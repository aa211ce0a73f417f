/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include "cli/cli.h"

/* The help of the last command of `path`, which leads to it from the root. */
void usage_show(Out *out, const Command *const *path, guint depth);

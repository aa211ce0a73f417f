/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <glib.h>
#include <stdbool.h>

/* How much of the code tests went through, as the summaries of the usual tools say it: coverage.py (also by
 * pytest), c8 and nyc and Jest, node --test, go test, lcov.  `*ret_permille` is of the last of them in the
 * text; false: there is none. */
bool coverage_find(const char *text, guint *ret_permille);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include "keeper/filter.h"

/* The part of the filter that looks at names: a search over spans of call numbers that share a
 * verdict.  Calls of the same kind stand side by side in the kernel's table, so the spans are a
 * quarter of the calls, and what the kernel checks and compiles for every box is that much shorter
 * than libseccomp's, which compares each call.
 *
 * Replaces *ret_program.  Its last instruction is followed by what decides on the allowed ones. */
bool filter_names_build(uint32_t arch, FilterProgram *ret_program, GError **error);

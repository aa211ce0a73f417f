/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include "door/policy.h"

/* The left side of a rule.  Private to this folder. */
enum { PATTERN_MAX = DOOR_NAME_MAX + 2, POLICY_SOURCE_MAX = 128 };

/* In the form that names have: lower case, no trailing dot, an address without brackets.  Only
 * for one that policy_pattern_check() takes. */
char *pattern_canonical(const char *pattern);

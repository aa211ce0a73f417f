/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <stddef.h>

/* The name that `word` was most likely meant to be: the one with the fewest typing slips
 * (a letter too many, missing, wrong or swapped), or NULL when none is near enough to be
 * worth suggesting.  Words over NEAREST_WORD_MAX bytes match nothing. */
enum { NEAREST_WORD_MAX = 64 };
const char *nearest(const char *word, const char *const *names, size_t n);

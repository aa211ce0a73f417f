/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <seccomp.h>

enum { FILTER_COMPARES_MAX = 2 };

/* A call with these arguments, all of them, fails with `error`. */
typedef struct FilterRule {
    const char *call;
    int error;
    unsigned n;
    struct scmp_arg_cmp compare[FILTER_COMPARES_MAX];
} FilterRule;

extern const char *const filter_allowed[]; /* ended by NULL */
extern const char *const filter_refused[]; /* with EPERM; ended by NULL */
extern const FilterRule filter_rules[];    /* ended by a row without a call */

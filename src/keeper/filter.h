/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <glib.h>
#include <linux/filter.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The system calls that code in a box may make.
 *
 * Two programs hold together; the kernel takes the stricter answer.  FILTER_NAMES knows calls
 * only: those of the list are allowed, those known and refused fail with EPERM, all others
 * with ENOSYS, so that a libc falls back.  FILTER_ARGUMENTS allows every call but the listed
 * combinations of arguments.  They are two because libseccomp, given a call's forbidden
 * arguments, cannot also be told to allow all its others where the rest is refused. */
typedef enum FilterPart { FILTER_NAMES, FILTER_ARGUMENTS, FILTER_PARTS } FilterPart;

enum { FILTER_INSNS_MAX = 1024 };

typedef struct FilterProgram {
    struct sock_filter insns[FILTER_INSNS_MAX];
    size_t n;
} FilterProgram;

/* `arch`: a SCMP_ARCH_ value; SCMP_ARCH_NATIVE for boxes, others for the tests. */
bool filter_build(FilterPart part, uint32_t arch, FilterProgram *ret_program, GError **error);

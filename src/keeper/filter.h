/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <glib.h>
#include <linux/filter.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The system calls that code in a box may make.
 *
 * One program of two parts, since what is compiled for every box has to be short.  The first knows calls
 * only: those known and refused fail with EPERM, those in no list with ENOSYS, so that a libc
 * falls back.  The second, for what is left, allows every call but the listed combinations of
 * arguments. */
enum { FILTER_INSNS_MAX = 1024 };

typedef struct FilterProgram {
    struct sock_filter insns[FILTER_INSNS_MAX];
    size_t n;
} FilterProgram;

/* `arch`: a SCMP_ARCH_ value; SCMP_ARCH_NATIVE for boxes, others for the tests. */
bool filter_build(uint32_t arch, FilterProgram *ret_program, GError **error);

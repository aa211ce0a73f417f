/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <stdint.h>

/* What all boxes together may use: limits of single boxes are ceilings, not reservations, and
 * their sum may well be more than the host has. */
typedef struct Ceiling {
    uint64_t memory_bytes;
    uint64_t pids;
} Ceiling;

/* What the host has but for a floor that stays its own, from the texts of /proc/meminfo and of
 * the sysctls pid_max and threads-max.  0: cannot be told. */
Ceiling ceiling_of(const char *meminfo, const char *pid_max, const char *threads_max);
/* The same of this host, for each that is 0 in `given`. */
Ceiling ceiling_of_host(Ceiling given);

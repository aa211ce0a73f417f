/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <stdbool.h>
#include <stdint.h>

typedef struct ConfineSpec {
    const char *repository;
    const char *hooks; /* NULL: none */
    bool write, net;
    uint64_t file_max; /* bytes of one file; 0: as usual */
    bool scratch;      /* its folder "tmp" can be written to, and is made */
} ConfineSpec;

/* Limits, files and system calls of this process and of all it starts.  Without Landlock, or with one
 * that cannot let files be moved, files are guarded by the user's rights alone.  False: errno and what
 * was being done. */
bool confine(const ConfineSpec *spec, const char **ret_doing);

/* The git program. */
const char *confine_git(void);

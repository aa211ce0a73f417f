/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <glib.h>
#include <stdbool.h>

/* A file that appears when it is whole, with mode 0600, and until then has another name
 * beside it; "-" is standard output. */
typedef struct Target {
    int fd;
    char *path; /* NULL: standard output */
    char *part; /* its name so far; NULL: none any more */
} Target;
#define TARGET_INIT                                                                                          \
    {                                                                                                        \
        .fd = -1                                                                                             \
    }

bool target_open(const char *path, Target *ret_target, GError **error);
/* On the disk, and in its place; a file of that name is replaced. */
bool target_finish(Target *target, GError **error);
/* Without target_finish() nothing stays behind. */
void target_clear(Target *target);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Target, target_clear)

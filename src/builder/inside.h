/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <glib.h>
#include <stdbool.h>
#include <sys/types.h>

/* Files of a root that packages and commands have written: a link may lead to the host's files, a
 * pipe never end.  Paths are seen from `root_fd` and never lead out of it. */

/* The root of the build; -1 with an error. */
int inside_open_root(GError **error);
/* A folder; -1 with an error, and errno is ENOENT where there is none. */
int inside_open_folder(int root_fd, const char *path, GError **error);

/* NULL: there is no such file, or none that is one. */
char *inside_read(int root_fd, const char *path, gsize *ret_n);
/* In place of whatever has that name. */
bool inside_write(int root_fd, const char *folder, const char *name, const void *bytes, gsize n, mode_t mode,
                  GError **error);

/* What the folder has; none where it is not there.  NULL with an error. */
GPtrArray *inside_list(int root_fd, const char *folder, GError **error);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <glib.h>
#include <stdbool.h>
#include <sys/types.h>

/* Absolute, and no empty, "." or ".." segment anywhere.  "/" itself is not normal: nothing
 * may be mounted over the root. */
bool path_is_normal(const char *path);

/* Open `path` as seen from the directory `root_fd`, never leaving it: no ".." that leads above
 * it, no absolute path or link, no link that points out, no /proc magic link.  Returns an fd
 * the caller owns, or -1 with `error` set. */
int open_beneath(int root_fd, const char *path, int flags, mode_t mode, GError **error);

/* Like mkdir -p with `mode` for the last directory, which must end up owned by us (root may
 * find another's) and closed to others: an existing one with wider permissions is refused. */
bool path_make_private_dir(const char *path, mode_t mode, GError **error);

/* Whole-file write that a crash cannot tear: temporary file, fsync, rename, fsync of the
 * folder. */
bool path_write_atomic(const char *path, const void *data, size_t len, mode_t mode, GError **error);

/* A file in `folder` that has no name any more, to read and write; -1: error.  O_TMPFILE is not known to
 * every file system. */
int path_open_nameless(const char *folder, GError **error);

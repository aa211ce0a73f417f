/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* Blocking loops over read(2) and write(2) that know EINTR and short counts; errno is set on
 * failure.  For files and pipes of programs that may wait, never for the server's loop. */
bool io_write_all(int fd, const void *data, size_t len);
/* Bytes read: less than `len` only at end of file; -1 on error. */
ssize_t io_read_full(int fd, void *data, size_t len);
/* A file in memory that holds this and cannot be changed, to be read from its start; -1 on error. */
int io_open_memory(const char *name, const void *data, size_t len);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <glib.h>
#include <stdbool.h>
#include <sys/types.h>

#include "base/loop.h"

/* The server's end of a pipe whose other end goes into a box; private to this folder.
 *
 * The server makes the pipe, so its own end cannot block and leads nowhere else, whatever becomes
 * of the other.  Whoever holds that may do anything a pipe allows: stop, steal what it wrote, make
 * the pipe small, hold it open for ever.  So the end of a transfer is told by the end of its run,
 * never by the pipe alone. */
typedef struct FilePipe FilePipe;
struct FilePipe {
    LoopWatch watch; /* first: the loop hands back its address; fd -1: closed */
    Loop *loop;
    uint32_t events; /* EPOLLIN or EPOLLOUT */
    bool awaited;
    void (*ready)(FilePipe *pipe); /* once after each file_pipe_await() */
};

typedef enum FilePipeWay { FILE_PIPE_IN, FILE_PIPE_OUT } FilePipeWay; /* of the box */

enum { FILE_PIPE_BYTES = 1 << 20 };

/* The box's end is the caller's. */
bool file_pipe_open(FilePipe *pipe, Loop *loop, FilePipeWay way, int *ret_theirs, GError **error);
void file_pipe_close(FilePipe *pipe);

/* Until the pipe has something, or room, or has lost its other end. */
void file_pipe_await(FilePipe *pipe);
bool file_pipe_has_bytes(const FilePipe *pipe);
bool file_pipe_has_ended(const FilePipe *pipe); /* empty, and nobody can fill it */

/* As read() and write(); a pipe that is closed is at its end. */
ssize_t file_pipe_read(FilePipe *pipe, void *bytes, size_t n);
ssize_t file_pipe_write(FilePipe *pipe, const void *bytes, size_t n);
/* Between the pipe and a socket, without a copy: as read() of whichever gives, but ENOBUFS when the
 * one that takes has no room, and EPIPE when it is gone. */
ssize_t file_pipe_splice_to(FilePipe *pipe, int fd, size_t n);
ssize_t file_pipe_splice_from(FilePipe *pipe, int fd, size_t n);

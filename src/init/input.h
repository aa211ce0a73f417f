/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Input on its way from the server to a run: a ring of FRAME_WINDOW bytes, mapped with the first
 * one.  taken: everything below is in the ring or was written; written: everything below is in
 * the pipe, which is what STDIN_ACK says.  When the reader is gone the rest is swallowed, so
 * that the server's window opens all the same. */
typedef struct Input {
    int fd; /* -1: none, or closed */
    bool tty, closing;
    uint8_t *ring;
    uint64_t taken, written;
} Input;

/* `fd` is taken: non-blocking; -1: no input, what comes is swallowed. */
void input_init(Input *in, int fd, bool tty);
void input_clear(Input *in);
/* What is below `taken` is skipped; what leaves a hole, or is beyond the window, is dropped. */
void input_put(Input *in, uint64_t offset, const void *bytes, size_t n);
/* After what was put. */
void input_close(Input *in);
bool input_wants_room(const Input *in);
/* Writes what the pipe takes. */
void input_drain(Input *in);

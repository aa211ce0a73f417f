/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Packets with file descriptors over a SOCK_SEQPACKET socket.  A packet arrives whole or not
 * at all.  This folder is linked into init, which is static: libc only, nothing allocated,
 * no NSS.
 *
 * Every call is for a non-blocking socket and sets errno. */
enum { CHANNEL_PACKET_MAX = 64 * 1024 + 256, CHANNEL_FDS_MAX = 8 };

/* A new connection to the listener at `path`; -1: errno, ENAMETOOLONG too. */
int channel_connect(const char *path);

/* 0: sent.  -1: EAGAIN when the peer's queue is full, EPIPE when it is gone. */
int channel_send(int fd, const void *packet, size_t n, const int *fds, size_t n_fds);
/* Head and payload from two places. */
int channel_send2(int fd, const void *head, size_t head_n, const void *body, size_t body_n, const int *fds,
                  size_t n_fds);

/* Bytes of one packet; 0: the peer is gone; -1: EAGAIN, EMSGSIZE (it did not fit and was
 * dropped).  *n_fds says how many `ret_fds` holds and then how many came along (0 on failure);
 * those are the caller's, close-on-exec; more than it holds are closed.  Both may be NULL. */
ssize_t channel_recv(int fd, void *packet, size_t size, int *ret_fds, size_t *n_fds);

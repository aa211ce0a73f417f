/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* No delay for small writes, and a peer whose machine vanished is noticed after about a minute.
 * What is accepted inherits it from the listener.  Nothing is lost when it fails but that a dead
 * peer is seen later. */
enum { TCP_DEAD_MS = 60000 };
void tcp_tune(int fd);
/* How long the peer may leave bytes or probes unanswered. */
void tcp_set_dead_ms(int fd, unsigned ms);

/* The peer sees a reset in place of an orderly end, so that what came does not look whole. */
void tcp_reset_on_close(int fd);

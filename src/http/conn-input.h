/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include "http/conn.h"

/* What comes in on a connection, handed on to the parser, a sink or nobody.
 *
 * Bytes are read only while somebody wants them: `in` is empty whenever EPOLLIN is armed, so
 * it holds at most one read, and a sink that says "enough" stops the peer through TCP.
 * Called inside a turn (`busy`): none of these frees the connection. */
bool conn_wants_input(const HttpConn *c);
void conn_read_socket(HttpConn *c);
/* What an earlier read has left in `in`. */
void conn_feed_kept(HttpConn *c);

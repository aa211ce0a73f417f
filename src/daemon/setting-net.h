/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <glib.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <sys/socket.h>

/* The kinds of settings that name a place on a network.  Each takes a text and adds its
 * canonical form to `items`; false means that it is not one. */
bool net_parse_listen(const char *text, GPtrArray *items);
bool net_parse_host(const char *text, GPtrArray *items);
bool net_parse_origin(const char *text, GPtrArray *items);
bool net_parse_url(const char *text, const char *schemes, GPtrArray *items);
bool net_parse_database(const char *text, GPtrArray *items);

/* A canonical "127.0.0.1:8003" or "[::1]:8003". */
void net_address(const char *canonical, struct sockaddr_storage *ret_addr, socklen_t *ret_len);
/* The canonical form with another port. */
char *net_dup_with_port(const char *canonical, guint port);
guint net_port(const char *canonical);

/* The URL with stars in place of what may be secret: a password, a token, a query. */
char *net_dup_without_password(const char *url);

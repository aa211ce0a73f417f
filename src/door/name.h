/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <glib.h>
#include <stdbool.h>
#include <sys/socket.h>

/* The one form of a destination's name: everything that decides or connects takes this and
 * never the bytes that came. */
enum { DOOR_NAME_MAX = 253 };

typedef struct DoorName {
    char host[DOOR_NAME_MAX + 1]; /* lower case, no trailing dot; an address in its plain form */
    guint16 port;
    bool is_address; /* a strict dotted quad, or one in brackets; `address` is set */
    struct sockaddr_storage address;
} DoorName;

/* "host:port" of CONNECT; `default_port` 0: the port must be there.  ERR_INVALID names what is
 * wrong: control and non-ASCII characters, user info, odd spellings of addresses, empty or long
 * labels. */
bool door_name_read(const char *authority, guint16 default_port, DoorName *ret, GError **error);
/* "http://host[:port]/path?query" of a plain proxy request; `*ret_target` points into `uri` at
 * the path, "/" when there is none. */
bool door_name_read_uri(const char *uri, DoorName *ret, const char **ret_target, GError **error);

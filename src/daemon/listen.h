/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <glib.h>
#include <stdbool.h>

#include "daemon/config.h"

/* A listening TCP socket; -1 with an error that says what to do. */
int listen_tcp(const ConfigAddress *address, GError **error);

/* Where a browser on this machine finds what listens there: "http://127.0.0.1:8003", for a
 * wildcard address too. */
char *listen_url(int fd, GError **error);

/* A listening unix socket that only its owner can reach.  A stale file of the same name is
 * replaced: the caller holds the data folder's lock, so nobody listens there. */
int listen_unix(const char *path, GError **error);

/* Names that a browser may use for the addresses we were told to listen on, beside
 * localhost: NULL-terminated, to be freed with g_strfreev(). */
char **listen_host_names(const Config *config);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <glib.h>
#include <sys/socket.h>

#include "base/loop.h"

/* Names to addresses, by DNS alone: no search list, no files.  Private to this folder. */
typedef struct Resolver Resolver;
typedef struct Lookup Lookup;

enum { RESOLVER_LOOKUPS_MAX = 4096 };

/* `servers` as in DialerSpec; both borrowed, `loop` until resolver_free(). */
Resolver *resolver_new(Loop *loop, const char *servers, guint total_ms, GError **error);
void resolver_free(Resolver *resolver); /* no lookup's function is called any more */
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Resolver, resolver_free)

/* All addresses of the answer, v4 first; none with an error: ERR_NOT_FOUND, ERR_TIMEOUT,
 * ERR_UNAVAILABLE.  Valid during the call. */
typedef void (*LookupFunc)(const struct sockaddr_storage *addresses, guint n, const GError *error,
                           void *data);
/* `func` comes from the loop, never from inside this call. */
Lookup *resolver_look_up(Resolver *resolver, const char *host, LookupFunc func, void *data);
void lookup_cancel(Lookup *lookup);

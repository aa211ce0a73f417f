/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <glib.h>
#include <stdbool.h>

#include "base/loop.h"
#include "wire/record.h"

/* The server's end of the keeper's socket: requests with serials, answers with fds.  While the
 * keeper is away calls fail with ERR_UNAVAILABLE at once; the client tries again with a delay
 * that doubles up to a bound, and each time it gets through it says HELLO and LIST before
 * anything else.
 *
 * Callbacks run from the loop, never inside a call here. */
typedef struct KeeperClient KeeperClient;

typedef struct KeeperEvents {
    /* From a LIST: a box that lives.  The fds are the callee's; -1: not sent. */
    void (*box)(const KeeperAnswer *answer, const int fds[KEEPER_FDS], void *ctx);
    /* Ended by itself, or while nobody was connected. */
    void (*gone)(const KeeperAnswer *answer, void *ctx);
    /* The LIST is complete: what was not named does not live.  `hello` is the keeper's OK. */
    void (*listed)(const KeeperAnswer *hello, void *ctx);
    /* The connection broke, or the first could not be made: every call under way has failed with
     * ERR_UNAVAILABLE.  Not said again before the next `listed`. */
    void (*lost)(void *ctx);
    /* Any other record that nobody asked for; a BOX is one that a server before us asked for and
     * that came after the LIST. */
    void (*told)(const KeeperAnswer *answer, void *ctx);
} KeeperEvents;

typedef struct KeeperClientSpec {
    Loop *loop;         /* borrowed */
    const char *socket; /* path */
    KeeperEvents events;
    void *ctx;
} KeeperClientSpec;

KeeperClient *keeper_client_new(const KeeperClientSpec *spec); /* connects from the loop */
/* Calls under way fail with ERR_CANCELLED before it returns. */
void keeper_client_free(KeeperClient *client);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(KeeperClient, keeper_client_free)
bool keeper_client_is_ready(const KeeperClient *client); /* connected and LISTED */

/* `error` NULL: the answer that belongs to the verb; the fds of BOX are the callee's.  A FAILED
 * becomes an error whose kind follows from its errno (ERR_FULL: disk or memory; ERR_LIMIT: too
 * many; ERR_NOT_FOUND; …) and whose message names stage and reason. */
typedef void (*KeeperFunc)(const KeeperAnswer *answer, const int fds[KEEPER_FDS], const GError *error,
                           void *data);
/* The serial is set here.  `func` may be NULL.  ERR_LIMIT: too many under way. */
void keeper_client_call(KeeperClient *client, const KeeperRequest *request, KeeperFunc func, void *data);
/* With an fd, which is borrowed. */
void keeper_client_call_fd(KeeperClient *client, const KeeperRequest *request, int fd, KeeperFunc func,
                           void *data);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <glib.h>
#include <stdbool.h>
#include <sys/types.h>

/* A data folder that no server uses, visited by a command.
 *
 * Root works in it as its owner, as far as the kernel looks: what is made there belongs to
 * whoever runs the server, and no link in it leads further than that user could go.  Files
 * that were opened before stay open.  A folder that is not there is made, for the user that
 * a server would run as. */
typedef struct Visit {
    int lock_fd;
    uid_t uid; /* before, if it was changed */
    gid_t gid;
    bool changed;
} Visit;
#define VISIT_INIT                                                                                           \
    {                                                                                                        \
        .lock_fd = -1                                                                                        \
    }

/* ERR_CONFLICT: a server uses it. */
bool visit_begin(const char *home, Visit *ret_visit, GError **error);
void visit_end(Visit *visit);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Visit, visit_end)

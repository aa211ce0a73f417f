/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include "cli/remote.h"

/* One event as a line. */
void follow_show_event(Out *out, const Json *event);

/* Shows events as they come until the user or whoever reads us has enough, or `limit` of
 * them were shown (-1: no end).  A lost connection is made again and goes on behind the last
 * event that was seen. */
typedef struct FollowSpec {
    const char *path;
    gint64 limit;
    bool known; /* the server has answered before: it is waited for from the beginning */
    /* Shows one event; false: that was the last.  NULL: as a line. */
    bool (*show)(Out *out, const Json *event, void *ctx);
    void *ctx;
} FollowSpec;
ExitCode follow_run_as(Cli *cli, Remote *remote, const FollowSpec *spec);
ExitCode follow_run(Cli *cli, Remote *remote, const char *path, gint64 limit);

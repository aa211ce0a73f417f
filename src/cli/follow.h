/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include "cli/remote.h"

/* One event as a line. */
void follow_show_event(Out *out, const Json *event);

/* Shows events as they come until the user or whoever reads us has enough, or `limit` of
 * them were shown (-1: no end).  A lost connection is made again and goes on behind the last
 * event that was seen. */
ExitCode follow_run(Cli *cli, Remote *remote, const char *path, gint64 limit);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include "forge/row.h"
#include "forge/thread.h"
#include "team/team.h"

/* What is left of boxes: of those that failed, for a look; of tasks without a repository, the result.
 *
 * A row of kind "files" has an archive below HOME/kept, at `path`; one of kind "box" has a paused box.  As
 * JSON: the columns by name, and `agent`, `number` of the task.  Crew makes the rows, and lets them go at
 * their time. */

extern const RowTable kept_table; /* of "k" */

/* Of the table: a box may have ended before its time. */
#define KEPT_IS_THERE                                                                                        \
    "(kept.kind <> 'box' OR EXISTS (SELECT 1 FROM sandboxes b WHERE b.e2b_id = kept.box_id AND "             \
    "b.ended_us = 0))"

/* {"items": […], "total", "bytes", "bytes_max"}; `owner` NULL: everybody's. */
typedef struct KeptFilter {
    const char *owner, *task; /* id or number; NULL: of all */
    ForgePage page;
    gint64 bytes_max; /* filled in: what all archives may have */
} KeptFilter;
void kept_list(Team *team, const KeptFilter *filter, TeamJsonFunc done, void *data);
void kept_get(Team *team, const char *id, const char *owner, TeamJsonFunc done, void *data);
void kept_remove(Team *team, const char *id, const char *owner, TeamJsonFunc done, void *data);

/* What is below HOME/kept at a row's path; an fd to read, or -1. */
int kept_open(Team *team, const Json *row, GError **error);
/* One archive, or none any more. */
bool kept_remove_file(Team *team, const char *path, GError **error);

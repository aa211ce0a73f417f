/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include "team/crew-private.h"

/* A folder of a box as an archive; `path` is below the home.  NULL with an error: nothing is kept. */
typedef struct Archive Archive;
typedef void (*ArchiveFunc)(const char *path, guint64 bytes, const GError *error, void *data);
/* `id` is the row's.  `done` may run inside the call. */
void archive_start(Crew *crew, Box *box, const char *id, const char *path, ArchiveFunc done, void *data);

typedef struct KeptSpec {
    const char *id, *task_id, *execution_id, *box_id;
    const char *kind; /* files, box */
    const char *path; /* of files */
    gint64 bytes, keep_us;
} KeptSpec;
/* What has that id already stays as old as it was.  The oldest archives go where it needs room; `done` gets
 * no value. */
void kept_put(Crew *crew, const KeptSpec *kept, TeamJsonFunc done, void *data);
/* Its files could not be kept: it is told. */
void kept_failed(Crew *crew, const KeptSpec *kept, const GError *why);
/* Somebody works in it again. */
void kept_forget_box(Crew *crew, const char *box_id);

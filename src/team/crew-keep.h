/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include "team/crew-private.h"

/* A folder of a box as an archive; `path` is below the home.  NULL with an error: nothing is kept. */
typedef struct Archive Archive;
typedef void (*ArchiveFunc)(const char *id, const char *path, guint64 bytes, const GError *error, void *data);
/* `done` may run inside the call. */
void archive_start(Crew *crew, Box *box, const char *path, ArchiveFunc done, void *data);

typedef struct KeptSpec {
    const char *id, *task_id, *execution_id, *box_id;
    const char *kind; /* files, box */
    const char *path; /* of files */
    gint64 bytes, keep_us;
} KeptSpec;
void kept_put(Crew *crew, const KeptSpec *kept, TeamJsonFunc done, void *data);

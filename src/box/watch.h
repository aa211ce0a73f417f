/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include "box/files.h"

/* What changes below a folder of a box.  See wire/builtin.h for what is told and what is
 * not. */
typedef struct BoxWatch BoxWatch;

typedef struct BoxChange {
    BuiltinEventKind kind;
    bool directory;
    guint32 cookie;   /* of both halves of a move; 0: none */
    const char *path; /* below the folder, bytes; "": the folder itself */
} BoxChange;

typedef struct BoxWatchEvents {
    /* The first one is READY. */
    void (*change)(BoxWatch *watch, const BoxChange *change, void *ctx);
    /* Those that came together were told.  False: no more until box_watch_resume(). */
    bool (*pause)(BoxWatch *watch, void *ctx);
    /* Once; freed after it.  Never without an error: ERR_NOT_FOUND when the folder is gone. */
    void (*end)(BoxWatch *watch, const GError *error, void *ctx);
} BoxWatchEvents;

BoxWatch *box_watch(const BoxFileSpec *spec, const char *path, bool recursive, const BoxWatchEvents *events,
                    void *ctx, GError **error);
void box_watch_resume(BoxWatch *watch);
void box_watch_cancel(BoxWatch *watch); /* no event any more */

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <glib.h>

#include "store/db.h"

/* Refused keys and origins become events, so that a person sees who knocks; but whoever
 * knocks must not be able to fill the log.  The first refusal of a kind from an address is
 * written at once; those that follow are counted and written as one each REFUSAL_QUIET_S, so
 * that the counts of all events add up to what was refused. */
enum { REFUSAL_QUIET_S = 10, REFUSAL_SOURCES_MAX = 256 };

typedef struct RefusalLog RefusalLog;

RefusalLog *refusal_log_new(Db *db);
void refusal_log_free(RefusalLog *log);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(RefusalLog, refusal_log_free)

typedef struct Refusal {
    const char *kind;    /* "key.refused" or "origin.refused" */
    const char *address; /* "" for the control socket */
    const char *method, *path;
    const char *why;
    const char *origin; /* NULL: does not apply */
} Refusal;

void refusal_note(RefusalLog *log, const Refusal *refusal);
/* Writes what is held back, for the end. */
void refusal_flush(RefusalLog *log);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include "forge/forge.h"

/* The objects of a repository as they were at one moment, for boxes to read.
 *
 *     HOME/generations/ID/objects/pack/…   hard links of the repository's packs
 *     HOME/generations/ID/objects/info/…   their list, and the commit-graph where there is one
 *
 * Links keep the files: a repack in the repository takes none from under a box.  Nothing in the folder
 * is ever changed.  A row says that there is one before there is a folder, and the folder gets its name
 * only when it is whole; so what a server that was killed left is either used or removed by the next.
 * One goes when a newer one is there and no box has it. */
typedef struct Generations Generations;

enum {
    GENERATION_ID_LEN = 32,       /* hex digits */
    GENERATION_QUIET_MS = 2000,   /* without a push before one is made */
    GENERATION_DELAY_MS = 30000,  /* however often there are pushes */
    GENERATION_REFS_MAX = 100000, /* in its list of refs */
};

/* Made by forge_new(), loaded after the repositories, freed by forge_free(). */
Generations *generations_new(Forge *forge, const ForgeSpec *spec);
void generations_load(Generations *all, DbDone done, void *data);
void generations_free(Generations *all);

typedef struct Generation {
    char *id;
    char *repository_id;
    GHashTable *tips; /* full name of a branch or tag -> oid; their objects are in it */
    gint64 created_us;
    guint64 bytes;
    guint leases; /* boxes that have it */
} Generation;

/* Something was pushed, merged or fetched: one more generation soon.  For whoever moves refs. */
void generation_refs_moved(Forge *forge, Repo *repo);

/* The newest one with a lease, to be given back; made first if there is none.  `generation` is
 * borrowed, and stays while the lease does; NULL: the error says why not.  `done` may run inside the
 * call. */
typedef void (*GenerationFunc)(const Generation *generation, const GError *error, void *data);
void generation_take(Forge *forge, Repo *repo, GenerationFunc done, void *data);
void generation_release(Forge *forge, const char *id);
/* One more lease, for a row that was found; NULL: there is no such one any more. */
const Generation *generation_retake(Forge *forge, const char *id);
/* All leases that rows have were taken again: what is left over goes. */
void generation_settle(Forge *forge);
/* The repository is no more. */
void generation_repo_gone(Forge *forge, const char *repository_id);

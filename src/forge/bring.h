/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include "forge/git.h"

/* Bringing branches and tags from elsewhere into a repository.  Everything here blocks: it is for
 * the forge's threads. */

enum {
    BRING_TIMEOUT_MS = 6 * 3600 * 1000,
    BRING_REFS_MAX = 100 * 1000,
    BRING_LIST_MAX = 32 << 20, /* bytes of a list of refs */
};

typedef struct Bring {
    const char *source;      /* a folder of git's, or a URL without credentials */
    const char *credentials; /* "user:password"; NULL: none */
    const char *branch;      /* the default one as asked for; "": as the source has it */
    bool mirror;
    const gint *cancel;
    guint64 size_max; /* bytes of the pack; beyond: ERR_LIMIT; 0: as usual */
    gint percent;     /* atomic, for whoever watches */
    /* What came of it. */
    char *head; /* the default branch; owned */
    guint moved, removed;
    guint left_out;  /* branches whose names are not allowed here */
    guint kept_back; /* branches of a mirror that have commits of their own here */
} Bring;

void bring_clear(Bring *bring);

/* One commit to one branch elsewhere, only forward: ERR_CONFLICT when that has gone another way. */
typedef struct BringPush {
    const char *url;         /* without credentials */
    const char *credentials; /* "user:password"; NULL: none */
    const char *oid, *branch;
    const gint *cancel;
} BringPush;
bool bring_push(GitRepo *git, const BringPush *push, GError **error);

bool bring_from_folder(GitRepo *git, Bring *bring, const GitHostSpec *host, GError **error);
/* The first time, and every time for a mirror: only what is not here is sent. */
bool bring_from_url(GitRepo *git, Bring *bring, GError **error);

/* ---- for the files behind it ---- */

/* How git tells them (GitCall.config); NULL where there are none. */
char *bring_config(const char *credentials);
/* Takes them out of what git said: the other side may have said them.  False. */
bool bring_failed(const char *credentials, GError **error);

/* ERR_LIMIT: more has come than may.  False. */
bool bring_too_big(const Bring *bring, GError **error);

/* How far `line` of git's progress says it is; the steps' shares of the whole are in one table. */
void bring_progress(const char *line, void *bring);
/* What old histories are full of and cannot hurt; as the value of --strict. */
extern const char bring_fsck[];
/* "oid name" of every ref below `prefix`, into `ret_refs` (name -> oid). */
bool
bring_list_refs(GitRepo *git, const char *prefix, const gint *cancel, GHashTable **ret_refs, GError **error);
/* Points HEAD to the default branch. */
bool bring_set_head(GitRepo *git, Bring *bring, const char *found, GError **error);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <glib.h>
#include <stdbool.h>

#include "base/loop.h"
#include "box/host.h"
#include "forge/git.h"
#include "store/db.h"
#include "store/events.h"
#include "json/json.h"

/* Repositories with pull requests, checks and a merge queue.
 *
 * What is asked of git blocks, so it runs in the forge's own threads: reads side by side, writes of
 * one repository one after the other, in the order they came.  Rows and events are written from the
 * loop (db_write).  Whatever is done in several steps is a row first: a server that was killed reads
 * the rows, looks at the refs, and finishes or takes back what it finds. */
typedef struct Forge Forge;
typedef struct Repo Repo;

enum {
    FORGE_THREADS = 4,
    FORGE_QUEUE_MAX = 1024, /* pieces of work waiting, in all; beyond: ERR_LIMIT */
    FORGE_TRIES = 4,
    REPO_NAME_MAX = 100,
};

typedef struct ForgeSpec {
    Loop *loop; /* borrowed, as are the next three */
    Db *db;
    EventLog *events;
    BoxHost *boxes;           /* NULL: no boxes, so no checks */
    const char *home;         /* repositories are below HOME/repos, generations below HOME/generations */
    const char *address;      /* of the server, as a URL: links begin with it */
    const char *git;          /* path of coop-git */
    const char *hooks;        /* folder with the hook of pushes */
    const char *agent_prefix; /* of agents' names: GITHUB_AGENT_PREFIX */
    gint64 mirror_ms;         /* how often mirrors are fetched; 0: as usual */
    guint64 fetch_max;        /* bytes of one import or fetch; 0: as usual */
} ForgeSpec;

Forge *forge_new(const ForgeSpec *spec);
/* Reads the rows and settles what was under way; `done` when the forge can be used.  Once more when a
 * backup was restored. */
void forge_load(Forge *forge, DbDone done, void *data);
void forge_free(Forge *forge); /* waits for what its threads do; what waits is cancelled */
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Forge, forge_free)

/* ---- repositories ---- */

Repo *repo_ref(Repo *repo);
void repo_unref(Repo *repo);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Repo, repo_unref)

typedef struct RepoInfo {
    const char *id; /* UUID: the folder's name, and what other rows name */
    const char *owner, *name;
    const char *default_branch;
    const char *description; /* "" : none */
    const char *upstream;    /* URL of what it mirrors, without credentials; NULL: none */
    const char *state;       /* importing, ready, failed, removing */
    const char *problem;     /* of failed; else NULL */
    gint64 number;           /* for faces that want one */
    gint64 created_us, pushed_us;
    guint64 bytes;
} RepoInfo;
void repo_info(const Repo *repo, RepoInfo *ret_info);
GitRepo *repo_git(Repo *repo); /* borrowed */

Repo *forge_find(Forge *forge, const char *owner, const char *name); /* borrowed; NULL: none.  Any case. */
Repo *forge_find_id(Forge *forge, const char *id);
void forge_each(Forge *forge, void (*func)(Repo *repo, void *data), void *data);

/* "user:password" for a mirror's upstream; to be wiped.  NULL: none.  On the loop. */
typedef char *(*ForgeCredentials)(const char *url, void *ctx);
/* Who knows them; NULL: nobody any more. */
void forge_set_credentials(Forge *forge, ForgeCredentials find, void *ctx);

/* ---- work ---- */

typedef bool (*ForgeWork)(GitRepo *git, void *data, GError **error);

/* `work` in a thread, then `done` (may be NULL) on the loop, then `destroy`.  `what` is for people: it
 * is shown in the queue ("merge #7").  Failures that pass by themselves (a stale lock, a full
 * queue of processes) are tried again, FORGE_TRIES in all: `work` is then called anew, so it begins by
 * dropping what it left in `data`.  Neither runs inside these calls.  After the server was killed
 * nothing of it is tried again: what must not be lost is a row first. */
void forge_read(Forge *forge, Repo *repo, const char *what, ForgeWork work, DbDone done, void *data,
                GDestroyNotify destroy);
void forge_write(Forge *forge, Repo *repo, const char *what, ForgeWork work, DbDone done, void *data,
                 GDestroyNotify destroy);

/* A git that is no such work (a push, a client's fetch) is in the repository, until it leaves. */
void repo_enter(Repo *repo);
void repo_leave(Repo *repo);

/* Not 0 once the forge is being freed: for GitCall.cancel of what takes long. */
const gint *forge_cancel(Forge *forge);

/* What waits and what is under way: [{repository, what, state, waiting_ms, tries}]. */
Json *forge_queue_json(Forge *forge);

typedef struct ForgeStats {
    guint repositories;
    guint waiting, running;            /* pieces of work */
    guint64 done, failed, tried_again; /* since the start */
} ForgeStats;
void forge_stats(Forge *forge, ForgeStats *ret_stats);

/* What the other files of the forge and its faces answer with; `value` is borrowed, NULL with an
 * error. */
typedef void (*ForgeJsonFunc)(Json *value, const GError *error, void *data);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include "forge/forge.h"
#include "forge/generation.h"
#include "forge/identity.h"
#include "forge/landing.h"
#include "forge/pull.h"
#include "forge/repo.h"
#include "forge/smart.h"
#include "forge/work.h"
#include "forge/workspace.h"

/* What the files of this folder share; nobody outside includes it. */

/* Each of its repositories holds it, so that what a write under way calls back finds it; after
 * forge_free() work is refused and the tables are empty. */
struct Forge {
    gatomicrefcount refs;
    ForgeSpec spec;               /* its strings are ours */
    char *repos;                  /* HOME/repos */
    WorkQueue *work;              /* NULL: freed */
    GitHolder *holder;            /* NULL: no boxes, so no keeper */
    Smart *smart;                 /* NULL: freed */
    GArray *push_listeners;       /* ForgePushListener */
    GHashTable *by_id;            /* id -> Repo, owned */
    GHashTable *by_name;          /* "owner/name" in lower case -> Repo, borrowed from by_id */
    ForgeCredentials credentials; /* NULL: none are known */
    void *credentials_ctx;
    gint64 last_number;
    guint upkeep_source;
    Pulls *pulls; /* NULL: ended */
    /* NULL: freed */
    Generations *generations;
    Identities *identities;
    Workspaces *workspaces;
    Landings *landings; /* borrowed; NULL: none */
    DbDone loaded;      /* NULL: is loaded */
    void *loaded_data;
};

/* Loop only; threads get its GitRepo. */
struct Repo {
    LoopTimer upkeep; /* first: the loop hands back its address */
    Forge *forge;     /* borrowed: whoever holds a repository has ended by then */
    guint refs;
    char *id, *owner, *name, *folded;
    char *default_branch, *description, *actor;
    char *source, *upstream; /* NULL: none */
    char *problem;           /* of REPO_FAILED; else NULL */
    bool insecure;
    bool first_commit; /* to be made; asked for in this life only */
    RepoState state;
    bool arriving; /* its row says ready, and is being written: nobody is told before it is */
    gint64 number, created_us, pushed_us, fetched_us, packed_us;
    gint64 tried_us; /* a fetch, by the clock */
    guint64 bytes;
    gint cancel; /* atomic; 1: whatever is under way in it shall end */
    GitRepo *git;
    gint percent;  /* of what is brought here; -1: nothing is */
    bool fetching; /* is waiting or under way, as is the next */
    bool upkeeping;
    bool changed; /* since the upkeep began */
};

/* ---- repo.c, repo-names.c ---- */

Repo *repo_new(Forge *forge, const char *id, const char *owner, const char *name);
char *repo_fold(const char *owner, const char *name);
RepoState repo_state_parse(const char *name);
/* `problem` is of REPO_FAILED. */
void repo_set_state(Repo *repo, RepoState state, const GError *problem);

/* ---- repo-rows.c ---- */

/* Repo* of every row, in the order of their numbers, into the forge's tables. */
void repo_rows_load(Forge *forge, DbDone done, void *data);

/* An event that goes with a change; `data` is taken, and gets the repository's id and name. */
typedef struct RepoEvent {
    const char *kind; /* NULL: none */
    const char *actor;
    Json *data;
} RepoEvent;

/* The row as the repository is at this moment; `done` may be NULL. */
void repo_rows_add(Repo *repo, const RepoEvent *event, DbDone done, void *data);
void repo_rows_update(Repo *repo, const RepoEvent *event, DbDone done, void *data);
void repo_rows_delete(Repo *repo, const RepoEvent *event, DbDone done, void *data);
/* One that was being imported is ready, and says so once the row is written. */
void repo_rows_arrive(Repo *repo, const RepoEvent *event, DbDone done, void *data);

/* The event alone. */
void repo_tell(Repo *repo, const RepoEvent *event);

/* ---- forge.c ---- */

Forge *forge_ref(Forge *forge);
void forge_unref(Forge *forge);
typedef Forge ForgeRef;
G_DEFINE_AUTOPTR_CLEANUP_FUNC(ForgeRef, forge_unref)

/* Whoever waits for forge_load(), if anybody still does. */
void forge_loaded(Forge *forge, const GError *error);

void forge_add_repo(Forge *forge, Repo *repo); /* takes it */
void forge_drop_repo(Forge *forge, Repo *repo);

/* As forge_write(), with a share of the threads. */
void forge_write_slow(Forge *forge, Repo *repo, const char *what, ForgeWork work, DbDone done, void *data,
                      GDestroyNotify destroy);

/* ---- repo-make.c, repo-import.c, repo-remove.c: also for what a killed server left ---- */

bool repo_init_folder(GitRepo *git, const char *branch, GError **error); /* blocks */
void repo_make(Repo *repo, DbDone done, void *data);
void repo_import(Repo *repo, const char *credentials);
/* Of one whose row says `removing`, or whose row nobody needs. */
void repo_remove_marked(Repo *repo, const char *actor, DbDone done, void *data);
extern const char repo_removed_suffix[]; /* of a folder behind its id */

/* ---- repo-source.c ---- */

/* Whether it may be imported from there, as far as its form goes; without its credentials, which are
 * a text of their own, "user:password", or NULL. */
bool repo_source_check(const RepoSpec *spec, char **ret_source, char **ret_credentials, GError **error);
/* Blocks.  The folder git works with: `path` itself or its `.git`; NULL if it must not be taken. */
char *repo_source_find_folder(const char *path, GError **error);
bool repo_source_is_url(const char *source);
void repo_wipe(char *secret); /* and frees it */

/* ---- repo-upkeep.c ---- */

void repo_on_upkeep(LoopTimer *timer);
/* Something in it has changed. */
void repo_upkeep_soon(Repo *repo);
void repo_upkeep_begin(Forge *forge);
void repo_upkeep_end(Forge *forge);

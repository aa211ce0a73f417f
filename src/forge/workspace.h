/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include "box/box.h"
#include "forge/forge.h"

/* What boxes have of repositories: a work tree each, and one branch that they may push to.
 *
 * The rows are in memory from forge_load() on, and are of boxes that live: what comes from a box
 * through the door is judged by its row alone, never by what it says. */
typedef struct Workspaces Workspaces;

enum {
    WORKSPACE_PATH_MAX = 1024,
    WORKSPACES_PER_BOX = 16,
    WORKSPACE_PATTERN_MAX = 100,
};

/* Made by forge_new(), loaded after generations and identities, freed by forge_free(). */
Workspaces *workspaces_new(Forge *forge, const ForgeSpec *spec);
void workspaces_load(Workspaces *all, DbDone done, void *data);
void workspaces_free(Workspaces *all);

typedef struct Workspace {
    char *box_id;
    char *repository_id;
    char *generation_id; /* NULL: the objects were fetched */
    char *identity_id;   /* NULL: none; its commits are not signed */
    char *branch;        /* without refs/heads/: the one it may push to */
    char *path;          /* of the work tree, in the box */
    bool may_force;      /* on that branch */
    bool may_advance;    /* an admin gave it, although it is protected */
    bool cloning;        /* its files are not all there: a clone goes on, or was cut short */
    gint64 created_us;
} Workspace;

/* Borrowed until the loop turns; NULL: the box has none of it.  `repo` NULL: the one it has, or the
 * first. */
const Workspace *workspace_find(Forge *forge, const char *box_id, const Repo *repo);
/* The one that the box has; NULL: it has none, or several. */
const Workspace *workspace_only(Forge *forge, const char *box_id);
/* The one to work in: that of `repo`, or with NULL the only one.  NULL with ERR_NOT_FOUND: there is none;
 * ERR_INVALID, which names them: several; ERR_CONFLICT: its clone was cut short. */
const Workspace *workspace_pick(Forge *forge, const char *box_id, const Repo *repo, GError **error);
void workspace_each(Forge *forge, const char *box_id, void (*func)(const Workspace *, void *), void *data);

/* ERR_CONFLICT, which names them: boxes have work trees of it. */
bool workspace_require_none(Forge *forge, const Repo *repo, GError **error);
/* The repository is no more; its rows are gone. */
void workspace_repo_gone(Forge *forge, const char *repository_id);

/* ---- branches ---- */

/* The name a branch gets: "{id}", "{role}", "{n}" and "{slug}" in a pattern are filled in. */
typedef struct BranchName {
    const char *pattern; /* NULL: WORKSPACE_BRANCH, and WORKSPACE_STEP with a role */
    const char *id, *role, *slug;
    guint n;
} BranchName;
#define WORKSPACE_BRANCH "task-{id}"
#define WORKSPACE_STEP "--{role}-{n}" /* behind a pattern that knows no roles */
#define WORKSPACE_FEATURE_BRANCH "feature/{id}-{slug}"
/* NULL with ERR_INVALID: a word of the pattern has no value, or the result is no name for a branch. */
char *workspace_branch_name(const BranchName *name, GError **error);
/* Lower-case letters and digits with single dashes, at most 40 of them, from any title. */
char *workspace_slug(const char *title);

/* ---- what can be done ---- */

typedef struct CloneSpec {
    Repo *repo;
    const char *branch; /* its own; NULL: made for `task`, else "box-{id of the box}" */
    const BranchName *task;
    const char *base;     /* branch or commit that a new one starts from; NULL: the default branch */
    const char *path;     /* NULL: NAME in the box's home folder */
    const char *identity; /* id or name; NULL: the box's agent's, or none */
    bool may_force;
    bool is_admin; /* a protected branch is theirs alone to give: else ERR_DENIED */
    const char *actor;
} CloneSpec;

/* `done` may run inside the call.  Values are what the API shows. */
void workspace_clone(Forge *forge, Box *box, const CloneSpec *spec, ForgeJsonFunc done, void *data);
/* Another branch for the box's work tree: made in the repository (from `base`, or where the work tree's
 * own is), checked out in the box. */
void workspace_branch(Forge *forge, Box *box, const CloneSpec *spec, ForgeJsonFunc done, void *data);

typedef struct CommitSpec {
    Repo *repo;               /* NULL: the one it has */
    const char *message;      /* NULL: written from the diff */
    const char *const *paths; /* NULL: everything that changed */
    const char *actor;
} CommitSpec;
void workspace_commit(Forge *forge, Box *box, const CommitSpec *spec, ForgeJsonFunc done, void *data);
void workspace_push(Forge *forge, Box *box, Repo *repo, const char *actor, ForgeJsonFunc done, void *data);

/* ---- what comes through the door ---- */

/* `commit` is a commit object without its signature, from the box's git; the answer is the armoured
 * SSH signature by the identity whose e-mail its author and committer have.  ERR_DENIED otherwise. */
char *workspace_sign(Forge *forge, const char *box_id, const void *commit, size_t n, GError **error);

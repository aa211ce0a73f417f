/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include "forge/box-call.h"
#include "forge/generation.h"
#include "forge/identity.h"
#include "forge/workspace.h"

/* What the files workspace*.c share. */

enum {
    WORKSPACE_HELPER_MAX = 4 << 20, /* bytes of the program that goes with a clone */
};

void workspace_free(Workspace *workspace);
Workspace *workspace_dup(const Workspace *from);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Workspace, workspace_free)

/* In memory at once; `done` when the row is on the disk, with `event` (NULL: none; its data is taken). */
typedef struct WorkspaceEvent {
    const char *kind;
    const char *actor;
    Json *data;
} WorkspaceEvent;
/* Takes the place of what the box had of this repository. */
void
workspace_put(Forge *forge, const Workspace *workspace, const WorkspaceEvent *event, DbDone done, void *data);
/* Gives its lease back. */
void workspace_drop(Forge *forge, const char *box_id, const char *repository_id);

/* A branch was made for a box: whoever follows the repository learns of it. */
typedef struct BranchMade {
    const char *actor, *box_id, *branch, *oid;
} BranchMade;
void workspace_branch_made(Forge *forge, Repo *repo, const BranchMade *made);

/* ---- workspace-rows.c ---- */

/* The disk's side of put and drop.  `done` NULL: nobody waits. */
void workspace_row_put(Forge *forge, const Workspace *workspace, const WorkspaceEvent *event, DbDone done,
                       void *data);
void workspace_row_delete(Forge *forge, const Workspace *workspace);
void workspace_tell(Forge *forge, const char *box_id, const char *repository_id, const WorkspaceEvent *event);
/* Of boxes that have ended nothing is left. */
bool workspace_rows_load(DbTx *tx, GPtrArray *found, GError **error);

/* ---- workspace.c ---- */

/* One thing at a time for each box: false with ERR_CONFLICT while another goes on. */
bool workspace_begin(Forge *forge, const char *box_id, GError **error);
void workspace_end(Forge *forge, const char *box_id);

/* The program that signs and checks messages in a box, as it is; NULL: there is none. */
GBytes *workspace_helper(Forge *forge);

/* ---- workspace-guard.c ---- */

typedef struct BranchWish {
    const char *branch;     /* NULL: made for `task` */
    const BranchName *task; /* NULL: none */
    bool is_admin;
} BranchWish;
typedef struct BranchGiven {
    const char *branch;
    bool is_protected;
} BranchGiven;
/* From the loop; `given` NULL: an error.  ERR_DENIED: it is protected, and whoever wishes it is no
 * admin. */
typedef void (*WorkspaceGuardFunc)(const BranchGiven *given, const GError *error, void *data);
void
workspace_guard(Forge *forge, const Repo *repo, const BranchWish *wish, WorkspaceGuardFunc done, void *data);

/* ---- workspace-op.c ---- */

/* One thing that is done in a work tree, from its beginning to its answer. */
typedef struct Op {
    Forge *forge;
    Box *box;
    Repo *repo;
    const char *name; /* of the operation, for events */
    char *actor, *box_id;
    Workspace *workspace; /* as it was */
    char *branch, *base;
    char *message; /* of a commit, if it was written here */
    char oid[GIT_OID_LEN + 1];
    bool branch_made, may_advance;
    bool idle; /* there was nothing to do, which is no failure to tell of */
    gint64 began_us;
    ForgeJsonFunc done;
    void *data;
} Op;
Op *op_new(Forge *forge, Box *box, const char *name, const char *actor, ForgeJsonFunc done, void *data);
void op_free(Op *op);
/* False: answered, and the operation is no more. */
bool op_begin(Op *op, const Repo *repo);
/* Takes `value`; NULL without an error: the server is stopping. */
void op_end(Op *op, Json *value, const GError *error);
void op_run(Op *op, const char *const *argv, const char *input, BoxCallFunc done);
Json *op_result(const Op *op, const char *oid);

/* ---- workspace-changes.c ---- */

/* DiffFile of what `git diff --shortstat`, `--name-status` and `--numstat` say, one after the other, in
 * a box's own words: nothing of it is believed.  `*ret_more`: how many are left out. */
GPtrArray *workspace_changes_parse(const char *text, guint *ret_more);

/* ---- workspace-seed.c ---- */

typedef struct Seed {
    const char *owner, *name; /* of the repository */
    const char *branch;
    const char *oid; /* that it is at */
    const char *path;
    const Generation *generation; /* NULL: nothing is attached */
    const Identity *identity;     /* NULL: none */
    GBytes *helper;               /* NULL: none */
} Seed;
/* Its commit is known to be in the generation; else it has to be fetched, and the branch is unborn. */
bool seed_has_commit(const Seed *seed);
/* An archive of what .git is before the first checkout. */
GBytes *seed_make(const Seed *seed, GError **error);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include "box/files.h"
#include "forge/workspace-private.h"

/* A clone under way: workspace-clone.c begins and ends it, workspace-write.c puts it into the box. */

typedef struct Clone {
    Forge *forge;
    Box *box;
    Repo *repo;
    char *actor, *box_id, *repository_id, *owner, *name;
    char *branch, *base, *path, *identity_id;
    bool may_force, may_advance;
    guint waiting; /* steps under way */
    GError *error; /* the first */

    const Generation *generation; /* leased; NULL: none */
    char *generation_id;          /* its own copy: the forge may be freed meanwhile */
    char *without;                /* why there is none */
    bool has_row;
    bool has_place, made_place; /* the folder was empty; it was not there before */
    Workspace *left;            /* of a clone that was cut short; NULL: none */
    Json *value;                /* the answer, while the row is written */
    char oid[GIT_OID_LEN + 1];
    bool branch_made;
    BoxWrite *write;
    GBytes *seed;
    gsize seed_at;
    gint64 began_us;
    ForgeJsonFunc done;
    void *data;
} Clone;

/* The first error is the one that counts. */
void clone_fail(Clone *c, const GError *error);
/* A step has ended, perhaps because the forge has. */
bool clone_goes_on(Clone *c);
/* The answer is `c->value`; with an error what was made is taken back. */
void clone_finish(Clone *c);
/* A command of ours in the box has ended; false: not as it should, and the clone has. */
bool clone_step(Clone *c, const char *what, int code, const char *err, const GError *error);

/* Place, branch and objects are there: .git, the row and the files are next. */
void clone_write(Clone *c);

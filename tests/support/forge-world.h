/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include "forge/forge.h"
#include "support/forge-rows.h"
#include "support/git-world.h"

/* A forge with one real repository in it, "coop/widget", whose main has one commit. */
typedef struct ForgeWorld {
    StoreBench *bench;
    Loop *loop;
    Forge *forge;
    Repo *repo;
    GitWorld git; /* borrows the repository's */
    char *root;   /* the first commit of main: the file "a" with five lines */
    /* Between forge_new() and forge_load(), each time; NULL: nothing. */
    void (*made)(struct ForgeWorld *world);
    void *ctx;
} ForgeWorld;

ForgeWorld *forge_world_new(void (*made)(ForgeWorld *world), void *ctx);
void forge_world_free(ForgeWorld *world);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(ForgeWorld, forge_world_free)

/* As a server that ends, and the next one. */
void forge_world_stop(ForgeWorld *world);
void forge_world_load(ForgeWorld *world);

/* A commit with one file, and its push by somebody: the branch moves, and it is told. */
char *forge_world_push(ForgeWorld *world, const char *branch, const char *file, const char *text,
                       const char *parent);
/* The same with all that the parent has; the first alone moves nothing. */
char *forge_world_commit(ForgeWorld *world, const char *file, const char *text, const char *parent);
char *forge_world_change(ForgeWorld *world, const char *branch, const char *file, const char *text,
                         const char *parent);
void forge_world_move(ForgeWorld *world, const char *branch, const char *oid);
/* A pull request of `head` into main. */
gint64 forge_world_pull(ForgeWorld *world, const char *head);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <glib.h>

#include "forge/git.h"

/* A bare repository in a folder of its own, and the real coop-git ($COOP_GIT) on it. */
typedef struct GitWorld {
    char *dir;  /* everything is below */
    char *path; /* dir/repo.git */
    GitRepo *repo;
} GitWorld;

GitWorld *git_world_new(void);
void git_world_free(GitWorld *world);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(GitWorld, git_world_free)

char *git_world_file(const GitWorld *world, const char *name); /* dir/name */
void git_world_write(const GitWorld *world, const char *name, const char *text);

/* Each must work. */
char *git_world_text(const GitWorld *world, GitAccess access, const char *const *args);
char *git_world_blob(const GitWorld *world, const char *text);
/* A commit whose tree is the one file; `parent` NULL: none. */
char *git_world_commit(const GitWorld *world, const char *file, const char *text, const char *parent);
/* The same as the first commit of refs/heads/`branch`. */
char *git_world_branch(const GitWorld *world, const char *branch, const char *file, const char *text);

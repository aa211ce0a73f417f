/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include "forge/forge.h"
#include "team/flow-private.h"

/* What the workflow does to the branch of a task: by Coop, in the threads of the forge, told of as a push
 * is.  Each looks first whether it was done. */
typedef struct FlowGit {
    FlowTask *t; /* the action */
    Repo *repo;  /* a reference */
    char *branch;
    char *base;     /* a commit: where a new branch starts, what is merged */
    char *message;  /* of a commit that is made */
    char *path;     /* of the plan */
    char *text;     /* NULL: it is taken out */
    gint64 time_s;  /* of commits: from a row, so that doing it again makes the same */
    bool may_begin; /* the repository, where it is empty and nobody's mirror */
    /* The answer. */
    char old[GIT_OID_LEN + 1], new[GIT_OID_LEN + 1]; /* equal: nothing was moved */
    bool foreign;                                    /* the branch is somebody else's */
    Json *conflict;                                  /* the bundle; NULL: none */
    void (*then)(struct FlowGit *git);               /* once rows say what refs say */
} FlowGit;

FlowGit *flow_git_new(FlowTask *t, void (*then)(FlowGit *git), GError **error);
void flow_git_free(FlowGit *git);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(FlowGit, flow_git_free)
/* Runs `work`, tells of the move, and calls then(); a failure is flow_problem(), and `git` is freed. */
void flow_git_run(FlowGit *git, const char *what, ForgeWork work);

/* Where the branch is; an empty repository gets its first commit there. */
bool flow_git_base(GitRepo *repo, void *git, GError **error);
/* The branch with its first commit: the plan. */
bool flow_git_plan(GitRepo *repo, void *git, GError **error);
/* The plan out of the branch. */
bool flow_git_unplan(GitRepo *repo, void *git, GError **error);
/* `base` into the branch; where it cannot be, its bundle. */
bool flow_git_join(GitRepo *repo, void *git, GError **error);

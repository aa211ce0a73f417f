/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include "forge/git.h"
#include "forge/repo-settings.h"

/* A branch or tag that is moved because somebody asks for it without a push: the rules of pushes hold.  A
 * protected branch is moved forward, and made, by who may; the default one, which cannot be removed, is
 * made by whoever is first.  None is moved back or removed. */
typedef struct RefMove {
    const char *ref; /* in full, below refs/heads/ or refs/tags/ */
    const char *old; /* where it has to be: ERR_CONFLICT; git_oid_zero: nowhere; NULL: it has to exist */
    const char *new; /* git_oid_zero: it is removed */
    bool force;      /* may be moved to what does not contain `old` */
    bool may_advance;
    const RepoSettings *settings;
    const char *default_branch;
    const char *why; /* for the reflog */
} RefMove;

/* Blocks.  Where it was is in `ret_old`.  ERR_DENIED, ERR_NOT_FOUND, ERR_CONFLICT; ERR_INVALID: a name that
 * may not be, no such commit, no way forward.  The caller tells of it (push.h). */
bool ref_move(GitRepo *git, const RefMove *move, char ret_old[GIT_OID_LEN + 1], GError **error);

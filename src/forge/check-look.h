/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include "forge/check-plan.h"
#include "forge/git.h"

/* What git knows about a suite before a box is made. */
typedef struct CheckLook {
    const char *base_oid, *head_oid; /* given */
    char tree[GIT_OID_LEN + 1];
    gint64 time_s; /* of the head */
    char *links;   /* its submodules: "160000 OID\tPATH" lines, as update-index reads them */
    /* NULL: the repository has no checks, or `problem` is wrong with them. */
    CheckPlan *plan;
    bool from_head; /* the base has none, so what the head has counts */
    char *problem;
} CheckLook;
void check_look_clear(CheckLook *look);

/* Blocks.  An error is git's; what the repository says wrongly is its `problem`. */
bool check_look(GitRepo *git, CheckLook *look, GError **error);

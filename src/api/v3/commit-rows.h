/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include "api/v3/v3.h"
#include "forge/git.h"

/* Calls on what is known of a commit: the commit is found by git first, then the rows are asked.  The first
 * member of a route's own struct. */
typedef struct V3OnCommit V3OnCommit;
struct V3OnCommit {
    V3Work work;
    const char *ref;
    char oid[GIT_OID_LEN + 1];
    /* On the loop, with `oid`: asks the rows, with v3_on_commit_rows() to be called behind that. */
    void (*ask)(V3OnCommit *on);
    Json *(*render)(const V3Place *place, const V3OnCommit *on, const Json *value);
};
/* For who reports: the struct's spec borrows from `body`, and the answer is 201. */
void v3_on_commit_report(V3OnCommit *on, Json *body);
/* Takes `on`.  A commit that is not there is 422, as GitHub has it. */
void v3_on_commit_begin(V3OnCommit *on);
/* A ForgeJsonFunc; `data` is the struct. */
void v3_on_commit_rows(Json *value, const GError *error, void *data);

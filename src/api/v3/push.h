/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include "api/v3/v3.h"
#include "forge/git.h"
#include "forge/merge.h"

/* Work that moves a branch or a tag: what moved is written down as a push before the answer.  The first
 * member of a route's own struct. */
typedef struct V3Push {
    V3Work work;
    char *ref;                                               /* in full; a text of the work */
    char old_oid[GIT_OID_LEN + 1], new_oid[GIT_OID_LEN + 1]; /* "": it has not moved */
} V3Push;

/* Takes `push`.  `func` moves the ref with v3_push_move(). */
void v3_push_begin(V3Push *push, const char *what, V3WorkFunc func);

typedef struct V3Move {
    const char *old, *new; /* as of RefMove */
    bool force;
} V3Move;
/* In a thread: under the rules of pushes. */
bool v3_push_move(GitRepo *git, V3Push *push, const V3Move *move, GError **error);

/* Who makes a commit: what `person` says, {"name", "email", "date"}, or whoever calls.  Strings are the
 * work's.  In a thread. */
bool v3_person_read(V3Work *work, const Json *person, MergePerson *ret_person, GError **error);

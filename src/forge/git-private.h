/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include "forge/git.h"

enum { GIT_FACTS_MAX = 64 };

/* What is true of two objects for ever. */
typedef struct GitFact {
    char old[GIT_OID_LEN + 1], new[GIT_OID_LEN + 1];
    guint64 values[3];
} GitFact;

struct GitRepo {
    gatomicrefcount refs;
    char *id, *path;
    char *launcher, *hooks;
    bool foreign;
    GitHolder *holder; /* NULL: none */
    GMutex mutex;      /* of what follows */
    GitFact facts[GIT_FACTS_MAX];
    guint n_facts; /* ever; the oldest make room */
};

/* Answers that cost much and were given before; from any thread. */
bool git_fact_find(GitRepo *repo, GitFact *fact);
void git_fact_keep(GitRepo *repo, const GitFact *fact);

enum { GIT_CODE_FATAL = 128 }; /* git's own; above: a usage that is wrong, or a signal */

/* How a child ended, and what it said. */
typedef struct GitEnd {
    int code;           /* exit code; 128 + signal when one ended it */
    bool stopped;       /* `take` had enough */
    GByteArray *output; /* owned; NULL where `take` has had it */
    GString *said;      /* standard error; owned */
} GitEnd;
void git_end_clear(GitEnd *end);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(GitEnd, git_end_clear)

/* Runs it to its end.  False when it did not come to one of its own: it could not be started, took
 * too long, said too much, or was cancelled; nothing of it is left then either. */
bool git_child_run(const GitRepo *repo, const GitCall *call, GitEnd *ret_end, GError **error);

/* What a child that failed said, as an error for people; always false. */
bool git_error_set(const GitRepo *repo, const GitEnd *end, GError **error);

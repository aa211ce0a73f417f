/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include "forge/thread.h"

/* Pull requests: threads (thread.h) with two branches of the same repository.
 *
 * head_oid and base_oid are the branches' tips: they move in the transaction that writes a push down
 * (push.h).  What only git knows (how far behind, conflicts, how many files) is looked up behind that and
 * kept in the row with the two tips that it is true for; until then a merge waits.  A pull request whose
 * branch is removed is closed. */

/* Looks up what is not known: the forge's own. */
typedef struct Pulls Pulls;
Pulls *pulls_new(Forge *forge);
void pulls_start(Pulls *pulls); /* once the repositories are there */
void pulls_free(Pulls *pulls);

typedef struct PullSpec {
    const char *actor;
    const char *head, *base; /* branches, without refs/heads/ */
    const char *title;
    const char *body; /* literally; NULL: none */
    bool draft;
    const char *task_id;          /* NULL: none */
    const char *const *labels;    /* NULL: none */
    const char *const *reviewers; /* actors or logins; NULL: none */
} PullSpec;
/* ERR_INVALID: a branch is not there, both are the same, or nothing is between them; ERR_CONFLICT: an open
 * one for the same two is there. */
void pull_open(Forge *forge, Repo *repo, const PullSpec *spec, ForgeJsonFunc done, void *data);

/* The title and body of those that the team opens: "[WIP] …" while draft, and a text that links
 * task, plan and checks.  Texts of others appear literally in it, never as markup. */
typedef struct PullBody {
    const char *summary;                        /* what was asked for */
    const char *task_id, *task_url, *task_name; /* NULL: none */
    const char *const *plan;                    /* steps; NULL: none */
    const char *checks_url;                     /* NULL: none */
    const char *agent, *role;                   /* NULL: none */
} PullBody;
char *pull_body_format(const PullBody *body);
/* Where what Coop saw of the branch can be read. */
char *pull_checks_url(const char *address, const RepoInfo *repo, const char *branch);
char *pull_title_format(const char *summary, bool draft); /* one line, cut to THREAD_TITLE_MAX */

typedef struct PullDraft {
    const char *actor;
    gint64 number;
    bool draft; /* false: ready; takes "[WIP] " off the title */
} PullDraft;
void pull_set_draft(Forge *forge, Repo *repo, const PullDraft *draft, ForgeJsonFunc done, void *data);

/* `names` are actors or logins. */
void pull_reviewers(Forge *forge, Repo *repo, const ThreadNames *names, ForgeJsonFunc done, void *data);

/* ---- for the merge queue, inside its own transactions ---- */

typedef struct PullMerged {
    const char *actor;
    gint64 number;
    const char *method;    /* merge, squash, rebase; push: somebody did it */
    const char *merge_oid; /* what the base is at now */
    const char *receipt;   /* NULL: none */
} PullMerged;
/* Closes it as merged with pr.merged; a second time with the same oid changes nothing. */
bool pull_set_merged(DbTx *tx, const char *repository_id, const PullMerged *merged, GError **error);

/* Why one may not be merged: each its own rule. */
typedef enum PullBlock {
    PULL_BLOCK_CLOSED,
    PULL_BLOCK_DRAFT,
    PULL_BLOCK_CHECKS_MISSING,
    PULL_BLOCK_CHECKS_RUNNING,
    PULL_BLOCK_CHECKS_FAILED,
    PULL_BLOCK_CHECKS_CLAIMED, /* someone says that they passed; Coop did not see it */
    PULL_BLOCK_CHANGES_REQUESTED,
    PULL_BLOCK_APPROVALS,
    PULL_BLOCK_BEHIND,
    PULL_BLOCK_CONFLICTS,
    PULL_BLOCK_UNKNOWN, /* git was not asked yet about these tips */
    PULL_BLOCK_MAX,
} PullBlock;
const char *pull_block_name(PullBlock block); /* "draft", "checks_missing", … */
char *pull_blocks_format(guint blocks);       /* "it is a draft; it lacks approvals" */

typedef struct PullMergeState {
    guint blocks; /* 1 << PullBlock; 0: clean */
    guint approvals, approvals_needed;
    char head_oid[GIT_OID_LEN + 1];
} PullMergeState;
bool pull_merge_state(DbTx *tx, const char *repository_id, gint64 number, PullMergeState *ret_state,
                      GError **error);
/* {"state": "clean" | "blocked", "reasons": [{"rule", "text"}], "approvals", "approvals_needed"}. */
void pull_merge_state_get(Forge *forge, Repo *repo, gint64 number, ForgeJsonFunc done, void *data);
/* The thread with that as `merge`. */
void pull_get(Forge *forge, Repo *repo, gint64 number, ForgeJsonFunc done, void *data);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include "forge/receipt.h"
#include "forge/thread.h"

/* Checks that Coop runs itself.
 *
 * A suite is one run of all of a repository's commands on one tree, in a clean box that gets that tree
 * and nothing else: no history, no credential, no way to the forge.  The commands come from the base,
 * never from what is checked (check-plan.h).  What came of it are rows that nobody else can write
 * (check-row.h, seen_by "coop") and a signed receipt.
 *
 * Rows first: a suite is queued in the transaction that makes it necessary, and taken from there.  A
 * server that was killed finds the row, ends the box and runs the suite anew, CHECKS_TRIES in all.
 *
 * The suite of a pull request begins by itself when it is opened ready, becomes ready, is reopened, gets
 * another base, or a push while it is ready; an older one of it is cancelled then, as it is when it is
 * closed or a draft again.
 *
 * A suite as JSON: the row's columns by name (id, repository_id, number, base_oid, head_oid, tree_oid,
 * state, problem, source, template, box_id, tries, actor, created_us, began_us, ended_us).
 * States: queued, running; passed, failed, error (it could not be found out), cancelled. */
typedef struct Checks Checks;

enum {
    CHECKS_AT_ONCE = 2,     /* suites under way */
    CHECKS_QUEUE_MAX = 500, /* of one server, waiting; beyond: ERR_LIMIT */
    CHECKS_TRIES = 3,
    CHECKS_SUITES_KEPT = 500, /* of one repository, that have ended and that nobody needs any more */
    CHECKS_LISTENERS_MAX = 4,
};

typedef struct ChecksSpec {
    Forge *forge;          /* borrowed, as are the next two */
    BoxHost *boxes;        /* NULL: every suite ends as an error */
    const ReceiptKey *key; /* NULL: the same */
    guint at_once;         /* 0: CHECKS_AT_ONCE */
} ChecksSpec;

Checks *checks_new(const ChecksSpec *spec);
/* After forge_load(), each time: takes up what was under way. */
void checks_start(Checks *checks);
void checks_free(Checks *checks); /* before the forge and the boxes; what is under way is run anew later */
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Checks, checks_free)

typedef struct SuiteSpec {
    const char *base_oid; /* commands are read from this commit's tree */
    const char *head_oid; /* whose tree is checked; may be a commit that no ref names */
    gint64 number;        /* pull request; 0: none */
    const char *actor;
} SuiteSpec;
/* Answers with the suite, queued: the row is on the disk. */
void checks_add(Checks *checks, Repo *repo, const SuiteSpec *spec, ForgeJsonFunc done, void *data);

/* By hand: of an open pull request, or of a branch as it is, with the default branch's commands. */
typedef struct SuiteAsk {
    const char *actor;
    gint64 number;      /* 0: a branch */
    const char *branch; /* NULL: a pull request */
} SuiteAsk;
void checks_ask(Checks *checks, Repo *repo, const SuiteAsk *ask, ForgeJsonFunc done, void *data);

/* The suite, with its runs as `checks` (check-row.h, in the order they ran) and the signed text as
 * `receipt` (null: not ended). */
void checks_get(Checks *checks, Repo *repo, const char *suite_id, ForgeJsonFunc done, void *data);

typedef struct SuiteFilter {
    gint64 number;        /* 0: any */
    const char *head_oid; /* NULL: any */
    ForgePage page;
} SuiteFilter;
/* Newest first. */
void checks_list(Checks *checks, Repo *repo, const SuiteFilter *filter, ForgeJsonFunc done, void *data);

/* ERR_CONFLICT: it has ended.  Answers with the suite. */
void checks_cancel(Checks *checks, Repo *repo, const char *suite_id, const char *actor, ForgeJsonFunc done,
                   void *data);

/* On the loop, after a suite's last row is on the disk.  `state` as above.  A suite that ended while no
 * server was there, or right before it was killed, is not told of: who waits for one asks after
 * checks_start(). */
typedef void (*ChecksFunc)(Repo *repo, const char *suite_id, const char *state, void *data);
void checks_listen(Checks *checks, ChecksFunc func, void *data);
void checks_unlisten(Checks *checks, ChecksFunc func, void *data);

const char *checks_key_hex(const Checks *checks); /* of receipts; NULL: there is none */

/* What waits and what is under way: [{repository, what, state, waiting_ms, tries}], as forge_queue_json(). */
Json *checks_queue_json(Checks *checks);

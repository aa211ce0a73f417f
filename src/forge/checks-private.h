/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include "forge/check-look.h"
#include "forge/check-private.h"
#include "forge/checks.h"
#include "forge/clean-box.h"
#include "forge/forge-private.h"

/* What the files checks*.c share. */

typedef struct SuiteTry SuiteTry;

struct Checks {
    LoopTimer timer; /* first: the loop hands back its address */
    guint refs;      /* the owner, and each answer that is waited for */
    ChecksSpec spec;
    bool stopped;
    EventCursor *cursor; /* what may have queued a suite; NULL: not started */
    bool scanning, again;
    GHashTable *tries;   /* id of a suite -> SuiteTry, owned: under way */
    GHashTable *resting; /* id -> Rest, owned */
    Json *waiting;       /* rows that wait, as of the last scan */
    GArray *listeners;
};
Checks *checks_ref(Checks *checks);
void checks_unref(Checks *checks);

/* Looks for suites to run. */
void checks_scan(Checks *checks);
/* A try is over: `state` NULL: the suite is to be tried again, not before `rest_ms`. */
void checks_try_over(Checks *checks, SuiteTry *try, const char *state, guint rest_ms);

/* It was cancelled by someone who asked for that. */
void checks_cancelled(Checks *checks, Repo *repo, const char *id);
/* For a box: false when it has waited for one that long. */
bool checks_may_wait(Checks *checks, const char *id, gint64 max_us);

/* ---- checks-try.c ---- */

/* `row` is a suite (checks.h). */
SuiteTry *suite_try_start(Checks *checks, Repo *repo, const Json *row);
void suite_try_cancel(SuiteTry *try); /* says nothing any more; NULL is fine */
const char *suite_try_id(const SuiteTry *try);
Repo *suite_try_repo(const SuiteTry *try);
bool suite_try_is_ending(const SuiteTry *try); /* its last row is being written */
Json *suite_try_json(const SuiteTry *try);     /* the row that it began with, and its tries */

/* ---- checks-rows.c: each a transaction ---- */

/* {"tries"}: it is running, and what an earlier try left is gone; {"state"}: it has ended. */
void suite_claim(Checks *checks, Repo *repo, const char *id, ForgeJsonFunc done, void *data);

typedef struct SuitePlanned {
    const char *id, *head_oid, *tree_oid, *source;
    gint64 tries;
    const char *const *names, *const *commands;
} SuitePlanned;
/* {"ids": of its check runs}; an empty object: it was cancelled. */
void suite_planned(Checks *checks, Repo *repo, const SuitePlanned *planned, ForgeJsonFunc done, void *data);

typedef struct SuiteFilled {
    const char *id, *box_id, *template;
} SuiteFilled;
void suite_filled(Checks *checks, Repo *repo, const SuiteFilled *filled, ForgeJsonFunc done, void *data);

/* A check run as it is now. */
void suite_put_run(Checks *checks, Repo *repo, const CheckRow *row, ForgeJsonFunc done, void *data);

typedef struct SuiteEnd {
    const char *id, *state, *problem, *receipt;
    gint64 tries;
    bool uncounted; /* of state "queued", to be tried again: this one does not count */
} SuiteEnd;
/* {"state"}: what it has now, which is another if it was cancelled. */
void suite_end(Checks *checks, Repo *repo, const SuiteEnd *end, ForgeJsonFunc done, void *data);

/* Inside a job. */
Json *suite_load(RowJob *job, const char *id, GError **error);
/* Before one is added: the oldest go, beyond CHECKS_SUITES_KEPT. */
bool check_suites_prune(RowJob *job, GError **error);
/* The last row, with its event. */
bool suite_put_end(RowJob *job, const SuiteEnd *end, const Json *suite, const char *actor, GError **error);

/* ---- check-receipt.c ---- */

typedef struct ReceiptSpec {
    const char *suite, *repository, *repository_id;
    gint64 number;
    const char *base_oid, *head_oid, *tree_oid;
    bool compared; /* the tree, in the box */
    const char *result, *problem;
    const char *source;
    bool from_head;
    const char *template, *template_hash, *box_id;
    const Json *commands; /* of check_receipt_command() */
    gint64 began_us, ended_us, tries;
    const char *key;
} ReceiptSpec;
Json *check_receipt_command(const PlanCommand *command, const CommandResult *result);
Json *check_receipt_make(const ReceiptSpec *spec);

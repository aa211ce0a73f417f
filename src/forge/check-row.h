/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include "forge/thread.h"

/* What was found out about a commit: check runs, and statuses, their older form.
 *
 * What comes in by these functions is claimed: it is shown, and decides nothing.  What Coop saw
 * itself is written by its own checks, inside their transactions, with check_row_put() and
 * seen_by "coop"; nobody else can change such a row.
 *
 * JSON: the rows' columns, `author` as people.h shows it. */

enum {
    CHECK_NAME_MAX = 256,
    CHECK_TITLE_MAX = 512,
    CHECK_TEXT_MAX = 65535, /* summary and output, each */
    CHECK_URL_MAX = 2048,
    STATUS_DESCRIPTION_MAX = 1024,
    CHECKS_OF_COMMIT_MAX = 1000,
};

/* In an update NULL is "as it is". */
typedef struct CheckRunSpec {
    const char *actor;
    gint64 id;            /* 0: a new one */
    const char *name;     /* needed in a new one */
    const char *head_oid; /* needed in a new one; never changes */
    const char *status;   /* queued, in_progress, completed; NULL in a new one: queued */
    /* of completed: success, failure, neutral, cancelled, skipped, timed_out, action_required, stale */
    const char *conclusion;
    const char *external_id, *details_url;
    const char *title, *summary, *output;
    gint64 started_us, completed_us; /* 0: now, when the status says so */
} CheckRunSpec;
void check_run_put(Forge *forge, Repo *repo, const CheckRunSpec *spec, ForgeJsonFunc done, void *data);

typedef struct CheckRunFilter {
    gint64 id;                 /* 0: a list; else that one alone */
    const char *oid;           /* of a list */
    const char *name, *status; /* NULL: any */
    bool all;                  /* else the newest of each name only */
    ForgePage page;
} CheckRunFilter;
void check_run_list(Forge *forge, Repo *repo, const CheckRunFilter *filter, ForgeJsonFunc done, void *data);

/* Coop's own row, inside a write job: the columns are the caller's.  `id` 0 makes one and is set. */
typedef struct CheckRow {
    gint64 id;
    const char *suite, *name, *head_oid, *author;
    const char *status, *conclusion;
    const char *details_url, *title, *summary, *output;
    const char *box_id, *command;
    bool has_exit_code;
    int exit_code;
    const char *reason;        /* how it ended, as run.h says it; NULL: not yet */
    const char *output_sha256; /* over all of it; NULL: not yet, as the next two */
    gint64 output_bytes;
    const char *tests; /* JSON */
    gint64 started_us, completed_us;
} CheckRow;
bool check_row_put(DbTx *tx, const char *repository_id, CheckRow *row, GError **error);

typedef struct StatusSpec {
    const char *actor;
    const char *oid;
    const char *state;       /* error, failure, pending, success */
    const char *context;     /* NULL: "default" */
    const char *description; /* NULL: none */
    const char *target_url;  /* NULL: none */
} StatusSpec;
void status_create(Forge *forge, Repo *repo, const StatusSpec *spec, ForgeJsonFunc done, void *data);
/* Newest first. */
void status_list(Forge *forge, Repo *repo, const char *oid, ForgePage page, ForgeJsonFunc done, void *data);
/* {"state", "items": the newest of each context, "total"}. */
void status_combined(Forge *forge, Repo *repo, const char *oid, ForgeJsonFunc done, void *data);

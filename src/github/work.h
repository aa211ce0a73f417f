/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include "github/item.h"
#include "store/db.h"
#include "json/json.h"

/* The rows of upstream_work, inside jobs.  One for each branch that is pushed, each pull request that is
 * kept there, and each thing said under one: asked for again, the same row waits again. */

enum {
    WORK_TRIES = 8,
    WORK_LIST_MAX = 100,
    WORK_PULLS_MAX = 1000, /* of one repository, that are looked at */
};

typedef struct WorkRow {
    gint64 id;
    char *repository_id, *key, *kind;
    Json *body;    /* {"seq", …}: what was last asked for */
    Json *answer;  /* of the last time that it was done; NULL: never */
    Json *above;   /* that of the row it came after; NULL: none */
    bool was_sent; /* by an earlier life: it may have been done */
    bool is_pending;
    guint tries;
} WorkRow;
void work_row_free(WorkRow *row);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(WorkRow, work_row_free)

/* `body` has the `seq` of the event that asks; one that is not newer changes nothing. */
typedef struct WorkAsk {
    const char *repository_id, *kind, *name; /* branch, number or id */
    const char *after;                       /* key of the row that comes first; NULL: none */
    Json *body;
} WorkAsk;
bool work_ask(DbTx *tx, const WorkAsk *ask, GError **error);

/* The next one that is due, marked as sent; `*ret_row` NULL: none, and `*ret_next_us` when one will be (0:
 * never).  A row waits until the one that comes first has ended. */
bool work_take(DbTx *tx, gint64 now_us, WorkRow **ret_row, gint64 *ret_next_us, GError **error);

typedef enum WorkEnd { WORK_DONE, WORK_FAILED, WORK_AGAIN } WorkEnd;
typedef struct WorkResult {
    WorkEnd end;
    const Json *answer;  /* NULL: as it was */
    const char *problem; /* NULL: none */
    gint64 next_us;      /* of WORK_AGAIN */
    bool counts;         /* as a try */
    UpstreamItem item;   /* that was made there */
} WorkResult;
/* What was asked for meanwhile waits on. */
bool work_end(DbTx *tx, const WorkRow *row, const WorkResult *result, GError **error);

/* The row of a pull request there; NULL: it is none of ours. */
bool work_find_pull(DbTx *tx, const char *repository_id, gint64 upstream_number, WorkRow **ret_row,
                    GError **error);
bool work_set_answer(DbTx *tx, const WorkRow *row, GError **error); /* as it was changed */
/* Those that are open there, as WorkRow. */
GPtrArray *work_open_pulls(DbTx *tx, GError **error);
/* {"work": [{id, kind, key, state, tries, problem, answer, …}], "waiting", "failed"}, newest first. */
Json *work_json(DbTx *tx, GError **error);

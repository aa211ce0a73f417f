/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include "forge/row.h"
#include "team/fact.h"

/* Facts as rows; in the store's threads. */

enum { FACTS_KEEP_DAYS = 400 };

/* What was counted: added to what the loop has when it is on the disk. */
typedef struct TallySums {
    Rate rates[FACT_MAX]; /* without median and percentile */
    GHashTable *errors;   /* class -> gint64 * */
} TallySums;
void tally_sums_init(TallySums *sums);
void tally_sums_clear(TallySums *sums);
void tally_sums_add(TallySums *sums, const TallySums *more);

/* Of facts that are grouped by name and class, which come first. */
#define TALLY_RATE_COLUMNS                                                                                   \
    "name, class, SUM(n), SUM(good), SUM(value), MAX(value), SUM(CASE WHEN value > 0 THEN 1 ELSE 0 END)"
Rate tally_rate_read(DbRows *rows);

/* Up to which event all is counted; 0: nothing is. */
bool tally_place_load(DbTx *tx, gint64 *ret_seq, GError **error);
/* All facts there are. */
bool tally_sums_load(DbTx *tx, TallySums *sums, GError **error);

typedef struct TallyPage {
    GPtrArray *events; /* Event, references */
    gint64 from, to;   /* the places before and after it */
} TallyPage;
/* ERR_CONFLICT: the place is another one, as after a restore. */
bool tally_put(DbTx *tx, const TallyPage *page, TallySums *sums, GError **error);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include "team/fact.h"
#include "team/team.h"

/* Counts what the event log says into the table `facts`.
 *
 * It follows the log from the place that is written with the facts, in one transaction: whatever happens,
 * every event is counted once.  Pages are read in a reader's thread and written in the writer's, at most one
 * at a time and a second after the first event of a wave, so a busy log costs a commit a second. */
typedef struct Tally Tally;

Tally *tally_new(Team *team);
/* Everything is read anew: also after a restore. */
void tally_start(Tally *tally);
void tally_free(Tally *tally);

/* `done` when all that is in the log now has been counted. */
void tally_catch_up(Tally *tally, DbDone done, void *data);

/* Since facts are kept; errors by class, those that never happened too. */
const Rate *tally_rates(const Tally *tally); /* FACT_MAX of them */
typedef void (*TallyClassFunc)(const char *class, gint64 n, void *data);
void tally_errors(const Tally *tally, TallyClassFunc func, void *data);

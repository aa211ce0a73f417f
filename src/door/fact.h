/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <glib.h>

#include "json/json.h"

/* What the door has to tell: verdicts, model calls, budgets.  Numbered, kept until `coop serve`
 * has them in its store, bounded; when the bound is reached verdicts are folded into counts and
 * model calls, which cost money, are refused rather than forgotten. */
typedef struct FactLog FactLog;

enum {
    FACTS_MAX = 8192,
    FACT_SIZE_MAX = 8 * 1024,
};

FactLog *fact_log_new(void);
void fact_log_free(FactLog *log);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(FactLog, fact_log_free)

/* `fact` is taken: an object with "kind" (an event kind: door.denied, model.called, …), "box" and
 * what belongs to it; the log adds "n" and "time_us". */
void fact_log_add(FactLog *log, Json *fact);
bool fact_log_is_full(const FactLog *log);
/* Tells the counts that are due; once a second will do. */
void fact_log_settle(FactLog *log);
/* The oldest fact with a number above `after`; borrowed; NULL: none. */
Json *fact_log_next(FactLog *log, guint64 after);
void fact_log_ack(FactLog *log, guint64 upto);
/* Called from the loop of whoever adds, when there is something new. */
void fact_log_on_new(FactLog *log, void (*func)(void *data), void *data);

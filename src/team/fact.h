/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <glib.h>
#include <stdbool.h>

#include "json/json.h"

/* What single events say about how well things go, and what the mission asks for.  Pure: tally.h writes it
 * down. */

typedef enum FactName {
    FACT_PULLS,     /* of tasks with a repository: there is a pull request */
    FACT_REVIEWS,   /* of reviewers that were put to work: the review is there */
    FACT_APPROVALS, /* of verdicts on tasks' pull requests */
    FACT_MERGES,    /* of tasks' pull requests that are over */
    FACT_FEATURES,  /* of steps that are over: Coop saw their tests pass */
    FACT_FIRST,     /* of first tries: the same */
    FACT_SCANS,     /* of scans that ran: nothing bad was found */
    FACT_CHECKS,    /* of Coop's own runs in clean boxes */
    FACT_TESTS,     /* of single tests in reports */
    FACT_TASKS,     /* of those that came to an end by themselves; value: ms */
    FACT_AGENTS,    /* of agents that nobody stopped; value: ms */
    FACT_COMMANDS,  /* of commands that nobody stopped; value: ms */
    FACT_BOXES,     /* of boxes that are gone: as was asked; value: ms they lived */
    FACT_USE,       /* of the ms that boxes lived: a command ran */
    FACT_SPAWN,     /* ms from the lease to the first call of a model */
    FACT_SIMPLE,    /* ms of tasks with one step */
    FACT_CLONE,     /* ms */
    FACT_MEMORY,    /* bytes: the most that an agent and its box had */
    FACT_ERROR,     /* by class */
    FACT_MAX,
} FactName;

typedef enum RateKind {
    RATE_SHARE, /* good of n, to be above the target */
    RATE_BELOW, /* values, to be below the limit */
    RATE_COUNT, /* only how many there are */
} RateKind;

typedef struct RateSpec {
    const char *name;
    const char *row;   /* of the mission */
    const char *title; /* in words */
    RateKind kind;
    const char *unit; /* of the value; NULL: there is none */
    gint64 target;    /* RATE_SHARE: thousandths; RATE_BELOW: in its unit; 0: none */
} RateSpec;
extern const RateSpec rate_specs[FACT_MAX];
FactName fact_name_of(const char *text); /* FACT_MAX: none */

/* ---- reading ---- */

typedef struct FactEvent {
    const char *kind;
    bool has_task, has_box;
    const Json *data; /* an object */
} FactEvent;

typedef struct Fact {
    FactName name;
    const char *class; /* static; "": none */
    gint64 n, good, value;
} Fact;

enum { FACTS_MAX = 8 };

typedef struct FactList {
    Fact items[FACTS_MAX];
    guint len;
} FactList;
void fact_read(const FactEvent *event, FactList *ret_list);
/* The kinds of events that may say something, NULL-terminated. */
const char *const *fact_kinds(void);
/* Of errors, NULL-terminated. */
const char *const *fact_classes(void);

/* ---- arithmetic ---- */

typedef struct Rate {
    gint64 n, good;
    gint64 sum, max;           /* of values */
    gint64 values;             /* how many there are */
    gint64 median, percentile; /* the 95th; of values; -1: not known */
} Rate;

/* But for median and percentile. */
void rate_add(Rate *sum, const Rate *more);
/* Thousandths, rounded down; -1: of nothing. */
gint64 rate_share(const Rate *rate);
typedef enum RateMet { RATE_UNKNOWN, RATE_MET, RATE_MISSED } RateMet;
/* Strictly above the target, or the 95th percentile (where it is not known, the mean) strictly below the
 * limit. */
RateMet rate_met(const RateSpec *spec, const Rate *rate);
/* {"name", "row", "title", "good", "total", "rate", "target", "unit", "average", …, "met"} */
Json *rate_json(FactName name, const Rate *rate);

/* How long at least one of these lasted, within from..to; sorts them. */
typedef struct FactSpan {
    gint64 from, to;
} FactSpan;
gint64 fact_covered(FactSpan *spans, guint len, gint64 from, gint64 to);

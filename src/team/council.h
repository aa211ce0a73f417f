/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include "team/plan.h"

/* How a plan comes about: one brain, or a council.  What is asked next follows from rows alone; the functions
 * here are pure.
 *
 *   brain    -> answered | brain-repair -> answered | failed
 *   council  opinion of every seat, at once -> ranking by every seat that has one, at once
 *            -> synthesis by the chairman -> repair, where that was no plan
 *
 * Half of the time is for opinions, a quarter for rankings, the rest for the chairman: who is silent takes no
 * more than that.  Seats rank the opinions of the others under letters, in an order that is another for every
 * seat: nobody knows whose is whose.  Where fewer opinions than the quorum can be used, one brain is asked;
 * where something is missing after the rankings (the time is over, the cap is reached, the chairman is silent
 * or gives no plan twice) the opinion that was ranked highest stands.  The reason is kept.
 *
 * plans.council: {seats: [{provider, model, stance}], chairman: {provider, model}, quorum, timeout_s, usd,
 * tokens} and, when it has ended, {outcome: synthesis | opinion | brain, reason, scores: [{seat, score}],
 * dissent: [text], letters: [seat, by which the chairman knew A, B, …] or seat (of the opinion that stands)}.
 */

enum {
    COUNCIL_SEATS = 3,
    COUNCIL_SEATS_MAX = 9,
    COUNCIL_TIMEOUT_S = 600,
    COUNCIL_DISSENT_MAX = 20,
    COUNCIL_OPINION_MAX = 24 * 1024, /* bytes of one that others are shown */
    PLAN_VOICE_MAX = 64 * 1024,      /* bytes that are kept of an answer */
    PLAN_BRAIN_S = 600,
};

/* Of a task's policy and the model of its one brain ({provider, model}).  Never NULL. */
Json *council_open(const Json *policy, const Json *brain);

typedef enum PlanDo {
    PLAN_ASK,       /* `phase`, of `seats` */
    PLAN_ADOPT,     /* `body` is the plan */
    PLAN_FALL_BACK, /* to one brain */
    PLAN_FAIL,
} PlanDo;

typedef struct PlanNext {
    PlanDo what;
    const char *phase; /* static */
    guint seats[COUNCIL_SEATS_MAX], n_seats;
    Json *body;    /* of PLAN_ADOPT; borrowed from the rows */
    Json *outcome; /* what plans.council gets; owned; NULL: nothing */
    char *reason;  /* of the last two; owned */
} PlanNext;
void plan_next_clear(PlanNext *next);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(PlanNext, plan_next_clear)

/* `rows`: {plan, voices: [{phase, seat, state, body, …}], microusd (what the council has cost)}. */
void plan_next(const Json *rows, gint64 now_us, PlanNext *ret_next);
/* When questions of that phase of the council have to be answered; 0: there is none. */
gint64 council_deadline_us(const Json *plan, const char *phase);

/* Borrowed; NULL: it has not been heard. */
const Json *voice_find(const Json *rows, const char *phase, guint seat);

/* The seats whose opinions this one ranks, in the order of the letters that it is shown them by. */
guint council_order(const Json *rows, guint seat, guint ret_seats[COUNCIL_SEATS_MAX]);

/* What was said, read: fills in `state`, `body` and `problem` of `ret_voice` ({}).  `order` and `n` of a
 * ranking. */
void voice_read(const char *phase, const char *text, const guint *order, guint n, Json *ret_voice);

/* ---- what they are told (plan-words.c) ---- */

typedef struct PlanWords {
    const Json *rows;     /* {task, members, brain, plan, voices} */
    const char *material; /* about the repository; NULL: there is none */
    const char *role;     /* the prompt of the planner's role; NULL: none */
} PlanWords;
char *plan_words_system(const PlanWords *words, const char *phase, guint seat);
char *plan_words_prompt(const PlanWords *words, const char *phase, guint seat);

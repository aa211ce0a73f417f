/* SPDX-License-Identifier: Apache-2.0 */
#include "team/council.h"

#include <stdlib.h>
#include <string.h>

#include "forge/row.h"

#define MICRO G_GINT64_CONSTANT(1000000)

static const char *const stances[COUNCIL_SEATS] = {
    "You look for the smallest change that does all that was asked, and leave out the rest.",
    "You look for what can go wrong: failures, hostile input, races, tests that are missing.",
    "You look at those who will use and change this later: clear structure, reuse of what is there.",
};

/* ---- its constitution ---- */

static Json *
open_seats(Json *given, const Json *brain)
{
    Json *seats = json_array();

    for (size_t i = 0; i < MIN(json_array_size(given), (size_t)COUNCIL_SEATS_MAX); i++) {
        const Json *seat = json_array_get(given, i);

        json_array_append_new(seats, json_pack("{s:s?, s:s?, s:n}", "provider", row_text(seat, "provider"),
                                               "model", row_text(seat, "model"), "stance"));
    }
    for (size_t i = 0; json_array_size(given) == 0 && i < COUNCIL_SEATS; i++)
        json_array_append_new(seats, json_pack("{s:s?, s:s?, s:s}", "provider", row_text(brain, "provider"),
                                               "model", row_text(brain, "model"), "stance", stances[i]));
    return seats;
}

/* Dollars may be whole in the rows, or not. */
static double
least_usd(const Json *a, const Json *b)
{
    double x = json_number_value(json_object_get(a, "usd")), y = json_number_value(json_object_get(b, "usd"));

    return x > 0 && (y <= 0 || x < y) ? x : y;
}

Json *
council_open(const Json *policy, const Json *brain)
{
    const Json *given = json_object_get(policy, "council"), *budget = json_object_get(policy, "budget");
    const Json *chairman = json_object_get(policy, "chairman");
    Json *seats = open_seats(json_object_get(given, "seats"), brain);
    gint64 quorum = row_int(given, "quorum"), timeout_s = row_int(given, "timeout_s");
    gint64 n = (gint64)json_array_size(seats);

    if (row_text(chairman, "model") == NULL)
        chairman = brain;
    return json_pack("{s:o, s:{s:s?, s:s?}, s:I, s:I, s:f, s:I}", "seats", seats, "chairman", "provider",
                     row_text(chairman, "provider"), "model", row_text(chairman, "model"), "quorum",
                     (json_int_t)(quorum > 0 ? MIN(quorum, n) : n / 2 + 1), "timeout_s",
                     (json_int_t)(timeout_s > 0 ? timeout_s : COUNCIL_TIMEOUT_S), "usd",
                     least_usd(given, budget), "tokens", (json_int_t)row_int(budget, "tokens"));
}

/* Quarters of the time at which they end: who is silent shall not leave the others without any. */
static gint64
quarters_of(const char *phase)
{
    return strcmp(phase, "opinion") == 0 ? 2 : strcmp(phase, "ranking") == 0 ? 3 : 4;
}

gint64
council_deadline_us(const Json *plan, const char *phase)
{
    const Json *council = json_object_get(plan, "council");

    if (!json_is_object(council))
        return 0;
    return row_int(plan, "created_us") + row_int(council, "timeout_s") * MICRO * quarters_of(phase) / 4;
}

/* ---- who has said what ---- */

const Json *
voice_find(const Json *rows, const char *phase, guint seat)
{
    const Json *voices = json_object_get(rows, "voices");

    for (size_t i = 0; i < json_array_size(voices); i++) {
        const Json *voice = json_array_get(voices, i);

        if (strcmp(row_text(voice, "phase"), phase) == 0 && row_int(voice, "seat") == seat)
            return voice;
    }
    return NULL;
}

static bool
is_answered(const Json *voice)
{
    return voice != NULL && strcmp(row_text(voice, "state"), "answered") == 0;
}

static guint
count_seats(const Json *rows)
{
    const Json *council = json_object_get(json_object_get(rows, "plan"), "council");

    return (guint)MIN(json_array_size(json_object_get(council, "seats")), (size_t)COUNCIL_SEATS_MAX);
}

/* Those with an opinion that can be used, from 1. */
static guint
list_usable(const Json *rows, guint ret_seats[COUNCIL_SEATS_MAX])
{
    guint n = 0;

    for (guint seat = 1; seat <= count_seats(rows); seat++) {
        if (is_answered(voice_find(rows, "opinion", seat)))
            ret_seats[n++] = seat;
    }
    return n;
}

/* Those that can still be asked. */
static guint
list_missing(const Json *rows, const char *phase, const guint *seats, guint n, gint64 now_us,
             guint ret_seats[COUNCIL_SEATS_MAX])
{
    bool in_time = now_us < council_deadline_us(json_object_get(rows, "plan"), phase);
    guint missing = 0;

    for (guint i = 0; in_time && i < n; i++) {
        if (voice_find(rows, phase, seats[i]) == NULL)
            ret_seats[missing++] = seats[i];
    }
    return missing;
}

/* ---- rankings ---- */

typedef struct Placed {
    guint seat;
    char key[65];
} Placed;

static int
compare_placed(const void *a, const void *b)
{
    return strcmp(((const Placed *)a)->key, ((const Placed *)b)->key);
}

/* With two, both are ranked, the own one too: an order of one says nothing. */
guint
council_order(const Json *rows, guint seat, guint ret_seats[COUNCIL_SEATS_MAX])
{
    guint usable[COUNCIL_SEATS_MAX], n = list_usable(rows, usable), k = 0;
    const char *id = row_text(json_object_get(rows, "plan"), "id");
    Placed placed[COUNCIL_SEATS_MAX];

    for (guint i = 0; i < n; i++) {
        if (usable[i] == seat && n > 2)
            continue;
        /* By chance, and the same again after a restart: nobody but us knows the id. */
        g_autofree char *text = g_strdup_printf("%s %u %u", id, seat, usable[i]);
        g_autofree char *key = g_compute_checksum_for_string(G_CHECKSUM_SHA256, text, -1);

        placed[k].seat = usable[i];
        g_strlcpy(placed[k++].key, key, sizeof placed[0].key);
    }
    qsort(placed, k, sizeof placed[0], compare_placed);
    for (guint i = 0; i < k; i++)
        ret_seats[i] = placed[i].seat;
    return k;
}

/* 1: always first; 0: always last; the mean of all who ranked it. */
static double
score_of(const Json *rows, guint seat)
{
    double sum = 0;
    guint judges = 0;

    for (guint judge = 1; judge <= count_seats(rows); judge++) {
        const Json *voice = voice_find(rows, "ranking", judge), *order = json_object_get(voice, "body");
        size_t n = json_array_size(order);

        for (size_t i = 0; is_answered(voice) && i < n; i++) {
            if ((guint)json_integer_value(json_array_get(order, i)) != seat || n < 2)
                continue;
            sum += (double)(n - 1 - i) / (double)(n - 1);
            judges++;
        }
    }
    return judges > 0 ? sum / judges : 0;
}

/* The best, and all scores. */
static guint
find_best(const Json *rows, Json **ret_scores)
{
    guint usable[COUNCIL_SEATS_MAX], n = list_usable(rows, usable), best = 0;
    double highest = -1;

    *ret_scores = json_array();
    for (guint i = 0; i < n; i++) {
        double score = (double)(gint64)(score_of(rows, usable[i]) * 1000 + 0.5) / 1000;

        json_array_append_new(*ret_scores,
                              json_pack("{s:I, s:f}", "seat", (json_int_t)usable[i], "score", score));
        if (score > highest) {
            highest = score;
            best = usable[i];
        }
    }
    return best;
}

/* ---- what comes next ---- */

void
plan_next_clear(PlanNext *next)
{
    json_decref(next->outcome);
    g_free(next->reason);
}

static void
ask_one(PlanNext *next, const char *phase)
{
    next->what = PLAN_ASK;
    next->phase = phase;
    next->seats[0] = 0;
    next->n_seats = 1;
}

/* The seats behind the chairman's letters, which his dissent names. */
static Json *
letters_of(const Json *rows)
{
    guint seats[COUNCIL_SEATS_MAX], n = council_order(rows, 0, seats);
    Json *list = json_array();

    for (guint i = 0; i < n; i++)
        json_array_append_new(list, json_integer((json_int_t)seats[i]));
    return list;
}

/* Takes `reason`, which may be NULL. */
static void
adopt(const Json *rows, PlanNext *next, const char *outcome, Json *said, char *reason)
{
    g_autofree char *why = reason;
    Json *scores, *dissent = json_object_get(said, "dissent");
    guint best = find_best(rows, &scores);

    next->what = PLAN_ADOPT;
    next->body = said != NULL ? json_object_get(said, "plan")
                              : json_object_get(voice_find(rows, "opinion", best), "body");
    next->outcome = json_pack("{s:s, s:s?, s:o, s:o}", "outcome", outcome, "reason", why, "scores", scores,
                              "dissent", dissent != NULL ? json_incref(dissent) : json_array());
    json_object_set_new(next->outcome, said != NULL ? "letters" : "seat",
                        said != NULL ? letters_of(rows) : json_integer((json_int_t)best));
}

/* Why no more questions are asked; NULL: they are. */
static char *
stop_reason(const Json *rows, gint64 now_us)
{
    const Json *plan = json_object_get(rows, "plan"), *council = json_object_get(plan, "council");
    const Json *voices = json_object_get(rows, "voices");
    double usd = json_number_value(json_object_get(council, "usd"));
    gint64 tokens = 0, tokens_max = row_int(council, "tokens");

    for (size_t i = 0; i < json_array_size(voices); i++) {
        const Json *voice = json_array_get(voices, i);

        tokens += row_int(voice, "input_tokens") + row_int(voice, "output_tokens");
    }
    if (now_us >= council_deadline_us(plan, "synthesis"))
        return g_strdup_printf("the council's time of %" G_GINT64_FORMAT " s is over",
                               row_int(council, "timeout_s"));
    if (usd > 0 && (double)row_int(rows, "microusd") >= usd * (double)MICRO)
        return g_strdup_printf("the council's cap of %.2f USD is reached", usd);
    if (tokens_max > 0 && tokens >= tokens_max)
        return g_strdup_printf("the council's cap of %" G_GINT64_FORMAT " tokens is reached", tokens_max);
    return NULL;
}

static void
next_of_chairman(const Json *rows, PlanNext *next, char *stop)
{
    g_autofree char *why = stop;
    const Json *first = voice_find(rows, "synthesis", 0), *second = voice_find(rows, "repair", 0);
    const Json *last = second != NULL ? second : first;
    bool may_repair = first != NULL && second == NULL && strcmp(row_text(first, "state"), "malformed") == 0;

    if (is_answered(last))
        adopt(rows, next, "synthesis", json_object_get(last, "body"), NULL);
    else if (why != NULL)
        adopt(rows, next, "opinion", NULL, g_steal_pointer(&why));
    else if (last == NULL || may_repair)
        ask_one(next, last == NULL ? "synthesis" : "repair");
    else
        adopt(rows, next, "opinion", NULL, g_strdup_printf("the chairman: %s", row_text(last, "problem")));
}

static void
fall_back(const Json *rows, PlanNext *next, guint usable, gint64 quorum, const char *stop)
{
    next->what = PLAN_FALL_BACK;
    next->reason = g_strdup_printf("%u of %u opinions can be used, %" G_GINT64_FORMAT " are needed%s%s",
                                   usable, count_seats(rows), quorum, stop != NULL ? "; " : "",
                                   stop != NULL ? stop : "");
    next->outcome = json_pack("{s:s, s:s}", "outcome", "brain", "reason", next->reason);
}

static void
next_of_council(const Json *rows, gint64 now_us, PlanNext *next)
{
    const Json *council = json_object_get(json_object_get(rows, "plan"), "council");
    guint all[COUNCIL_SEATS_MAX], usable[COUNCIL_SEATS_MAX], n = count_seats(rows);
    g_autofree char *stop = stop_reason(rows, now_us);

    for (guint i = 0; i < n; i++)
        all[i] = i + 1;
    next->phase = "opinion";
    next->n_seats = stop == NULL ? list_missing(rows, "opinion", all, n, now_us, next->seats) : 0;
    if (next->n_seats > 0)
        return;
    n = list_usable(rows, usable);
    if (n < row_int(council, "quorum")) {
        fall_back(rows, next, n, row_int(council, "quorum"), stop);
        return;
    }
    next->phase = "ranking";
    next->n_seats = stop == NULL && n > 1 ? list_missing(rows, "ranking", usable, n, now_us, next->seats) : 0;
    if (next->n_seats == 0)
        next_of_chairman(rows, next, g_steal_pointer(&stop));
}

static void
next_of_brain(const Json *rows, PlanNext *next)
{
    const Json *first = voice_find(rows, "brain", 0), *second = voice_find(rows, "brain-repair", 0);
    const Json *last = second != NULL ? second : first;

    if (is_answered(last)) {
        next->what = PLAN_ADOPT;
        next->body = json_object_get(json_object_get(last, "body"), "plan");
    } else if (second == NULL) {
        ask_one(next, first == NULL ? "brain" : "brain-repair");
    } else {
        next->what = PLAN_FAIL;
        next->reason = g_strdup_printf("the planner gave no plan that can be used: %s",
                                       row_text(last, "problem"));
    }
}

void
plan_next(const Json *rows, gint64 now_us, PlanNext *ret_next)
{
    *ret_next = (PlanNext){.what = PLAN_ASK};
    if (strcmp(row_text(json_object_get(rows, "plan"), "producer"), "council") == 0)
        next_of_council(rows, now_us, ret_next);
    else
        next_of_brain(rows, ret_next);
}

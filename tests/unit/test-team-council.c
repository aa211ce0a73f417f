/* SPDX-License-Identifier: Apache-2.0 */
/* Councils, with a mind that the test plays. */
#include <string.h>

#include "base/err.h"
#include "support/plan-world.h"

#define RANK(order) "{\"ranking\": " order "}"
#define COUNCIL "{`planner`: `council`}"
#define SEATS4                                                                                               \
    "{`planner`: `council`, `chairman`: {`model`: `chair-model`}, `council`: {`quorum`: 2, `seats`: "        \
    "[{`model`: "                                                                                            \
    "`m1`}, {`model`: `m2`}, {`provider`: `q`, `model`: `m3`}, {`model`: `m4`}]}}"

static const PlanLine good_council[] = {
    {"council-1", PLAN("one")},
    {"council-1", RANK("[\"A\", \"B\"]")},
    {"council-2", PLAN("two")},
    {"council-2", "I say " RANK("[\"B\", \"A\"]")},
    {"council-3", PLAN("three")},
    {"council-3", RANK("[\"A\", \"B\"]")},
    {"chairman", "{\"plan\": " PLAN("all") ", \"dissent\": [\"B wanted\\nmore\", 7, \"\"]}"},
};

static void
test_council(void)
{
    PlanWorld *w = plan_world_new(COUNCIL, good_council, G_N_ELEMENTS(good_council));

    plan_world_make(w);
    g_assert_no_error(w->error);
    g_assert_cmpstr(plan_world_step(w), ==, "all");
    g_assert_cmpstr(row_text(w->plan, "producer"), ==, "council");
    g_assert_cmpstr(plan_world_council(w, "outcome"), ==, "synthesis");
    Json *dissent = json_object_get(json_object_get(w->plan, "council"), "dissent");

    g_assert_cmpuint(json_array_size(dissent), ==, 1);
    g_assert_cmpstr(json_string_value(json_array_get(dissent, 0)), ==, "B wanted more");
    g_assert_cmpuint(w->asked->len, ==, 7);
    g_assert_cmpint(plan_world_events(w, "council.opened"), ==, 1);
    g_assert_cmpint(plan_world_events(w, "opinion.given"), ==, 3);
    g_assert_cmpint(plan_world_events(w, "ranking.given"), ==, 3);
    g_assert_cmpint(plan_world_events(w, "council.closed"), ==, 1);
    g_assert_cmpint(store_read_int(w->store->db, "SELECT COUNT(*) FROM plan_voices WHERE state = 'answered'"),
                    ==, 7);
    plan_world_free(w);
}

/* All opinions at once, then all rankings; each has a stance of its own and sees the others' opinions alone,
 * under letters. */
static void
test_council_words(void)
{
    static const char *const names[] = {"", "\"one\"", "\"two\"", "\"three\""};
    PlanWorld *w = plan_world_new(COUNCIL, good_council, G_N_ELEMENTS(good_council));
    g_autoptr(GHashTable) systems = g_hash_table_new(g_str_hash, g_str_equal);

    plan_world_make(w);
    for (guint i = 0; i < 6; i++) {
        const PlanAsked *a = w->asked->pdata[i];
        guint seat = (guint)(a->agent[strlen("council-")] - '0');

        g_assert_true(g_str_has_prefix(a->agent, "council-"));
        g_assert_null(strstr(a->prompt, "brain-model"));
        if (i < 3) {
            g_assert_null(strstr(a->prompt, "Plan A"));
            g_assert_true(g_hash_table_add(systems, a->system));
            continue;
        }
        for (guint other = 1; other <= 3; other++)
            g_assert_true((strstr(a->prompt, names[other]) != NULL) == (other != seat));
        g_assert_nonnull(strstr(a->prompt, "## Plan A"));
        g_assert_nonnull(strstr(a->prompt, "## Plan B"));
        g_assert_null(strstr(a->prompt, "## Plan C"));
        g_assert_null(strstr(a->prompt, "council-"));
    }
    const PlanAsked *chair = w->asked->pdata[6];

    g_assert_nonnull(strstr(chair->prompt, "## Plan C"));
    g_assert_nonnull(strstr(chair->prompt, "## How the members ranked them"));
    plan_world_free(w);
}

/* Rows as plan_next() sees them: opinions of these seats. */
static Json *
rows_of(const char *id, guint seats, const char *answered)
{
    Json *voices = json_array(), *list = json_array();

    for (guint i = 0; i < seats; i++)
        json_array_append_new(list, json_pack("{s:s}", "model", "m"));
    for (const char *p = answered; *p != '\0'; p++)
        json_array_append_new(voices, json_pack("{s:s, s:i, s:s, s:{}}", "phase", "opinion", "seat", *p - '0',
                                                "state", "answered", "body"));
    return json_pack("{s:{s:s, s:s, s:I, s:{s:o, s:i, s:i}}, s:o}", "plan", "id", id, "producer", "council",
                     "created_us", (json_int_t)0, "council", "seats", list, "quorum", 1, "timeout_s", 10,
                     "voices", voices);
}

/* Every order comes up, another for each seat, and the same one again after a restart. */
static void
test_order(void)
{
    g_autoptr(GHashTable) seen = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    guint differ = 0;

    for (guint i = 0; i < 200; i++) {
        g_autofree char *id = g_strdup_printf("plan-%u", i);
        g_autoptr(Json) rows = rows_of(id, 4, "1234");
        guint a[COUNCIL_SEATS_MAX], b[COUNCIL_SEATS_MAX], again[COUNCIL_SEATS_MAX];

        g_assert_cmpuint(council_order(rows, 1, a), ==, 3);
        g_assert_cmpuint(council_order(rows, 1, again), ==, 3);
        g_assert_cmpmem(a, 3 * sizeof a[0], again, 3 * sizeof a[0]);
        for (guint k = 0; k < 3; k++)
            g_assert_cmpuint(a[k], !=, 1);
        g_hash_table_add(seen, g_strdup_printf("%u%u%u", a[0], a[1], a[2]));
        (void)council_order(rows, 0, a);
        (void)council_order(rows, 5, b);
        differ += memcmp(a, b, 4 * sizeof a[0]) != 0;
    }
    g_assert_cmpuint(g_hash_table_size(seen), ==, 6);
    g_assert_cmpuint(differ, >, 150);
    g_autoptr(Json) two = rows_of("x", 3, "13");
    guint both[COUNCIL_SEATS_MAX];

    g_assert_cmpuint(council_order(two, 1, both), ==, 2);
}

static void
test_ranking_read(void)
{
    static const guint order[] = {4, 2, 9};
    static const struct {
        const char *said, *body; /* NULL: malformed */
    } cases[] = {
        {"{\"ranking\": [\"A\", \"B\", \"C\"]}", "[4,2,9]"},
        {"Well: {\"why\": \"C is best\", \"ranking\": [\"C\", \"A\", \"B\"]} so", "[9,4,2]"},
        {"{\"ranking\": [\"A\", \"B\"]}", NULL},
        {"{\"ranking\": [\"A\", \"B\", \"B\"]}", NULL},
        {"{\"ranking\": [\"A\", \"B\", \"D\"]}", NULL},
        {"{\"ranking\": [\"A\", \"B\", \"CC\"]}", NULL},
        {"{\"ranking\": [\"a\", \"b\", \"c\"]}", NULL},
        {"{\"ranking\": [1, 2, 3]}", NULL},
        {"{\"ranking\": \"ABC\"}", NULL},
        {"{}", NULL},
        {"A, then B", NULL},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(Json) voice = json_object();

        voice_read("ranking", cases[i].said, order, G_N_ELEMENTS(order), voice);
        g_autofree char *body = cases[i].body != NULL ? json_encode(json_object_get(voice, "body")) : NULL;

        g_assert_cmpstr(row_text(voice, "state"), ==, cases[i].body != NULL ? "answered" : "malformed");
        g_assert_cmpstr(body, ==, cases[i].body);
        g_assert_true((row_text(voice, "problem") != NULL) == (cases[i].body == NULL));
    }
}

/* Members that say nothing, or nothing that can be read, at each stage. */
static void
test_council_troubles(void)
{
    static const struct {
        const char *policy;
        PlanLine lines[12];
        const char *outcome, *reason, *step, *producer;
        guint questions;
    } cases[] = {
        /* one silent, one malformed: the other two go on */
        {SEATS4,
         {{"council-1", PLAN("one")},
          {"council-1", RANK("[\"A\", \"B\"]")},
          {"council-2", NULL, ERR_TIMEOUT},
          {"council-3", "what is a plan?"},
          {"council-4", PLAN("four")},
          {"council-4", RANK("[\"B\", \"A\"]")},
          {"chairman", PLAN("all")}},
         "synthesis",
         NULL,
         "all",
         "council",
         7},
        /* nobody ranks: the chairman decides all the same */
        {COUNCIL,
         {{"council-1", PLAN("one")},
          {"council-1", "no"},
          {"council-2", PLAN("two")},
          {"council-2", NULL, ERR_TIMEOUT},
          {"council-3", PLAN("three")},
          {"council-3", RANK("[\"A\"]")},
          {"chairman", PLAN("all")}},
         "synthesis",
         NULL,
         "all",
         "council",
         7},
        /* the chairman's second try */
        {COUNCIL,
         {{"council-1", PLAN("one")},
          {"council-1", RANK("[\"A\", \"B\"]")},
          {"council-2", PLAN("two")},
          {"council-2", RANK("[\"A\", \"B\"]")},
          {"council-3", PLAN("three")},
          {"council-3", RANK("[\"A\", \"B\"]")},
          {"chairman", "hm"},
          {"chairman", PLAN("late")}},
         "synthesis",
         NULL,
         "late",
         "council",
         8},
        /* he gives none: the best opinion stands, of which there is one that can be used */
        {"{`planner`: `council`, `council`: {`quorum`: 1}}",
         {{"council-1", NULL, ERR_LIMIT},
          {"council-2", PLAN("two")},
          {"council-3", "no"},
          {"chairman", "hm"}},
         "opinion",
         "the chairman: there is no JSON object in it",
         "two",
         "council",
         5},
        {"{`planner`: `council`, `council`: {`quorum`: 1}}",
         {{"council-1", NULL, ERR_LIMIT},
          {"council-2", PLAN("two")},
          {"council-3", "no"},
          {"chairman", NULL, ERR_TIMEOUT}},
         "opinion",
         "the chairman: no answer",
         "two",
         "council",
         4},
        /* too few */
        {COUNCIL,
         {{"council-1", PLAN("one")},
          {"council-2", NULL, ERR_TIMEOUT},
          {"council-3", "{}"},
          {"planner", PLAN("alone")}},
         "brain",
         "1 of 3 opinions can be used, 2 are needed",
         "alone",
         "brain",
         4},
        /* the cap: 3 opinions are 330 tokens */
        {"{`planner`: `council`, `budget`: {`tokens`: 300}}",
         {{"council-1", PLAN("one")}, {"council-2", PLAN("two")}, {"council-3", PLAN("three")}},
         "opinion",
         "the council's cap of 300 tokens is reached",
         "one",
         "council",
         3},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        size_t n = 0;

        while (n < G_N_ELEMENTS(cases[i].lines) && cases[i].lines[n].agent != NULL)
            n++;
        PlanWorld *w = plan_world_new(cases[i].policy, cases[i].lines, n);

        g_test_message("case %zu", i);
        plan_world_make(w);
        g_assert_no_error(w->error);
        g_assert_cmpstr(plan_world_council(w, "outcome"), ==, cases[i].outcome);
        g_assert_cmpstr(plan_world_council(w, "reason"), ==, cases[i].reason);
        g_assert_cmpstr(plan_world_step(w), ==, cases[i].step);
        g_assert_cmpstr(row_text(w->plan, "producer"), ==, cases[i].producer);
        g_assert_cmpuint(w->asked->len, ==, cases[i].questions);
        g_assert_cmpint(plan_world_events(w, "council.closed"), ==, 1);
        plan_world_free(w);
    }
}

/* The opinion that its peers put first stands. */
static void
test_scores(void)
{
    g_autoptr(Json) rows = rows_of("x", 3, "123");
    g_auto(PlanNext) next = {0};
    static const guint orders[][2] = {{3, 2}, {3, 1}, {2, 1}};

    for (guint i = 0; i < 3; i++)
        json_array_append_new(json_object_get(rows, "voices"),
                              json_pack("{s:s, s:i, s:s, s:[i, i]}", "phase", "ranking", "seat", i + 1,
                                        "state", "answered", "body", orders[i][0], orders[i][1]));
    plan_next(rows, G_MAXINT64, &next);
    g_assert_cmpint(next.what, ==, PLAN_ADOPT);
    g_assert_cmpint(row_int(next.outcome, "seat"), ==, 3);
    g_autofree char *scores = json_encode(json_object_get(next.outcome, "scores"));

    g_assert_cmpstr(scores, ==,
                    "[{\"seat\":1,\"score\":0.0},{\"seat\":2,\"score\":0.5},{\"seat\":3,\"score\":1.0}]");
    g_assert_cmpstr(row_text(next.outcome, "reason"), ==, "the council's time of 10 s is over");
}

/* One of three is silent: each phase goes on without it when its part of the ten seconds is over. */
static void
test_times(void)
{
    static const struct {
        gint64 now_ms;
        PlanDo what;
        const char *phase;
        guint seats;
    } cases[] = {
        {0, PLAN_ASK, "opinion", 1},    {4999, PLAN_ASK, "opinion", 1},   {5000, PLAN_ASK, "ranking", 2},
        {7499, PLAN_ASK, "ranking", 2}, {7500, PLAN_ASK, "synthesis", 1}, {9999, PLAN_ASK, "synthesis", 1},
        {10000, PLAN_ADOPT, NULL, 0},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(Json) rows = rows_of("x", 3, "13");
        g_auto(PlanNext) next = {0};

        plan_next(rows, cases[i].now_ms * 1000, &next);
        g_assert_cmpint(next.what, ==, cases[i].what);
        if (cases[i].phase == NULL)
            continue;
        g_assert_cmpstr(next.phase, ==, cases[i].phase);
        g_assert_cmpuint(next.n_seats, ==, cases[i].seats);
    }
}

/* Killed after any number of answers: only what is missing is asked. */
static void
test_resume(void)
{
    for (guint answers = 1; answers <= 6; answers++) {
        PlanWorld *w = plan_world_new(COUNCIL, good_council, G_N_ELEMENTS(good_council));

        w->answers_max = answers;
        plan_world_make(w);
        g_assert_false(w->done);
        while (store_read_int(w->store->db, "SELECT COUNT(*) FROM plan_voices") < answers)
            g_main_context_iteration(NULL, FALSE);
        team_free(w->team);
        g_assert_true(w->done);
        g_assert_error(w->error, ERR_DOMAIN, ERR_CANCELLED);
        for (guint i = w->asked->len; i > 0; i--) {
            if (!((PlanAsked *)w->asked->pdata[i - 1])->answered)
                g_ptr_array_remove_index(w->asked, i - 1);
        }
        g_assert_cmpuint(w->asked->len, ==, answers);
        for (guint i = 0; i < answers; i++)
            ((PlanAsked *)w->asked->pdata[i])->id = i + 1;
        plan_world_team(w);
        w->answers_max = 0;
        plan_world_make(w);
        g_assert_no_error(w->error);
        g_assert_cmpstr(plan_world_step(w), ==, "all");
        g_assert_cmpuint(w->asked->len, ==, 7);
        g_assert_cmpint(plan_world_events(w, "opinion.given"), ==, 3);
        g_assert_cmpint(plan_world_events(w, "ranking.given"), ==, 3);
        plan_world_free(w);
    }
}

/* After the opinions there is no more time, or money: the best of them stands, and nobody is asked. */
static void
test_bounds(void)
{
    static const struct {
        const char *policy, *change, *reason;
    } cases[] = {
        {COUNCIL, "UPDATE plans SET created_us = created_us - 601000000",
         "the council's time of 600 s is over"},
        {"{`planner`: `council`, `council`: {`usd`: 0.5}}",
         "INSERT INTO usage VALUES (1, 'mind-1', 'council-1-7', '" TASK
         "', '', 'p', 'm', 1, 0, 0, 1, 1, 0, 0, "
         "500000, 1)",
         "the council's cap of 0.50 USD is reached"},
        {"{`planner`: `council`, `council`: {`usd`: 5}, `budget`: {`usd`: 0.1}}",
         "INSERT INTO usage VALUES (1, 'mind-1', 'chairman-7', '" TASK
         "', '', 'p', 'm', 1, 0, 0, 1, 1, 0, 0, "
         "100000, 1)",
         "the council's cap of 0.10 USD is reached"},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        PlanWorld *w = plan_world_new(cases[i].policy, good_council, G_N_ELEMENTS(good_council));

        w->answers_max = 3;
        plan_world_make(w);
        while (store_read_int(w->store->db, "SELECT COUNT(*) FROM plan_voices") < 3)
            g_main_context_iteration(NULL, FALSE);
        team_free(w->team);
        plan_world_sql(w, "%s", cases[i].change);
        plan_world_team(w);
        w->answers_max = 0;
        guint before = w->asked->len;

        plan_world_make(w);
        g_assert_no_error(w->error);
        g_assert_cmpuint(w->asked->len, ==, before);
        g_assert_cmpstr(plan_world_council(w, "outcome"), ==, "opinion");
        g_assert_cmpstr(plan_world_council(w, "reason"), ==, cases[i].reason);
        plan_world_free(w);
    }
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/team/council/whole", test_council);
    g_test_add_func("/team/council/words", test_council_words);
    g_test_add_func("/team/council/order", test_order);
    g_test_add_func("/team/council/ranking", test_ranking_read);
    g_test_add_func("/team/council/troubles", test_council_troubles);
    g_test_add_func("/team/council/scores", test_scores);
    g_test_add_func("/team/council/times", test_times);
    g_test_add_func("/team/council/resume", test_resume);
    g_test_add_func("/team/council/bounds", test_bounds);
    return g_test_run();
}

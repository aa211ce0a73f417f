/* SPDX-License-Identifier: Apache-2.0 */
/* Plans of one brain and of councils, with a mind that the test plays. */
#include <string.h>

#include "base/err.h"
#include "support/store.h"
#include "team/council.h"
#include "team/team-private.h"

#define PLAN(name) "{\"project\": \"P\", \"steps\": [{\"name\": \"" name "\"}]}"
#define TASK "11111111-1111-4111-8111-111111111111"
#define SQUAD "22222222-2222-4222-8222-222222222222"

/* What one who asks hears, in turn; the last one stays. */
typedef struct Line {
    const char *agent; /* "council-1" of "council-1-7" */
    const char *text;  /* NULL: `error` */
    ErrKind error;
} Line;

typedef struct World World;

typedef struct Asked {
    World *world;
    guint id;
    char *agent, *model, *system, *prompt;
    MindFunc done;
    void *data;
    bool answered, cancelled;
} Asked;

struct World {
    StoreBench *store;
    Loop *loop;
    Team *team;
    GPtrArray *asked; /* Asked */
    const Line *lines;
    size_t n_lines;
    guint answers_max; /* afterwards nothing is heard any more; 0: no end */
    guint answers;
    bool done;
    GError *error;
    Json *plan;
};

/* ---- the mind ---- */

static void
asked_free(gpointer data)
{
    Asked *a = data;

    g_free(a->agent);
    g_free(a->model);
    g_free(a->system);
    g_free(a->prompt);
    g_free(a);
}

static const Line *
find_line(const World *w, const Asked *asked)
{
    const Line *found = NULL;
    guint before = 0;

    for (guint i = 0; w->asked->pdata[i] != asked; i++)
        before += strcmp(((Asked *)w->asked->pdata[i])->agent, asked->agent) == 0;
    for (size_t i = 0; i < w->n_lines; i++) {
        const char *agent = w->lines[i].agent;

        if (!g_str_has_prefix(asked->agent, agent) || asked->agent[strlen(agent)] != '-')
            continue;
        found = &w->lines[i];
        if (before-- == 0)
            break;
    }
    return found;
}

static guint
ask(void *ctx, const MindAsk *question, MindFunc done, void *data)
{
    World *w = ctx;
    Asked *a = g_new0(Asked, 1);

    g_assert_cmpstr(question->task_id, ==, TASK);
    g_assert_cmpstr(question->squad_id, ==, SQUAD);
    *a = (Asked){.world = w,
                 .id = w->asked->len + 1,
                 .agent = g_strdup(question->agent),
                 .model = g_strdup(question->model),
                 .system = g_strdup(question->system),
                 .prompt = g_strdup(question->prompt),
                 .done = done,
                 .data = data};
    g_ptr_array_add(w->asked, a);
    return a->id;
}

static void
cancel(void *ctx, guint id)
{
    Asked *a = ((World *)ctx)->asked->pdata[id - 1];

    g_assert_false(a->answered);
    a->cancelled = true;
}

static void
answer(Asked *a)
{
    const Line *line = find_line(a->world, a);
    MindAnswer said = {.text = line != NULL ? line->text : NULL,
                       .model = a->model,
                       .input_tokens = 100,
                       .output_tokens = 10,
                       .duration_us = 5};
    g_autoptr(GError) error = NULL;

    g_assert_nonnull(line);
    a->answered = true;
    if (line->text == NULL)
        error = g_error_new(ERR_DOMAIN, (int)line->error, "no answer");
    a->done(line->text != NULL ? &said : NULL, error, a->data);
}

/* Last first, so that no order can be relied upon. */
static bool
answer_some(World *w)
{
    for (guint i = w->asked->len; i > 0; i--) {
        Asked *a = w->asked->pdata[i - 1];

        if (a->answered || a->cancelled || (w->answers_max > 0 && w->answers >= w->answers_max))
            continue;
        w->answers++;
        answer(a);
        return true;
    }
    return false;
}

/* ---- the team ---- */

static void
make_team(World *w)
{
    TeamSpec spec = {.loop = w->loop,
                     .db = w->store->db,
                     .events = w->store->log,
                     .mind = {ask, cancel, w},
                     .limits = {.retry_ms = 1}};

    w->team = team_new(&spec, NULL);
    g_assert_nonnull(w->team);
}

static void
sql(World *w, const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    g_autofree char *text = g_strdup_vprintf(fmt, args);
    va_end(args);
    g_assert_true(store_write_sql(w->store->db, text, NULL));
}

static World *
world_new(const char *policy, const Line *lines, size_t n_lines)
{
    World *w = g_new0(World, 1);
    g_autofree char *json = g_strdelimit(g_strdup(policy), "`", '"');

    w->store = store_bench_new_open();
    w->loop = loop_new(NULL);
    w->asked = g_ptr_array_new_with_free_func(asked_free);
    w->lines = lines;
    w->n_lines = n_lines;
    sql(w,
        "INSERT INTO squads (id, user_id, name, created_us, updated_us) VALUES ('" SQUAD "', '', 's', 1, 1)");
    sql(w,
        "INSERT INTO squad_members (id, squad_id, position, name, role, archetype, llm_provider, llm_model, "
        "created_us, updated_us) VALUES ('c', '" SQUAD
        "', 0, 'c', 'coder', 'coder', 'p', 'coder-model', 1, 1), "
        "('p', '" SQUAD "', 1, 'p', 'planner', 'planner', 'p', 'brain-model', 1, 1)");
    sql(w,
        "INSERT INTO tasks (id, number, squad_id, owner, actor, source, title, request, policy, state, "
        "created_us, "
        "updated_us) VALUES ('" TASK "', 7, '" SQUAD
        "', '', 'local', 'cli', 't', 'make it so', '%s', 'planning', 1, "
        "1)",
        json);
    make_team(w);
    return w;
}

static void
world_free(World *w)
{
    team_free(w->team);
    /* What the database still answers holds the team. */
    (void)store_read_int(w->store->db, "SELECT 1");
    store_bench_free(w->store);
    loop_free(w->loop);
    g_ptr_array_unref(w->asked);
    g_clear_error(&w->error);
    json_decref(w->plan);
    g_free(w);
}

static void
on_plan(Json *plan, const GError *error, void *data)
{
    World *w = data;

    g_assert_false(w->done);
    g_assert_true((plan != NULL) != (error != NULL));
    w->done = true;
    g_clear_error(&w->error);
    json_decref(w->plan);
    w->plan = plan != NULL ? json_deep_copy(plan) : NULL;
    w->error = error != NULL ? g_error_copy(error) : NULL;
}

/* Until it is made, or nobody says anything any more. */
static void
run(World *w)
{
    while (!w->done && (w->answers_max == 0 || w->answers < w->answers_max)) {
        while (g_main_context_iteration(NULL, FALSE))
            continue;
        if (!w->done && !answer_some(w))
            g_main_context_iteration(NULL, TRUE);
    }
}

static void
make(World *w)
{
    w->done = false;
    plan_make(w->team, TASK, on_plan, w);
    run(w);
}

static guint
count_asked(const World *w, const char *agent)
{
    guint n = 0;

    for (guint i = 0; i < w->asked->len; i++)
        n += g_str_has_prefix(((Asked *)w->asked->pdata[i])->agent, agent);
    return n;
}

static const char *
council_text(const World *w, const char *name)
{
    return row_text(json_object_get(w->plan, "council"), name);
}

static const char *
first_step(const World *w)
{
    Json *steps = json_object_get(json_object_get(w->plan, "body"), "steps");

    return row_text(json_array_get(steps, 0), "name");
}

static gint64
count_events(World *w, const char *kind)
{
    g_autofree char *text = g_strdup_printf(
        "SELECT COUNT(*) FROM events WHERE task_id = '" TASK "' AND kind = '%s'", kind);

    return store_read_int(w->store->db, text);
}

/* ---- one brain ---- */

static void
test_brain(void)
{
    static const struct {
        Line lines[3];
        int kind; /* -1: a plan */
        guint questions;
        const char *state, *step;
    } cases[] = {
        {{{"planner", "Sure!\n```json\n" PLAN("a") "\n```"}}, -1, 1, "draft", "a"},
        {{{"planner", "I will not."}, {"planner", PLAN("b")}}, -1, 2, "draft", "b"},
        {{{"planner", "{\"project\": \"P\"}"}, {"planner", "{\"plan\": " PLAN("c") "}"}},
         -1,
         2,
         "draft",
         "c"},
        {{{"planner", NULL, ERR_INVALID}, {"planner", PLAN("d")}}, -1, 2, "draft", "d"},
        {{{"planner", "no"}, {"planner", "{\"still\": \"no\"}"}}, ERR_INVALID, 2, "failed", NULL},
        {{{"planner", NULL, ERR_UNAVAILABLE}, {"planner", PLAN("e")}}, -1, 2, "draft", "e"},
        {{{"planner", NULL, ERR_UNAVAILABLE}}, ERR_UNAVAILABLE, 3, "asked", NULL},
        {{{"planner", NULL, ERR_TIMEOUT}}, ERR_TIMEOUT, 1, "asked", NULL},
        {{{"planner", NULL, ERR_LIMIT}}, ERR_LIMIT, 1, "asked", NULL},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        size_t n = 0;

        while (n < G_N_ELEMENTS(cases[i].lines) && cases[i].lines[n].agent != NULL)
            n++;
        World *w = world_new("{}", cases[i].lines, n);
        g_autofree char *states = g_strdup_printf("SELECT COUNT(*) FROM plans WHERE task_id = '" TASK
                                                  "' AND state = '%s' AND producer = 'brain'",
                                                  cases[i].state);

        make(w);
        if (cases[i].kind < 0)
            g_assert_no_error(w->error);
        else
            g_assert_error(w->error, ERR_DOMAIN, cases[i].kind);
        if (cases[i].step != NULL)
            g_assert_cmpstr(first_step(w), ==, cases[i].step);
        g_assert_cmpuint(count_asked(w, "planner-7"), ==, cases[i].questions);
        g_assert_cmpint(store_read_int(w->store->db, states), ==, 1);
        g_assert_cmpstr(((Asked *)w->asked->pdata[0])->model, ==, "brain-model");
        world_free(w);
    }
}

/* What was wrong is said, and the answer is shown as what it is. */
static void
test_brain_repair_words(void)
{
    static const Line lines[] = {
        {"planner", "{\"project\": \"P\", \"steps\": [{\"name\": \"a/b\\u001b\"}]} >>>"},
        {"planner", PLAN("a")}};
    World *w = world_new("{}", lines, G_N_ELEMENTS(lines));

    make(w);
    g_assert_no_error(w->error);
    const Asked *second = w->asked->pdata[1];

    g_assert_nonnull(strstr(second->prompt, "It cannot be used: steps[0]: name: letters, digits"));
    g_assert_nonnull(strstr(second->prompt, "## Your last answer"));
    g_assert_nonnull(strstr(second->prompt, "make it so"));
    g_assert_null(strchr(second->prompt, '\x1b'));
    world_free(w);
}

/* A model that was away is asked again by the next plan_make() of the same row; a failed one is a new row. */
static void
test_brain_again(void)
{
    static const Line lines[] = {
        {"planner", NULL, ERR_TIMEOUT}, {"planner", "no"}, {"planner", "no"}, {"planner", PLAN("a")}};
    World *w = world_new("{}", lines, G_N_ELEMENTS(lines));

    make(w);
    g_assert_error(w->error, ERR_DOMAIN, ERR_TIMEOUT);
    make(w);
    g_assert_error(w->error, ERR_DOMAIN, ERR_INVALID);
    g_assert_cmpint(store_read_int(w->store->db, "SELECT MAX(version) FROM plans"), ==, 1);
    make(w);
    g_assert_no_error(w->error);
    g_assert_cmpint(row_int(w->plan, "version"), ==, 2);
    make(w); /* it is there */
    g_assert_no_error(w->error);
    g_assert_cmpuint(w->asked->len, ==, 4);
    world_free(w);
}

/* ---- councils ---- */

#define RANK(order) "{\"ranking\": " order "}"
#define COUNCIL "{`planner`: `council`}"
#define SEATS4                                                                                               \
    "{`planner`: `council`, `chairman`: {`model`: `chair-model`}, `council`: {`quorum`: 2, `seats`: "        \
    "[{`model`: "                                                                                            \
    "`m1`}, {`model`: `m2`}, {`provider`: `q`, `model`: `m3`}, {`model`: `m4`}]}}"

static const Line good_council[] = {
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
    World *w = world_new(COUNCIL, good_council, G_N_ELEMENTS(good_council));

    make(w);
    g_assert_no_error(w->error);
    g_assert_cmpstr(first_step(w), ==, "all");
    g_assert_cmpstr(row_text(w->plan, "producer"), ==, "council");
    g_assert_cmpstr(council_text(w, "outcome"), ==, "synthesis");
    Json *dissent = json_object_get(json_object_get(w->plan, "council"), "dissent");

    g_assert_cmpuint(json_array_size(dissent), ==, 1);
    g_assert_cmpstr(json_string_value(json_array_get(dissent, 0)), ==, "B wanted more");
    g_assert_cmpuint(w->asked->len, ==, 7);
    g_assert_cmpint(count_events(w, "council.opened"), ==, 1);
    g_assert_cmpint(count_events(w, "opinion.given"), ==, 3);
    g_assert_cmpint(count_events(w, "ranking.given"), ==, 3);
    g_assert_cmpint(count_events(w, "council.closed"), ==, 1);
    g_assert_cmpint(store_read_int(w->store->db, "SELECT COUNT(*) FROM plan_voices WHERE state = 'answered'"),
                    ==, 7);
    world_free(w);
}

/* All opinions at once, then all rankings; each has a stance of its own and sees the others' opinions alone,
 * under letters. */
static void
test_council_words(void)
{
    static const char *const names[] = {"", "\"one\"", "\"two\"", "\"three\""};
    World *w = world_new(COUNCIL, good_council, G_N_ELEMENTS(good_council));
    g_autoptr(GHashTable) systems = g_hash_table_new(g_str_hash, g_str_equal);

    make(w);
    for (guint i = 0; i < 6; i++) {
        const Asked *a = w->asked->pdata[i];
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
    const Asked *chair = w->asked->pdata[6];

    g_assert_nonnull(strstr(chair->prompt, "## Plan C"));
    g_assert_nonnull(strstr(chair->prompt, "## How the members ranked them"));
    world_free(w);
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
        Line lines[12];
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
        World *w = world_new(cases[i].policy, cases[i].lines, n);

        g_test_message("case %zu", i);
        make(w);
        g_assert_no_error(w->error);
        g_assert_cmpstr(council_text(w, "outcome"), ==, cases[i].outcome);
        g_assert_cmpstr(council_text(w, "reason"), ==, cases[i].reason);
        g_assert_cmpstr(first_step(w), ==, cases[i].step);
        g_assert_cmpstr(row_text(w->plan, "producer"), ==, cases[i].producer);
        g_assert_cmpuint(w->asked->len, ==, cases[i].questions);
        g_assert_cmpint(count_events(w, "council.closed"), ==, 1);
        world_free(w);
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
        World *w = world_new(COUNCIL, good_council, G_N_ELEMENTS(good_council));

        w->answers_max = answers;
        make(w);
        g_assert_false(w->done);
        while (store_read_int(w->store->db, "SELECT COUNT(*) FROM plan_voices") < answers)
            g_main_context_iteration(NULL, FALSE);
        team_free(w->team);
        g_assert_true(w->done);
        g_assert_error(w->error, ERR_DOMAIN, ERR_CANCELLED);
        for (guint i = w->asked->len; i > 0; i--) {
            if (!((Asked *)w->asked->pdata[i - 1])->answered)
                g_ptr_array_remove_index(w->asked, i - 1);
        }
        g_assert_cmpuint(w->asked->len, ==, answers);
        for (guint i = 0; i < answers; i++)
            ((Asked *)w->asked->pdata[i])->id = i + 1;
        make_team(w);
        w->answers_max = 0;
        make(w);
        g_assert_no_error(w->error);
        g_assert_cmpstr(first_step(w), ==, "all");
        g_assert_cmpuint(w->asked->len, ==, 7);
        g_assert_cmpint(count_events(w, "opinion.given"), ==, 3);
        g_assert_cmpint(count_events(w, "ranking.given"), ==, 3);
        world_free(w);
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
        World *w = world_new(cases[i].policy, good_council, G_N_ELEMENTS(good_council));

        w->answers_max = 3;
        make(w);
        while (store_read_int(w->store->db, "SELECT COUNT(*) FROM plan_voices") < 3)
            g_main_context_iteration(NULL, FALSE);
        team_free(w->team);
        sql(w, "%s", cases[i].change);
        make_team(w);
        w->answers_max = 0;
        guint before = w->asked->len;

        make(w);
        g_assert_no_error(w->error);
        g_assert_cmpuint(w->asked->len, ==, before);
        g_assert_cmpstr(council_text(w, "outcome"), ==, "opinion");
        g_assert_cmpstr(council_text(w, "reason"), ==, cases[i].reason);
        world_free(w);
    }
}

/* ---- people ---- */

static void
test_cancel(void)
{
    World *w = world_new(COUNCIL, good_council, G_N_ELEMENTS(good_council));

    plan_make(w->team, TASK, on_plan, w);
    while (w->asked->len < 3)
        g_main_context_iteration(NULL, TRUE);
    plan_cancel(w->team, TASK);
    g_assert_false(w->done);
    for (guint i = 0; i < 3; i++)
        g_assert_true(((Asked *)w->asked->pdata[i])->cancelled);
    while (!w->done)
        g_main_context_iteration(NULL, TRUE);
    g_assert_error(w->error, ERR_DOMAIN, ERR_CANCELLED);
    world_free(w);
}

typedef struct Waited {
    bool done;
    Json *value;
    GError *error;
} Waited;

static void
on_waited(Json *value, const GError *error, void *data)
{
    Waited *waited = data;

    waited->done = true;
    waited->value = value != NULL ? json_deep_copy(value) : NULL;
    waited->error = error != NULL ? g_error_copy(error) : NULL;
}

static void
waited_clear(Waited *waited)
{
    json_decref(waited->value);
    g_clear_error(&waited->error);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Waited, waited_clear)

static void
wait_for(Waited *waited)
{
    while (!waited->done)
        g_main_context_iteration(NULL, TRUE);
}

static const TaskRef by_number = {.id = "#7", .actor = "key:k"};

/* A person's plan takes the place of one that is being made. */
static void
test_put(void)
{
    World *w = world_new(COUNCIL, good_council, G_N_ELEMENTS(good_council));
    g_auto(Waited) bad = {0}, put = {0}, got = {0};
    g_autoptr(Json) plan = json_decode(PLAN("mine"), strlen(PLAN("mine")), NULL);
    g_autoptr(Json) none = json_object();

    plan_make(w->team, TASK, on_plan, w);
    while (w->asked->len < 3)
        g_main_context_iteration(NULL, TRUE);
    plan_put(w->team, &by_number, none, on_waited, &bad);
    wait_for(&bad);
    g_assert_error(bad.error, ERR_DOMAIN, ERR_INVALID);
    plan_put(w->team, &by_number, plan, on_waited, &put);
    g_assert_true(answer_some(w)); /* too late: it is written after the person's */
    wait_for(&put);
    g_assert_no_error(put.error);
    g_assert_cmpstr(row_text(put.value, "state"), ==, "approved");
    g_assert_cmpstr(row_text(put.value, "producer"), ==, "person");
    g_assert_cmpstr(row_text(put.value, "actor"), ==, "key:k");
    while (!w->done)
        g_main_context_iteration(NULL, TRUE);
    g_assert_error(w->error, ERR_DOMAIN, ERR_CANCELLED);
    plan_get(w->team, &by_number, on_waited, &got);
    wait_for(&got);
    g_assert_cmpint(row_int(got.value, "version"), ==, 2);
    g_assert_nonnull(strstr(row_text(got.value, "text"), "> make it so"));
    g_assert_cmpint(store_read_int(w->store->db, "SELECT COUNT(*) FROM plans WHERE state = 'replaced'"), ==,
                    1);
    world_free(w);
}

static void
test_approve(void)
{
    static const Line lines[] = {{"planner", PLAN("a")}};
    World *w = world_new("{`approve`: true}", lines, G_N_ELEMENTS(lines));
    g_auto(Waited) none = {0}, foreign = {0}, yes = {0}, again = {0}, late = {0};
    g_autoptr(Json) plan = json_decode(PLAN("mine"), strlen(PLAN("mine")), NULL);

    plan_approve(w->team, &by_number, on_waited, &none);
    wait_for(&none);
    g_assert_error(none.error, ERR_DOMAIN, ERR_NOT_FOUND);
    make(w);
    g_assert_cmpstr(row_text(w->plan, "state"), ==, "draft");
    plan_approve(w->team, &(TaskRef){.id = TASK, .owner = "another", .actor = "x"}, on_waited, &foreign);
    wait_for(&foreign);
    g_assert_error(foreign.error, ERR_DOMAIN, ERR_NOT_FOUND);
    plan_approve(w->team, &by_number, on_waited, &yes);
    wait_for(&yes);
    g_assert_no_error(yes.error);
    g_assert_cmpstr(row_text(yes.value, "state"), ==, "approved");
    plan_approve(w->team, &by_number, on_waited, &again);
    wait_for(&again);
    g_assert_no_error(again.error);
    sql(w, "UPDATE tasks SET state = 'working'");
    plan_put(w->team, &by_number, plan, on_waited, &late);
    wait_for(&late);
    g_assert_error(late.error, ERR_DOMAIN, ERR_CONFLICT);
    world_free(w);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/team/brain/answers", test_brain);
    g_test_add_func("/team/brain/repair-words", test_brain_repair_words);
    g_test_add_func("/team/brain/again", test_brain_again);
    g_test_add_func("/team/council/whole", test_council);
    g_test_add_func("/team/council/words", test_council_words);
    g_test_add_func("/team/council/order", test_order);
    g_test_add_func("/team/council/ranking", test_ranking_read);
    g_test_add_func("/team/council/troubles", test_council_troubles);
    g_test_add_func("/team/council/scores", test_scores);
    g_test_add_func("/team/council/times", test_times);
    g_test_add_func("/team/council/resume", test_resume);
    g_test_add_func("/team/council/bounds", test_bounds);
    g_test_add_func("/team/plan/cancel", test_cancel);
    g_test_add_func("/team/plan/put", test_put);
    g_test_add_func("/team/plan/approve", test_approve);
    return g_test_run();
}

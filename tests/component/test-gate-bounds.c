/* SPDX-License-Identifier: Apache-2.0 */
/* What one box may take of the gate's memory, time and money. */
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "brain/gate-private.h"
#include "gate-fixture.h"

enum { TRICKLE_MS = 5 };

/* ---- memory ---- */

static char *
ask_of_values(guint n)
{
    GString *ask = g_string_new("{\"model\":\"m\",\"messages\":[{}");

    for (guint i = 1; i < n; i++)
        g_string_append(ask, ",{}");
    g_string_append(ask, "]}");
    return g_string_free(ask, FALSE);
}

static void
test_values(void)
{
    g_autofree char *many = ask_of_values(ASK_VALUES_MAX);
    g_autofree char *some = ask_of_values(ASK_VALUES_MAX / 4);
    GateWorld w;

    gate_world_init(&w, "openai");
    w.u.answer = GATE_CHAT_ANSWER;
    g_autofree char *over = gate_post(&w.g, GATE_CHAT, "", many);
    g_assert_cmpint(answer_status(over), ==, 400);
    g_assert_nonnull(strstr(over, "values"));
    g_assert_cmpuint(w.u.calls, ==, 0);
    g_autofree char *fits = gate_post(&w.g, GATE_CHAT, "", some);
    g_assert_cmpint(answer_status(fits), ==, 200);
    gate_world_clear(&w);
}

static int
begin_body(GateFixture *g, size_t length)
{
    g_autofree char *head = g_strdup_printf(
        "POST " GATE_CHAT " HTTP/1.1\r\nHost: door\r\nConnection: close\r\nContent-Length: %zu\r\n\r\n",
        length);
    int fd = fixture_connect(&g->door);

    client_sends(fd, head);
    return fd;
}

/* A box that never ends its bodies keeps out itself alone. */
static void
test_held_per_box(void)
{
    enum { BODIES = GATE_HELD_PER_BOX / GATE_BODY_MAX };
    g_autofree char *filler = g_strnfill(GATE_BODY_MAX - 1, ' ');
    int fds[BODIES];
    GateWorld w;

    gate_world_init(&w, "openai");
    w.u.answer = GATE_CHAT_ANSWER;
    for (guint i = 0; i < BODIES; i++) {
        fds[i] = begin_body(&w.g, GATE_BODY_MAX);
        client_send(fds[i], filler, GATE_BODY_MAX - 1);
    }
    fixture_turn();
    g_autofree char *over = gate_post(&w.g, GATE_CHAT, "", GATE_ASK);
    g_assert_cmpint(answer_status(over), ==, 503);
    w.g.box = "box0000000000000000b";
    g_autofree char *other = gate_post(&w.g, GATE_CHAT, "", GATE_ASK);
    g_assert_cmpint(answer_status(other), ==, 200);
    w.g.box = NULL;
    for (guint i = 0; i < BODIES; i++)
        close(fds[i]);
    fixture_until(&w.g.door.gone, BODIES);
    g_autofree char *again = gate_post(&w.g, GATE_CHAT, "", GATE_ASK);
    g_assert_cmpint(answer_status(again), ==, 200);
    gate_world_clear(&w);
}

/* ---- time ---- */

/* Bytes come all the time, but too few of them. */
static void
test_trickle(void)
{
    const GateTimes times = {.body_ms = 1};
    struct pollfd answered = {.events = POLLIN};
    GateFixture g;

    gate_fixture_init(&g, &times, NULL);
    answered.fd = begin_body(&g, GATE_BODY_MAX);
    /* Slower than the rate that a long body is given time by. */
    while (poll(&answered, 1, TRICKLE_MS) == 0)
        client_sends(answered.fd, " ");
    GString *answer = client_read(answered.fd, NULL);
    g_assert_cmpint(answer_status(answer->str), ==, 408);
    g_assert_nonnull(strstr(answer->str, "request_too_slow"));
    g_string_free(answer, TRUE);
    close(answered.fd);
    gate_fixture_clear(&g);
}

/* ---- money ---- */

static void
test_price_unknown(void)
{
    static const char asks[][80] = {"{\"model\":\"nobody-knows\",\"messages\":[]}",
                                    "{\"model\":\"nobody-knows\",\"messages\":[],\"seed\":1}"};
    static const BudgetBounds in_money[] = {{.microusd = 1000 * 1000}, {.microusd_per_hour = 1000 * 1000}};
    static const char script[] = "conversations:\n  - turns:\n      - text: hi\n";
    GateWorld w;

    gate_world_init(&w, "openai");
    w.u.answer = GATE_CHAT_ANSWER;
    budgets_set(w.g.budgets, "box:" FIXTURE_BOX, &(BudgetBounds){.tokens = 1000 * 1000}, NULL);
    g_autofree char *in_tokens = gate_post(&w.g, GATE_CHAT, "", asks[0]);
    g_assert_cmpint(answer_status(in_tokens), ==, 200);
    for (size_t i = 0; i < G_N_ELEMENTS(in_money); i++) {
        budgets_set(w.g.budgets, "task:task-1", &in_money[i], NULL);
        g_autofree char *refused = gate_post(&w.g, GATE_CHAT, "", asks[i]);

        g_assert_cmpint(answer_status(refused), ==, 402);
        g_assert_nonnull(strstr(refused, "\"price_unknown\""));
        g_assert_nonnull(strstr(refused, "prices.yaml"));
        g_assert_nonnull(strstr(refused, "task:task-1"));
    }
    g_autofree char *known = gate_post(&w.g, GATE_CHAT, "", GATE_ASK);
    g_assert_cmpint(answer_status(known), ==, 200);
    g_assert_cmpuint(w.u.calls, ==, 2);
    /* A script costs nothing. */
    gate_fixture_provider(&w.g, "{\"name\":\"s\",\"kind\":\"script\"}", script);
    g_autofree char *scripted = gate_post(&w.g, GATE_CHAT, "", "{\"model\":\"s/any\",\"messages\":[]}");
    g_assert_cmpint(answer_status(scripted), ==, 200);
    gate_world_clear(&w);
}

/* Which of its bounds a provider obeys, the gate does not know. */
static void
test_highest_bound(void)
{
    static const char *const asks[] = {
        "{\"model\":\"m\",\"messages\":[],\"max_tokens\":100000,\"max_completion_tokens\":1}",
        "{\"model\":\"m\",\"messages\":[],\"max_completion_tokens\":100000,\"max_output_tokens\":1}",
        "{\"model\":\"m\",\"messages\":[],\"max_output_tokens\":100000,\"max_tokens\":1}",
    };
    GateWorld w;

    gate_world_init(&w, "openai");
    w.u.answer = GATE_CHAT_ANSWER;
    budgets_set(w.g.budgets, "all", &(BudgetBounds){.tokens = 10 * 1000}, NULL);
    for (size_t i = 0; i < G_N_ELEMENTS(asks); i++) {
        g_autofree char *answer = gate_post(&w.g, GATE_CHAT, "", asks[i]);

        g_assert_cmpint(answer_status(answer), ==, 402);
    }
    g_autofree char *small = gate_post(&w.g, GATE_CHAT, "",
                                       "{\"model\":\"m\",\"messages\":[],\"max_tokens\":1}");
    g_assert_cmpint(answer_status(small), ==, 200);
    gate_world_clear(&w);
}

#define LAST_WORD "data: {\"choices\":[{\"delta\":{\"content\":\"good\"},\"finish_reason\":\"stop\"}]}\n\n"
#define USED "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":7,\"completion_tokens\":777}}\n\n"

/* A client that has its answer and goes before the chunk that says what it used. */
static void
test_leaving_at_the_last_word(void)
{
    const char *pieces[] = {LAST_WORD, NULL, NULL, NULL};
    GateWorld w;

    gate_world_init(&w, "openai");
    w.u.stream = pieces;
    w.u.hold = true;
    int fd = gate_post_begin(&w.g, GATE_CHAT, GATE_ASK_STREAM);
    g_string_free(client_read(fd, "finish_reason"), TRUE);
    close(fd);
    fixture_until(&w.g.door.gone, 1);
    g_assert_cmpuint(gate_fixture_facts(&w.g, "model.called"), ==, 0);
    g_assert_nonnull(w.u.open);
    pieces[1] = USED;
    pieces[2] = "data: [DONE]\n\n";
    w.u.hold = false;
    http_request_wake(w.u.open);
    fixture_until(&w.g.facts->len, 1);
    Json *fact = gate_fixture_fact(&w.g, "model.called");
    g_assert_cmpint(fact_number(fact, "output_tokens"), ==, 777);
    g_assert_cmpint(fact_number(fact, "status"), ==, 200);
    g_assert_true(json_is_false(json_object_get(fact, "estimated")));
    gate_world_clear(&w);
}

/* It is not waited for without end, nor by a box that is gone. */
static void
test_lingering_ends(void)
{
    static const char *const pieces[] = {LAST_WORD, NULL};

    for (guint forgets = 0; forgets < 2; forgets++) {
        const GateTimes times = {.linger_ms = forgets ? 0 : 1};
        GateFixture g;
        Upstream u;

        gate_fixture_init(&g, &times, NULL);
        upstream_init(&u);
        g_autofree char *json = upstream_provider(&u, "openai", "");
        gate_fixture_provider(&g, json, NULL);
        u.stream = pieces;
        u.hold = true;
        int fd = gate_post_begin(&g, GATE_CHAT, GATE_ASK_STREAM);
        g_string_free(client_read(fd, "finish_reason"), TRUE);
        close(fd);
        fixture_until(&g.door.gone, 1);
        if (forgets)
            gate_forget_box(g.gate, FIXTURE_BOX);
        fixture_until(&u.gone, 1);
        Json *fact = gate_fixture_fact(&g, "model.called");
        g_assert_cmpint(fact_number(fact, "output_tokens"), ==, forgets ? ASK_OUTPUT_DEFAULT : 1);
        g_assert_true(json_is_true(json_object_get(fact, "estimated")));
        gate_fixture_clear(&g);
        upstream_clear(&u);
    }
}

/* What costs nothing can be asked for without end, but not at any rate. */
static void
test_rate_of_free(void)
{
    GateWorld w;

    gate_world_init(&w, "openai");
    w.u.answer = "{\"data\":[]}";
    budgets_set(w.g.budgets, "all", &(BudgetBounds){.calls_per_min = 2, .calls = 1}, NULL);
    for (guint i = 0; i < 3; i++) {
        g_autofree char *answer = gate_get(&w.g, "/openai/v1/models");

        g_assert_cmpint(answer_status(answer), ==, i < 2 ? 200 : 429);
    }
    g_assert_cmpuint(w.u.calls, ==, 2);
    gate_world_clear(&w);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/gate/bounds/values", test_values);
    g_test_add_func("/gate/bounds/held-per-box", test_held_per_box);
    g_test_add_func("/gate/bounds/trickle", test_trickle);
    g_test_add_func("/gate/bounds/price-unknown", test_price_unknown);
    g_test_add_func("/gate/bounds/highest-bound", test_highest_bound);
    g_test_add_func("/gate/bounds/rate-of-free", test_rate_of_free);
    g_test_add_func("/gate/bounds/leaving-at-the-last-word", test_leaving_at_the_last_word);
    g_test_add_func("/gate/bounds/lingering-ends", test_lingering_ends);
    return g_test_run();
}

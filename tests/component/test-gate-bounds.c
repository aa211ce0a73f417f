/* SPDX-License-Identifier: Apache-2.0 */
/* What one box may take of the gate's memory, time and money. */
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "brain/gate-private.h"
#include "gate-fixture.h"

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
    while (poll(&answered, 1, 0) == 0)
        client_sends(answered.fd, " ");
    GString *answer = client_read(answered.fd, NULL);
    g_assert_cmpint(answer_status(answer->str), ==, 408);
    g_assert_nonnull(strstr(answer->str, "request_too_slow"));
    g_string_free(answer, TRUE);
    close(answered.fd);
    gate_fixture_clear(&g);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/gate/bounds/values", test_values);
    g_test_add_func("/gate/bounds/held-per-box", test_held_per_box);
    g_test_add_func("/gate/bounds/trickle", test_trickle);
    return g_test_run();
}

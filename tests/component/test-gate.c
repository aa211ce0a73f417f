/* SPDX-License-Identifier: Apache-2.0 */
/* The gate between a client and a provider that behaves. */
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "gate-fixture.h"

#define CHAT "/openai/v1/chat/completions"
#define CHAT_ANSWER                                                                                          \
    "{\"id\":\"c1\",\"object\":\"chat.completion\",\"model\":\"gpt-4o-mini\",\"choices\":[{\"index\":0,"     \
    "\"message\":{\"role\":\"assistant\",\"content\":\"hi\"},\"finish_reason\":\"stop\"}],"                  \
    "\"usage\":{\"prompt_tokens\":1000,\"completion_tokens\":200,\"total_tokens\":1200,"                     \
    "\"prompt_tokens_details\":{\"cached_tokens\":400}}}"

typedef struct World {
    GateFixture g;
    Upstream u;
} World;

static void
world_init(World *w, const char *kind)
{
    gate_fixture_init(&w->g, NULL, NULL);
    upstream_init(&w->u);
    g_autofree char *json = upstream_provider(&w->u, kind, "");
    gate_fixture_provider(&w->g, json, NULL);
}

static void
world_clear(World *w)
{
    gate_fixture_clear(&w->g);
    upstream_clear(&w->u);
}

static gint64
number(Json *fact, const char *name)
{
    Json *value = json_object_get(fact, name);

    g_assert_true(json_is_integer(value));
    return json_integer_value(value);
}

static const char *
text(Json *fact, const char *name)
{
    return json_string_value(json_object_get(fact, name));
}

static void
check_fact(Json *fact)
{
    g_assert_cmpstr(text(fact, "box"), ==, FIXTURE_BOX);
    g_assert_cmpstr(text(fact, "agent"), ==, "coder-1");
    g_assert_cmpstr(text(fact, "task"), ==, "task-1");
    g_assert_cmpstr(text(fact, "squad"), ==, "squad-1");
    g_assert_cmpstr(text(fact, "provider"), ==, "up");
    g_assert_cmpstr(text(fact, "dialect"), ==, "openai");
    g_assert_nonnull(text(fact, "request"));
    g_assert_cmpint(number(fact, "latency_ms"), >=, 0);
    g_assert_cmpint(number(fact, "retries"), ==, 0);
}

static void
test_chat(void)
{
    World w;

    world_init(&w, "openai");
    w.u.answer = CHAT_ANSWER;
    g_autofree char *answer = gate_post(
        &w.g, CHAT, "", "{ \"model\": \"gpt-4o-mini\", \"messages\": [], \"temperature\": 0.1}");

    g_assert_cmpint(answer_status(answer), ==, 200);
    g_assert_cmpstr(answer_body(answer), ==, CHAT_ANSWER);
    g_assert_cmpstr(w.u.method, ==, "POST");
    g_assert_cmpstr(w.u.target, ==, "/v1/chat/completions");
    g_assert_cmpstr(w.u.body, ==, "{\"model\":\"gpt-4o-mini\",\"messages\":[],\"temperature\":0.1}");
    g_assert_nonnull(strstr(w.u.headers->str, "authorization: Bearer " FIXTURE_KEY "\n"));
    Json *fact = gate_fixture_fact(&w.g, "model.called");
    check_fact(fact);
    g_assert_cmpstr(text(fact, "model"), ==, "gpt-4o-mini");
    g_assert_cmpint(number(fact, "status"), ==, 200);
    g_assert_cmpint(number(fact, "input_tokens"), ==, 600);
    g_assert_cmpint(number(fact, "cached_tokens"), ==, 400);
    g_assert_cmpint(number(fact, "output_tokens"), ==, 200);
    /* 600 x 0.15 + 400 x 0.075 + 200 x 0.60 dollars per million */
    g_assert_cmpint(number(fact, "microusd"), ==, 240);
    g_assert_true(json_is_true(json_object_get(fact, "price_known")));
    g_assert_true(json_is_false(json_object_get(fact, "estimated")));
    world_clear(&w);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/gate/chat", test_chat);
    return g_test_run();
}

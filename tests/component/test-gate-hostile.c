/* SPDX-License-Identifier: Apache-2.0 */
/* What a box may try, by the numbers of the threat list (docs/design/15-gateway.md). */
#include <string.h>
#include <unistd.h>

#include "brain/ask.h"
#include "gate-fixture.h"

static guint
count(const char *text, const char *what)
{
    guint n = 0;

    for (const char *at = strstr(text, what); at != NULL; at = strstr(at + 1, what))
        n++;
    return n;
}

static void
check_refused(GateWorld *w, const char *answer, int status, const char *code)
{
    g_assert_cmpint(answer_status(answer), ==, status);
    if (code != NULL)
        g_assert_nonnull(strstr(answer, code));
    g_assert_cmpuint(w->u.calls, ==, 0);
}

/* ---- L1 ---- */

static void
test_l1_credentials(void)
{
    GateWorld w;

    gate_world_init(&w, "openai");
    w.u.answer = GATE_CHAT_ANSWER;
    g_autofree char *answer = gate_post(
        &w.g, GATE_CHAT,
        "Authorization: Bearer mine\r\nAUTHORIZATION: Basic bWluZQ==\r\nx-api-key: mine\r\nX-Api-Key: "
        "mine\r\n"
        "api-key: mine\r\nx-goog-api-key: mine\r\nCookie: session=mine\r\nProxy-Authorization: Basic mine\r\n"
        "OpenAI-Organization: mine\r\nOpenAI-Project: mine\r\nIdempotency-Key: mine\r\n"
        "Connection: authorization\r\n",
        GATE_ASK);

    g_assert_cmpint(answer_status(answer), ==, 200);
    g_assert_cmpuint(count(w.u.headers->str, "authorization:"), ==, 1);
    g_assert_nonnull(strstr(w.u.headers->str, "authorization: Bearer " FIXTURE_KEY "\n"));
    g_assert_null(strstr(w.u.headers->str, "mine"));
    g_assert_null(strstr(w.u.headers->str, "cookie"));
    gate_world_clear(&w);
}

/* ---- L2 ---- */

static void
test_l2_destination(void)
{
    static const char *const refused[] = {
        "/openai/v1/chat/completions?base_url=http://203.0.113.9",
        "/openai/v1/chat/completions?api-version=1",
        "/openai/v1/models?limit=5",
        "/anthropic/v1/messages?beta=true&beta=false",
        "/anthropic/v1/messages?beta=a%26b",
    };
    GateWorld w;

    gate_world_init(&w, "openai");
    for (size_t i = 0; i < G_N_ELEMENTS(refused); i++) {
        g_autofree char *answer = strstr(refused[i], "models") != NULL
                                      ? gate_get(&w.g, refused[i])
                                      : gate_post(&w.g, refused[i], "", GATE_ASK);

        check_refused(&w, answer, 400, NULL);
    }
    g_autofree char *absolute = gate_post(&w.g, "http://203.0.113.9/openai/v1/chat/completions", "",
                                          GATE_ASK);
    g_autofree char *slashes = gate_post(&w.g, "//203.0.113.9/openai/v1/chat/completions", "", GATE_ASK);
    g_assert_cmpint(answer_status(absolute), ==, 404);
    g_assert_cmpint(answer_status(slashes), ==, 404);
    g_assert_cmpuint(w.u.calls, ==, 0);
    /* Headers that other gateways obey are not even looked at. */
    w.u.answer = GATE_CHAT_ANSWER;
    g_autofree char *answer = gate_post(&w.g, GATE_CHAT,
                                        "x-portkey-custom-host: http://203.0.113.9\r\nX-Forwarded-Host: a\r\n"
                                        "X-Base-Url: http://203.0.113.9\r\n",
                                        GATE_ASK);
    g_assert_cmpint(answer_status(answer), ==, 200);
    g_assert_cmpuint(w.u.calls, ==, 1);
    g_assert_null(strstr(w.u.headers->str, "203.0.113.9"));
    gate_world_clear(&w);
}

/* ---- L3 ---- */

static void
test_l3_redirects(void)
{
    static const int statuses[] = {300, 301, 302, 303, 307, 308};
    Upstream other;
    GateWorld w;

    gate_world_init(&w, "openai");
    upstream_init(&other);
    g_autofree char *location = g_strdup_printf("Location: http://127.0.0.1:%u/v1/chat/completions",
                                                other.server.port);
    w.u.header = location;
    for (size_t i = 0; i < G_N_ELEMENTS(statuses); i++) {
        w.u.status = statuses[i];
        g_autofree char *ask = g_strdup_printf("{\"model\":\"m\",\"messages\":[],\"seed\":%zu}", i);
        g_autofree char *answer = gate_post(&w.g, GATE_CHAT, "", ask);

        g_assert_cmpint(answer_status(answer), ==, 502);
        g_assert_null(strstr(answer, "Location"));
    }
    g_assert_cmpuint(w.u.calls, ==, G_N_ELEMENTS(statuses));
    g_assert_cmpuint(other.calls, ==, 0);
    gate_world_clear(&w);
    upstream_clear(&other);
}

/* ---- L4 ---- */

static void
test_l4_paths(void)
{
    static const char *const paths[] = {
        "/openai/v1/../admin",
        "/openai/v1/chat/../chat/completions",
        "/openai/v1/chat/%2e%2e/chat/completions",
        "/openai/v1/chat%2fcompletions",
        "/openai/v1/chat/completions;x",
        "/openai/v1/chat/completions;x/",
        "/openai/v1//chat/completions",
        "/openai//v1/chat/completions",
        "/openai/v1/chat/completions%00",
        "/openai/v1/Chat/completions",
        "/openai/v1/models/..%2fadmin",
        "/openai/v1/models/%2e%2e/organization",
        "/openai/v1/models/a%2f%2fb",
        "/openai/v1/models/a%0d%0ab",
        "/openai/v1/models/a%3fb",
        "/openai/v1/models/a;b",
        "/openai/v1/models/.hidden",
        "/openai/v1/images/generations",
        "/openai/chat/completions",
        "/anthropic/messages",
        "/anthropic/v1/complete",
        "/anthropic/v1/../openai/v1/models",
    };
    GateWorld w;

    gate_world_init(&w, "openai");
    for (size_t i = 0; i < G_N_ELEMENTS(paths); i++) {
        g_autofree char *get = gate_get(&w.g, paths[i]);
        g_autofree char *post = gate_post(&w.g, paths[i], "", GATE_ASK);

        g_assert_cmpint(answer_status(get), >=, 400);
        g_assert_cmpint(answer_status(post), >=, 400);
        g_assert_cmpuint(w.u.calls, ==, 0);
    }
    gate_world_clear(&w);
}

/* ---- L5 ---- */

static void
test_l5_framing(void)
{
    static const char chunked[] =
        "POST /openai/v1/chat/completions HTTP/1.1\r\nHost: a\r\nConnection: close\r\n"
        "Transfer-Encoding: chunked\r\nTrailer: x\r\n\r\n"
        "1e;ext=1\r\n{\"model\":\"m\",\"messages\":[],\"x\"\r\n4\r\n:\"a\"\r\n1\r\n}\r\n0\r\n"
        "X-Trailer: b\r\n\r\n";
    static const char *const refused[] = {
        "POST /openai/v1/chat/completions HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n"
        "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "POST /openai/v1/chat/completions HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\nContent-Length: "
        "5\r\n\r\n{}{}",
        "POST /openai/v1/chat/completions HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: "
        "xchunked\r\n\r\n0\r\n\r\n",
        "POST /openai/v1/chat/completions HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: "
        "68\r\n\r\n"
        "{\"model\":\"m\"}\r\nPOST /v1/files HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n",
    };
    GateWorld w;

    gate_world_init(&w, "openai");
    for (size_t i = 0; i < G_N_ELEMENTS(refused); i++) {
        g_autofree char *answer = client_ask(&w.g.door, refused[i]);

        check_refused(&w, answer, 400, NULL);
    }
    w.u.answer = GATE_CHAT_ANSWER;
    g_autofree char *answer = client_ask(&w.g.door, chunked);
    g_assert_cmpint(answer_status(answer), ==, 200);
    g_assert_cmpstr(w.u.body, ==, "{\"model\":\"m\",\"messages\":[],\"x\":\"a\"}");
    g_autofree char *length = g_strdup_printf("content-length: %zu\n", strlen(w.u.body));
    g_assert_nonnull(strstr(w.u.headers->str, length));
    g_assert_null(strstr(w.u.headers->str, "transfer-encoding"));
    g_assert_null(strstr(w.u.headers->str, "trailer"));
    gate_world_clear(&w);
}

/* ---- L6 ---- */

static void
test_l6_reflection(void)
{
    static const char *const stream[] = {"data: {\"choices\":[{\"delta\":{\"content\":\"" FIXTURE_KEY
                                         "\"},\"finish_reason\":\"stop\"}]}\n\n",
                                         "data: [DO", "NE]\n\n", NULL};
    static const char *const methods[] = {"TRACE", "PUT", "DELETE", "OPTIONS", "GET", "HEAD"};
    GateWorld w;

    gate_world_init(&w, "openai");
    for (size_t i = 0; i < G_N_ELEMENTS(methods); i++) {
        g_autofree char *request = g_strdup_printf(
            "%s " GATE_CHAT " HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", methods[i]);
        g_autofree char *answer = client_ask(&w.g.door, request);

        check_refused(&w, answer, 405, NULL);
    }
    w.u.header = "x-request-id: " FIXTURE_KEY;
    w.u.answer = "{\"error\":{\"message\":\"bad key " FIXTURE_KEY " and again " FIXTURE_KEY "\"}}";
    for (int status = 200; status <= 418; status += 218) {
        w.u.status = status;
        g_autofree char *ask = g_strdup_printf("{\"model\":\"m\",\"messages\":[],\"seed\":%d}", status);
        g_autofree char *answer = gate_post(&w.g, GATE_CHAT, "", ask);

        g_assert_cmpint(answer_status(answer), ==, status);
        g_assert_nonnull(strstr(answer, "bad key *"));
        g_assert_null(strstr(answer, FIXTURE_KEY));
    }
    w.u.status = 200;
    w.u.stream = stream;
    g_autofree char *answer = gate_post(&w.g, GATE_CHAT, "", GATE_ASK_STREAM);
    g_assert_nonnull(strstr(answer, "[DONE]"));
    g_assert_null(strstr(answer, FIXTURE_KEY));
    for (guint i = 0; i < w.g.facts->len; i++) {
        g_autofree char *text = json_encode(w.g.facts->pdata[i]);

        g_assert_null(strstr(text, FIXTURE_KEY));
    }
    gate_world_clear(&w);
}

/* ---- L8 ---- */

static void
test_l8_budget(void)
{
    GateWorld w;

    gate_world_init(&w, "openai");
    w.u.answer = GATE_CHAT_ANSWER;
    budgets_set(w.g.budgets, "task:task-1", &(BudgetBounds){.tokens = 100 * 1000}, NULL);
    g_autofree char *huge = gate_post(&w.g, GATE_CHAT, "",
                                      "{\"model\":\"gpt-4o-mini\",\"messages\":[],\"max_tokens\":200000}");
    check_refused(&w, huge, 402, "budget_exceeded");
    g_assert_nonnull(strstr(huge, "X-Should-Retry: false"));
    g_assert_nonnull(strstr(huge, "task:task-1"));
    g_assert_cmpuint(gate_fixture_facts(&w.g, "budget.exceeded"), ==, 1);
    g_assert_cmpuint(gate_fixture_facts(&w.g, "model.called"), ==, 0);
    /* Many choices are as much as many tokens. */
    g_autofree char *many = gate_post(
        &w.g, GATE_CHAT, "", "{\"model\":\"gpt-4o-mini\",\"messages\":[],\"max_tokens\":1000,\"n\":128}");
    check_refused(&w, many, 402, NULL);
    /* 0.60 $ for a million: more than a dollar. */
    budgets_set(w.g.budgets, "squad:squad-1", &(BudgetBounds){.microusd = 10 * 1000}, NULL);
    g_autofree char *dear = gate_post(&w.g, GATE_CHAT, "",
                                      "{\"model\":\"gpt-4o-mini\",\"messages\":[],\"max_tokens\":20000}");
    check_refused(&w, dear, 402, "micro-dollars");
    budgets_forget(w.g.budgets, "squad:squad-1");
    budgets_set(w.g.budgets, "all", &(BudgetBounds){.calls_per_min = 1}, NULL);
    g_autofree char *first = gate_post(&w.g, GATE_CHAT, "", GATE_ASK);
    g_assert_cmpint(answer_status(first), ==, 200);
    g_autofree char *second = gate_post(&w.g, GATE_CHAT, "", GATE_ASK);
    g_assert_cmpint(answer_status(second), ==, 429);
    g_assert_nonnull(strstr(second, "Retry-After: "));
    g_assert_cmpuint(w.u.calls, ==, 1);
    gate_world_clear(&w);
}

static void
test_l8_loop(void)
{
    GateWorld w;

    gate_world_init(&w, "openai");
    w.u.answer = GATE_CHAT_ANSWER;
    for (guint i = 0; i <= BREAKER_REPEATS; i++) {
        /* The order of members makes no other request, nor does who asks. */
        g_autofree char *ask = g_strdup_printf(i % 2 == 0
                                                   ? "{\"model\":\"m\",\"messages\":[],\"user\":\"%u\"}"
                                                   : "{\"user\":\"%u\",\"messages\":[],\"model\":\"m\"}",
                                               i);
        g_autofree char *answer = gate_post(&w.g, GATE_CHAT, "", ask);

        g_assert_cmpint(answer_status(answer), ==, i < BREAKER_REPEATS ? 200 : 403);
    }
    g_assert_cmpuint(w.u.calls, ==, BREAKER_REPEATS);
    g_assert_cmpint(fact_number(gate_fixture_fact(&w.g, "loop.broken"), "repeats"), ==, BREAKER_REPEATS + 1);
    g_autofree char *other = gate_post(&w.g, GATE_CHAT, "", GATE_ASK);
    g_assert_cmpint(answer_status(other), ==, 200);
    gate_world_clear(&w);
}

static void
test_l8_retries_are_no_loop(void)
{
    GateWorld w;

    gate_world_init(&w, "openai");
    w.u.answer = "{}";
    w.u.status = 429;
    w.u.header = "Retry-After: 3600";
    for (guint i = 0; i < 3 * BREAKER_REPEATS; i++) {
        g_autofree char *answer = gate_post(&w.g, GATE_CHAT, "", GATE_ASK);

        g_assert_cmpint(answer_status(answer), ==, 429);
    }
    gate_world_clear(&w);
}

static void
test_l8_at_once(void)
{
    int fds[GATE_STREAMS_PER_BOX];
    static const char *const none[] = {": wait\n\n", NULL};
    GateWorld w;

    gate_world_init(&w, "openai");
    w.u.stream = none;
    w.u.hold = true;
    for (guint i = 0; i < GATE_STREAMS_PER_BOX; i++) {
        g_autofree char *ask = g_strdup_printf(
            "{\"model\":\"m\",\"stream\":true,\"messages\":[],\"seed\":%u}", i);

        fds[i] = gate_post_begin(&w.g, GATE_CHAT, ask);
    }
    fixture_until(&w.u.sent, GATE_STREAMS_PER_BOX);
    g_autofree char *over = gate_post(&w.g, GATE_CHAT, "", GATE_ASK);
    g_assert_cmpint(answer_status(over), ==, 429);
    for (guint i = 0; i < GATE_STREAMS_PER_BOX; i++)
        close(fds[i]);
    fixture_until(&w.u.gone, GATE_STREAMS_PER_BOX);
    w.u.stream = NULL;
    w.u.answer = GATE_CHAT_ANSWER;
    g_autofree char *again = gate_post(&w.g, GATE_CHAT, "", GATE_ASK);
    g_assert_cmpint(answer_status(again), ==, 200);
    gate_world_clear(&w);
}

static void
test_l8_log_full(void)
{
    GateWorld w;

    gate_world_init(&w, "openai");
    w.g.log_is_full = true;
    g_autofree char *answer = gate_post(&w.g, GATE_CHAT, "", GATE_ASK);
    check_refused(&w, answer, 503, "gateway_busy");
    gate_world_clear(&w);
}

/* ---- L10 ---- */

static void
test_l10_disconnect(void)
{
    static const char *const pieces[] = {
        "data: {\"choices\":[{\"delta\":{\"content\":\"forty letters are ten tokens in this bo\"}}]}\n\n",
        NULL};
    GateWorld w;

    gate_world_init(&w, "openai");
    w.u.stream = pieces;
    w.u.hold = true;
    budgets_set(w.g.budgets, "box:" FIXTURE_BOX, &(BudgetBounds){.tokens = 10 * 1000}, NULL);
    int fd = gate_post_begin(&w.g, GATE_CHAT, GATE_ASK_STREAM);
    g_string_free(client_read(fd, "forty"), TRUE);
    close(fd);
    fixture_until(&w.u.gone, 1);
    Json *fact = gate_fixture_fact(&w.g, "model.called");
    g_assert_cmpint(fact_number(fact, "status"), ==, 499);
    g_assert_cmpint(fact_number(fact, "output_tokens"), ==, ASK_OUTPUT_DEFAULT);
    g_assert_cmpint(fact_number(fact, "input_tokens"), ==, (strlen(GATE_ASK_STREAM) + 3) / 4);
    g_assert_true(json_is_true(json_object_get(fact, "estimated")));
    /* Nothing is held any more, and what was held is spent: 4,121 of 10,000. */
    w.u.stream = NULL;
    w.u.hold = false;
    w.u.answer = GATE_CHAT_ANSWER;
    g_autofree char *fits = gate_post(&w.g, GATE_CHAT, "",
                                      "{\"model\":\"m\",\"messages\":[],\"max_tokens\":5800}");
    g_assert_cmpint(answer_status(fits), ==, 200);
    g_autofree char *over = gate_post(&w.g, GATE_CHAT, "",
                                      "{\"model\":\"m\",\"messages\":[],\"max_tokens\":9900,\"n\":1}");
    g_assert_cmpint(answer_status(over), ==, 402);
    gate_world_clear(&w);
}

/* ---- L11 ---- */

static void
test_l11_state(void)
{
    static const struct {
        const char *path, *body;
    } refused[] = {
        {GATE_RESPONSES, "{\"model\":\"m\",\"input\":\"a\",\"previous_response_id\":\"resp_1\"}"},
        {GATE_RESPONSES, "{\"model\":\"m\",\"input\":\"a\",\"store\":true}"},
        {GATE_RESPONSES, "{\"model\":\"m\",\"input\":\"a\",\"background\":true}"},
        {GATE_RESPONSES, "{\"model\":\"m\",\"input\":\"a\",\"conversation\":\"conv_1\"}"},
        {GATE_RESPONSES, "{\"model\":\"m\",\"prompt\":{\"id\":\"pmpt_1\"}}"},
        {GATE_RESPONSES, "{\"model\":\"m\",\"input\":[{\"type\":\"item_reference\",\"id\":\"msg_1\"}]}"},
        {GATE_RESPONSES,
         "{\"model\":\"m\",\"input\":[{\"role\":\"user\",\"content\":[{\"type\":\"input_file\","
         "\"file_id\":\"file-1\"}]}]}"},
        {GATE_RESPONSES,
         "{\"model\":\"m\",\"input\":[{\"role\":\"user\",\"content\":[{\"type\":\"input_image\","
         "\"file_id\":\"file-1\"}]}]}"},
        {GATE_RESPONSES,
         "{\"model\":\"m\",\"input\":[{\"type\":\"function_call_output\",\"output\":[{\"type\":"
         "\"input_file\",\"file_id\":\"file-1\"}]}]}"},
        {GATE_RESPONSES, "{\"model\":\"m\",\"input\":\"a\",\"tools\":[{\"type\":\"file_search\"}]}"},
        {GATE_RESPONSES,
         "{\"model\":\"m\",\"input\":\"a\",\"tools\":[{\"type\":\"mcp\",\"server_url\":\"https://a\"}]}"},
        {GATE_RESPONSES, "{\"model\":\"m\",\"input\":\"a\",\"tools\":[{\"type\":\"code_interpreter\","
                         "\"container\":\"cntr_1\"}]}"},
        {GATE_RESPONSES, "{\"model\":\"m\",\"input\":\"a\",\"tools\":[{\"type\":\"code_interpreter\","
                         "\"container\":{\"type\":\"auto\"}}]}"},
        {GATE_RESPONSES, "{\"model\":\"m\",\"input\":\"a\",\"tools\":[{\"container\":\"cntr_1\"}]}"},
        {GATE_RESPONSES, "{\"model\":\"m\",\"input\":\"a\",\"tools\":[{\"type\":\"shell\",\"environment\":"
                         "{\"type\":\"container_reference\",\"container_id\":\"cntr_1\"}}]}"},
        {GATE_RESPONSES, "{\"model\":\"m\",\"input\":\"a\",\"tools\":[{\"type\":\"x\",\"y\":[{\"file_ids\":"
                         "[\"file-1\"]}]}]}"},
        {GATE_RESPONSES, "{\"model\":\"m\",\"input\":\"a\",\"tools\":[{\"type\":\"image_generation\","
                         "\"input_image_mask\":{\"file_id\":\"file-1\"}}]}"},
        {GATE_RESPONSES, "{\"model\":\"m\",\"input\":[{\"type\":\"computer_call_output\",\"output\":"
                         "{\"type\":\"computer_screenshot\",\"file_id\":\"file-1\"}}]}"},
        {GATE_RESPONSES, "{\"model\":\"m\",\"input\":[{\"id\":\"msg_1\"}]}"},
        {GATE_RESPONSES, "{\"model\":\"m\",\"input\":[{\"id\":\"msg_1\",\"type\":null}]}"},
        {GATE_RESPONSES,
         "{\"model\":\"m\",\"input\":[{\"type\":\"image_generation_call\",\"id\":\"ig_1\"}]}"},
        {GATE_CHAT, "{\"model\":\"m\",\"messages\":[],\"store\":true}"},
        {GATE_CHAT,
         "{\"model\":\"m\",\"messages\":[{\"role\":\"user\",\"content\":[{\"type\":\"file\",\"file\":"
         "{\"file_id\":\"file-1\"}}]}]}"},
        {GATE_CHAT,
         "{\"model\":\"m\",\"messages\":[{\"role\":\"assistant\",\"audio\":{\"id\":\"audio_1\"}}]}"},
        {GATE_MESSAGES,
         "{\"model\":\"m\",\"messages\":[{\"role\":\"user\",\"content\":[{\"type\":\"document\","
         "\"source\":{\"type\":\"file\",\"file_id\":\"file_1\"}}]}]}"},
        {GATE_MESSAGES,
         "{\"model\":\"m\",\"messages\":[{\"role\":\"user\",\"content\":[{\"type\":\"tool_result\","
         "\"content\":[{\"type\":\"image\",\"source\":{\"type\":\"file\",\"file_id\":\"f\"}}]}]}]}"},
        {GATE_MESSAGES, "{\"model\":\"m\",\"messages\":[{\"role\":\"user\",\"content\":[{\"type\":"
                        "\"container_upload\",\"file_id\":\"f\"}]}]}"},
        {GATE_MESSAGES, "{\"model\":\"m\",\"messages\":[],\"container\":\"container_1\"}"},
        {GATE_MESSAGES, "{\"model\":\"m\",\"messages\":[],\"mcp_servers\":[{\"url\":\"https://a\"}]}"},
        {"/openai/v1/files", "{}"},
        {"/openai/v1/batches", "{}"},
        {"/openai/v1/threads/runs", "{}"},
        {"/openai/v1/fine_tuning/jobs", "{}"},
        {"/openai/v1/responses/resp_1/cancel", "{}"},
        {"/anthropic/v1/messages/batches", "{}"},
        {"/anthropic/v1/files", "{}"},
    };
    /* The same words where they are the box's own. */
    static const struct {
        const char *path, *body;
    } allowed[] = {
        {GATE_RESPONSES, "{\"model\":\"m\",\"input\":[{\"id\":\"msg_1\",\"type\":\"message\",\"role\":"
                         "\"assistant\",\"content\":[]},{\"id\":\"msg_2\",\"role\":\"user\",\"content\":"
                         "\"a\"}],\"tools\":[{\"type\":\"function\",\"name\":\"f\",\"parameters\":"
                         "{\"properties\":{\"container\":{},\"file_ids\":{\"type\":\"mcp\"}}}}]}"},
        {GATE_RESPONSES, "{\"model\":\"m\",\"input\":\"a\",\"store\":false,\"previous_response_id\":null}"},
        {GATE_CHAT,
         "{\"model\":\"m\",\"messages\":[],\"tools\":[{\"type\":\"function\",\"function\":{\"name\":\"f\","
         "\"parameters\":{\"properties\":{\"file_id\":{\"type\":\"string\"}}}}}]}"},
        {GATE_CHAT,
         "{\"model\":\"m\",\"messages\":[{\"role\":\"assistant\",\"tool_calls\":[{\"function\":{\"name\":"
         "\"f\",\"arguments\":\"{\\\"file_id\\\":1}\"}}]}]}"},
    };
    GateWorld w;

    gate_world_init(&w, "openai");
    w.u.answer = GATE_CHAT_ANSWER;
    for (size_t i = 0; i < G_N_ELEMENTS(refused); i++) {
        g_autofree char *answer = gate_post(&w.g, refused[i].path, "", refused[i].body);

        check_refused(&w, answer, 400, "stateful_refused");
    }
    for (size_t i = 0; i < G_N_ELEMENTS(allowed); i++) {
        g_autofree char *answer = gate_post(&w.g, allowed[i].path, "", allowed[i].body);

        g_assert_cmpint(answer_status(answer), ==, 200);
    }
    gate_world_clear(&w);
}

/* A tool's input has whatever members it likes. */
static void
test_l11_tool_input(void)
{
    GateWorld w;

    gate_world_init(&w, "anthropic");
    w.u.answer = "{\"usage\":{\"input_tokens\":1,\"output_tokens\":1}}";
    g_autofree char *answer = gate_post(&w.g, GATE_MESSAGES, "",
                                        "{\"model\":\"m\",\"max_tokens\":5,\"messages\":[{\"role\":"
                                        "\"assistant\",\"content\":[{\"type\":\"tool_use\","
                                        "\"id\":\"a\",\"name\":\"f\",\"input\":{\"file_id\":\"x\","
                                        "\"container\":\"y\",\"source\":{\"type\":\"file\"}}}]}]}");
    g_assert_cmpint(answer_status(answer), ==, 200);
    gate_world_clear(&w);
}

/* ---- L12 ---- */

static void
test_l12_bodies(void)
{
    g_autoptr(GString) deep = g_string_new("{\"model\":\"m\",\"messages\":");
    GateWorld w;

    for (guint i = 0; i < 100 * 1000; i++)
        g_string_append_c(deep, '[');
    const struct {
        const char *headers, *body;
        int status;
    } cases[] = {
        {"Content-Encoding: gzip\r\n", GATE_ASK, 415},
        {"Content-Encoding: deflate\r\n", GATE_ASK, 415},
        {"", deep->str, 400},
        {"", "{\"model\":\"cheap\",\"model\":\"dear\",\"messages\":[]}", 400},
        {"", "{\"model\":\"m\",\"messages\":[{\"a\":1,\"a\":2}]}", 400},
        {"", "{\"model\":\"m\",\"messages\":[]} {}", 400},
        {"", "{\"model\":\"m\",\"messages\":[],}", 400},
        {"", "[1]", 400},
        {"", "", 400},
        {"", "{\"model\":5}", 400},
        {"", "{\"messages\":[]}", 400},
        {"", "{\"model\":\"\",\"messages\":[]}", 400},
        {"", "{\"model\":\"a\\u0000b\",\"messages\":[]}", 400},
        {"", "{\"model\":\"../x\",\"messages\":[]}", 400},
        {"", "{\"model\":\"m\",\"stream\":\"yes\",\"messages\":[]}", 400},
        {"", "{\"model\":\"m\",\"max_tokens\":-1,\"messages\":[]}", 400},
        {"", "{\"model\":\"m\",\"max_tokens\":1e9,\"messages\":[]}", 400},
        {"", "{\"model\":\"m\",\"messages\":[\"\xff\xfe\"]}", 400},
    };

    gate_world_init(&w, "openai");
    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *answer = gate_post(&w.g, GATE_CHAT, cases[i].headers, cases[i].body);

        check_refused(&w, answer, cases[i].status, "\"error\":{");
    }
    g_autofree char *large = g_strdup_printf(
        "POST " GATE_CHAT " HTTP/1.1\r\nHost: a\r\nContent-Length: %u\r\n\r\n", GATE_BODY_MAX + 1u);
    g_autofree char *answer = client_ask(&w.g.door, large);
    check_refused(&w, answer, 413, "request_too_large");
    gate_world_clear(&w);
}

/* What is checked is what is sent, also when that takes a thread. */
static void
test_l12_large_body(void)
{
    enum { FILLER = 8 * 1024 * 1024 };
    g_autofree char *filler = g_strnfill(FILLER, 'x');
    g_autofree char *ask = g_strdup_printf(
        "{\"model\":\"m\", \"messages\":[{\"role\":\"user\",\"content\":\"%s\"}]}", filler);
    g_autofree char *sent = g_strdup_printf(
        "{\"model\":\"m\",\"messages\":[{\"role\":\"user\",\"content\":\"%s\"}]}", filler);
    GateWorld w;

    gate_world_init(&w, "openai");
    w.u.answer = GATE_CHAT_ANSWER;
    g_autofree char *answer = gate_post(&w.g, GATE_CHAT, "", ask);
    g_assert_cmpint(answer_status(answer), ==, 200);
    g_assert_true(strcmp(w.u.body, sent) == 0);
    gate_world_clear(&w);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/gate/L1-credentials", test_l1_credentials);
    g_test_add_func("/gate/L2-destination", test_l2_destination);
    g_test_add_func("/gate/L3-redirects", test_l3_redirects);
    g_test_add_func("/gate/L4-paths", test_l4_paths);
    g_test_add_func("/gate/L5-framing", test_l5_framing);
    g_test_add_func("/gate/L6-reflection", test_l6_reflection);
    g_test_add_func("/gate/L8-budget", test_l8_budget);
    g_test_add_func("/gate/L8-loop", test_l8_loop);
    g_test_add_func("/gate/L8-retries-are-no-loop", test_l8_retries_are_no_loop);
    g_test_add_func("/gate/L8-at-once", test_l8_at_once);
    g_test_add_func("/gate/L8-log-full", test_l8_log_full);
    g_test_add_func("/gate/L10-disconnect", test_l10_disconnect);
    g_test_add_func("/gate/L11-state", test_l11_state);
    g_test_add_func("/gate/L11-tool-input", test_l11_tool_input);
    g_test_add_func("/gate/L12-bodies", test_l12_bodies);
    g_test_add_func("/gate/L12-large-body", test_l12_large_body);
    return g_test_run();
}

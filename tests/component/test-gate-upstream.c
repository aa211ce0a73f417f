/* SPDX-License-Identifier: Apache-2.0 */
/* Providers that misbehave: whatever they do, the client is told, and what was used is counted. */
#include <string.h>
#include <unistd.h>

#include "brain/circuit.h"
#include "gate-fixture.h"
#include "http-script.h"

#define HEAD_STREAM "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n"
#define CHUNK "data: {\"choices\":[{\"delta\":{\"content\":\"hello world.\"}}]}\n\n"

/* ---- again, and how often ---- */

static void
test_retries(void)
{
    static const struct {
        int fail_status;
        guint fail_first;
        const char *header;
        int want;
        guint calls;
        const char *code;
    } cases[] = {
        {429, 1, NULL, 200, 2, NULL},
        {500, 2, NULL, 200, 3, NULL},
        {503, 2, "Retry-After: 0", 200, 3, NULL},
        {529, 2, NULL, 200, 3, NULL},
        {429, 9, NULL, 429, 3, NULL},
        {429, 9, "Retry-After: 11", 429, 1, "Retry-After: 11\r\n"},
        {500, 9, NULL, 502, 3, "upstream_failed"},
        {504, 9, NULL, 504, 3, "upstream_timeout"},
        {503, 9, "Retry-After: 4000000000", 502, 1, "upstream_failed"},
        {400, 9, NULL, 400, 1, NULL},
        {404, 9, NULL, 404, 1, NULL},
        {422, 9, NULL, 422, 1, NULL},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        GateWorld w;

        gate_world_init(&w, "openai");
        w.u.answer = GATE_CHAT_ANSWER;
        w.u.fail_first = cases[i].fail_first;
        w.u.fail_status = cases[i].fail_status;
        w.u.header = cases[i].header;
        budgets_set(w.g.budgets, "all", &(BudgetBounds){.calls = 1}, NULL);
        g_autofree char *answer = gate_post(&w.g, GATE_CHAT, "", GATE_ASK);

        g_assert_cmpint(answer_status(answer), ==, cases[i].want);
        g_assert_cmpuint(w.u.calls, ==, cases[i].calls);
        if (cases[i].code != NULL)
            g_assert_nonnull(strstr(answer, cases[i].code));
        Json *fact = gate_fixture_fact(&w.g, "model.called");
        g_assert_cmpint(fact_number(fact, "status"), ==, cases[i].want);
        g_assert_cmpint(fact_number(fact, "retries"), ==, cases[i].calls - 1);
        /* What came to nothing is charged nothing. */
        g_assert_cmpint(fact_number(fact, "output_tokens"), ==, cases[i].want == 200 ? 200 : 0);
        w.u.fail_first = 0;
        w.u.header = NULL;
        g_autofree char *second = gate_post(&w.g, GATE_CHAT, "", GATE_ASK);
        g_assert_cmpint(answer_status(second), ==, cases[i].want == 200 ? 402 : 200);
        gate_world_clear(&w);
    }
}

static void
test_gone_while_waiting(void)
{
    GateWorld w;

    gate_world_init(&w, "openai");
    w.u.status = 429;
    w.u.header = "Retry-After: 9";
    int fd = gate_post_begin(&w.g, GATE_CHAT, GATE_ASK);
    fixture_until(&w.u.calls, 1);
    for (guint i = 0; i < 50; i++)
        g_main_context_iteration(NULL, FALSE);
    close(fd);
    fixture_until(&w.g.door.gone, 1);
    Json *fact = gate_fixture_fact(&w.g, "model.called");
    g_assert_cmpstr(fact_text(fact, "error"), ==, "client_gone");
    /* The provider had refused it. */
    g_assert_cmpint(fact_number(fact, "input_tokens") + fact_number(fact, "output_tokens"), ==, 0);
    gate_world_clear(&w);
}

static void
test_no_connection(void)
{
    GateWorld w;

    gate_world_init(&w, "openai");
    gate_fixture_provider(
        &w.g, "{\"name\":\"up\",\"kind\":\"compatible\",\"base_url\":\"http://127.0.0.1:1\"}", NULL);
    g_autofree char *answer = gate_post(&w.g, GATE_CHAT, "", GATE_ASK);
    g_assert_cmpint(answer_status(answer), ==, 502);
    g_assert_cmpint(fact_number(gate_fixture_fact(&w.g, "model.called"), "retries"), ==, GATE_RETRIES_MAX);
    gate_world_clear(&w);
}

/* Down for good: after a while boxes are told so at once. */
static void
test_circuit(void)
{
    GateWorld w;

    gate_world_init(&w, "openai");
    w.u.status = 500;
    w.u.header = "Retry-After: 3600";
    for (guint i = 0; i < CIRCUIT_FAILURES + 3; i++) {
        g_autofree char *answer = gate_post(&w.g, GATE_CHAT, "", GATE_ASK);

        g_assert_cmpint(answer_status(answer), ==, 502);
    }
    g_assert_cmpuint(w.u.calls, ==, CIRCUIT_FAILURES);
    gate_world_clear(&w);
}

static void
test_auth(void)
{
    static const int statuses[] = {401, 403};

    for (size_t i = 0; i < G_N_ELEMENTS(statuses); i++) {
        GateWorld w;

        gate_world_init(&w, "openai");
        w.u.answer = "{\"error\":{\"message\":\"Incorrect API key provided: sk-ca*****\"}}";
        w.u.status = statuses[i];
        g_autofree char *answer = gate_post(&w.g, GATE_CHAT, "", GATE_ASK);

        g_assert_cmpint(answer_status(answer), ==, 502);
        g_assert_nonnull(strstr(answer, "upstream_auth"));
        g_assert_nonnull(strstr(answer, "X-Should-Retry: false"));
        g_assert_null(strstr(answer, "Incorrect"));
        Json *fact = gate_fixture_fact(&w.g, "provider.refused");
        g_assert_cmpstr(fact_text(fact, "provider"), ==, "up");
        g_assert_cmpint(fact_number(fact, "status"), ==, statuses[i]);
        g_assert_cmpuint(w.u.calls, ==, 1);
        gate_world_clear(&w);
    }
}

/* ---- answers that are none ---- */

static void
test_nonsense(void)
{
    static const struct {
        const char *answer, *type, *header, *ask;
    } cases[] = {
        {"<html>", "text/html", NULL, GATE_ASK},
        {"", "application/json", NULL, GATE_ASK},
        {"[]", "application/json", NULL, GATE_ASK},
        {"{\"a\":", "application/json", NULL, GATE_ASK},
        {GATE_CHAT_ANSWER, "application/json", NULL, GATE_ASK_STREAM},
        {GATE_CHAT_ANSWER, "application/json", "Content-Encoding: gzip", GATE_ASK},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        GateWorld w;

        gate_world_init(&w, "openai");
        w.u.answer = cases[i].answer;
        w.u.type = cases[i].type;
        w.u.header = cases[i].header;
        g_autofree char *answer = gate_post(&w.g, GATE_CHAT, "", cases[i].ask);

        g_assert_cmpint(answer_status(answer), ==, 502);
        g_assert_nonnull(strstr(answer, "upstream_failed"));
        gate_world_clear(&w);
    }
}

static void
test_error_bodies(void)
{
    g_autofree char *filler = g_strnfill(MIB, 'x');
    GateWorld w;

    gate_world_init(&w, "anthropic");
    w.u.status = 400;
    w.u.answer =
        "{\"type\":\"error\",\"error\":{\"type\":\"invalid_request_error\",\"message\":\"too long\"}}";
    g_autofree char *passed = gate_post(&w.g, GATE_MESSAGES, "", "{\"model\":\"m\",\"messages\":[]}");
    g_assert_cmpstr(answer_body(passed), ==, w.u.answer);
    w.u.answer = filler;
    g_autofree char *replaced = gate_post(&w.g, GATE_MESSAGES, "", "{\"model\":\"m\",\"messages\":[]}");
    g_assert_cmpint(answer_status(replaced), ==, 400);
    g_assert_nonnull(strstr(answer_body(replaced), "\"type\":\"error\""));
    g_assert_cmpuint(strlen(replaced), <, 2000);
    gate_world_clear(&w);
}

/* ---- raw bytes ---- */

typedef struct Raw {
    GateFixture g;
    Script *script;
} Raw;

static void
raw_init(Raw *r, const ScriptStep *steps, const char *kind, const GateTimes *times)
{
    gate_fixture_init(&r->g, times, NULL);
    r->script = script_serve_one(steps);
    g_autofree char *url = script_url(r->script, "/v1");
    g_autofree char *json = g_strdup_printf("{\"name\":\"up\",\"kind\":\"%s\",\"base_url\":\"%s\"}", kind,
                                            url);
    gate_fixture_provider(&r->g, json, NULL);
}

static void
raw_clear(Raw *r)
{
    gate_fixture_clear(&r->g);
    script_free(r->script);
}

/* Streams that end before their end: the client is told by an event of its dialect. */
static void
test_l9_streams(void)
{
    static const struct {
        const char *kind, *path, *bytes, *passed, *error;
        ScriptOp end;
    } cases[] = {
        {"openai", GATE_CHAT, CHUNK, CHUNK, "data: {\"error\":{", SCRIPT_CLOSE},
        {"openai", GATE_CHAT, CHUNK, CHUNK, "data: {\"error\":{", SCRIPT_RESET},
        {"openai", GATE_CHAT, CHUNK "data: {\"cho", CHUNK, "data: {\"error\":{", SCRIPT_CLOSE},
        {"openai", GATE_CHAT, CHUNK "data: {\"choices\":[}\n\n", CHUNK, "malformed", SCRIPT_CLOSE},
        {"openai", GATE_CHAT, CHUNK "data: \xff\xfe\n\n", CHUNK, "malformed", SCRIPT_CLOSE},
        {"openai", GATE_CHAT, CHUNK "<html>502</html>", CHUNK, "data: {\"error\":{", SCRIPT_CLOSE},
        {"openai", GATE_CHAT, "", "", "data: {\"error\":{", SCRIPT_CLOSE},
        {"openai", GATE_RESPONSES, "data: {\"type\":\"response.created\"}\n\n",
         "data: {\"type\":\"response.created\"}\n\n", "event: error\ndata: {\"error\":{", SCRIPT_CLOSE},
        {"anthropic", GATE_MESSAGES, "data: {\"type\":\"ping\"}\n\n", "data: {\"type\":\"ping\"}\n\n",
         "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"api_error\"", SCRIPT_CLOSE},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        const ScriptStep steps[] = {{SCRIPT_REQUEST, NULL, 0},
                                    {SCRIPT_SEND, HEAD_STREAM, 0},
                                    {*cases[i].bytes != '\0' ? SCRIPT_SEND : cases[i].end, cases[i].bytes, 0},
                                    {cases[i].end, NULL, 0}};
        Raw r;

        raw_init(&r, steps, cases[i].kind, NULL);
        g_autofree char *answer = gate_post(
            &r.g, cases[i].path, "", "{\"model\":\"m\",\"stream\":true,\"messages\":[],\"input\":\"x\"}");
        g_autofree char *body = gate_body(answer);

        g_assert_cmpint(answer_status(answer), ==, 200);
        if (cases[i].end == SCRIPT_CLOSE)
            g_assert_true(g_str_has_prefix(body, cases[i].passed));
        g_assert_nonnull(strstr(body, cases[i].error));
        g_assert_true(g_str_has_suffix(body, "}\n\n"));
        g_assert_null(strstr(body, "data: {\"cho\n"));
        g_assert_null(strstr(body, "html"));
        Json *fact = gate_fixture_fact(&r.g, "model.called");
        g_assert_cmpstr(fact_text(fact, "error"), ==, "upstream_failed");
        g_assert_true(json_is_true(json_object_get(fact, "estimated")));
        if (strstr(cases[i].passed, "hello world.") != NULL && cases[i].end == SCRIPT_CLOSE)
            g_assert_cmpint(fact_number(fact, "output_tokens"), ==, 3);
        raw_clear(&r);
    }
}

/* An end without the mark, or without its last line: all of the answer came. */
static void
test_l9_good_ends(void)
{
    static const char *const ends[] = {
        CHUNK "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n",
        CHUNK "data: [DONE]\n",
        CHUNK "data: [DONE]",
        CHUNK "data: {\"error\":{\"message\":\"overloaded\"}}\n\n",
    };

    for (size_t i = 0; i < G_N_ELEMENTS(ends); i++) {
        const ScriptStep steps[] = {{SCRIPT_REQUEST, NULL, 0},
                                    {SCRIPT_SEND, HEAD_STREAM, 0},
                                    {SCRIPT_SEND, ends[i], 0},
                                    {SCRIPT_CLOSE, NULL, 0}};
        Raw r;

        raw_init(&r, steps, "openai", NULL);
        g_autofree char *answer = gate_post(&r.g, GATE_CHAT, "", GATE_ASK_STREAM);
        g_autofree char *body = gate_body(answer);

        g_assert_true(g_str_has_prefix(body, ends[i]));
        g_assert_null(strstr(body, "broke off"));
        raw_clear(&r);
    }
}

/* A line of 100 MB: neither held nor passed on. */
static void
test_l9_long_line(void)
{
    const ScriptStep steps[] = {{SCRIPT_REQUEST, NULL, 0},
                                {SCRIPT_SEND, HEAD_STREAM CHUNK "data: ", 0},
                                {SCRIPT_FILL, NULL, 100 * 1000 * 1000},
                                {SCRIPT_CLOSE, NULL, 0}};
    Raw r;

    raw_init(&r, steps, "openai", NULL);
    size_t before = fixture_rss();
    g_autofree char *answer = gate_post(&r.g, GATE_CHAT, "", GATE_ASK_STREAM);
    g_autofree char *body = gate_body(answer);
    g_assert_cmpuint(strlen(body), <, 4096);
    g_assert_nonnull(strstr(body, "data: {\"error\":{"));
    g_assert_cmpuint(fixture_rss() - MIN(before, fixture_rss()), <, 64 * MIB);
    /* The rest is not read for nothing. */
    g_assert_cmpuint(script_filled(r.script), <, 50 * 1000 * 1000);
    raw_clear(&r);
}

static void
test_huge_answer(void)
{
    const ScriptStep steps[] = {
        {SCRIPT_REQUEST, NULL, 0},
        {SCRIPT_SEND, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n\r\n", 0},
        {SCRIPT_FILL, NULL, 200 * 1000 * 1000},
        {SCRIPT_CLOSE, NULL, 0}};
    Raw r;

    raw_init(&r, steps, "openai", NULL);
    g_autofree char *answer = gate_post(&r.g, GATE_CHAT, "", GATE_ASK);
    g_assert_cmpint(answer_status(answer), ==, 502);
    g_assert_cmpuint(script_filled(r.script), <, 100 * 1000 * 1000);
    raw_clear(&r);
}

static void
test_cut_answer(void)
{
    const ScriptStep steps[] = {
        {SCRIPT_REQUEST, NULL, 0},
        {SCRIPT_SEND, "HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n{\"choices\":", 0},
        {SCRIPT_CLOSE, NULL, 0}};
    Raw r;

    raw_init(&r, steps, "openai", NULL);
    g_autofree char *answer = gate_post(&r.g, GATE_CHAT, "", GATE_ASK);
    g_assert_cmpint(answer_status(answer), ==, 502);
    raw_clear(&r);
}

/* ---- silence ---- */

static void
test_slow(void)
{
    const GateTimes times = {.first_byte_ms = 100, .idle_ms = 100, .retry_ms = 10};
    const ScriptStep no_head[] = {{SCRIPT_REQUEST, NULL, 0}, {SCRIPT_HOLD, NULL, 0}};
    const ScriptStep no_end[] = {
        {SCRIPT_REQUEST, NULL, 0}, {SCRIPT_SEND, HEAD_STREAM CHUNK, 0}, {SCRIPT_HOLD, NULL, 0}};
    Raw r;

    raw_init(&r, no_head, "openai", &times);
    g_autofree char *late = gate_post(&r.g, GATE_CHAT, "", GATE_ASK);
    g_assert_cmpint(answer_status(late), ==, 504);
    g_assert_nonnull(strstr(late, "upstream_timeout"));
    /* It may be working on it: it is not asked twice. */
    g_assert_cmpuint(script_accepts(r.script), ==, 1);
    raw_clear(&r);
    raw_init(&r, no_end, "openai", &times);
    g_autofree char *stalled = gate_post(&r.g, GATE_CHAT, "", GATE_ASK_STREAM);
    g_assert_nonnull(strstr(stalled, CHUNK));
    g_assert_nonnull(strstr(stalled, "upstream_timeout"));
    g_assert_cmpint(fact_number(gate_fixture_fact(&r.g, "model.called"), "output_tokens"), ==, 3);
    raw_clear(&r);
}

/* Comments for ever are not a stream. */
static void
test_l9_keepalives(void)
{
    const GateTimes times = {.idle_ms = 10 * 1000, .total_ms = 300};
    static const char *const pieces[] = {": one\n\n", ": two\n\n", NULL};
    GateFixture g;
    Upstream u;

    gate_fixture_init(&g, &times, NULL);
    upstream_init(&u);
    g_autofree char *json = upstream_provider(&u, "openai", "");
    gate_fixture_provider(&g, json, NULL);
    u.stream = pieces;
    u.hold = true;
    g_autofree char *answer = gate_post(&g, GATE_CHAT, "", GATE_ASK_STREAM);
    g_assert_nonnull(strstr(answer, "upstream_timeout"));
    gate_fixture_clear(&g);
    upstream_clear(&u);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/gate/upstream/retries", test_retries);
    g_test_add_func("/gate/upstream/gone-while-waiting", test_gone_while_waiting);
    g_test_add_func("/gate/upstream/no-connection", test_no_connection);
    g_test_add_func("/gate/upstream/circuit", test_circuit);
    g_test_add_func("/gate/upstream/auth", test_auth);
    g_test_add_func("/gate/upstream/nonsense", test_nonsense);
    g_test_add_func("/gate/upstream/error-bodies", test_error_bodies);
    g_test_add_func("/gate/upstream/L9-streams", test_l9_streams);
    g_test_add_func("/gate/upstream/L9-good-ends", test_l9_good_ends);
    g_test_add_func("/gate/upstream/L9-long-line", test_l9_long_line);
    g_test_add_func("/gate/upstream/L9-keepalives", test_l9_keepalives);
    g_test_add_func("/gate/upstream/huge-answer", test_huge_answer);
    g_test_add_func("/gate/upstream/cut-answer", test_cut_answer);
    g_test_add_func("/gate/upstream/slow", test_slow);
    return g_test_run();
}

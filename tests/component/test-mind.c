/* SPDX-License-Identifier: Apache-2.0 */
/* The server asks models through a real door: its gateway, budgets, breaker and facts are those of boxes. */
#include <string.h>

#include "base/err.h"
#include "daemon/mind-words.h"
#include "gate-fixture.h"
#include "mind-world.h"

static const char script[] =
    "conversations:\n"
    "- {model: slow, turns: [{text: late, first_ms: 60000}]}\n"
    "- {model: busy, turns: [{error: {status: 429, message: too fast}}]}\n"
    "- {model: down, turns: [{error: {status: 500, message: broken}}]}\n"
    "- {model: odd, turns: [{error: {status: 400, message: \"no\\e[31m\"}}]}\n"
    "- {model: blank, turns: [{text: ' '}]}\n"
    "- {model: good, turns: [{text: '{{agent}} of {{task}}: {{last_user}} {{system}}', "
    "usage: {input: 7, output: 3}}]}\n";

typedef struct Heard {
    bool done;
    GError *error;
    char *text, *model;
    guint64 input, output;
} Heard;

static void
on_answer(const MindAnswer *answer, const GError *error, void *data)
{
    Heard *h = data;

    g_assert_false(h->done);
    g_assert_true((answer != NULL) != (error != NULL));
    h->done = true;
    h->error = error != NULL ? g_error_copy(error) : NULL;
    if (answer == NULL)
        return;
    h->text = g_strdup(answer->text);
    h->model = g_strdup(answer->model);
    h->input = answer->input_tokens;
    h->output = answer->output_tokens;
    g_assert_cmpint(answer->duration_us, >, 0);
}

static void
heard_clear(Heard *h)
{
    g_clear_error(&h->error);
    g_free(h->text);
    g_free(h->model);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Heard, heard_clear)

static MindAsk
question(const char *provider, const char *model)
{
    return (MindAsk){.agent = "planner-7",
                     .task_id = "task-a",
                     .squad_id = "squad-a",
                     .provider = provider,
                     .model = model,
                     .system = "be brief",
                     .prompt = "what next",
                     .output_max = 100,
                     .timeout_ms = 20000};
}

static void
ask(MindWorld *w, const MindAsk *q, Heard *heard)
{
    guint id = w->face.ask(w->face.ctx, q, on_answer, heard);

    g_assert_cmpuint(id, !=, 0);
    g_assert_false(heard->done);
    while (!heard->done)
        g_main_context_iteration(NULL, TRUE);
}

static void
test_answers(void)
{
    MindWorld *w = mind_world_new(script);
    static const struct {
        const char *provider, *model;
        guint timeout_ms;
        int kind; /* -1: an answer */
        const char *words;
    } cases[] = {
        {"script", "good", 0, -1, "planner-7 of task-a: what next be brief"},
        {NULL, "good", 0, -1, "planner-7 of task-a"},
        {"script", "slow", 200, ERR_TIMEOUT, "in time"},
        {"script", "busy", 0, ERR_UNAVAILABLE, "too fast (status 429)"},
        {"script", "down", 0, ERR_UNAVAILABLE, "status 50"},
        {"script", "odd", 0, ERR_INVALID, "no [31m (status 400)"},
        {"script", "blank", 0, ERR_INVALID, "no text"},
        {"script", "nobody-scripted-this", 0, ERR_INVALID, ""},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_auto(Heard) h = {0};
        MindAsk q = question(cases[i].provider, cases[i].model);

        if (cases[i].timeout_ms != 0)
            q.timeout_ms = cases[i].timeout_ms;
        ask(w, &q, &h);
        if (cases[i].kind < 0) {
            g_assert_no_error(h.error);
            g_assert_cmpuint(h.input, ==, 7);
            g_assert_cmpuint(h.output, ==, 3);
        } else {
            g_assert_nonnull(h.error);
            g_test_message("%s: %s", cases[i].model, h.error->message);
            g_assert_error(h.error, ERR_DOMAIN, cases[i].kind);
        }
        g_assert_nonnull(strstr(h.error != NULL ? h.error->message : h.text, cases[i].words));
    }
    mind_world_free(w);
}

/* Only what may pass by itself may be tried again. */
static void
test_refusals(void)
{
    static const struct {
        int status;
        const char *code;
        ErrKind kind;
    } cases[] = {
        {401, "x", ERR_DENIED},
        {403, "x", ERR_DENIED},
        {502, "upstream_auth", ERR_DENIED},
        {404, "model_not_found", ERR_NOT_FOUND},
        {404, "not_found_error", ERR_NOT_FOUND},
        {404, "no_recording", ERR_NOT_FOUND},
        {402, "budget_exceeded", ERR_LIMIT},
        {403, "loop_broken", ERR_LIMIT},
        {408, "request_too_slow", ERR_UNAVAILABLE},
        {429, "rate_exceeded", ERR_UNAVAILABLE},
        {502, "upstream_failed", ERR_UNAVAILABLE},
        {503, "gateway_busy", ERR_UNAVAILABLE},
        {504, "upstream_timeout", ERR_UNAVAILABLE},
        {400, "invalid_request", ERR_INVALID},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *body = g_strdup_printf("{\"error\": {\"message\": \"why\", \"code\": \"%s\"}}",
                                                cases[i].code);
        g_autofree char *words = g_strdup_printf("why (status %d)", cases[i].status);
        g_autoptr(GError) error = NULL;

        g_assert_false(mind_refused(cases[i].status, body, strlen(body), &error));
        g_assert_error(error, ERR_DOMAIN, (int)cases[i].kind);
        g_assert_cmpstr(error->message, ==, words);
    }
}

/* Nobody has the model until a person changes that. */
static void
test_no_provider(void)
{
    MindWorld *w = mind_world_new(script);
    g_auto(Heard) h = {0};
    MindAsk q = question(NULL, "other-model");

    mind_world_provider(w, "{\"name\": \"script\", \"kind\": \"script\", \"models\": [\"good\"]}", script);
    ask(w, &q, &h);
    g_assert_error(h.error, ERR_DOMAIN, ERR_NOT_FOUND);
    g_assert_nonnull(strstr(h.error->message, "'other-model' for openai clients: 'coop provider add'"));
    mind_world_free(w);
}

static void
wait_events(MindWorld *w, const char *sql, gint64 n)
{
    while (store_read_int(w->store->db, sql) < n)
        g_main_context_iteration(NULL, FALSE);
    g_assert_cmpint(store_read_int(w->store->db, sql), ==, n);
}

/* Who asks is told as of a box; the same question again and again is a loop. */
static void
test_told_and_bounded(void)
{
    MindWorld *w = mind_world_new(script);
    MindAsk q = question("script", "good");

    for (guint i = 0; i < BREAKER_REPEATS; i++) {
        g_auto(Heard) h = {0};

        ask(w, &q, &h);
        g_assert_no_error(h.error);
    }
    g_auto(Heard) loop = {0};

    ask(w, &q, &loop);
    g_assert_error(loop.error, ERR_DOMAIN, ERR_LIMIT);
    wait_events(
        w,
        "SELECT count(*) FROM events WHERE kind = 'model.called' AND task_id = 'task-a' AND squad_id = "
        "'squad-a' AND box_id = 'mind-0' AND data LIKE '%\"agent\":\"planner-7\"%'",
        BREAKER_REPEATS);
    wait_events(w, "SELECT count(*) FROM events WHERE kind = 'loop.broken' AND task_id = 'task-a'", 1);

    g_autoptr(Json) bounds = json_pack("{s:i}", "calls", 1);

    mind_world_budget(w, "agent:council-1-7", bounds);
    q.agent = "council-1-7";
    for (guint i = 0; i < 2; i++) {
        g_auto(Heard) h = {0};

        ask(w, &q, &h);
        if (i == 0)
            g_assert_no_error(h.error);
        else
            g_assert_error(h.error, ERR_DOMAIN, ERR_LIMIT);
    }
    mind_world_free(w);
}

static void
test_cancel_and_many(void)
{
    MindWorld *w = mind_world_new(script);
    Heard all[MIND_AT_ONCE] = {0};
    g_auto(Heard) more = {0}, after = {0};
    guint ids[MIND_AT_ONCE];
    MindAsk q = question("script", "slow");

    for (guint i = 0; i < MIND_AT_ONCE; i++)
        ids[i] = w->face.ask(w->face.ctx, &q, on_answer, &all[i]);
    ask(w, &q, &more);
    g_assert_error(more.error, ERR_DOMAIN, ERR_UNAVAILABLE);
    for (guint i = 1; i < MIND_AT_ONCE; i++)
        w->face.cancel(w->face.ctx, ids[i]);
    q = question("script", "good");
    ask(w, &q, &after);
    g_assert_no_error(after.error);
    for (guint i = 0; i < MIND_AT_ONCE; i++)
        g_assert_false(all[i].done);
    mind_world_free(w); /* with one under way */
    g_assert_false(all[0].done);
}

/* More who ask than there are boxes for: the one who was silent for the longest time makes room. */
static void
test_many_askers(void)
{
    MindWorld *w = mind_world_new(script);

    for (guint i = 0; i < MIND_BOXES_MAX + 2; i++) {
        g_auto(Heard) h = {0};
        g_autofree char *agent = g_strdup_printf("planner-%u", i);
        MindAsk q = question("script", "good");

        q.agent = agent;
        ask(w, &q, &h);
        g_assert_no_error(h.error);
        g_assert_true(g_str_has_prefix(h.text, agent));
        g_assert_cmpint(h.text[strlen(agent)], ==, ' ');
    }
    mind_world_free(w);
}

/* A door that dies with a question in it, and one that does not come back. */
static void
test_door_gone(void)
{
    MindWorld *w = mind_world_new(script);
    g_auto(Heard) slow = {0}, later = {0};
    MindAsk q = question("script", "slow");
    DoorStats stats = {0};

    w->face.ask(w->face.ctx, &q, on_answer, &slow);
    while (stats.connections == 0) {
        g_main_context_iteration(NULL, TRUE);
        door_stats(w->bench->door, &stats);
    }
    g_clear_pointer(&w->bench->control, door_control_free);
    g_clear_pointer(&w->bench->door, door_free);
    while (!slow.done)
        g_main_context_iteration(NULL, TRUE);
    g_assert_error(slow.error, ERR_DOMAIN, ERR_UNAVAILABLE);
    q = question("script", "good");
    ask(w, &q, &later);
    g_assert_error(later.error, ERR_DOMAIN, ERR_UNAVAILABLE);
    mind_world_free(w);
}

/* Real providers of both dialects, each in its own words. */
static void
test_dialects(void)
{
    static const struct {
        const char *kind, *answer, *target, *asked;
    } cases[] = {
        {"anthropic",
         "{\"model\": \"m-1\", \"content\": [{\"type\": \"thinking\", \"thinking\": \"hm\"}, {\"type\": "
         "\"text\", "
         "\"text\": \"hello\"}], \"usage\": {\"input_tokens\": 5, \"output_tokens\": 6}}",
         "/messages",
         "{\"model\":\"m\",\"max_tokens\":100,\"messages\":[{\"role\":\"user\",\"content\":\"what next\"}],"
         "\"system\":\"be brief\"}"},
        {"compatible",
         "{\"model\": \"m-1\", \"choices\": [{\"message\": {\"role\": \"assistant\", \"content\": "
         "\"hello\"}}], "
         "\"usage\": {\"prompt_tokens\": 5, \"completion_tokens\": 6}}",
         "/chat/completions",
         "{\"model\":\"m\",\"max_tokens\":100,\"messages\":[{\"role\":\"system\",\"content\":\"be brief\"},"
         "{\"role\":\"user\",\"content\":\"what next\"}]}"},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        MindWorld *w = mind_world_new(script);
        Upstream up;
        g_auto(Heard) h = {0};
        MindAsk q = question("up", "m");

        upstream_init(&up);
        up.answer = cases[i].answer;
        g_autofree char *provider = upstream_provider(&up, cases[i].kind, ",\"models\":[\"m\"]");

        mind_world_provider(w, provider, "");
        ask(w, &q, &h);
        g_assert_no_error(h.error);
        g_assert_cmpstr(h.text, ==, "hello");
        g_assert_cmpstr(h.model, ==, "m-1");
        g_assert_cmpuint(h.input, ==, 5);
        g_assert_cmpuint(h.output, ==, 6);
        g_assert_true(g_str_has_suffix(up.target, cases[i].target));
        g_assert_cmpstr(up.body, ==, cases[i].asked);
        g_clear_pointer(&w->mind, serve_mind_free);
        upstream_clear(&up);
        mind_world_free(w);
    }
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/mind/answers", test_answers);
    g_test_add_func("/mind/refusals", test_refusals);
    g_test_add_func("/mind/no-provider", test_no_provider);
    g_test_add_func("/mind/told-and-bounded", test_told_and_bounded);
    g_test_add_func("/mind/cancel-and-many", test_cancel_and_many);
    g_test_add_func("/mind/many-askers", test_many_askers);
    g_test_add_func("/mind/door-gone", test_door_gone);
    g_test_add_func("/mind/dialects", test_dialects);
    return g_test_run();
}

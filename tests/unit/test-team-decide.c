/* SPDX-License-Identifier: Apache-2.0 */
/* What a task does next, where that is a matter of time. */
#include <string.h>

#include "base/err.h"
#include "team/flow-private.h"

enum { RETRY_MS = 1000, ENDED_MS = 100 * 1000 };

static Json *
decode(const char *text)
{
    g_autoptr(GError) error = NULL;
    Json *value = json_decode(text, strlen(text), &error);

    g_assert_no_error(error);
    return value;
}

typedef struct PauseCase {
    const char *agents; /* JSON */
    gint64 tries, now_ms;
    FlowDo what;
    gint64 wake_ms;
} PauseCase;

static Json *
make_rows(const PauseCase *c, const char *state, const char *rung)
{
    g_autoptr(Json) agents = decode(c->agents);
    Json *task = json_pack("{s:s, s:s, s:i, s:I, s:i, s:n, s:s, s:{s:s}}", "state", state, "rung", rung,
                           "round", 1, "tries", (json_int_t)c->tries, "wake_us", 0, "ending", "repository_id",
                           "r", "policy", "until", strcmp(state, "working") == 0 ? "tested" : "merged");
    Json *steps = decode("[{\"id\": \"a\", \"state\": \"done\"}, {\"id\": \"b\", \"state\": \"done\"}]");

    return json_pack("{s:o, s:O, s:o}", "task", task, "agents", agents, "steps", steps);
}

static void
check_pause(const PauseCase *c, const char *state, const char *rung)
{
    static const TeamLimits limits = {.retry_ms = RETRY_MS};
    g_autoptr(Json) rows = make_rows(c, state, rung);
    FlowChoice choice = flow_decide(
        &(FlowView){.rows = rows, .limits = &limits, .now_us = c->now_ms * 1000, .bound = ""});

    g_assert_cmpint(choice.what, ==, c->what);
    g_assert_cmpint(choice.wake_us, ==, c->wake_ms * 1000);
}

#define LOOKER(kind, state, ended)                                                                           \
    "{\"kind\": \"" kind "\", \"try\": 1, \"review_id\": 0, \"state\": \"" state "\", \"ended_us\": " ended  \
    "}"
#define ENDED "100000000"

/* Who looks and is lost: again after a pause that doubles, counted from the end. */
static void
test_lookers_pause(void)
{
    static const PauseCase cases[] = {
        {"[" LOOKER("review", "lost", ENDED) "]", 0, ENDED_MS, FLOW_REST, ENDED_MS + RETRY_MS},
        {"[" LOOKER("review", "failed", ENDED) "]", 0, ENDED_MS + 999, FLOW_REST, ENDED_MS + RETRY_MS},
        {"[" LOOKER("review", "lost", ENDED) "]", 0, ENDED_MS + RETRY_MS, FLOW_AGAIN, 0},
        {"[" LOOKER("review", "lost", ENDED) "]", 2, ENDED_MS + RETRY_MS, FLOW_REST, ENDED_MS + 4 * RETRY_MS},
        {"[" LOOKER("test", "lost", ENDED) ", " LOOKER("review", "working", "0") "]", 0, ENDED_MS, FLOW_REST,
         ENDED_MS + RETRY_MS},
        /* The other may be due before. */
        {"[" LOOKER("test", "lost", ENDED) ", " LOOKER("review", "lost", "99000000") "]", 0, ENDED_MS,
         FLOW_AGAIN, 0},
        {"[" LOOKER("test", "lost", ENDED) ", " LOOKER("review", "lost", "99500000") "]", 0, ENDED_MS,
         FLOW_REST, ENDED_MS + RETRY_MS / 2},
        /* There is nothing to wait for where nobody has the model. */
        {"[{\"kind\": \"review\", \"try\": 1, \"state\": \"failed\", \"ended_us\": " ENDED
         ", \"report\": {\"reason\": \"no_model\"}}]",
         0, ENDED_MS, FLOW_AGAIN, 0},
        /* A clock that was set back makes nobody wait for an hour. */
        {"[" LOOKER("review", "lost", "9900000000") "]", 0, ENDED_MS, FLOW_AGAIN, 0},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++)
        check_pause(&cases[i], "reviewing", "ready");
}

/* The same of who runs the checks of all steps together; one that saw them fail is judged at once. */
static void
test_checker_pauses(void)
{
    static const PauseCase cases[] = {
        {"[" LOOKER("check", "lost", ENDED) "]", 1, ENDED_MS, FLOW_REST, ENDED_MS + 2 * RETRY_MS},
        {"[" LOOKER("check", "lost", ENDED) "]", 0, ENDED_MS + RETRY_MS, FLOW_CHECKED, 0},
        {"[{\"kind\": \"check\", \"state\": \"done\", \"ended_us\": " ENDED
         ", \"result\": {\"passed\": false}}]",
         0, ENDED_MS, FLOW_CHECKED, 0},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++)
        check_pause(&cases[i], "working", "branch");
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/decide/lookers-pause", test_lookers_pause);
    g_test_add_func("/decide/checker-pauses", test_checker_pauses);
    return g_test_run();
}

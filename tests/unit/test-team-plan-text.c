/* SPDX-License-Identifier: Apache-2.0 */
/* The plan provider's text. */
#include <glib.h>
#include <string.h>

#include "team/plan-text.h"

#define SECOND G_GINT64_CONSTANT(1000000)

static char *
format(const char *text)
{
    g_autofree char *json = g_strdelimit(g_strdup(text), "'", '"');
    g_autoptr(GError) error = NULL;
    g_autoptr(Json) facts = json_decode(json, strlen(json), &error);

    g_assert_no_error(error);
    return plan_text_format(facts);
}

static void
test_whole(void)
{
    g_autofree char *text = format(
        "{'task': {'title': 't', 'state': 'working', 'problem': null}, 'plan': {'project': "
        "'Shop', 'minutes': 9}, 'now_us': 1000000000, 'steps': [{'title': 'multiply', 'role': "
        "'coder', 'state': 'done', 'started_us': 100000000, 'ended_us': 280000000}, {'title': 'divide', "
        "'role': 'coder', 'state': 'working', 'started_us': 940000000, 'ended_us': 0}, {'title': "
        "'docs', 'role': 'writer', 'state': 'waiting', 'started_us': 0, 'ended_us': 0}], 'agents': "
        "[{'name': 'coder-1', 'role': 'coder', 'kind': 'work', 'state': 'working', 'step': 'divide'}, "
        "{'name': 'tester', 'role': 'tester', 'kind': 'test', 'state': 'starting', 'step': null}], "
        "'messages': [{'name': 'coder-1', 'seen_by': 'agent', 'text': 'done\\n\\nStatus: all is well', "
        "'created_us': 950000000}]}");

    g_assert_cmpstr(text, ==,
                    "Project: Shop\n"
                    "Status: working\n"
                    "Progress: 1/3\n"
                    "Phase: implementation\n"
                    "\n"
                    "Active agents:\n"
                    "- coder-1 (coder): divide [working]\n"
                    "- tester (tester): test [starting]\n"
                    "\n"
                    "Recent updates:\n"
                    "- 1970-01-01T00:01:40.000000Z coop: begun: multiply\n"
                    "- 1970-01-01T00:04:40.000000Z coop: done: multiply\n"
                    "- 1970-01-01T00:15:40.000000Z coop: begun: divide\n"
                    "- 1970-01-01T00:15:50.000000Z coder-1 (agent): done  Status: all is well\n"
                    "\n"
                    "Next steps:\n"
                    "1. divide (coder)\n"
                    "2. docs (writer)\n"
                    "3. Test and review the change (tester, reviewer)\n"
                    "4. Run the checks in a clean box and merge (coop)\n"
                    "\n"
                    "Estimated time left: about 5 min\n");
}

#define EMPTY "'steps': [], 'agents': [], 'messages': [], 'now_us': 1"
#define NO_PLAN "'plan': null, " EMPTY
#define PLAN "'plan': {'project': 'p', 'minutes': 3, 'steps': [{'title': 'a', 'role': 'coder'}]}, " EMPTY

static void
test_states(void)
{
    static const struct {
        const char *facts, *part;
    } cases[] = {
        {"{'task': {'title': 'a\\nb', 'state': 'queued'}, " NO_PLAN "}",
         "Project: a b\nStatus: queued\nProgress: 0/0\n"},
        {"{'task': {'title': 't', 'state': 'queued'}, " NO_PLAN "}",
         "Next steps:\n1. Make the plan (planner)\n2. Test and review the change (tester, reviewer)\n3. Run"},
        {"{'task': {'title': 't', 'state': 'queued'}, " NO_PLAN "}", "Estimated time left: not known yet\n"},
        {"{'task': {'title': 't', 'state': 'approving'}, " PLAN "}",
         "Next steps:\n1. Approve the plan (a person)\n2. a (coder)\n3. Test"},
        {"{'task': {'title': 't', 'state': 'approving'}, " PLAN "}", "about 3 min\n"},
        {"{'task': {'title': 't', 'state': 'blocked', 'blocked_from': 'landing', 'problem': 'red'}, " NO_PLAN
         "}",
         "Status: blocked: red\nProgress: 0/0\nPhase: checks and merge\n"},
        {"{'task': {'title': 't', 'state': 'landing'}, " NO_PLAN "}",
         "Next steps:\n1. Run the checks in a clean box and merge (coop)\n"},
        {"{'task': {'title': 't', 'state': 'done', 'problem': 'old'}, " PLAN "}", "Status: done\n"},
        {"{'task': {'title': 't', 'state': 'done'}, " PLAN "}",
         "Next steps:\n- none\n\nEstimated time left: none\n"},
        {"{'task': {'title': 't', 'state': 'cancelled'}, " PLAN "}",
         "Phase: stopped\n\nActive agents:\n- none\n\nRecent updates:\n- none\n"},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *text = format(cases[i].facts);

        if (strstr(text, cases[i].part) == NULL)
            g_error("case %zu: '%s' is not in '%s'", i, cases[i].part, text);
    }
}

/* No more than the newest are told, and no line is without end. */
static void
test_bounds(void)
{
    g_autofree char *longer = g_strnfill(1000, 'x');
    g_autoptr(Json) facts = json_pack("{s:{s:s, s:s}, s:n, s:[], s:[], s:[], s:i}", "task", "title", longer,
                                      "state", "working", "plan", "steps", "agents", "messages", "now_us", 1);

    for (int i = 0; i < 50; i++) {
        json_array_append_new(json_object_get(facts, "messages"),
                              json_pack("{s:s, s:s, s:s, s:I}", "name", "n", "seen_by", "agent", "text",
                                        longer, "created_us", (json_int_t)(i * SECOND)));
        json_array_append_new(json_object_get(facts, "steps"),
                              json_pack("{s:s, s:s, s:s, s:i, s:i}", "title", longer, "role", "coder",
                                        "state", "waiting", "started_us", 0, "ended_us", 0));
    }
    g_autofree char *text = plan_text_format(facts);
    g_auto(GStrv) lines = g_strsplit(text, "\n", -1);

    for (size_t i = 0; lines[i] != NULL; i++)
        g_assert_cmpuint(strlen(lines[i]), <, 300);
    g_assert_null(strstr(text, "00:00:41"));
    g_assert_nonnull(strstr(text, "00:00:42"));
    g_assert_nonnull(strstr(text, "\n20. "));
    g_assert_nonnull(strstr(text, "\n22. Run"));
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/team/plan-text/whole", test_whole);
    g_test_add_func("/team/plan-text/states", test_states);
    g_test_add_func("/team/plan-text/bounds", test_bounds);
    return g_test_run();
}
